// Package quote writes names and strings as SQL does.
//
//	"SELECT " + quote.Name("id") + " FROM " + quote.Qualified("shop", "orders")
//
// The package has no connection to a server. Except for [String], its output has the same meaning under every sql_mode.
package quote

import (
	"fmt"
	"strings"
)

// Name quotes an identifier.
func Name(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Qualified quotes the name of a table, trigger or routine together with its database.
func Qualified(database, name string) string { return Name(database) + "." + Name(name) }

// Table quotes a table's name or db.table, as a DSN writes it.
func Table(name string) string {
	if db, table := Split(name); db != "" {
		return Qualified(db, table)
	}
	return Name(name)
}

// Split cuts db.table, as a DSN writes it, at its last dot, since databases that are named after a domain have
// dots. db is empty for a table name without a database.
func Split(name string) (db, table string) {
	dot := strings.LastIndexByte(name, '.')
	return name[:max(dot, 0)], name[dot+1:]
}

// Names quotes identifiers as a list.
func Names(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = Name(n)
	}
	return strings.Join(quoted, ", ")
}

// String quotes a string for SQL that a person copies into a client. A backslash in the result is an escape
// character, as in the default sql_mode.
func String(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
}

// Literal returns a string literal that has the same meaning under every sql_mode and every character set.
func Literal(s string) string { return fmt.Sprintf("_utf8mb4 X'%X'", s) }
