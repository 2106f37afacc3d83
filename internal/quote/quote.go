// Package quote writes names and strings as SQL does.
//
//	"SELECT " + quote.Name("id") + " FROM " + quote.In("shop", "orders")
//
// It runs nothing, and knows no settings: what it writes means the same under every
// sql_mode, but for [String].
package quote

import (
	"fmt"
	"strings"
)

// Name quotes an identifier.
func Name(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// In quotes the name of something in a database: a table, a trigger, a routine.
func In(database, name string) string { return Name(database) + "." + Name(name) }

// Table quotes a table's name or db.table, as a DSN writes it.
func Table(name string) string {
	if db, table, ok := strings.Cut(name, "."); ok {
		return In(db, table)
	}
	return Name(name)
}

// Names quotes identifiers as a list.
func Names(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = Name(n)
	}
	return strings.Join(quoted, ", ")
}

// String quotes a string for SQL that a person copies into a client, where a backslash
// escapes, as by default.
func String(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
}

// Literal is a string for statements that are sent: it means the same under every sql_mode
// and every character set.
func Literal(s string) string { return fmt.Sprintf("_utf8mb4 X'%X'", s) }
