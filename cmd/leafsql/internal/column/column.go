// Package column makes ALTER TABLE statements that change one property of a column and keep its other properties. The
// statement is made from the definition in SHOW CREATE TABLE, so the column keeps its comment, its sign, its visibility
// and its other attributes.
//
//	def, err := column.FromCreateTable(create, "id")
//	sql := def.Widen().Alter("`shop`.`orders`")
//
// The output of SHOW CREATE TABLE must be quoted with backticks: sql_mode without ANSI_QUOTES, and
// sql_quote_show_create on. Errors are for people: the command prints them.
package column

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/leafsql/leafsql/internal/quote"
)

// A Definition is a column's definition in CREATE TABLE. It is comparable.
type Definition struct {
	name string // in backticks
	text string // the text after the name
}

// FromCreateTable returns a column's definition from the output of SHOW CREATE TABLE. It fails if the table has
// no such column.
func FromCreateTable(create, column string) (Definition, error) {
	name := quote.Name(column)
	for line := range strings.SplitSeq(create, "\n") {
		// Line breaks in comments are escaped as \n.
		if rest, ok := cutPrefixFold(strings.TrimLeft(line, " "), name+" "); ok {
			return Definition{name, strings.TrimSuffix(rest, ",")}, nil
		}
	}
	return Definition{}, fmt.Errorf("leafsql: column %s is not in the table's definition; check SHOW CREATE TABLE", column)
}

// cutPrefixFold is like strings.CutPrefix, but ignores case, because column names are case-insensitive.
func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// Alter returns the statement that changes the column of table to this definition. table is a quoted name.
func (d Definition) Alter(table string) string {
	return "ALTER TABLE " + table + " MODIFY COLUMN " + d.name + " " + d.text
}

// Add returns the statement that adds the column to another table. table is a quoted name.
func (d Definition) Add(table string) string {
	return "ALTER TABLE " + table + " ADD COLUMN " + d.name + " " + d.text
}

// AutoIncrement reports whether the column has AUTO_INCREMENT.
func (d Definition) AutoIncrement() bool {
	found := false
	d.mapWords(func(word string) string {
		found = found || strings.EqualFold(word, "AUTO_INCREMENT")
		return word
	})
	return found
}

// WithoutAutoIncrement removes AUTO_INCREMENT.
func (d Definition) WithoutAutoIncrement() Definition { return d.withoutWord("AUTO_INCREMENT") }

// Visible removes MariaDB's attribute INVISIBLE.
func (d Definition) Visible() Definition { return d.withoutWord("INVISIBLE") }

func (d Definition) withoutWord(attribute string) Definition {
	return d.mapWords(func(word string) string {
		if strings.EqualFold(word, attribute) {
			return ""
		}
		return word
	})
}

// WithAutoIncrement adds AUTO_INCREMENT, after the type and NOT NULL.
func (d Definition) WithAutoIncrement() Definition {
	if d.AutoIncrement() {
		return d
	}
	done := false
	d = d.mapWords(func(word string) string {
		if !done && strings.EqualFold(word, "NULL") {
			done = true
			return word + " AUTO_INCREMENT"
		}
		return word
	})
	if !done {
		d.text += " NOT NULL AUTO_INCREMENT"
	}
	return d
}

// integerType matches an integer type with its width: "int(10) unsigned zerofill".
var integerType = regexp.MustCompile(`(?i)^(tinyint|smallint|mediumint|int|integer|bigint)(\(\d+\))?( unsigned)?( zerofill)?`)

// Widen changes an integer column to BIGINT with the same sign. It returns the definition of a BIGINT column, or of a
// column that is not an integer, unchanged.
func (d Definition) Widen() Definition {
	m := integerType.FindStringSubmatch(d.text)
	if m == nil || strings.EqualFold(m[1], "bigint") {
		return d
	}
	width := ""
	if m[4] != "" {
		width = m[2] // the display width
	}
	d.text = "bigint" + width + m[3] + m[4] + d.text[len(m[0]):]
	return d
}

// mapWords replaces each unquoted word of the definition by f(word). If f returns "", it also removes the space
// before the word.
func (d Definition) mapWords(f func(string) string) Definition {
	var b strings.Builder
	text := d.text
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case c == '\'' || c == '`':
			end = quotedEnd(text, i)
		case isLetter(c):
			for end < len(text) && isLetter(text[end]) {
				end++
			}
			word := f(text[i:end])
			if word == "" {
				kept := strings.TrimSuffix(b.String(), " ")
				b.Reset()
				b.WriteString(kept)
			}
			b.WriteString(word)
			i = end
			continue
		}
		b.WriteString(text[i:end])
		i = end
	}
	d.text = b.String()
	return d
}

func isLetter(c byte) bool {
	return c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// quotedEnd returns the end of the quoted text that begins at i.
func quotedEnd(text string, i int) int {
	q := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && q == '\'':
			i++
		case text[i] == q && i+1 < len(text) && text[i+1] == q:
			i++
		case text[i] == q:
			return i + 1
		}
	}
	return len(text)
}
