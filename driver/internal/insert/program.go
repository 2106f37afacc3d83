package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A Program is the body of a stored program, or a view's select: what the
// server runs without its text being sent.
type Program struct {
	Text     string
	Settings Settings // as of when it was made
	DB       string   // what bare names in it mean
}

// Targets are the tables that INSERT, REPLACE and LOAD write in the program,
// each as often as it is named. Strings count as text where the program runs
// texts: EXECUTE could run them.
func (p Program) Targets() []TableName {
	r := p.reader()
	var targets []TableName
	var strs []string
	executes := false
	for prev := (lex.Token{}); !r.ended(); {
		at := r.tok
		switch {
		case at.Kind == lex.String:
			strs = append(strs, stringContent(r.str()))
		case at.Kind == lex.Word && prev.Kind != '.':
			executes = executes || r.isAny("execute", "prepare")
			// CREATE OR REPLACE is no REPLACE.
			if r.writes() && !(prev.Kind == lex.Word && lex.Is(p.Text[prev.Pos:prev.End], "or")) {
				if n, ok := r.target(); ok {
					targets = append(targets, n)
				}
				prev = lex.Token{}
				continue
			}
		}
		prev = at
		r.next()
	}
	if executes {
		for _, s := range strs {
			p.Text = s
			targets = append(targets, p.Targets()...)
		}
	}
	return targets
}

// target reads the table that the statement at the place writes, and stops
// behind its name.
func (r *reader) target() (n TableName, ok bool) {
	if r.accept("load") {
		for !r.is("into") || !r.peekIs("table") {
			if r.atEnd() {
				return n, false
			}
			r.next()
		}
		r.next()
		r.next()
	} else {
		r.next()
		for r.isAny("low_priority", "delayed", "high_priority", "ignore", "into") {
			r.next()
		}
	}
	if !r.atName() {
		return n, false
	}
	n, _, ok = r.tableName()
	return n, ok
}

// Names are the names in the program that begin with db.table.
func (p Program) Names() []TableName {
	r := p.reader()
	var names []TableName
	for !r.ended() {
		if !r.atName() {
			r.next()
			continue
		}
		if n, _, ok := r.tableName(); ok && n.DB != "" {
			names = append(names, n)
		}
	}
	return names
}

// Assigns says whether the program sets NEW's column, as a trigger may.
func (p Program) Assigns(column string) bool {
	r := p.reader()
	for starts := true; !r.ended(); {
		if !starts || !r.accept("set") {
			starts = r.tok.Kind == ';' || r.isAny("begin", "then", "else", "do", "loop", "repeat")
			r.next()
			continue
		}
		for !r.atEnd() {
			isNew := r.is("new")
			r.next()
			if isNew && r.tok.Kind == '.' {
				r.next()
				if r.atName() && strings.EqualFold(r.name(), column) {
					return true
				}
			}
			for !r.atEnd() && r.tok.Kind != ',' { // the value
				if r.tok.Kind != '(' || !r.parens() {
					r.next()
				}
			}
			if r.tok.Kind == ',' {
				r.next()
			}
		}
	}
	return false
}

func (p Program) reader() *reader {
	r := &reader{text: p.Text, settings: p.Settings, db: p.DB}
	r.s = scanner(p.Text, p.Settings, p.Settings.flags())
	r.next()
	return r
}
