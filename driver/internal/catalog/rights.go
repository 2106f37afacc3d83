package catalog

import (
	"context"
	"regexp"
	"strings"
)

// TriggerRights are on what a user has the right TRIGGER by its own grants, and so sees all triggers. What roles and PUBLIC add
// is not in them: the server does not show that.
type TriggerRights struct {
	all       bool
	databases map[string]bool // by pattern, each that has a grant: whether TRIGGER is in it
	tables    map[Name]bool
	foldsCase bool
}

// LogInAnew makes a new connection for each question: the server may hold the rights of one as they were at its login.
func (c *Catalog) LogInAnew() { c.db.SetMaxIdleConns(-1) }

// TriggerRights reads this user's rights, on MariaDB.
func (c *Catalog) TriggerRights(ctx context.Context) (*TriggerRights, error) {
	var user string
	if err := c.db.GetContext(ctx, &user, "SELECT CURRENT_USER()"); err != nil {
		return nil, err
	}
	at := strings.LastIndex(user, "@")
	grantee := "'" + user[:max(at, 0)] + "'@'" + user[at+1:] + "'"
	rows, err := c.db.QueryContext(ctx, "SELECT 0, '-', '-', privilege_type = 'TRIGGER' FROM information_schema.user_privileges WHERE BINARY grantee = ?"+
		" UNION ALL SELECT 1, table_schema, '-', privilege_type = 'TRIGGER' FROM information_schema.schema_privileges WHERE BINARY grantee = ?"+
		" UNION ALL SELECT 2, table_schema, table_name, privilege_type = 'TRIGGER' FROM information_schema.table_privileges WHERE BINARY grantee = ?", grantee, grantee, grantee)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	r := &TriggerRights{databases: make(map[string]bool), tables: make(map[Name]bool), foldsCase: c.FoldsCase}
	for rows.Next() {
		var level int
		var name Name
		var has bool
		if err := rows.Scan(&level, &name.DB, &name.Table, &has); err != nil {
			return nil, err
		}
		switch level {
		case 0:
			r.all = r.all || has
		case 1:
			r.databases[name.DB] = r.databases[name.DB] || has
		case 2:
			r.tables[name] = r.tables[name] || has
		}
	}
	return r, rows.Err()
}

// On reports whether the user has TRIGGER on a table. Of several grants on its database one alone counts, and which one it is
// depends on their patterns: TRIGGER has to be in all of them.
func (r *TriggerRights) On(table Name) bool {
	if r.all || r.tables[table] {
		return true
	}
	granted := false
	for pattern, has := range r.databases {
		if like(pattern, table.DB, r.foldsCase) {
			if !has {
				return false
			}
			granted = true
		}
	}
	return granted
}

// like reports whether a name matches the pattern of a grant.
func like(pattern, name string, foldsCase bool) bool {
	expr := "(?s)^"
	if foldsCase {
		expr = "(?is)^"
	}
	escaped := false
	for _, c := range pattern {
		switch {
		case !escaped && c == '\\':
			escaped = true
			continue
		case !escaped && c == '%':
			expr += ".*"
		case !escaped && c == '_':
			expr += "."
		default:
			expr += regexp.QuoteMeta(string(c))
		}
		escaped = false
	}
	return regexp.MustCompile(expr + "$").MatchString(name)
}
