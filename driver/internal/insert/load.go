package insert

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// load reads LOAD DATA and LOAD XML, whose rows only the server sees.
func (r *reader) load() error {
	w := r.newInsert()
	w.staged = true
	w.next()
	xml := w.is("xml")
	if !xml && !w.is("data") {
		w.toEnd()
		return nil
	}
	for !w.is("into") || !w.peekIs("table") {
		if w.atEnd() {
			return nil
		}
		w.Replace = w.Replace || w.is("replace")
		// A file that the client sends is read to its end: errors are warnings.
		w.Ignore = w.Ignore || w.isAny("ignore", "local")
		w.next()
	}
	w.Ignore = w.Ignore && !w.Replace
	w.next()
	w.next()
	if configured, err := w.readTarget(); err != nil || !configured {
		return err
	}
	return w.end(w.file(xml))
}

// file reads what follows the table.
func (w *insertReader) file(xml bool) error {
	w.source.from = w.targetEnd
	names := []string{}
	listAt, hasList := 0, false
	for !w.atEnd() && w.tok.Kind != '(' && !w.is("set") {
		switch {
		case w.accept("partition"):
			if w.tok.Kind != '(' || !w.parens() {
				return w.unreadable(w.Table)
			}
			w.source.from, w.targetEnd = w.prevEnd, w.prevEnd
		case w.accept("character"):
			w.accept("set")
		default:
			w.next()
		}
	}
	listAt = w.prevEnd
	if w.tok.Kind == '(' {
		w.next()
		for more := w.tok.Kind != ')'; more; {
			hasList = true
			start := w.tok.Pos
			if w.tok.Kind == lex.Var {
				w.next()
				if w.atName() || w.tok.Kind == lex.String { // @`x`
					w.next()
				}
			} else if name, ok := w.column(); !ok {
				return w.unreadable(w.Table)
			} else {
				w.unqualify(start, name)
				names = append(names, unquote(name))
			}
			if more = w.tok.Kind == ','; more {
				w.next()
			}
		}
		if w.tok.Kind != ')' {
			return w.unreadable(w.Table)
		}
		w.next()
		if !hasList {
			listAt = w.prevEnd - len(")")
		}
	}
	if !hasList {
		w.allColumns()
		names = append(names, w.Table.Columns...)
		if !xml { // whose fields have names
			list := quoteList(names)
			if w.prevEnd == listAt {
				list = " (" + list + ")"
			}
			w.insertText(always, listAt, list)
		}
	}
	for more := w.accept("set"); more; {
		start := w.tok.Pos
		name, ok := w.column()
		if !ok || w.tok.Kind != '=' && w.tok.Kind != lex.Assign {
			return w.unreadable(w.Table)
		}
		w.unqualify(start, name)
		names = append(names, unquote(name))
		w.next()
		w.expr(true)
		if more = w.tok.Kind == ','; more {
			w.next()
		}
	}
	if !w.atEnd() || w.tok.Kind == lex.Bad {
		return w.unreadable(w.Table)
	}
	w.endSource()
	w.loaded = distinct(names)
	return nil
}

// distinct leaves out names that came before, in any case.
func distinct(names []string) []string {
	var kept []string
	for _, n := range names {
		if !slices.ContainsFunc(kept, func(k string) bool { return strings.EqualFold(k, n) }) {
			kept = append(kept, n)
		}
	}
	return kept
}
