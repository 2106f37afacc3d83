package insert

import "github.com/leafsql/leafsql/driver/internal/lex"

// set reads the assignments of INSERT … SET and what follows them.
func (w *writer) set() error {
	w.next()
	w.columns = w.cursor
	w.form = listed
	for {
		name, ok := w.column()
		if !ok || w.tok.Kind != '=' && w.tok.Kind != lex.Assign {
			return w.unread(w.Table)
		}
		w.next()
		if w.isKey(name) {
			w.keyColumn = w.width
			if err := w.keyValue(true); err != nil {
				return err
			}
		} else {
			w.expr(true)
		}
		w.width++
		if w.tok.Kind != ',' {
			break
		}
		w.next()
	}
	if w.tok.Kind == ')' || w.tok.Kind == lex.Bad {
		return w.unread(w.Table)
	}
	w.Rows = 1
	if w.keyColumn < 0 {
		w.insertText(filled, w.prevEnd, ", "+quoteName(w.Table.Key)+" = ")
		w.hole(key, w.prevEnd, w.prevEnd)
		w.made[len(w.made)-1].kind = key // it follows our own text
	}
	return w.tail()
}
