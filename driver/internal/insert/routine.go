package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// create reads CREATE. What a trigger or a routine will write is not written
// now, and cannot be seen when it is; only the end of its body matters.
//
// CREATE TABLE … SELECT fills a table that did not exist before: its rows keep
// the keys that the select gives them.
func (p *parser) create() error {
	for ; !p.atEnd(); p.next() {
		if p.isAny("trigger", "procedure", "function", "event", "package") {
			p.next()
			return p.routine()
		}
		if p.isAny("table", "view", "index", "database", "schema", "user", "role", "sequence", "server", "tablespace") {
			break
		}
	}
	return p.pass()
}

// routine goes past the body of a stored program, in which semicolons do not
// end the statement.
func (p *parser) routine() error {
	depth := 0 // blocks open
	dollars := !p.mode.VersionKnown || !p.mode.MariaDB
	prev := lex.Token{}
	for ; p.tok.Kind != lex.EOF && p.tok.Kind != lex.Bad; p.next() {
		if p.tok.Kind == ';' && depth <= 0 {
			return nil
		}
		if p.tok.Kind != lex.Word || prev.Kind == '.' {
			prev = p.tok
			continue
		}
		switch {
		case dollars && p.text[p.tok.Pos] == '$':
			dollars = p.dollars()
		case p.is("begin"):
			depth++
		case p.is("case"): // a statement or an expression: both have an END
			depth++
		case p.isAny("if", "loop", "while", "repeat", "for"):
			if p.opensBlock(prev, depth) {
				depth++
			}
		case p.is("end"):
			depth--
			prev = p.tok
			if t := p.peek(); t.Kind == lex.Word {
				switch p.text[t.Pos] | 0x20 {
				case 'i', 'c', 'l', 'w', 'r', 'f':
					p.next() // END IF
				}
			}
		}
		prev = p.tok
	}
	return nil
}

// opensBlock says whether a word that may be a function or a clause begins a
// statement, by what stands before and behind it.
func (p *parser) opensBlock(prev lex.Token, depth int) bool {
	next := p.peek()
	word := p.text[next.Pos:next.End]
	if next.Kind == lex.Word && (lex.Is(word, "not") && depth == 0 || lex.Is(word, "exists") || lex.Is(word, "each")) {
		return false
	}
	switch prev.Kind {
	case ';', ':':
		return true
	case ')':
		return depth == 0
	case lex.Word:
		before := p.text[prev.Pos:prev.End]
		for _, w := range []string{"begin", "then", "else", "do", "loop", "repeat"} {
			if lex.Is(before, w) {
				return next.Kind != '(' || !p.callsFunction()
			}
		}
		// After the characteristics of a routine, or FOR EACH ROW.
		return depth == 0 && !lex.Is(before, "return") && !lex.Is(before, "as") && !lex.Is(before, "select")
	}
	return false
}

// callsFunction says whether the group in parentheses behind the word holds a
// comma, as the arguments of IF() and REPEAT() do and a condition does not.
func (p *parser) callsFunction() bool {
	s := p.s
	depth := 0
	for range 1000 {
		switch s.Next().Kind {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return false
			}
		case ',':
			if depth == 1 {
				return true
			}
		case ';', lex.EOF, lex.Bad:
			return false
		}
	}
	return false
}

// dollars goes past a body in another language, which MySQL has between equal
// tags, as in $$ … $$. It reports whether more are to be looked for.
func (p *parser) dollars() bool {
	end := strings.IndexByte(p.text[p.tok.Pos+1:p.tok.End], '$')
	if end < 0 {
		return true
	}
	tag := p.text[p.tok.Pos : p.tok.Pos+end+2]
	return p.s.Past(p.tok.Pos+len(tag), tag)
}
