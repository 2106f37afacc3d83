package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// duplicate reads ON DUPLICATE KEY UPDATE and its list.
func (w *writer) duplicate() error {
	w.next()
	for _, word := range []string{"duplicate", "key", "update"} {
		if !w.accept(word) {
			return w.unread(w.Table)
		}
	}
	w.Upsert = true
	sets := false        // the list sets the key
	var itself lex.Token // the value of key = key
	for {
		name, ok := w.column()
		if !ok || w.tok.Kind != '=' && w.tok.Kind != lex.Assign {
			return w.unread(w.Table)
		}
		w.next()
		value := w.cursor
		w.expr(true)
		if w.isKey(name) {
			if !sets && w.isItself(value) {
				itself = lex.Token{Pos: value.tok.Pos, End: w.prevEnd}
			} else {
				itself = lex.Token{}
			}
			sets = true
		}
		if w.tok.Kind != ',' {
			break
		}
		w.next()
	}
	if w.tok.Kind == ')' || w.tok.Kind == lex.Bad {
		return w.unread(w.Table)
	}
	if !w.Table.UpsertMark || !w.Table.IntegerKey || w.lastCall >= 0 || w.userMark {
		return nil
	}
	column := w.target + "." + quoteName(w.Table.Key)
	mark := "IF(LAST_INSERT_ID(" + column + "), " + column + ", " + column + ")"
	if w.Rows > 1 && w.keyColumn >= 0 && w.Holes < w.Rows {
		// A row of the batch that names its own key and finds it says nothing
		// of the rows that are filled.
		mark = "IF(VALUES(" + quoteName(w.Table.Key) + ") = " + column + ", " + column + ", " + mark + ")"
	}
	switch {
	case !sets:
		w.UpsertMark = true
		w.insertText(filled, w.prevEnd, ", "+quoteName(w.Table.Key)+" = "+mark)
	case itself.End > 0 && !straddles(w.text[itself.Pos:itself.End]):
		w.UpsertMark = true
		w.replaceText(filled, itself.Pos, itself.End, mark)
	}
	return nil
}

// isItself says whether the value of an assignment, from its first token to
// this one, is the key of the row there already: not that of the row alias.
func (w *writer) isItself(value cursor) bool {
	v := writer{parser: &parser{cursor: value, text: w.text}}
	v.Table = w.Table
	if !v.atName() {
		return false
	}
	first := v.str()
	name, ok := v.column()
	if !ok || v.prevEnd != w.prevEnd || !w.isKey(name) {
		return false
	}
	written := w.target
	if first == w.table {
		written = w.table
	}
	return v.prevEnd-value.tok.Pos == len(name) || strings.HasPrefix(written+".", first+".")
}
