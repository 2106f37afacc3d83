package survey

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A guard is a trigger that refuses rows without a key, so that a writer without mysql-leaf cannot take an
// AUTO_INCREMENT number.

// GuardName returns the name of the table's guard, at most 64 letters long.
func (t *Table) GuardName() string {
	const suffix = "_needs_id"
	name := []rune(t.Table.Table)
	return string(name[:min(len(name), 64-len(suffix))]) + suffix
}

// CreateGuard returns the statement that creates the guard.
func (t *Table) CreateGuard() string {
	const longest = 128 // longest MESSAGE_TEXT, in letters
	const message = "leafsql: %s: row without id: a writer without mysql-leaf, a trigger or a procedure; see leafsql check"
	name := []rune(t.Table.Table)
	if room := longest - len(message) + len("%s"); len(name) > room {
		name = append(name[:room-1:room-1], '…')
	}
	return "CREATE TRIGGER " + quote.Qualified(t.Database, t.GuardName()) + " BEFORE INSERT ON " + t.QuotedName() + " FOR EACH ROW IF COALESCE(NEW." + quote.Name(t.Column) + ", 0) = 0 THEN" +
		" SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = " + quote.String(fmt.Sprintf(message, string(name))) + "; END IF"
}

// guardTrigger matches a guard's CREATE TRIGGER, with the quoted table in its first group.
var guardTrigger = regexp.MustCompile("(?is)\\bBEFORE\\s+INSERT\\s+ON\\s*(?:" + identifier + "\\s*\\.\\s*)?(" + identifier + ")\\s*FOR\\s+EACH\\s+ROW\\b.*\\bSIGNAL\\b")

const identifier = "(?:`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|[^\\s`\".]+)"

// readGuard looks up the guard by its name: information_schema omits triggers that the user may not see and, on
// MariaDB, triggers of locked tables. Only the error "no such trigger" proves that there is no guard.
func (t *Table) readGuard(ctx context.Context) {
	if t.Err != nil || t.Shard.NoTriggers != "" {
		return
	}
	columns := make(map[string]any) // newer servers have one more column
	err := sqlx.NewDb(t.Shard.DB, "mysql").QueryRowxContext(ctx, "SHOW CREATE TRIGGER "+quote.Qualified(t.Database, t.GuardName())).MapScan(columns)
	switch {
	case servererr.Is(err, servererr.NoSuchTrigger):
		return
	case err != nil:
		t.GuardErr = fmt.Errorf("leafsql: cannot check whether %s has the trigger %s: %w; %s", t.Location(), t.GuardName(), err, databases.Hint(err))
		return
	}
	text, _ := columns["SQL Original Statement"].([]byte)
	if m := guardTrigger.FindSubmatch(text); m != nil && t.isNamed(string(m[1])) {
		t.HasGuard = true
		return
	}
	t.GuardErr = fmt.Errorf("leafsql: %s: the trigger %s is not the one that leafsql migrate creates for this table; drop it, or create it under another name", t.Location(), t.GuardName())
}

// isNamed reports whether an identifier, with or without quotes, is the table's name.
func (t *Table) isNamed(identifier string) bool {
	if q := identifier[:1]; q == "`" || q == `"` {
		identifier = strings.ReplaceAll(identifier[1:len(identifier)-1], q+q, q)
	}
	return t.Shard.SameName(identifier, t.Table.Table)
}
