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
		switch {
		case p.isAny("procedure", "function", "library"):
			return p.skipProgram((*body).callable)
		case p.is("trigger"):
			return p.skipProgram((*body).trigger)
		case p.is("event"):
			return p.skipProgram((*body).event)
		case p.is("package"):
			return p.skipProgram((*body).pack)
		case p.isAny("table", "view", "index", "database", "schema", "user", "role", "sequence", "server", "tablespace"):
			return p.pass()
		}
	}
	return nil
}

// alter reads ALTER, in which an event can have a new body.
func (p *parser) alter() error {
	for ; !p.atEnd(); p.next() {
		if p.is("event") {
			return p.skipProgram((*body).event)
		}
		if p.isAny("table", "view", "database", "schema", "user", "procedure", "function", "sequence", "server") {
			break
		}
	}
	return p.pass()
}

// skipProgram goes past a stored program, in whose body semicolons do not end the
// statement. Should its end be mistaken nothing may come of it: what follows
// in the text is refused where it would be filled, and so is a text in which
// no end is found.
func (p *parser) skipProgram(header func(*body)) error {
	p.next()
	start := p.cursor
	b := body{parser: p}
	header(&b)
	b.read()
	p.program = true
	if len(b.open) == 0 {
		return nil
	}
	at := p.cursor
	p.cursor = start
	for ; p.tok.Kind != lex.EOF && p.tok.Kind != lex.Bad; p.next() {
		if p.tok.Kind == lex.Word && p.writes() {
			if err := p.odd("a stored program whose end is not found", "send it through another connection, without mysql-leaf"); err != nil {
				return err
			}
		}
	}
	p.cursor = at
	return nil
}

// A body reads the body of a stored program, by what ends each of its blocks.
type body struct {
	*parser
	open   []block
	starts bool // the next token begins a statement
}

// A block is what an END closes, named by the word that opened it.
type block string

const (
	caseValue block = "case value" // the expression
	declares  block = "declares"   // the declarations before the BEGIN of a program in sql_mode ORACLE
)

func (b *body) push(k block) { b.open = append(b.open, k) }

func (b *body) top() block {
	if len(b.open) == 0 {
		return ""
	}
	return b.open[len(b.open)-1]
}

// skipName goes past IF [NOT] EXISTS and the name.
func (b *body) skipName() {
	if b.accept("if") {
		b.accept("not")
		b.accept("exists")
	}
	for b.atName() {
		b.next()
		if b.tok.Kind != '.' {
			return
		}
		b.next()
	}
}

// event goes to the body of an event, if it has one.
func (b *body) event() {
	b.skipName()
	for !b.atEnd() && !b.starts {
		b.starts = b.accept("do")
		if !b.starts {
			b.next()
		}
	}
}

// trigger goes to the body of a trigger.
func (b *body) trigger() {
	b.skipName()
	for !b.atEnd() && !b.accept("each") {
		b.next()
	}
	b.accept("row")
	if b.isAny("follows", "precedes") && b.peek().Kind != ':' {
		b.next()
		b.skipName()
	}
	b.starts = true
}

// pack goes into a package.
func (b *body) pack() {
	for !b.atEnd() && !b.isAny("as", "is") {
		b.next()
	}
	if !b.atEnd() {
		b.next()
		b.push("package")
		b.starts = true
	}
}

// callable goes to the body of a procedure or a function.
func (b *body) callable() {
	b.skipName()
	if b.tok.Kind == '(' && !b.parens() {
		return
	}
	typed := false // RETURNS was there, so that RETURN begins the body
	for prev := ""; ; b.next() {
		if b.tok.Kind == '(' && !b.parens() || b.atEnd() {
			return
		}
		if b.tok.Kind != lex.Word {
			prev = ""
			continue
		}
		switch {
		case b.isAny("as", "is"):
			b.next()
			if b.tok.Kind == lex.String || b.tok.Kind == lex.Word && b.text[b.tok.Pos] == '$' {
				b.foreign()
				return
			}
			b.push(declares)
			b.starts = true
			return
		case b.is("returns"):
			typed = true
		case b.is("set") && (lex.Is(prev, "returns") || lex.Is(prev, "character") || lex.Is(prev, "char")):
		case b.is("return") && !typed: // a type, in sql_mode ORACLE
		case b.peek().Kind == ':' || b.beginsBody():
			b.starts = true
			return
		}
		prev = b.str()
	}
}

// beginsBody says whether the word is none of the characteristics of a routine
// but the first of its body.
func (b *body) beginsBody() bool {
	return b.isAny("begin", "if", "case", "loop", "while", "repeat", "for", "declare",
		"select", "insert", "update", "delete", "replace", "set", "call", "return", "with", "do", "values", "table", "truncate",
		"signal", "resignal", "execute", "prepare", "deallocate", "create", "drop", "alter", "rename", "grant", "revoke", "show",
		"start", "commit", "rollback", "savepoint", "release", "lock", "unlock", "flush", "analyze", "optimize", "check", "repair",
		"get", "kill", "load", "use", "handler", "explain")
}

// foreign goes past a body in another language, which MySQL has in a string or
// between equal tags, as in $$ … $$.
func (b *body) foreign() {
	if b.tok.Kind != lex.Word {
		return
	}
	end := strings.IndexByte(b.text[b.tok.Pos+1:b.tok.End], '$')
	if end < 0 {
		return
	}
	tag := b.text[b.tok.Pos : b.tok.Pos+end+2]
	b.s.Past(b.tok.Pos+len(tag), tag)
	b.next()
}

// read goes to the semicolon behind the body.
func (b *body) read() {
	prev := lex.Token{}
	for b.tok.Kind != lex.EOF && b.tok.Kind != lex.Bad {
		if b.tok.Kind == ';' {
			for b.top() == caseValue { // it was a name
				b.open = b.open[:len(b.open)-1]
			}
			if len(b.open) == 0 {
				return
			}
			b.starts = true
		} else {
			starts := b.starts
			b.starts = false
			if b.tok.Kind == ':' || b.tok.Kind == '>' && prev.Kind == '>' {
				b.starts = true // behind a label
			}
			if b.tok.Kind == lex.Word && prev.Kind != '.' {
				b.word(starts, prev)
			}
		}
		prev = b.tok
		b.next()
	}
}

// word reads a word of a body.
func (b *body) word(starts bool, prev lex.Token) {
	top := b.top()
	switch {
	case b.is("case"):
		if starts {
			b.push("case")
		} else {
			b.push(caseValue)
		}
	case b.is("end"):
		b.end(starts, prev)
	case b.isAny("then", "else"):
		b.starts = top != "" && top != caseValue
	case b.isAny("do", "loop") && !starts:
		b.starts = top == "while" || top == "for"
	case !starts:
		if b.is("for") && lex.Is(b.text[prev.Pos:prev.End], "handler") {
			b.conditions()
			b.starts = true
		}
	case b.is("begin"):
		if top == declares {
			b.open = b.open[:len(b.open)-1]
		}
		b.push("begin")
		b.starts = true
	case b.isAny("loop", "repeat"):
		b.push(block(strings.ToLower(b.str())))
		b.starts = true
	case b.isAny("if", "while", "for"):
		b.push(block(strings.ToLower(b.str())))
	}
}

// end closes a block, if the word END is no name here.
func (b *body) end(starts bool, prev lex.Token) {
	next := b.peek()
	word := b.text[next.Pos:next.End]
	closes, long := starts, false // long: END IF
	switch top := b.top(); top {
	case "":
		return
	case caseValue:
		closes = operandBefore(prev, b.text[prev.Pos:prev.End])
	case "begin", "package", declares:
	case "repeat": // behind the condition of UNTIL
		closes, long = lex.Is(word, "repeat"), true
	default:
		closes, long = starts && (lex.Is(word, string(top)) || lex.Is(word, "loop")), true
	}
	if closes {
		b.open = b.open[:len(b.open)-1]
		if long {
			b.next()
		}
	}
}

// operandBefore says whether an expression can end with the token.
func operandBefore(t lex.Token, text string) bool {
	switch t.Kind {
	case lex.Word:
		for _, w := range []string{"case", "when", "then", "else", "and", "or", "not", "xor", "is", "in", "like", "between", "div", "mod"} {
			if lex.Is(text, w) {
				return false
			}
		}
		return true
	case lex.Assign:
		return false
	}
	return text != "" && operand(text[len(text)-1])
}

// conditions goes to the last token of a handler's conditions.
func (b *body) conditions() {
	for {
		b.next()
		switch {
		case b.is("not"), b.is("sqlstate"):
			b.next()
			if b.is("value") {
				b.next()
			}
		}
		if b.peek().Kind != ',' {
			return
		}
		b.next()
	}
}
