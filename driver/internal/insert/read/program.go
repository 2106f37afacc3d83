package read

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A Program is the body of a stored program, or a view's select: what the
// server runs without its text being sent.
type Program struct {
	Text     string
	Header   bool            // it begins with CREATE … FUNCTION or the like
	Settings insert.Settings // as of when it was made
	DB       string          // what bare names in it mean
}

// Effects are those of running the program, without what it calls.
func (p Program) Effects() insert.Effects {
	var e effects
	r := p.reader()
	for p.Header && !r.ended() && !r.isAny("function", "procedure", "body") {
		r.next()
	}
	e.scan(r.s)
	return e.Effects
}

// Targets are the tables that INSERT, REPLACE and LOAD write in the program,
// each as often as it is named. Strings count as text where the program runs
// texts: EXECUTE could run them.
func (p Program) Targets() []insert.TableName {
	var targets []insert.TableName
	var strs []string
	executes := false
	r := p.reader()
	r.schema.Table = func(db, name string) (*insert.Table, error) {
		targets = append(targets, insert.TableName{DB: db, Table: name})
		return nil, nil
	}
	prev := r.tok
	for r.next(); !r.ended(); r.next() {
		switch before := p.Text[prev.Pos:prev.End]; {
		case r.tok.Kind == lex.String:
			strs = append(strs, stringContent(r.str()))
		case r.tok.Kind == lex.Word && prev.Kind != '.':
			executes = executes || r.isAny("execute", "prepare")
			if r.writes() && !lex.Is(before, "or") { // CREATE OR REPLACE is no REPLACE
				at := r.cursor
				_ = r.statement() // asks for its table, and for no other
				r.cursor = at
			}
		}
		prev = r.tok
	}
	if executes {
		for _, s := range strs {
			p.Text = s
			targets = append(targets, p.Targets()...)
		}
	}
	return targets
}

// SetsKey says whether the program may set NEW's column, as a trigger does: by SET, by
// INTO, or by a CALL with it.
func (p Program) SetsKey(column string) bool {
	r := p.reader()
	out := false // behind INTO or CALL
	prev := r.tok
	for r.next(); !r.ended(); r.next() {
		switch {
		case r.tok.Kind == ';' || r.is("from"):
			out = false
		case r.isAny("into", "call"):
			out = true
		case r.is("new") && r.peek().Kind == '.':
			first := prev.Kind == ',' || lex.Is(p.Text[prev.Pos:prev.End], "set")
			r.next()
			r.next()
			if next := r.peek().Kind; r.atName() && strings.EqualFold(r.name(), column) && (out || next == lex.Assign || first && next == '=') {
				return true
			}
		}
		prev = r.tok
	}
	return false
}

// reader is before the program's first token.
func (p Program) reader() *reader {
	r := &reader{text: p.Text, settings: p.Settings, Findings: insert.Findings{Use: p.DB}}
	r.s = scanner(p.Text, p.Settings)
	return r
}
