package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// load reads LOAD DATA and LOAD XML. Only the server sees the rows of the file,
// so none can be filled; where the file gives the keys they are guarded like
// expressions, and a row without one fails.
func (p *parser) load() error {
	w := writer{parser: p, keyColumn: -1, firstEdit: len(p.made), firstText: len(p.texts), firstPlace: -1, lastHole: -1}
	p.lastCall, p.userMark, p.call = -1, false, 0
	p.next()
	xml := p.is("xml")
	if !xml && !p.is("data") {
		return p.pass()
	}
	for !p.is("into") || !p.peekIs("table") {
		if p.atEnd() {
			return nil
		}
		w.Replace = w.Replace || p.is("replace")
		w.Ignore = w.Ignore || p.is("ignore")
		p.next()
	}
	p.next()
	p.next()
	if !p.atName() && p.tok.Kind != '.' {
		return p.odd("a table named in an unknown form", plainForm)
	}
	t, _, err := p.target()
	if err != nil {
		return err
	}
	if t == nil {
		return p.pass()
	}
	p.room()
	w.Table = t
	if xml {
		return refuse(t, "LOAD XML reads rows that only the server sees", "load into another table and INSERT … SELECT from it")
	}
	err = w.loaded()
	if err != nil && err != errBroken {
		return err
	}
	if err != nil || p.broken {
		w.forget()
		return nil
	}
	return w.finish()
}

// loaded reads what follows the table, and guards the key.
func (w *writer) loaded() error {
	for !w.atEnd() && w.tok.Kind != '(' && !w.is("set") {
		switch {
		case w.accept("partition"):
			if w.tok.Kind != '(' || !w.parens() {
				return w.unread(w.Table)
			}
		case w.accept("character"):
			w.accept("set")
		default:
			w.next()
		}
	}
	var inList, inSet, value lex.Token // the key in the column list and in SET, and its value there
	listAt, list := w.prevEnd, false
	if w.tok.Kind == '(' {
		w.next()
		for more := w.tok.Kind != ')'; more; {
			list = true
			start := w.tok.Pos
			if w.tok.Kind == lex.Var {
				w.next()
				if w.atName() || w.tok.Kind == lex.String { // @`x`
					w.next()
				}
			} else if name, ok := w.column(); !ok {
				return w.unread(w.Table)
			} else if w.isKey(name) {
				inList = lex.Token{Pos: start, End: w.prevEnd}
			}
			if more = w.tok.Kind == ','; more {
				w.next()
			}
		}
		if w.tok.Kind != ')' {
			return w.unread(w.Table)
		}
		if !list {
			listAt = -1 // between the parentheses
			inList = lex.Token{Pos: w.tok.Pos, End: w.tok.Pos}
		}
		w.next()
	}
	set := w.accept("set")
	for more := set; more; {
		start := w.tok
		name, ok := w.column()
		if !ok || w.tok.Kind != '=' && w.tok.Kind != lex.Assign {
			return w.unread(w.Table)
		}
		w.next()
		from := w.tok.Pos
		w.expr(true)
		if w.isKey(name) {
			inSet, value = start, lex.Token{Pos: from, End: w.prevEnd}
		}
		if more = w.tok.Kind == ','; more {
			w.next()
		}
	}
	if !w.atEnd() || w.tok.Kind == lex.Bad {
		return w.unread(w.Table)
	}
	if inSet.End > 0 {
		w.guard(value.Pos, value.End)
		return nil
	}
	switch {
	case list && inList.End > 0:
		w.replaceText(always, inList.Pos, inList.End, keyVariable)
	case list || !w.lists():
		return refuse(w.Table, "LOAD DATA reads rows that only the server sees, without a key",
			"put the key into the file, or load into another table and INSERT … SELECT from it")
	case listAt < 0:
		w.insertText(always, inList.Pos, w.fileColumns())
	default:
		w.insertText(always, listAt, " ("+w.fileColumns()+")")
	}
	open, shut := w.guards()
	before := " SET "
	if set {
		before = ", "
	}
	w.insertText(always, w.prevEnd, before+quoteName(w.Table.Key)+" = "+open+keyVariable+shut)
	w.Wraps = true
	return nil
}

// lists says whether the key is among the columns of a file that lists none.
func (w *writer) lists() bool {
	w.allColumns()
	return w.keyColumn >= 0
}

// fileColumns is the list of the table's columns with the variable in the
// key's place.
func (w *writer) fileColumns() string {
	names := make([]string, len(w.Table.Columns))
	for i, c := range w.Table.Columns {
		names[i] = quoteName(c)
	}
	names[w.keyColumn] = keyVariable
	return strings.Join(names, ", ")
}
