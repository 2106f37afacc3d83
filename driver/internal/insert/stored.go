package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// maxDepth is how many texts deep a text may be stored in others.
const maxDepth = 3

// stored reads the text that PREPARE … FROM or EXECUTE IMMEDIATE holds. A text
// in a variable or an expression is not seen.
func (p *parser) stored(form string) error {
	var literal []lex.Token
	for ; !p.atEnd(); p.next() {
		if p.tok.Kind == lex.String && (len(literal) == 0 || literal[len(literal)-1].End == p.prevEnd) {
			literal = append(literal, p.tok)
		}
		if p.is("using") {
			break
		}
	}
	if err := p.pass(); err != nil || len(literal) == 0 {
		return err
	}
	var b strings.Builder
	for _, t := range literal {
		p.unescape(&b, p.text[t.Pos:t.End])
	}
	text := b.String()
	in := parser{
		mode:   p.mode,
		lookup: p.lookup,
		text:   text,
		db:     p.db,
		depth:  p.depth + 1,
	}
	in.s = p.s.Over(text)
	if in.depth > maxDepth {
		return in.anyTable(form)
	}
	err := in.statements()
	p.s.Seen |= in.s.Seen &^ lex.SeenComment
	p.need |= in.need
	if err != nil {
		return err
	}
	if len(in.inserts) > 0 {
		return refuse(in.inserts[0].Table, "it is written by the text in "+form, "send that text as a statement of its own")
	}
	return nil
}

// anyTable refuses a text that is stored too deep, if it names a configured
// table.
func (p *parser) anyTable(form string) error {
	p.next()
	for p.tok.Kind != lex.EOF && p.tok.Kind != lex.Bad {
		if !p.atName() {
			p.next()
			continue
		}
		t, _, err := p.target()
		if err != nil {
			return err
		}
		if t != nil {
			return refuse(t, "the text in "+form+" is nested too deep", "send it as a statement of its own")
		}
	}
	return nil
}

// unescape appends what a string literal says.
func (p *parser) unescape(b *strings.Builder, s string) {
	if s[0]|0x20 == 'n' {
		s = s[1:]
	}
	q := s[0]
	s = s[1 : len(s)-1]
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == q:
			i++ // it is doubled
		case c == '\\' && !p.s.NoBackslashEscapes && i+1 < len(s):
			i++
			switch c = s[i]; c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case 'b':
				c = '\b'
			case '0':
				c = 0
			case 'Z':
				c = 0x1a
			}
		}
		b.WriteByte(c)
	}
}
