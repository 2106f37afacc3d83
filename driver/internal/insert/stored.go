package insert

import (
	"encoding/hex"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// maxDepth is how many texts deep a text may be stored in others.
const maxDepth = 3

// stored reads the text that PREPARE … FROM or EXECUTE IMMEDIATE holds, from its
// first token. Of an expression the literals are read, with a placeholder for
// what is between them; a text in variables is not seen.
func (p *parser) stored(form string) error {
	var b strings.Builder
	for ; !p.atEnd() && !p.is("using"); p.next() {
		switch s := p.str(); p.tok.Kind {
		case lex.String:
			p.unescape(&b, s)
		case lex.HexString:
			b.WriteString(fromHex(s[len("x'") : len(s)-1]))
		case ',', '(', ')':
		case lex.Number:
			if !strings.HasPrefix(s, "0x") {
				b.WriteString(s)
				continue
			}
			b.WriteString(fromHex(s[len("0x"):]))
		case lex.Word:
			if s[0] != '_' && !p.isAny("concat", "concat_ws") {
				b.WriteString(" ? ")
			}
		default:
			b.WriteString(" ? ")
		}
	}
	if err := p.pass(); err != nil {
		return err
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

// fromHex is what hexadecimal digits stand for, as a string.
func fromHex(s string) string {
	if len(s)%2 == 1 {
		s = "0" + s
	}
	b, _ := hex.DecodeString(s)
	return string(b)
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
