package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A Program is the body of a stored program, or a view's select: what the
// server runs without its text being sent.
type Program struct {
	Text     string
	Header   bool     // it begins with CREATE … FUNCTION or the like
	Settings Settings // as of when it was made
	DB       string   // what bare names in it mean
}

// Effects are those of running the program, without what it calls.
func (p Program) Effects() (e Effects) {
	s := scanner(p.Text, p.Settings)
	for end := !p.Header; !end; {
		t := s.Next()
		word := p.Text[t.Pos:t.End]
		end = t.Kind == lex.EOF || t.Kind == lex.Word && (lex.Is(word, "function") || lex.Is(word, "procedure") || lex.Is(word, "body"))
	}
	e.scan(s)
	return e
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

// SetsKey says whether the program may set NEW's column, as a trigger does: by SET, by
// INTO, or by a CALL with it.
func (p Program) SetsKey(column string) bool {
	r := p.reader()
	var in string // the word that decides what NEW's column stands for here
	depth := 0
	for starts := true; !r.ended(); r.next() {
		target := starts && in == "set" || in == "into" || in == "call"
		starts = depth == 0 && (r.tok.Kind == ',' || r.is("set") && in != "set")
		switch {
		case r.tok.Kind == '(':
			depth++
		case r.tok.Kind == ')':
			depth--
		case r.tok.Kind == ';' || r.isAny("begin", "then", "else", "do", "loop", "repeat", "from"):
			in, depth = "", 0
		case r.isAny("set", "into", "call"):
			in = strings.ToLower(r.str())
		case r.is("new") && r.peek().Kind == '.':
			r.next()
			r.next()
			if r.atName() && strings.EqualFold(r.name(), column) && (target || r.peek().Kind == lex.Assign) {
				return true
			}
		}
	}
	return false
}

func (p Program) reader() *reader {
	r := &reader{text: p.Text, settings: p.Settings, db: p.DB}
	r.s = scanner(p.Text, p.Settings)
	r.next()
	return r
}
