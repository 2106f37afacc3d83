package read

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// A cursor is a place in the tokens of a text.
type cursor struct {
	s       lex.Scanner
	tok     lex.Token // the token at the place
	prevEnd int       // end of the token before it
	params  int       // placeholders up to and with it

	calls idCalls // read so far, since they were forgotten
}

// idCalls are the places where the last calls began that have to do with
// the session's id, each of them -1 for none.
type idCalls struct {
	reads  int // without an argument
	stored int // of what may read it: a stored function, or a select that may name a view
	sets   int // with an argument, which becomes the id
}

var noIDCalls = idCalls{-1, -1, -1}

// A reader reads a text once, under one interpretation. It never goes back but
// to retry a statement in another form.
type reader struct {
	cursor
	text     string
	settings insert.Settings
	schema   Schema
	unknown  bool // the session's settings have to be known
	decided  int  // where it is known that the last statement so far writes no configured table and has no effects

	insert.Findings // what becomes the plan; Use: what USE said so far
	spare           *insert.Plan
	modeSet         bool // it sets sql_mode
	setsMode        bool // it may set sql_mode to one that reads quotes in another way

	compound    bool   // in a compound statement, up to the end of the text
	program     bool   // a stored program was defined
	invalid     bool   // no server runs the rest of the text
	alias       string // a name that the text does not hold
	functions   bool   // calls of stored functions are noted
	selects     bool   // so are selects within expressions
	began       cursor // where the statement began
	diagnostics bool   // a variable of the statement before is read
}

// next goes on to the next token.
func (r *reader) next() {
	prev := r.tok
	r.prevEnd = prev.End
	r.tok = r.s.Next()
	switch r.tok.Kind {
	case lex.Param:
		r.params++
	case '(':
		if (r.functions || r.schema.Temporary != nil) && (prev.Kind == lex.Word || prev.Kind == lex.Name) && (prev.Pos > 0 && r.text[prev.Pos-1] == '.' || !r.s.IsBuiltIn(prev, r.tok)) {
			r.calls.stored, r.Runs = prev.Pos, true
		}
	case lex.Word:
		if r.is(lex.IDFunction) {
			r.noteIDCall()
		}
		if prev.Kind == '(' && r.selects && r.isAny("select", "table", "with") {
			r.calls.stored = r.tok.Pos
		}
		r.Runs = r.Runs || r.schema.Temporary != nil && r.is("select") // from a view, perhaps, that calls a function
	case lex.Var:
		switch name := r.s.SystemVariable(r.tok); {
		case lex.IsIDVariable(name):
			r.calls.reads = r.tok.Pos
		case name == "warning_count", name == "error_count":
			r.diagnostics = true
		}
	}
}

// noteIDCall notes a call of lex.IDFunction, if the name is one's here.
func (r *reader) noteIDCall() {
	s := r.s
	switch {
	case s.Next().Kind != '(':
	case s.Next().Kind == ')':
		r.calls.reads = r.tok.Pos
	default:
		r.calls.sets = r.tok.Pos
	}
}

func (r *reader) str() string { return r.text[r.tok.Pos:r.tok.End] }

// is says whether the token is the unquoted word given in lower case.
func (r *reader) is(word string) bool {
	return r.tok.Kind == lex.Word && lex.Is(r.text[r.tok.Pos:r.tok.End], word)
}

func (r *reader) isAny(words ...string) bool { return slices.ContainsFunc(words, r.is) }

// accept goes past the given word if it is there.
func (r *reader) accept(word string) bool {
	if r.is(word) {
		r.next()
		return true
	}
	return false
}

// skip goes past the given punctuation if it is there.
func (r *reader) skip(kind lex.Kind) bool {
	if r.tok.Kind == kind {
		r.next()
		return true
	}
	return false
}

// atEnd says whether the statement ends here.
func (r *reader) atEnd() bool { return r.tok.Kind == ';' || r.ended() }

// ended says whether the text ends here, or cannot be cut into tokens from here
// on.
func (r *reader) ended() bool { return r.tok.Kind == lex.EOF || r.tok.Kind == lex.Bad }

// toEnd goes past the rest of the statement without looking at it.
func (r *reader) toEnd() {
	for !r.atEnd() {
		r.next()
	}
}

// peek returns the token after this one.
func (r *reader) peek() lex.Token {
	s := r.s
	return s.Next()
}

func (r *reader) peekIs(word string) bool {
	t := r.peek()
	return t.Kind == lex.Word && lex.Is(r.text[t.Pos:t.End], word)
}

// atName says whether the token can be a name.
func (r *reader) atName() bool { return r.tok.Kind == lex.Word || r.tok.Kind == lex.Name }

// name returns the name the token is, without its quotes.
func (r *reader) name() string { return lex.Unquote(r.str()) }

// stringContent is what stands between the quotes of a string.
func stringContent(s string) string {
	s = strings.TrimLeft(s, "nN")
	return s[1 : len(s)-1]
}

// tableName reads [db.]table, of which the first token is a name or MariaDB's
// dot (in this database), and returns it as written too.
func (r *reader) tableName() (n insert.TableName, written string, ok bool) {
	n.DB = r.Use
	if r.skip('.') && !r.atName() {
		return n, "", false
	}
	n.Table, written = r.name(), r.str()
	r.next()
	if r.skip('.') {
		if !r.atName() {
			return n, "", false
		}
		n.DB, n.Table, written = n.Table, r.name(), written+"."+r.str()
		r.next()
	}
	return n, written, true
}

// column reads the name of a column, which may be qualified, and returns its
// last part as written.
func (r *reader) column() (string, bool) {
	r.skip('.')
	for {
		if !r.atName() {
			return "", false
		}
		name := r.str()
		r.next()
		if !r.skip('.') {
			return name, true
		}
	}
}

// parens goes past a group in parentheses and reports whether it ends.
func (r *reader) parens() bool {
	depth := 0
	for {
		switch r.tok.Kind {
		case '(':
			depth++
		case ')':
			depth--
		case ';', lex.EOF, lex.Bad:
			return false
		}
		r.next()
		if depth == 0 {
			return true
		}
	}
}

// expr goes past an expression, up to the comma, the parenthesis or the end that
// closes it. In a list without parentheses (SET, ON DUPLICATE KEY UPDATE) follows says
// which words, such as AS and RETURNING, end it too. An expression without a token makes
// the text invalid. It returns how many tokens the expression has, and copies as many of
// them into first as that holds.
func (r *reader) expr(follows func() bool, first []lex.Token) (n int) {
	if r.tok.Kind == ',' || r.tok.Kind == ')' {
		r.invalid = true
	}
	for depth := 0; ; n++ {
		switch r.tok.Kind {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return n
			}
			depth--
		case ',':
			if depth == 0 {
				return n
			}
		case lex.Word:
			if depth == 0 && n > 0 && follows != nil && follows() {
				return n
			}
		case ';', lex.EOF, lex.Bad:
			r.invalid = r.invalid || depth > 0
			return n
		}
		if n < len(first) {
			first[n] = r.tok
		}
		r.next()
	}
}

// closesList says whether a word ends the assignments of SET or of an update
// list.
func (r *reader) closesList() bool {
	switch r.text[r.tok.Pos] | 0x20 {
	case 'o':
		return r.is("on")
	case 'a':
		return r.is("as")
	case 'r':
		return r.is("returning") && operand(r.text[r.prevEnd-1])
	}
	return false
}

// operand says whether a token that ends in c can end an expression.
func operand(c byte) bool {
	return c >= 0x80 || strings.IndexByte("=<>+-*/%&|^!~,(.", c) < 0
}

// mentions says whether a text holds one of some words in lower case, in any case.
func mentions(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// plainForm is the way out for a statement of an unknown form.
const plainForm = "send it as a statement of its own, in a plain form"

// writes says whether the word is one that begins a statement we care for, not
// the name of a function.
func (r *reader) writes() bool {
	return r.is("load") || r.isAny("insert", "replace") && r.peek().Kind != '('
}

// refuseNamed refuses a statement for a reason if the rest of it names a
// configured table.
func (r *reader) refuseNamed(reason, fix string) error {
	var failed error // of a word that is no table, perhaps
	for !r.atEnd() {
		if !r.atName() {
			r.next()
			continue
		}
		n, _, ok := r.tableName()
		if !ok {
			continue
		}
		t, err := r.schema.Table(n.DB, n.Table)
		if t != nil {
			return t.Refuse(reason, fix)
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// unreadable ends the reading of a statement that goes on in a way not known.
// Where the text ends in the middle of a statement no server runs it, and its
// own error says most; all else is refused.
func (r *reader) unreadable(t *insert.Table) error {
	if r.atEnd() {
		r.invalid = true
		return errInvalid
	}
	return &insert.Refusal{Of: t.Name, Reason: "the statement cannot be read at " + r.near(), Fix: "write it in a simpler form, or with an explicit " + quote.Name(t.Key), Unreadable: true}
}

// near quotes the token at the place for a message, no string or number, which
// may be private.
func (r *reader) near() string {
	switch r.tok.Kind {
	case lex.String, lex.HexString, lex.BitString, lex.Number:
		return "a literal"
	}
	s := r.str()
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return "`" + s + "`"
}

// errInvalid marks a statement that no server runs.
var errInvalid = errors.New("invalid statement")

// errCut ends the reading of a text that has to be cut before this statement.
var errCut = errors.New("the text is cut here")
