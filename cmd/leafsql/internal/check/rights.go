package check

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// checkRights tries the driver's statements without changing anything: an EXPLAIN needs the same rights as the
// statement that it explains.
func (c *checker) checkRights(ctx context.Context) error {
	if store := c.Set.Store; c.Alloc.Exists && c.usesSegments() {
		before := len(c.findings)
		if err := c.checkTableRights(ctx, store, c.Alloc.Denied, c.translate("leaf_alloc: no ids can be issued"), schema.LeafAlloc(quote.Table(store.PlainName())), c.allocRightTests(store)); err != nil {
			return err
		}
		if len(c.findings) == before {
			if err := c.checkMarks(ctx, store); err != nil {
				return err
			}
		}
	}
	if err := c.checkLeaseRights(ctx); err != nil {
		return err
	}
	asked := make(map[string]bool)
	for _, shard := range c.Shards {
		user, err := shard.User(ctx)
		if err != nil {
			return err
		}
		for _, t := range shard.Tables {
			if t.DeniedRead {
				f := newTableFinding("rights", Error, t)
				f.Message = "This user has no right to read its key: leafsql cannot check that the next id is above the keys in use."
				f.SQL = []string{"GRANT SELECT ON " + t.QuotedName() + " TO " + user}
				c.add(f)
			}
			if place := shard.ID + t.Database; t.Err == nil && !asked[place] {
				asked[place] = true
				if err := c.checkStageRights(ctx, shard, t.Database, user); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// A rightTest is a right, and a statement that needs the right.
type rightTest struct{ right, text string }

// allocRightTests returns statements with the rights on leaf_alloc that a fetch and leafCreate need.
func (c *checker) allocRightTests(store *databases.Store) []rightTest {
	tries := []rightTest{
		{"SELECT", "EXPLAIN SELECT biz_tag, max_id, step FROM " + store.QuotedName() + " WHERE biz_tag = ''"},
		{"UPDATE", "EXPLAIN UPDATE " + store.QuotedName() + " SET max_id = 1 WHERE biz_tag = ''"},
	}
	if c.createsRows() {
		tries = append(tries, rightTest{"INSERT", "EXPLAIN INSERT INTO " + store.QuotedName() + " (biz_tag, max_id, step) VALUES ('', 1, 1)"})
	}
	return tries
}

// checkLeaseRights checks the table of worker ids.
func (c *checker) checkLeaseRights(ctx context.Context) error {
	l := c.Leases
	if l == nil {
		return nil
	}
	if !l.Exists {
		f := Finding{Code: "leases-missing", Severity: Error, Server: l.Table.Label, Table: l.Table.PlainName(),
			Message: "The table of worker ids does not exist: no snowflakes can be issued.",
			Fix:     "create it with leafsql init", SQL: []string{l.Create().SQL}}
		if !slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool { return !s.Config.Create }) {
			f.Severity, f.Message, f.Fix = Note, "The table does not exist yet: leafCreate=true creates it for the first snowflake.", ""
		}
		c.add(f)
		return nil
	}
	name := l.Table.QuotedName()
	return c.checkTableRights(ctx, l.Table, l.Denied, c.translate("leaf_worker: no snowflakes can be issued"), l.Create().SQL, []rightTest{
		{"SELECT", "EXPLAIN SELECT nonce, hw, free, owner, registry FROM " + name + " WHERE worker_id = 0"},
		{"INSERT", "EXPLAIN INSERT INTO " + name + " (worker_id, nonce, hw, free, owner, registry) VALUES (0, '', 0, 0, '', '')"},
		{"UPDATE", "EXPLAIN UPDATE " + name + " SET hw = 0 WHERE worker_id = 0"},
	})
}

// checkTableRights tries statements on a table. If denied is true, it is not certain that the table exists, and no right
// can be granted on a missing table.
func (c *checker) checkTableRights(ctx context.Context, table *databases.Store, denied bool, what, create string, tries []rightTest) error {
	user, err := table.User(ctx)
	if err != nil {
		return err
	}
	var lacking []string
	for _, try := range tries {
		rows, err := table.DB.QueryContext(ctx, try.text)
		if err == nil {
			rows.Close()
		}
		if databases.IsDenied(err) {
			lacking = append(lacking, try.right)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	f := Finding{Code: "rights", Severity: Error, Server: table.Label, Table: table.PlainName(),
		Message: c.sprintf("This user lacks %s on %s.", strings.Join(lacking, c.translate(" and ")), what),
		SQL:     []string{"GRANT " + strings.Join(lacking, ", ") + " ON " + table.QuotedName() + " TO " + user}}
	if denied {
		f.SQL = append([]string{create}, f.SQL...)
		f.Fix = "the table is created if it is missing, which this user has no right to see"
	}
	c.add(f)
	return nil
}

// checkStageRights tries to create a temporary table, which INSERT … SELECT and similar statements need.
func (c *checker) checkStageRights(ctx context.Context, shard *survey.Shard, database, user string) error {
	conn, err := shard.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	name := quote.Qualified(database, "leafsql_check")
	_, err = conn.ExecContext(ctx, "CREATE TEMPORARY TABLE "+name+" (n BIGINT NOT NULL PRIMARY KEY)")
	if err == nil {
		_, err = conn.ExecContext(ctx, "DROP TEMPORARY TABLE "+name)
		return err
	}
	if databases.IsDenied(err) {
		c.add(Finding{Code: "rights", Severity: Warning, Server: shard.Label, Table: database + ".*",
			Message: "This user has no right to create temporary tables: INSERT … SELECT, LOAD DATA and keys that are expressions are refused.",
			Fix:     "or ignore it if the application sends none of these",
			SQL:     []string{"GRANT CREATE TEMPORARY TABLES ON " + quote.Name(database) + ".* TO " + user}})
	}
	return nil
}

// hiddenObjects records which objects the user cannot see.
type hiddenObjects struct {
	triggers, events, routines bool
	bodies                     bool // bodies of routines
	views                      bool
	locked                     bool // objects of a table that another session is creating or altering
}

// findHidden finds out which kinds of stored programs the server hides from this user. The server gives no warning. Programs
// of any database can write a configured table.
func (c *checker) findHidden(ctx context.Context, shard *survey.Shard) (h hiddenObjects, err error) {
	grants, err := readGrants(ctx, shard)
	if err != nil {
		return h, err
	}
	h.triggers = !grants.allow("TRIGGER", "*", "*")
	h.events = !grants.allow("EVENT", "*", "*")
	h.routines = !grants.allow("SELECT", "*", "*") && !grants.allow("SHOW_ROUTINE", "*", "*") && !grants.allow("SHOW CREATE ROUTINE", "*", "*") && !grants.allow("SELECT", "mysql", "proc")
	return h, nil
}

func (c *checker) addHidden(shard *survey.Shard, schemas []string, h hiddenObjects) {
	var what, rights []string
	if h.triggers {
		what, rights = append(what, c.translate("all triggers")), append(rights, "TRIGGER")
	}
	if h.events {
		what, rights = append(what, c.translate("all events")), append(rights, "EVENT")
	}
	if h.views {
		what = append(what, c.translate("the text of views"))
	}
	if h.routines || h.bodies {
		what = append(what, c.translate("all routines"))
	}
	if h.locked {
		c.add(Finding{Code: "hidden", Severity: Unknown, Server: shard.Label,
			Message: "A table was locked while triggers were read: leafsql cannot check whether one of its triggers writes a configured table.",
			Fix:     "run the check again when no table is being created or altered"})
	}
	if len(what) == 0 {
		return
	}
	f := Finding{Code: "hidden", Severity: Unknown, Server: shard.Label,
		Message: c.sprintf("This user has no right to see %s: leafsql cannot check whether any of them writes a configured table.", strings.Join(what, c.translate(", "))),
		Fix:     "run the check as an administrator once; applications do not need these rights"}
	user, err := shard.User(context.Background())
	if err != nil {
		user = "this user"
	}
	if len(rights) > 0 {
		f.SQL = append(f.SQL, "GRANT "+strings.Join(rights, ", ")+" ON *.* TO "+user)
	}
	if h.views {
		for _, schema := range schemas {
			f.SQL = append(f.SQL, "GRANT SHOW VIEW ON "+quote.Name(schema)+".* TO "+user)
		}
	}
	if h.routines || h.bodies {
		grant := "GRANT SHOW_ROUTINE ON *.* TO "
		if shard.MariaDB {
			grant = "GRANT SELECT ON mysql.proc TO "
		}
		f.SQL = append(f.SQL, grant+user)
	}
	c.add(f)
}

// grants are the parsed lines of SHOW GRANTS.
type grants []struct {
	privileges []string
	db, table  string // in the server's spelling, without quotes; * for all
}

// grantLine matches the privileges, the database and the table in "GRANT SELECT, UPDATE ON `shop`.`orders` TO
// `app`@`%`" and "GRANT USAGE ON *.* TO …".
var grantLine = regexp.MustCompile("^GRANT (.+?) ON (?:TABLE )?(\\*|`(?:[^`]|``)*`)\\.(\\*|`(?:[^`]|``)*`) TO ")

// readGrants queries the user's rights, including the rights of the roles in use.
func readGrants(ctx context.Context, shard *survey.Shard) (grants, error) {
	query := "SHOW GRANTS"
	if !shard.MariaDB {
		var roles string
		if err := shard.DB.QueryRowContext(ctx, "SELECT CURRENT_ROLE()").Scan(&roles); err == nil && roles != "NONE" && roles != "" {
			query = "SHOW GRANTS FOR CURRENT_USER() USING " + roles
		}
	}
	lines, err := shard.List(ctx, query)
	if err != nil {
		return nil, err
	}
	var g grants
	for _, line := range lines {
		m := grantLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		unquote := func(s string) string { return strings.ReplaceAll(strings.Trim(s, "`"), "``", "`") }
		g = append(g, struct {
			privileges []string
			db, table  string
		}{strings.Split(m[1], ", "), unquote(m[2]), unquote(m[3])})
	}
	return g, nil
}

// allow reports whether a right is granted on a table, or on the whole database if table is *.
func (g grants) allow(right, db, table string) bool {
	for _, grant := range g {
		if !slices.Contains(grant.privileges, right) && !slices.Contains(grant.privileges, "ALL PRIVILEGES") {
			continue
		}
		switch {
		case grant.db == "*":
			return true
		case grant.table == "*" && db != "*" && likePattern(grant.db).MatchString(db):
			return true
		case grant.db == db && grant.table == table:
			return true
		}
	}
	return false
}

// likePattern returns the pattern of a database's name in a grant, in which _ and % are wildcards unless a \
// precedes them.
func likePattern(name string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '\\' && i+1 < len(name):
			i++
			b.WriteString(regexp.QuoteMeta(name[i : i+1]))
		case c == '_':
			b.WriteString(".")
		case c == '%':
			b.WriteString(".*")
		default:
			b.WriteString(regexp.QuoteMeta(name[i : i+1]))
		}
	}
	return regexp.MustCompile(b.String() + "$")
}
