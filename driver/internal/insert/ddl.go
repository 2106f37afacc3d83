package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// What a text changes of tables (CREATE, ALTER, DROP, RENAME), and where the stored
// programs that it defines end.

// create reads CREATE. CREATE TABLE … SELECT fills a table that did not exist
// before: its rows keep the keys that the select gives them.
func (r *reader) create() error {
	temporary := false
	for r.next(); !r.atEnd(); r.next() {
		switch {
		case r.is("temporary"):
			temporary = true
		case r.isAny("table", "view"):
			if r.is("view") {
				r.programChanged()
			}
			r.next()
			r.existence()
			r.changed(Change{Temporary: temporary})
			r.toEnd()
		case r.is("trigger"):
			r.triggered()
			return r.programDefined()
		case r.isAny("procedure", "function", "event", "package", "library"):
			return r.programDefined()
		case r.isAny("index", "database", "schema", "user", "role", "sequence", "server", "tablespace"):
			r.toEnd()
		}
		if r.atEnd() {
			return nil
		}
	}
	return nil
}

// programDefined notes that a text defines a routine or a trigger, and goes past it.
func (r *reader) programDefined() error {
	r.programChanged()
	return r.storedProgram()
}

// programChanged notes that a stored program is made or altered.
func (r *reader) programChanged() {
	r.changes = append(r.changes, Change{Program: true})
}

// triggered notes the table that a trigger is made for, without going on.
func (r *reader) triggered() {
	at := r.cursor
	for !r.atEnd() && !r.accept("on") {
		r.next()
	}
	r.changed(Change{})
	r.cursor = at
}

// alter reads ALTER. A table can get a new name, or another one's rows by EXCHANGE
// PARTITION … WITH TABLE, an event a new body.
func (r *reader) alter() error {
	for r.next(); !r.atEnd(); r.next() {
		switch {
		case r.isAny("table", "view"):
			if r.is("view") {
				r.programChanged()
			}
			r.next()
			r.existence()
			r.changed(Change{})
			for !r.atEnd() {
				switch {
				case r.accept("rename"):
					if r.isAny("to", "as") || r.tok.Kind == '=' {
						r.next()
					}
					r.changed(Change{})
				case r.is("with") && r.peekIs("table"):
					r.next()
					r.next()
					r.changed(Change{})
				default:
					r.next()
				}
			}
			return nil
		case r.is("event"):
			return r.storedProgram()
		case r.isAny("database", "schema", "user", "procedure", "function", "sequence", "server"):
			r.toEnd()
			return nil
		}
	}
	return nil
}

// drop reads DROP.
func (r *reader) drop() error {
	r.next()
	r.accept("temporary")
	switch {
	case r.isAny("table", "tables", "view"):
		r.next()
		r.existence()
		for r.changed(Change{Drop: true}) && r.tok.Kind == ',' {
			r.next()
		}
	case r.isAny("database", "schema"):
		r.next()
		r.existence()
		if r.atName() {
			r.changes = append(r.changes, Change{TableName: TableName{DB: r.name()}, Database: true})
		}
	}
	r.toEnd()
	return nil
}

// rename reads RENAME TABLE.
func (r *reader) rename() error {
	r.next()
	if r.isAny("table", "tables") {
		r.next()
		r.existence()
		for r.changed(Change{Drop: true}) && !r.atEnd() {
			if r.accept("wait") {
				r.next() // so many seconds
			}
			r.accept("nowait")
			r.next() // TO, a comma
		}
	}
	r.toEnd()
	return nil
}

// existence goes past IF [NOT] EXISTS.
func (r *reader) existence() {
	if r.accept("if") {
		r.accept("not")
		r.accept("exists")
	}
}

// changed notes the table at the place.
func (r *reader) changed(c Change) bool {
	if !r.atName() && r.tok.Kind != '.' {
		return false
	}
	var ok bool
	if c.TableName, _, ok = r.tableName(); ok {
		r.changes = append(r.changes, c)
	}
	return ok
}

// changedBefore says whether the text changes a table before this statement:
// what is known of it is out of date when the statement runs.
func (r *reader) changedBefore(n TableName) bool {
	for _, c := range r.changes {
		if c.Program {
			return true
		}
		sameDB := strings.EqualFold(c.DB, n.DB) || c.DB == "" || n.DB == ""
		if sameDB && (c.Database || strings.EqualFold(c.Table, n.Table)) {
			return true
		}
	}
	return false
}

// storedProgram goes past CREATE PROCEDURE and the like, in whose body
// semicolons do not end the statement. What it will write is not written now,
// and cannot be seen when it is; only the end of its body matters. Should a
// semicolon be taken for it that is not, what is before it is no statement a
// server runs; a text in which no end is found is refused, if it names a
// configured table.
func (r *reader) storedProgram() error {
	start := r.cursor
	var open []byte // the first letters of the words that opened the blocks
	for prev := (lex.Token{}); !r.ended(); r.next() {
		if r.tok.Kind == ';' && len(open) == 0 {
			break
		}
		if r.tok.Kind == lex.Word && prev.Kind != '.' {
			switch before := r.text[prev.Pos:prev.End]; {
			case r.is("end"):
				if len(open) > 0 && endsBlock(open[len(open)-1], prev, before) {
					open = open[:len(open)-1]
				}
			case !lex.Is(before, "end") && r.opensBlock(prev, before):
				open = append(open, r.text[r.tok.Pos]|0x20)
			case r.text[r.tok.Pos] == '$' && lex.Is(before, "as"):
				r.dollarQuoted()
			}
		}
		prev = r.tok
	}
	r.program = true
	if len(open) == 0 && r.tok.Kind != lex.Bad {
		return nil
	}
	at := r.cursor
	for r.cursor = start; !r.ended(); r.next() {
		if r.tok.Kind == lex.Word && r.writes() {
			if err := r.refuseNamed("a stored program whose end is not found", "send it through another connection, without mysql-leaf"); err != nil {
				return err
			}
		}
	}
	r.cursor = at
	return nil
}

// opensBlock says whether the word begins what an END ends.
func (r *reader) opensBlock(prev lex.Token, before string) bool {
	switch r.text[r.tok.Pos] | 0x20 {
	case 'b':
		return r.is("begin") && !isOperand(prev, before)
	case 'c':
		return r.is("case")
	case 'l':
		return r.is("loop")
	case 'w':
		return r.is("while")
	case 'r':
		return r.is("repeat") && r.peek().Kind != '('
	case 'i':
		return r.is("if") && !r.ifFunction()
	case 'f': // MariaDB's FOR x IN …
		s := r.s
		s.Next()
		t := s.Next()
		return r.is("for") && lex.Is(r.text[t.Pos:t.End], "in")
	}
	return false
}

// endsBlock says whether END behind a token ends a block: it begins a statement
// then, but for that of an expression's CASE and that of REPEAT … UNTIL.
func endsBlock(block byte, prev lex.Token, before string) bool {
	if prev.Kind == ';' || prev.Kind == lex.Word && lex.Is(before, "begin") {
		return true
	}
	return (block == 'c' || block == 'r') && !isOperand(prev, before)
}

// isOperand says whether what follows a token is a name in an expression: BEGIN
// and END are no reserved words.
func isOperand(prev lex.Token, before string) bool {
	if prev.Kind != lex.Word {
		return strings.IndexByte(",=<>+-*/%&|^!~(", byte(prev.Kind)) >= 0
	}
	for _, w := range []string{"select", "distinct", "where", "and", "or", "not", "by", "on", "set", "when", "between", "having", "in", "return"} {
		if lex.Is(before, w) {
			return true
		}
	}
	return false
}

// maxCondition is how many tokens of a condition are looked at.
const maxCondition = 64

// ifFunction says whether IF is the function, or part of IF [NOT] EXISTS before
// a name: no statement.
func (r *reader) ifFunction() bool {
	s := r.s
	t := s.Next()
	if t.Kind == lex.Word && lex.Is(r.text[t.Pos:t.End], "not") {
		t = s.Next()
	}
	if t.Kind == lex.Word && lex.Is(r.text[t.Pos:t.End], "exists") {
		return s.Next().Kind != '('
	}
	for depth, n := 0, 0; n < maxCondition; n++ {
		switch t.Kind {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 1 {
				return true
			}
		}
		if depth <= 0 {
			return false
		}
		t = s.Next()
	}
	return false
}

// dollarQuoted goes to the end of a body in another language, which MySQL has
// between equal tags, as in $$ … $$.
func (r *reader) dollarQuoted() {
	if end := strings.IndexByte(r.text[r.tok.Pos+1:r.tok.End], '$'); end >= 0 {
		tag := r.text[r.tok.Pos : r.tok.Pos+end+2]
		r.s.Past(r.tok.Pos+len(tag), tag)
	}
}
