package insert

import "github.com/leafsql/leafsql/driver/internal/lex"

// statements reads all statements of the text.
func (p *parser) statements() error {
	p.next()
	for p.tok.Kind != lex.EOF && p.tok.Kind != lex.Bad && !p.broken {
		if p.tok.Kind == ';' {
			p.s.Seen &^= lex.SeenComment
			p.next()
			continue
		}
		p.rows = false
		if err := p.statement(); err != nil {
			return err
		}
		p.s.Seen &^= lex.SeenComment
		p.results++
	}
	if p.s.Seen&lex.SeenComment != 0 {
		p.results++ // nothing but a comment answers too
	}
	for p.tok.Kind != lex.EOF { // placeholders count even in what is broken
		p.next()
	}
	return nil
}

// statement reads one statement, up to its end.
func (p *parser) statement() error {
	for {
		if p.tok.Kind != lex.Word {
			if p.tok.Kind == '<' { // a label of Oracle's kind
				p.inBlock()
			}
			return p.rest()
		}
		switch p.text[p.tok.Pos] | 0x20 {
		case 'i':
			if p.is("insert") {
				return p.insert()
			}
			if p.is("if") {
				p.inBlock()
			}
		case 'r':
			if p.is("replace") {
				return p.insert()
			}
			if p.is("repeat") {
				p.inBlock()
			}
		case 'u':
			if p.accept("use") {
				if p.atName() {
					p.db = p.name()
				}
				return p.rest()
			}
		case 'l':
			if p.is("load") {
				return p.load()
			}
			if p.is("loop") {
				p.inBlock()
			}
		case 'e':
			if p.is("explain") {
				return p.pass()
			}
			if p.is("execute") {
				p.useUnknown = true
				p.next()
				p.answersOften()
				if p.accept("immediate") {
					return p.stored("EXECUTE IMMEDIATE")
				}
			}
		case 'p':
			if p.is("prepare") {
				p.next()
				p.next()
				p.accept("from")
				return p.stored("PREPARE")
			}
		case 'd':
			if p.isAny("desc", "describe") {
				return p.pass()
			}
			if p.is("declare") {
				p.inBlock()
			}
		case 's':
			if p.is("show") {
				return p.pass()
			}
			if p.is("set") {
				p.next()
				if !p.accept("statement") {
					return p.rest()
				}
				if p.setStatement() {
					continue
				}
			}
		case 'a':
			if p.is("alter") {
				return p.alter()
			}
			if p.is("analyze") {
				if p.analyze() {
					continue
				}
				return p.rest()
			}
		case 'g':
			if p.is("grant") {
				return p.pass()
			}
		case 'c':
			if p.is("create") {
				return p.create()
			}
			if p.is("call") {
				p.answersOften()
			}
			if p.is("case") {
				p.inBlock()
			}
		case 'b':
			if p.accept("begin") {
				if !p.atEnd() && !p.is("work") {
					p.inBlock()
				}
				return p.rest()
			}
		case 'w':
			if p.is("while") {
				p.inBlock()
			}
		case 'f':
			if p.is("for") {
				p.inBlock()
			}
		}
		if p.is("revoke") || p.is("help") {
			return p.pass()
		}
		if p.peek().Kind == ':' { // a label
			p.inBlock()
		}
		return p.rest()
	}
}

// inBlock notes that a compound statement began. Where it ends is not read:
// what follows in the same text is treated as part of it.
func (p *parser) inBlock() {
	p.block = true
	p.answersOften()
}

// answersOften notes that the statement does not answer once.
func (p *parser) answersOften() {
	p.unknown, p.counted = true, p.results+1
}

// pass goes past a statement that mentions statements without running them.
func (p *parser) pass() error {
	for !p.atEnd() {
		p.next()
	}
	return nil
}

// setStatement goes past the assignments of MariaDB's SET STATEMENT … FOR.
func (p *parser) setStatement() bool {
	for !p.atEnd() {
		if p.tok.Kind == '(' {
			if !p.parens() {
				return false
			}
			continue
		}
		if p.accept("for") {
			return true
		}
		p.next()
	}
	return false
}

// analyze goes past MariaDB's ANALYZE [FORMAT = x] before a statement.
func (p *parser) analyze() bool {
	p.next()
	if p.accept("format") {
		if p.tok.Kind == '=' {
			p.next()
		}
		p.next()
	}
	p.rows = p.isAny("insert", "replace")
	return p.rows
}

// rest goes past the rest of a statement, in which an INSERT would stand at a
// place that is not known.
func (p *parser) rest() error {
	prev := lex.Token{}
	for !p.atEnd() {
		if p.tok.Kind == lex.Word && prev.Kind != '.' && p.writes() {
			if p.block {
				verb := p.insert
				if p.is("load") {
					verb = p.load
				}
				if err := verb(); err != nil {
					return err
				}
				continue
			}
			return p.odd(p.str()+" in a statement of an unknown form", plainForm)
		}
		if p.block && prev.Kind != '.' {
			if form := p.storedHere(); form != "" {
				p.useUnknown = true
				if err := p.stored(form); err != nil {
					return err
				}
				continue
			}
		}
		prev = p.tok
		p.next()
	}
	return nil
}

// storedHere says whether a text is executed or prepared at the place in a
// compound statement, and goes to the text.
func (p *parser) storedHere() string {
	switch {
	case p.is("execute"):
		p.useUnknown = true
		if !p.peekIs("immediate") {
			return ""
		}
		p.next()
		p.next()
		return "EXECUTE IMMEDIATE"
	case p.is("prepare"):
		s := p.s
		s.Next()
		if t := s.Next(); t.Kind != lex.Word || !lex.Is(p.text[t.Pos:t.End], "from") {
			return ""
		}
		p.next()
		p.next()
		p.next()
		return "PREPARE"
	}
	return ""
}

// writes says whether the word is one that begins a statement we care for, not
// the name of a function.
func (p *parser) writes() bool {
	switch p.tok.End - p.tok.Pos {
	case len("load"):
		return p.is("load")
	case len("insert"):
		return p.is("insert") && p.peek().Kind != '('
	case len("replace"):
		return p.is("replace") && p.peek().Kind != '('
	}
	return false
}

// plainForm is the way out for a statement of an unknown form.
const plainForm = "send it as a statement of its own, in a plain form"

// odd refuses a statement for a reason if the rest of it names a configured
// table.
func (p *parser) odd(reason, way string) error {
	for !p.atEnd() {
		if !p.atName() {
			p.next()
			continue
		}
		t, _, err := p.target()
		if err != nil {
			return err
		}
		if t != nil {
			return refuse(t, reason, way)
		}
	}
	return nil
}
