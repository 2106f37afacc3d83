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

// A cursor is a position among the tokens of a query.
type cursor struct {
	s       lex.Scanner
	tok     lex.Token // the token at the position
	prevEnd int       // end of the token before tok
	params  int       // placeholders up to and including tok

	calls idCalls // calls that were read since the last reset
}

// idCalls has, for each kind of call that may involve the session's id, the offset of the last call, or
// -1 if there is none.
type idCalls struct {
	reads  int // a call without an argument, which reads the id
	stored int // a call of a stored function, or a select that may name a view, which may read the id
	sets   int // a call with an argument, which sets the id
}

var noIDCalls = idCalls{-1, -1, -1}

// A reader reads a query once, with one set of session settings. It goes back only to read a statement again in
// another form.
type reader struct {
	cursor
	text          string
	settings      insert.Settings
	schema        Schema
	needsSettings bool // the session's settings have to be read first
	harmlessUpTo  int  // end of the text in which the last statement so far proved to write no configured table and to have no effects

	insert.Findings // the results; Use is the database of the last USE so far
	spare           *insert.Plan
	setsSQLMode     bool // the query sets sql_mode
	changesQuotes   bool // the query may set an sql_mode that changes the meaning of quotes

	compound       bool   // a compound statement has begun, which reaches to the end of the query
	program        bool   // a stored program was defined
	invalid        bool   // the rest of the query is invalid on every server
	alias          string // a name that does not occur in the query
	functions      bool   // record calls of stored functions
	selects        bool   // record selects within expressions
	statementStart cursor // start of the statement
	diagnostics    bool   // the statement reads a variable of the previous statement's errors or warnings
}

// next advances to the next token.
func (r *reader) next() {
	prev := r.tok
	r.prevEnd = prev.End
	r.tok = r.s.Next()
	switch r.tok.Kind {
	case lex.Param:
		r.params++
	case '(':
		if (r.functions || r.schema.Temporary != nil) && (prev.Kind == lex.Word || prev.Kind == lex.Name) && (prev.Pos > 0 && r.text[prev.Pos-1] == '.' || !r.s.IsBuiltIn(prev, r.tok)) {
			r.calls.stored, r.RunsPrograms = prev.Pos, true
		}
	case lex.Word:
		if r.is(lex.IDFunction) {
			r.noteIDCall()
		}
		if prev.Kind == '(' && r.selects && r.isAny("select", "table", "with") {
			r.calls.stored = r.tok.Pos
		}
		r.RunsPrograms = r.RunsPrograms || r.schema.Temporary != nil && r.is("select") // it may select from a view that calls a function
	case lex.Var:
		r.noteVariable()
	}
}

// noteVariable records a system variable that depends on the session's previous statement.
func (r *reader) noteVariable() {
	switch name := r.s.SystemVariable(r.tok); {
	case lex.IsIDVariable(name):
		r.calls.reads = r.tok.Pos
	case name == "warning_count", name == "error_count":
		r.diagnostics = true
	}
}

// noteIDCall records a call of lex.IDFunction, if the word is followed by a parenthesis.
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

func (r *reader) tokenText() string { return r.text[r.tok.Pos:r.tok.End] }

// is reports whether the token is an unquoted word. word is in lower case.
func (r *reader) is(word string) bool {
	return r.tok.Kind == lex.Word && lex.Is(r.text[r.tok.Pos:r.tok.End], word)
}

func (r *reader) isAny(words ...string) bool { return slices.ContainsFunc(words, r.is) }

// accept skips the given word if it is the current token, and reports whether it was.
func (r *reader) accept(word string) bool {
	if r.is(word) {
		r.next()
		return true
	}
	return false
}

// skip skips the given punctuation if it is the current token, and reports whether it was.
func (r *reader) skip(kind lex.Kind) bool {
	if r.tok.Kind == kind {
		r.next()
		return true
	}
	return false
}

// atEnd reports whether the statement ends at the current token.
func (r *reader) atEnd() bool { return r.tok.Kind == ';' || r.atQueryEnd() }

// atQueryEnd reports whether the query ends at the current token, or the token is invalid.
func (r *reader) atQueryEnd() bool { return r.tok.Kind == lex.EOF || r.tok.Kind == lex.Bad }

// skipToEnd skips the rest of the statement without checking it.
func (r *reader) skipToEnd() {
	for !r.atEnd() {
		r.next()
	}
}

// peek returns the token after the current token.
func (r *reader) peek() lex.Token {
	s := r.s
	return s.Next()
}

func (r *reader) peekIs(word string) bool {
	return r.s.Is(r.peek(), word)
}

// atName reports whether the token can be a name.
func (r *reader) atName() bool { return r.tok.Kind == lex.Word || r.tok.Kind == lex.Name }

// name returns the current token as a name without quotes.
func (r *reader) name() string { return lex.Unquote(r.tokenText()) }

// stringContent returns the text between the quotes of a string.
func stringContent(s string) string {
	s = strings.TrimLeft(s, "nN")
	return s[1 : len(s)-1]
}

// tableName reads [db.]table. The first token is a name or, on MariaDB, a dot in front of a table of the
// database in use. It also returns the name as written.
func (r *reader) tableName() (n insert.TableName, written string, ok bool) {
	n.DB = r.Use
	if r.skip('.') && !r.atName() {
		return n, "", false
	}
	n.Table, written = r.name(), r.tokenText()
	r.next()
	if r.skip('.') {
		if !r.atName() {
			return n, "", false
		}
		n.DB, n.Table, written = n.Table, r.name(), written+"."+r.tokenText()
		r.next()
	}
	return n, written, true
}

// column reads the name of a column, which may be qualified, and returns its last part as written.
func (r *reader) column() (string, bool) {
	r.skip('.')
	for {
		if !r.atName() {
			return "", false
		}
		name := r.tokenText()
		r.next()
		if !r.skip('.') {
			return name, true
		}
	}
}

// skipParens skips a group in parentheses and reports whether it is closed.
func (r *reader) skipParens() bool {
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

// skipExpr skips an expression, up to the comma, parenthesis or end that closes it. In a list without
// parentheses (SET, ON DUPLICATE KEY UPDATE), the expression may also end at a word such as AS or RETURNING, for which
// follows returns true. An expression without tokens makes the query invalid. skipExpr returns the number of
// tokens, and copies the first tokens into first, as many as fit.
func (r *reader) skipExpr(follows func() bool, first []lex.Token) (n int) {
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

// closesList reports whether the word ends the assignments of SET or of an update list.
func (r *reader) closesList() bool {
	return r.is("on") || r.is("as") || r.is("returning") && endsOperand(r.text[r.prevEnd-1])
}

// endsOperand reports whether a token that ends in c can end an expression.
func endsOperand(c byte) bool {
	return c >= 0x80 || strings.IndexByte("=<>+-*/%&|^!~,(.", c) < 0
}

// containsAny reports whether text, in lower case, contains one of words.
func containsAny(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// plainForm is the hint for a statement of an unknown form.
const plainForm = "send it as a separate query, in a plain form"

// beginsWrite reports whether the word begins a statement that can write rows, and is not the name of a
// function.
func (r *reader) beginsWrite() bool {
	return r.is("load") || (r.is("insert") || r.is("replace")) && r.peek().Kind != '('
}

// refuseNamed reads the rest of the statement, and refuses the statement if the rest names a configured table.
func (r *reader) refuseNamed(reason, fix string) error {
	var failed error // may come from a word that is not a table
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

// unreadable returns the error for a statement that continues in an unknown form. If the statement ends too
// early, it is only marked as invalid: no server runs it, and the server's error describes the fault best. Any other
// statement is refused.
func (r *reader) unreadable(t *insert.Table) error {
	if r.atEnd() {
		r.invalid = true
		return errInvalid
	}
	return &insert.Refusal{Table: t.Name, Reason: "the statement cannot be read at " + r.quoteToken(), Fix: "write it in a simpler form, or give an explicit " + quote.Name(t.Key), Unreadable: true}
}

// quoteToken quotes the current token for a message. It does not show strings and numbers, since they may be
// private.
func (r *reader) quoteToken() string {
	switch r.tok.Kind {
	case lex.String, lex.HexString, lex.BitString, lex.Number:
		return "a literal"
	}
	s := r.tokenText()
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return "`" + s + "`"
}

// errInvalid marks a statement that is invalid on every server.
var errInvalid = errors.New("invalid statement")

// errCut marks a statement in front of which the query has to be cut.
var errCut = errors.New("the text is cut here")
