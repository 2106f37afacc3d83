package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/internal/serverid"
)

// checkLayout checks the definitions of leaf_alloc and leaf_worker, and whether their servers keep confirmed
// writes.
func (c *checker) checkLayout(ctx context.Context) error {
	if err := c.checkCharset(ctx, c.Set.Store, c.Alloc); err != nil {
		return err
	}
	c.checkStore(c.Set.Store, c.Alloc)
	c.checkLeaseTable()
	return nil
}

// checkCharset finds tags that leaf_alloc's character set cannot encode.
func (c *checker) checkCharset(ctx context.Context, store *databases.Store, alloc survey.Alloc) error {
	set := alloc.Columns["biz_tag"].Charset
	if set == "" || set == "utf8mb4" {
		return nil
	}
	for _, tag := range c.Tags {
		if !strings.ContainsFunc(tag.Name, func(r rune) bool { return r >= utf8.RuneSelf }) {
			continue
		}
		var kept string
		if err := store.DB.QueryRowContext(ctx, "SELECT CONVERT(CONVERT(? USING "+set+") USING utf8mb4)", tag.Name).Scan(&kept); err != nil {
			return fmt.Errorf("leafsql: the character set of leaf_alloc on %s: %w; %s", store.Label, err, databases.Hint(err))
		}
		if kept != tag.Name {
			c.unencodable[tag.Name] = true
			f := newFinder(store)("alloc-column", Error, c.sprintf("Its character set %s cannot hold the tag %s.", set, tag.Name), "ALTER TABLE "+store.QuotedName()+" CONVERT TO CHARACTER SET utf8mb4")
			f.Tag = tag.Name
			c.add(f)
		}
	}
	return nil
}

// checkStore checks a leaf_alloc.
func (c *checker) checkStore(store *databases.Store, alloc survey.Alloc) {
	here := newFinder(store)
	alter := "ALTER TABLE " + store.QuotedName() + " "
	if !alloc.Exists {
		if !c.usesSegments() {
			return
		}
		f := here("alloc-missing", Error, c.translate("The table does not exist, so no ids can be issued."), schema.LeafAlloc(quote.Table(store.PlainName())))
		f.Fix = "create it and its rows with leafsql init"
		c.add(f)
		return
	}
	if alloc.Denied {
		return // the finding "rights" reports this
	}
	c.checkKept(here, "alloc", store, alloc.Persistence, c.translate("a range that was issued"), c.translate("every fetch takes a transaction and five round trips, and a trigger that changes max_id makes it fail"))
	c.checkDurability(store, here)
	if alloc.Engine == survey.ViewEngine {
		return
	}
	if !alloc.Unique {
		c.add(here("alloc-key", Error, c.translate("biz_tag is neither the primary key nor unique: if a tag gets a second row, no ids are issued for it."), addKey(store, "biz_tag", alloc.Layout)))
	}
	c.checkColumns(alloc, here, alter)
}

func addKey(table *databases.Store, column string, l survey.Layout) string {
	key := "PRIMARY"
	if l.PrimaryKey {
		key = "UNIQUE"
	}
	return "ALTER TABLE " + table.QuotedName() + " ADD " + key + " KEY (" + column + ")"
}

// newFinder returns a function that makes findings about a table.
func newFinder(table *databases.Store) newFinding {
	return func(code string, severity Severity, message string, sql ...string) Finding {
		return Finding{Code: code, Severity: severity, Server: table.Label, Table: table.PlainName(), Message: message, SQL: sql}
	}
}

type newFinding = func(code string, severity Severity, message string, sql ...string) Finding

// usesSegments reports whether any table gets ids from leaf_alloc, or would get them if leaf_alloc existed.
func (c *checker) usesSegments() bool {
	return len(c.Tags) > 0 || slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool { return s.Config.Auto() })
}

// checkColumns compares leaf_alloc's columns with Leaf's.
func (c *checker) checkColumns(alloc survey.Alloc, here newFinding, alter string) {
	longest := 128
	for _, tag := range c.Tags {
		longest = max(longest, utf8.RuneCountInString(tag.Name))
	}
	for _, want := range []struct {
		name, def string
		fits      func(survey.Column) bool
	}{
		{"biz_tag", fmt.Sprintf("varchar(%d) NOT NULL DEFAULT ''", longest), c.fitsTags},
		{"max_id", "bigint NOT NULL DEFAULT 1", func(col survey.Column) bool { return strings.HasPrefix(col.Type, "bigint") && !col.Nullable }},
		{"step", "int NOT NULL", func(col survey.Column) bool {
			return !col.Nullable && (strings.HasPrefix(col.Type, "int") || strings.HasPrefix(col.Type, "bigint"))
		}},
	} {
		col, ok := alloc.Columns[want.name]
		switch {
		case !ok:
			c.add(here("alloc-column", Error, c.sprintf("It has no column %s.", want.name), alter+"ADD COLUMN "+want.name+" "+want.def))
		case !want.fits(col):
			null := ""
			if col.Nullable {
				null = c.translate(", and may be NULL")
			}
			c.add(here("alloc-column", Error, c.sprintf("Its column %s is of type %s%s.", want.name, col.Type, null), alter+"MODIFY COLUMN "+want.name+" "+want.def))
		}
	}
	updated, ok := alloc.Columns["update_time"]
	if !ok || !strings.Contains(updated.Extra, "on update") {
		verb := "ADD"
		if ok {
			verb = "MODIFY"
		}
		c.add(here("alloc-column", Note, c.translate("It does not store when a row changed, which Java Leaf's pages and leafsql tags show."),
			alter+verb+" COLUMN update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"))
	}
}

// fitsTags reports whether every configured tag fits into biz_tag.
func (c *checker) fitsTags(col survey.Column) bool {
	typ, rest, _ := strings.Cut(col.Type, "(")
	length, _ := strconv.Atoi(strings.TrimSuffix(rest, ")"))
	if typ != "varchar" && typ != "char" {
		return false
	}
	for _, tag := range c.Tags {
		if utf8.RuneCountInString(tag.Name) > length {
			return false
		}
	}
	return true
}

// checkKept checks whether a table can lose writes, or has triggers that change them.
func (c *checker) checkKept(here newFinding, prefix string, table *databases.Store, k survey.Persistence, what, triggered string) {
	switch {
	case k.Engine == survey.ViewEngine:
		f := here(prefix+"-engine", Warning, c.sprintf("It is a view: leafsql cannot check whether its table can lose %s.", what))
		f.Fix = "replace it by its table while no process runs"
		c.add(f)
	case k.Engine != "" && !strings.EqualFold(k.Engine, "InnoDB"):
		c.add(here(prefix+"-engine", Error, c.sprintf("Its engine is %s, which can lose %s when the server crashes.", k.Engine, what), "ALTER TABLE "+table.QuotedName()+" ENGINE = InnoDB"))
	}
	if len(k.Triggers) > 0 {
		f := here(prefix+"-trigger", Warning, c.sprintf("It has triggers (%s): %s.", strings.Join(k.Triggers, ", "), triggered))
		f.Fix = "drop them, if nothing else needs them"
		for _, name := range k.Triggers {
			f.SQL = append(f.SQL, "DROP TRIGGER "+quote.Qualified(table.Database, name))
		}
		c.add(f)
	}
}

// checkDurability checks whether the server of leaf_alloc keeps committed fetches. If the server loses a fetch, another
// process fetches the same range while the first process still uses it. If the configured tables are on another server,
// the rows with these ids still exist there.
func (c *checker) checkDurability(store *databases.Store, here newFinding) {
	if !c.usesSegments() {
		return
	}
	elsewhere := slices.ContainsFunc(c.Shards, func(s *survey.Shard) bool { return s.ID != store.ID })
	c.checkCommitLoss(store, func(variable, when string) Finding {
		f := here("alloc-durability", Warning, c.sprintf("%s: %s, the range of a running process may be issued to another process as well; then an INSERT fails with error 1062, and a REPLACE overwrites the other's row.", variable, when))
		if elsewhere {
			f = here("alloc-durability", Error, c.sprintf("%s on the server of leaf_alloc, and the rows are on other servers: a range that was issued is issued again %s.", variable, when))
		}
		f.Fix = "also write it into the server's configuration; once the server cannot lose commits, leafsql counts it as another server, so each tag's next fetch moves its row up by a margin once"
		return f
	})
}

// checkLeaseTable checks the definition of leaf_worker, and its server.
func (c *checker) checkLeaseTable() {
	if c.Leases == nil {
		return
	}
	table := c.Leases.Table
	here := newFinder(table)
	if c.Leases.Exists && !c.Leases.Denied && c.Leases.Engine != survey.ViewEngine {
		c.checkLeaseColumns(here, table)
	}
	c.checkKept(here, "leases", table, c.Leases.Persistence, c.translate("a lease, so that two processes have one worker id,"), c.translate("a trigger that changes a row can give its worker id to two processes"))
	c.checkCommitLoss(table, func(variable, _ string) Finding {
		return here("leases-durability", Warning, c.sprintf("%s: a crash can lose the last leases, so after a restart of the server a starting process waits for its first id, 135 s at the default lease.", variable))
	})
}

// checkLeaseColumns checks the columns and the key of leaf_worker. Its fix creates a new table. Processes treat the new
// table like a registry that was wiped, so no worker id is used twice.
func (c *checker) checkLeaseColumns(here newFinding, table *databases.Store) {
	var wrong []string
	for _, want := range []struct{ name, types string }{
		{"worker_id", "int bigint"}, {"nonce", "char varchar"}, {"hw", "bigint"}, {"free", "tinyint smallint int bigint"}, {"owner", "text mediumtext longtext varchar"}, {"registry", "char varchar"},
	} {
		col, ok := c.Leases.Columns[want.name]
		typ, _, _ := strings.Cut(col.Type, "(")
		typ, _, _ = strings.Cut(typ, " ")
		switch {
		case !ok:
			wrong = append(wrong, c.sprintf("it has no column %s", want.name))
		case !slices.Contains(strings.Fields(want.types), typ):
			wrong = append(wrong, c.sprintf("its column %s is of type %s", want.name, col.Type))
		}
	}
	if len(wrong) == 0 {
		if !c.Leases.Unique {
			c.add(here("leases-column", Error, c.translate("worker_id is neither the primary key nor unique: if a worker id gets a second row, it is refused."), addKey(table, "worker_id", c.Leases.Layout)))
		}
		return
	}
	f := here("leases-column", Error, c.sprintf("No worker id can be leased: %s.", strings.Join(wrong, ", ")),
		"RENAME TABLE "+table.QuotedName()+" TO "+quote.Qualified(table.Database, table.Table+"_old"), c.Leases.Create().SQL)
	f.Fix = "create the table again; processes that start then wait for their first id, as after any loss of a registry"
	c.add(f)
}

// checkCommitLoss adds a finding for each variable that allows a crash to undo commits that the server has
// confirmed. In a cluster the other nodes still have the commits that one node lost.
func (c *checker) checkCommitLoss(store *databases.Store, finding func(variable, when string) Finding) {
	if serverid.InCluster(store.Global) {
		return
	}
	for _, name := range []string{"innodb_flush_log_at_trx_commit", "sync_binlog"} {
		value, when := store.Global[name], c.translate("when the machine loses power")
		if name == "sync_binlog" && !strings.EqualFold(store.Global["log_bin"], "ON") || value == "1" || value == "" {
			continue
		}
		if name != "sync_binlog" && value == "0" {
			when = c.translate("when the server crashes")
		}
		f := finding(c.sprintf("%s is %s", name, value), when)
		f.SQL = []string{"SET GLOBAL " + name + " = 1"}
		if f.Fix == "" {
			f.Fix = "also write it into the server's configuration"
		}
		c.add(f)
	}
}
