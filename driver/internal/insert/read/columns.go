package read

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// This file reads the column list of an INSERT, or adds one if the INSERT has no list.

// A form is the way in which an INSERT names the columns of its values.
type form uint8

const (
	listed     form = iota // (a, b) VALUES …
	positional             // VALUES …
	empty                  // () VALUES …
	assigned               // SET a = …
)

// columnList reads the column list after its opening parenthesis.
func (w *insertReader) columnList() error {
	w.form = empty
	for more := w.tok.Kind != ')'; more; more = w.skip(',') {
		w.form = listed
		name, ok := w.column()
		if !ok {
			return w.unreadable(w.Table)
		}
		if w.isKey(name) {
			w.keyColumn = w.width
		}
		w.width++
	}
	if w.tok.Kind != ')' {
		return w.unreadable(w.Table)
	}
	if w.keyColumn < 0 {
		column := "" // for (), listColumns sets the text when the first row is read
		if w.form == listed {
			column = ", " + quote.Name(w.Table.Key)
		}
		w.insertText(insert.EditFilled, w.tok.Pos, column)
		w.listEdits = 1
	}
	w.next()
	return nil
}

// isKey reports whether a column's name, as written, is the key's name.
func (w *insertReader) isKey(name string) bool {
	return strings.EqualFold(lex.Unquote(name), w.Table.Key)
}

// allColumns sets the statement's columns to all columns of the table, and returns the list to insert
// between parentheses.
func (w *insertReader) allColumns() string {
	columns := w.Table.Columns
	if w.nameErr == nil {
		w.nameErr = w.needUTF8(columns...)
	}
	w.width, w.keyColumn = len(columns), indexFold(columns, w.Table.Key)
	if w.keyColumn < 0 { // the key is an invisible column
		columns = append(slices.Clip(columns), w.Table.Key)
	}
	return quote.Names(columns)
}

// indexFold returns the index of the first element of names that equals name in any case, or -1.
func indexFold(names []string, name string) int {
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// columnNames returns the columns that the statement writes, without the key if it is not listed.
func (w *insertReader) columnNames() []string {
	if w.form == positional {
		return w.Table.Columns
	}
	names := make([]string, 0, w.width)
	list := reader{cursor: w.columns, text: w.text}
	for range w.width {
		list.next()
		name, _ := list.column()
		names = append(names, lex.Unquote(name))
		if list.tok.Kind != ',' {
			list.skipExpr(list.closesList, nil) // the value, in SET
		}
	}
	return names
}

// restartRows discards the rows that were read and returns to the cursor at, so that the rows can be read in another way.
func (w *insertReader) restartRows(at cursor) {
	w.cursor = at
	w.Edits = w.Edits[:w.firstEdit+w.listEdits]
	w.Rows, w.RowsWithoutKey, w.ArgKeys, w.Positional, w.Floor, w.ExplicitKey, w.WritesZero = 0, 0, nil, false, 0, 0, false
}

// listColumns adds a column list to a statement without a list. For rows without values it lists only the key,
// otherwise all columns. All columns are listed even if every row has its key: without the list, another
// value would become the key after an ALTER TABLE that moves columns. at is the offset of the rows.
func (w *insertReader) listColumns(at int, noValues bool) {
	list, kind := quote.Name(w.Table.Key), insert.EditFilled
	w.form = empty
	if !noValues {
		list, kind = w.allColumns(), insert.EditAlways
		w.form, w.Positional = positional, true
	}
	if w.listEdits > 0 { // ()
		w.Texts[w.firstText], w.Edits[w.firstEdit].Kind = list, kind
	} else {
		w.insertText(kind, at, "("+list+") ")
	}
}

// needUTF8 returns an error if names, which are in UTF-8, cannot be written in the client's character set,
// in which the query is sent.
func (w *insertReader) needUTF8(names ...string) error {
	for _, name := range names {
		if asciiPrefix(name) == len(name) {
			continue
		}
		switch {
		case !w.settings.SessionKnown:
			w.needsSettings = true
			return errInvalid
		case !strings.HasPrefix(w.settings.Charset, "utf8"):
			return w.Table.Refuse("the name of its column "+name+" cannot be written in the client's character set "+w.settings.Charset, "connect with charset=utf8mb4")
		}
		return nil
	}
	return nil
}
