package insert

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// The column list, and rows whose values stand in the text: VALUES and SET.

// columnList reads the column list, whose first parenthesis was read.
func (w *insertReader) columnList() error {
	w.form = empty
	for more := w.tok.Kind != ')'; more; {
		w.form = listed
		name, ok := w.column()
		if !ok {
			return w.unreadable(w.Table)
		}
		if w.isKey(name) {
			w.keyColumn = w.width
		}
		w.width++
		if more = w.tok.Kind == ','; more {
			w.next()
		}
	}
	if w.tok.Kind != ')' {
		return w.unreadable(w.Table)
	}
	if w.keyColumn < 0 {
		column := "" // known when the first row is
		if w.form == listed {
			column = ", " + quote.Name(w.Table.Key)
		}
		w.insertText(filled, w.tok.Pos, column)
		w.listEdits = 1
	}
	w.next()
	return nil
}

// isKey says whether a name as written is the key's.
func (w *insertReader) isKey(name string) bool {
	if len(name) == len(w.Table.Key) && name == w.Table.Key {
		return true
	}
	if c := name[0]; c == '`' || c == '"' {
		name = unquote(name)
	}
	return strings.EqualFold(name, w.Table.Key)
}

// allColumns makes the statement one that lists the table's columns. It says
// what to insert between parentheses.
func (w *insertReader) allColumns() string {
	columns := w.Table.Columns
	if w.nameErr == nil {
		w.nameErr = w.needUTF8(columns...)
	}
	w.width, w.keyColumn = len(columns), w.Table.keyIn(columns)
	if w.keyColumn < 0 { // an invisible column
		columns = append(slices.Clip(columns), w.Table.Key)
	}
	return quote.Names(columns)
}

// keyIn is which of the names is the key's, -1 none.
func (t *Table) keyIn(names []string) int {
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, t.Key) })
}

// columnNames are the columns that the statement writes, without the key where
// it is not listed.
func (w *insertReader) columnNames() []string {
	if w.form == positional {
		return w.Table.Columns
	}
	names := make([]string, 0, w.width)
	list := reader{cursor: w.columns, text: w.text}
	for range w.width {
		list.next()
		name, _ := list.column()
		names = append(names, unquote(name))
		if list.tok.Kind != ',' {
			list.expr(list.closesList, nil) // the value, in SET
		}
	}
	return names
}

// values reads the rows of VALUES and what follows them.
func (w *insertReader) values() error {
	start := w.cursor
	w.source.from = w.tok.Pos
	w.next()
	for {
		w.accept("row")
		if w.tok.Kind != '(' {
			return w.unreadable(w.Table)
		}
		w.next()
		if w.Rows == 0 && w.form != listed {
			w.listColumns(start.tok.Pos, w.tok.Kind == ')')
		}
		if err := w.row(); err != nil {
			return err
		}
		w.Rows++
		if w.tok.Kind != ',' {
			break
		}
		w.next()
		if w.Rows == 1 && w.Lacking == 1 { // the others are about as long
			w.edits = slices.Grow(w.edits, min(1000, (len(w.text)-w.tok.Pos)/(w.tok.Pos-w.source.from)))
		}
	}
	if w.isAny("union", "except", "intersect", "limit", "order") { // a query, to MariaDB
		w.restart(start)
		return w.query()
	}
	return w.tail()
}

// restart forgets the rows, to read them in another way.
func (w *insertReader) restart(at cursor) {
	w.cursor = at
	w.edits = w.edits[:w.firstEdit+w.listEdits]
	w.Rows, w.Lacking, w.ArgKeys, w.Positional, w.Floor, w.OwnKey = 0, 0, nil, false, 0, 0
}

// listColumns makes a statement without columns one that lists the key alone, for rows
// without values, or else all. All are written out even where every row has its key:
// after an ALTER TABLE that moved the columns another value would be the key, perhaps
// one that asks the server for its own. at is where the rows begin.
func (w *insertReader) listColumns(at int, noValues bool) {
	list, kind := quote.Name(w.Table.Key), filled
	w.form = empty
	if !noValues {
		list, kind = w.allColumns(), always
		w.form, w.Positional = positional, true
	}
	if w.listEdits > 0 { // ()
		w.texts[w.firstText], w.edits[w.firstEdit].kind = list, kind
	} else {
		w.insertText(kind, at, "("+list+") ")
	}
}

// row reads a row, whose first parenthesis was read.
func (w *insertReader) row() error {
	switch noValues := w.tok.Kind == ')'; {
	case noValues != (w.form == empty):
		return errInvalid // a row of another length
	case noValues:
		w.gap(key, w.tok.Pos, w.tok.Pos)
		w.next()
		return nil
	}
	n := 0
	for more := true; more; n++ {
		if n == w.keyColumn {
			if err := w.keyValue(nil); err != nil {
				return err
			}
		} else {
			w.expr(nil, nil)
		}
		if more = w.tok.Kind == ','; more {
			w.next()
		}
	}
	if w.tok.Kind != ')' {
		return w.unreadable(w.Table)
	}
	if n != w.width && w.form != positional {
		return errInvalid // positional: the server tells (1136)
	}
	if w.keyColumn < 0 {
		w.gap(keyComma, w.tok.Pos, w.tok.Pos)
	}
	w.next()
	return nil
}

// assignments reads INSERT … SET and what follows it.
func (w *insertReader) assignments() error {
	w.source.from = w.tok.Pos
	w.columns = w.cursor
	w.next()
	w.form = assigned
	for {
		name, ok := w.column()
		if !ok || w.tok.Kind != '=' && w.tok.Kind != lex.Assign {
			return w.unreadable(w.Table)
		}
		w.next()
		if w.isKey(name) {
			w.keyColumn = w.width
			if err := w.keyValue(w.closesList); err != nil {
				return err
			}
		} else {
			w.expr(w.closesList, nil)
		}
		w.width++
		if w.tok.Kind != ',' {
			break
		}
		w.next()
	}
	if w.tok.Kind == ')' || w.tok.Kind == lex.Bad {
		return w.unreadable(w.Table)
	}
	w.Rows = 1
	if w.keyColumn < 0 {
		w.insertText(filled, w.prevEnd, ", "+quote.Name(w.Table.Key)+" = ")
		w.gap(key, w.prevEnd, w.prevEnd)
		w.spaceBehind()
	}
	return w.tail()
}

// spaceBehind keeps the key apart from a word that follows at once.
func (w *insertReader) spaceBehind() {
	if w.tok.Pos == w.prevEnd && w.tok.Kind == lex.Word {
		w.insertText(filled, w.prevEnd, " ")
	}
}

// gap notes a row without a key, which goes to text[pos:end].
func (w *insertReader) gap(kind editKind, pos, end int) {
	w.edit(kind, pos, end, w.params)
	w.Lacking++
}
