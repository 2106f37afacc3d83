package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A cursor is a place in the tokens of a text.
type cursor struct {
	s       lex.Scanner
	tok     lex.Token // the token at the place
	prevEnd int       // end of the token before it
	params  int       // placeholders up to and with it

	call     uint8 // tokens of a call of LAST_INSERT_ID read so far
	callPos  int   // where it began
	lastCall int   // where the last call without an argument began, -1 for none
	userMark bool  // a call with an argument was read
}

// A parser reads a text once, in one view. It never goes back but to retry a
// statement in another form.
type parser struct {
	cursor
	text   string
	mode   Mode
	lookup Lookup
	need   Need

	// What becomes the plan.
	usual      *Plan
	inserts    []Insert
	made       []edit
	texts      []string
	results    int
	useUnknown bool

	db      string // what USE said in this text
	block   bool   // in a compound statement, up to the end of the text
	program bool   // a stored program was defined
	unknown bool   // how often the statements before this one answer
	counted int    // from which statement on each answers once
	broken  bool   // no server runs the rest of the text
	rows    bool   // the statement answers with rows, whatever it is
	own     string // a name that the text does not hold
	depth   int    // texts around this one in which it is a string
}

// next goes on to the next token.
func (p *parser) next() {
	p.prevEnd = p.tok.End
	p.tok = p.s.Next()
	switch p.tok.Kind {
	case lex.Param:
		p.params++
	case lex.Word:
		if p.tok.End-p.tok.Pos == len("last_insert_id") && p.is("last_insert_id") {
			p.call, p.callPos = 1, p.tok.Pos
			return
		}
	}
	if p.call != 0 {
		p.callNext()
	}
}

// callNext notes a call of LAST_INSERT_ID.
func (p *parser) callNext() {
	switch {
	case p.call == 1 && p.tok.Kind == '(':
		p.call = 2
		return
	case p.call == 2 && p.tok.Kind == ')':
		p.lastCall = p.callPos
	case p.call == 2:
		p.userMark = true
	}
	p.call = 0
}

func (p *parser) str() string { return p.text[p.tok.Pos:p.tok.End] }

// is says whether the token is the unquoted word given in lower case.
func (p *parser) is(word string) bool {
	return p.tok.Kind == lex.Word && p.tok.End-p.tok.Pos == len(word) &&
		lex.Is(p.text[p.tok.Pos:p.tok.End], word)
}

func (p *parser) isAny(words ...string) bool {
	for _, w := range words {
		if p.is(w) {
			return true
		}
	}
	return false
}

// accept goes past the given word if it is there.
func (p *parser) accept(word string) bool {
	if p.is(word) {
		p.next()
		return true
	}
	return false
}

// atEnd says whether the statement ends here.
func (p *parser) atEnd() bool {
	k := p.tok.Kind
	return k == ';' || k == lex.EOF || k == lex.Bad
}

// peek returns the token after this one.
func (p *parser) peek() lex.Token {
	s := p.s
	return s.Next()
}

// atName says whether the token can be a name.
func (p *parser) atName() bool { return p.tok.Kind == lex.Word || p.tok.Kind == lex.Name }

// name returns the name the token is, without its quotes.
func (p *parser) name() string {
	return unquote(p.str())
}

func unquote(s string) string {
	q := s[0]
	if q != '`' && q != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, q) >= 0 {
		s = strings.ReplaceAll(s, string([]byte{q, q}), string(q))
	}
	return s
}

// quoteName writes a name so that it is one under every setting.
func quoteName(name string) string { return quotedAfter("", name) }

func quotedAfter(before, name string) string {
	if strings.IndexByte(name, '`') >= 0 {
		name = strings.ReplaceAll(name, "`", "``")
	}
	return before + "`" + name + "`"
}

// parens goes past a group in parentheses and reports whether it ends.
func (p *parser) parens() bool {
	depth := 0
	for {
		switch p.tok.Kind {
		case '(':
			depth++
		case ')':
			depth--
		case ';', lex.EOF, lex.Bad:
			return false
		}
		p.next()
		if depth == 0 {
			return true
		}
	}
}

// expr goes past an expression, up to the comma, the parenthesis or the end
// that closes it. In a list without parentheses the words that follow such a
// list end it too.
func (p *parser) expr(open bool) {
	depth := 0
	start := p.tok.Pos
	if p.tok.Kind == ',' || p.tok.Kind == ')' {
		p.broken = true // no expression
	}
	for {
		switch p.tok.Kind {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return
			}
			depth--
		case ',':
			if depth == 0 {
				return
			}
		case lex.Word:
			if open && depth == 0 && p.tok.Pos > start && p.closesList() {
				return
			}
		case ';', lex.EOF, lex.Bad:
			p.broken = p.broken || depth > 0
			return
		}
		p.next()
	}
}

// closesList says whether a word ends the assignments of SET or of an update
// list.
func (p *parser) closesList() bool {
	switch p.text[p.tok.Pos] | 0x20 {
	case 'o':
		return p.is("on")
	case 'a':
		return p.is("as")
	case 'r':
		return p.is("returning") && operand(p.text[p.prevEnd-1])
	}
	return false
}

// operand says whether a token that ends in c can end an expression.
func operand(c byte) bool {
	return c >= 0x80 || strings.IndexByte("=<>+-*/%&|^!~,(.", c) < 0
}
