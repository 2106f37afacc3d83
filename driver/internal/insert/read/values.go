package read

import (
	"slices"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// This file reads rows that are written in the query, by VALUES and SET.

// values reads the rows of VALUES. isQuery reports whether for MariaDB they are the start of a query
// expression.
func (w *insertReader) values() (isQuery bool, err error) {
	start := w.tok.Pos
	w.source.from = w.tok.Pos
	w.next()
	for {
		w.accept("row")
		if !w.skip('(') {
			return false, w.unreadable(w.Table)
		}
		if w.Rows == 0 && w.form != listed {
			w.listColumns(start, w.tok.Kind == ')')
		}
		if err := w.row(); err != nil {
			return false, err
		}
		w.Rows++
		if !w.skip(',') {
			break
		}
		if w.Rows == 1 && w.RowsWithoutKey == 1 { // assumes that the other rows are about as long
			w.Edits = slices.Grow(w.Edits, min(1000, (len(w.text)-w.tok.Pos)/(w.tok.Pos-w.source.from)))
		}
	}
	return w.isAny("union", "except", "intersect", "limit", "order"), nil
}

// row reads a row after its opening parenthesis.
func (w *insertReader) row() error {
	switch noValues := w.tok.Kind == ')'; {
	case noValues != (w.form == empty):
		return errInvalid // the rows differ in length
	case noValues:
		w.addKeyEdit(insert.EditKey, w.tok.Pos, w.tok.Pos)
		w.next()
		return nil
	}
	n := 0
	for more := true; more; more = w.skip(',') {
		if n == w.keyColumn {
			if err := w.keyValue(nil); err != nil {
				return err
			}
		} else {
			w.skipExpr(nil, nil)
		}
		n++
	}
	if w.tok.Kind != ')' {
		return w.unreadable(w.Table)
	}
	if n != w.width && w.form != positional {
		return errInvalid // a row without a column list is sent nevertheless, and the server checks it (error 1136)
	}
	if w.keyColumn < 0 {
		w.addKeyEdit(insert.EditCommaKey, w.tok.Pos, w.tok.Pos)
	}
	w.next()
	return nil
}

// assignments reads the assignments of INSERT … SET.
func (w *insertReader) assignments() error {
	w.source.from = w.tok.Pos
	w.columns = w.cursor
	w.next()
	w.form = assigned
	for more := true; more; more = w.skip(',') {
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
			w.skipExpr(w.closesList, nil)
		}
		w.width++
	}
	if w.tok.Kind == ')' || w.tok.Kind == lex.Bad {
		return w.unreadable(w.Table)
	}
	w.Rows, w.listEnd = 1, w.prevEnd
	if w.keyColumn < 0 {
		w.insertText(insert.EditFilled, w.prevEnd, ", "+quote.Name(w.Table.Key)+" = ")
		w.addKeyEdit(insert.EditKey, w.prevEnd, w.prevEnd)
		w.separateWord()
	}
	return nil
}
