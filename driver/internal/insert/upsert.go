package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// duplicate reads ON DUPLICATE KEY UPDATE and its list.
func (w *insertReader) duplicate() error {
	w.next()
	for _, word := range []string{"duplicate", "key", "update"} {
		if !w.accept(word) {
			return w.unreadable(w.Table)
		}
	}
	w.Upsert = true
	sets := false        // the list sets the key
	var itself lex.Token // the value of key = key
	for {
		name, ok := w.column()
		if !ok || w.tok.Kind != '=' && w.tok.Kind != lex.Assign {
			return w.unreadable(w.Table)
		}
		w.next()
		value := w.cursor
		w.expr(true)
		w.named = w.named || w.namesColumns(value)
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
		return w.unreadable(w.Table)
	}
	if !w.Table.UpsertMarker || !w.Table.IntegerKey || w.lastCall >= 0 || w.userCall >= 0 || w.rowSets >= 0 || w.Table.ReadsID && w.Rows != 1 || w.Table.UpdatesReadID {
		return nil
	}
	column := w.target + "." + quoteName(w.Table.Key)
	marker := "IF(LAST_INSERT_ID(" + column + "), " + column + ", " + column + ")"
	if w.keyColumn >= 0 && (w.staged || w.Rows > 1 && w.Lacking < w.Rows) {
		// A row of the batch that names its own key and finds it says nothing
		// of the rows that are filled.
		marker = "IF(VALUES(" + quoteName(w.Table.Key) + ") = " + column + ", " + column + ", " + marker + ")"
	}
	switch {
	case !sets:
		w.UpsertMarker = true
		w.insertText(filled, w.prevEnd, ", "+quoteName(w.Table.Key)+" = "+marker)
	case itself.End > 0 && !straddles(w.text[itself.Pos:itself.End]):
		w.UpsertMarker = true
		w.replaceText(filled, itself.Pos, itself.End, marker)
	}
	return nil
}

// namesColumns says whether the value of an assignment, from its first token to
// this one, may name a column other than in VALUES().
func (w *insertReader) namesColumns(value cursor) bool {
	v := reader{cursor: value, text: w.text}
	for v.tok.Pos < w.tok.Pos && !v.ended() {
		call := v.peek().Kind == '('
		switch {
		case call && v.isAny("values", "value"):
			v.next()
			v.parens()
			continue
		case v.atName() && !call:
			return true
		}
		v.next()
	}
	return false
}

// isItself says whether the value of an assignment, from its first token to
// this one, is the key of the row there already: not that of the row alias.
func (w *insertReader) isItself(value cursor) bool {
	v := reader{cursor: value, text: w.text}
	if !v.atName() {
		return false
	}
	first := v.str()
	name, ok := v.column()
	if !ok || v.prevEnd != w.prevEnd || !w.isKey(name) {
		return false
	}
	written := w.target
	if first == w.lastName {
		written = w.lastName
	}
	return v.prevEnd-value.tok.Pos == len(name) || strings.HasPrefix(written+".", first+".")
}
