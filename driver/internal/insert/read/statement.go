package read

import (
	"math"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// statementFlags are the flags of a scanner that are reset for each statement.
const statementFlags = lex.SeenComment | lex.SeenCode

// statements reads all statements of the query.
func (r *reader) statements() error {
	r.next()
	behind := 0 // end of the first semicolon after the last statement, or 0; servers accept further semicolons only at the end of the query
	for !r.atQueryEnd() && !r.invalid && r.Cut == 0 {
		if r.tok.Kind == ';' {
			if behind == 0 {
				r.s.Seen &^= statementFlags
				if r.Results > 0 {
					behind = r.tok.End
				}
			}
			r.next()
			continue
		}
		if behind > 0 && !r.compound {
			r.Ends = append(r.Ends, behind)
		}
		behind = 0
		r.statementStart = r.cursor
		r.harmlessUpTo = math.MaxInt
		err := r.statement()
		switch {
		case err == errCut:
			r.cutAt(r.statementStart.prevEnd, r.statementStart.params)
		case err != nil:
			return r.addStatementText(err)
		case len(r.Inserts) > 0 && r.Inserts[len(r.Inserts)-1].NeedsOwnText():
			r.isolate()
		}
		r.skipToEnd()
		r.s.Seen &^= statementFlags
		r.Results++
	}
	if r.s.Seen&lex.SeenComment != 0 && !r.settings.SingleStatement {
		r.Results++ // a comment by itself also returns a result
		if behind > 0 && !r.compound {
			r.Ends = append(r.Ends, behind)
		}
	}
	for r.tok.Kind != lex.EOF { // placeholders are counted even in an invalid query
		r.next()
	}
	return nil
}

// addStatementText adds the text of the last statement to its error, if the error is a refusal.
func (r *reader) addStatementText(err error) error {
	refusal, ok := err.(*insert.Refusal)
	if r.skipToEnd(); !ok || r.Use != "" || r.Results == 0 && r.tok.Kind != ';' { // without the USE before it, the statement's names may refer to other tables
		return err
	}
	of := *refusal // a copy, since other callers may hold the original
	of.Statement = r.text[r.statementStart.tok.Pos:r.tok.Pos]
	if r.compound && r.settings.MariaDB { // the end of the statement is not known
		of.Statement = "INSERT INTO " + of.Table.Quoted() + " () VALUES ()"
	}
	return &of
}

// isolate cuts the query so that the last statement so far becomes a query by itself.
func (r *reader) isolate() {
	if r.Results > 0 {
		r.cutAt(r.statementStart.prevEnd, r.statementStart.params)
		return
	}
	at, n := r.cursor, 0
	// Servers remove semicolons and blanks at the end of the query. In front of comments or a NUL at the
	// end, they allow one semicolon.
	last := len(strings.TrimRight(r.text, "; \t\n\v\f\r"))
	for ; r.tok.Kind == ';'; r.next() {
		if r.tok.Pos < last {
			n++
		}
	}
	alone := r.tok.Kind == lex.EOF && n <= 1
	if r.cursor = at; !alone {
		r.cutAt(at.tok.End, at.params)
	}
}

func (r *reader) cutAt(pos, params int) {
	r.Cut, r.CutInput = pos, params
	if len(r.Ends) == 0 || r.Ends[len(r.Ends)-1] < pos {
		r.Ends = append(r.Ends, pos)
	}
}

// statement reads one statement, up to its end. A statement with an unknown first word is skipped by
// skipRest.
func (r *reader) statement() error {
	switch {
	case r.tok.Kind == '<': // a label in Oracle's syntax
		return r.compoundStatement()
	case r.tok.Kind != lex.Word:
		return r.skipRest()
	}
	var lower [len("truncate") + 1]byte // longer words match none of these
	word := lower[:copy(lower[:], r.tokenText())]
	for i := range word {
		word[i] |= 0x20
	}
	switch string(word) {
	case "insert", "replace":
		return r.insert()
	case "load":
		return r.load()
	case "use":
		if r.next(); r.atName() {
			r.Use = r.name()
		}
		return r.skipRest()
	case "set":
		return r.set()
	case "create", "alter", "drop", "rename", "truncate":
		return r.ddl(string(word))
	case "call":
		r.Opaque = true
		return r.skipRest()
	case "execute", "prepare":
		return r.dynamicStatement()
	case "begin":
		if r.next(); !r.atEnd() && !r.is("work") {
			return r.compoundStatement()
		}
		return r.skipRest()
	case "if", "case", "loop", "repeat", "while", "for", "declare":
		return r.compoundStatement()
	case "explain", "desc", "describe", "show", "grant", "revoke", "help":
		if r.next(); r.settings.TiDB && r.is("analyze") { // EXPLAIN ANALYZE runs the statement
			return r.skipRest()
		}
		return nil // these statements name other statements without running them
	}
	if r.peek().Kind == ':' { // a label
		return r.compoundStatement()
	}
	r.harmlessUpTo = r.tok.End
	r.RunsPrograms = r.RunsPrograms || r.isAny("update", "delete", "with", "table")
	return r.skipRest()
}

// set reads SET, and MariaDB's SET STATEMENT … FOR in front of a statement.
func (r *reader) set() error {
	r.next()
	if !r.accept("statement") {
		r.SetsRole = r.SetsRole || r.is("role") || r.is("session") && r.peekIs("authorization")
		r.setsSession()
		return r.skipRest()
	}
	for !r.atEnd() {
		switch {
		case r.tok.Kind == '(':
			if !r.skipParens() {
				return r.skipRest()
			}
		case r.accept("for"):
			return r.statement()
		default:
			r.next()
		}
	}
	return nil
}

// setsSession records whether a SET names a setting that decides how queries are parsed. It also records
// whether the SET may choose an sql_mode that changes the meaning of quotes: the SET names such a mode, or the
// value is not written as a string.
func (r *reader) setsSession() {
	mode, literal := false, false
	s, t := r.s, r.tok
	from := t.Pos
	for ; t.Kind != ';' && t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
		switch word := strings.ToLower(strings.Trim(r.text[t.Pos:t.End], "`@")); {
		case t.Kind == lex.String:
			literal = true
		case word == "names", word == "charset", word == "character", strings.HasSuffix(word, "character_set_client"), strings.HasSuffix(word, "collation_connection"):
			r.SetsSession = true
		case strings.HasSuffix(word, "sql_mode"):
			r.SetsSession, mode = true, true
		}
	}
	r.setsSQLMode = r.setsSQLMode || mode
	r.changesQuotes = r.changesQuotes || mode && (!literal || containsAny(r.text[from:t.Pos], "ansi", "no_backslash", "oracle", "db2", "mssql", "maxdb", "postgresql"))
}

// compoundStatement reads MariaDB's IF, LOOP, BEGIN NOT ATOMIC and similar statements outside of a
// stored program. It does not search for their end: the rest of the query is treated as part of them.
func (r *reader) compoundStatement() error {
	r.compound, r.Opaque = true, true
	return r.skipRest()
}

// skipRest skips the rest of a statement. It refuses a statement that contains an INSERT in an unknown
// place and, after it, the name of a configured table.
func (r *reader) skipRest() error {
	start := r.cursor
	prev := lex.Token{}
	for !r.atEnd() {
		if r.tok.Kind == lex.Word && prev.Kind != '.' {
			if r.is("portion") && prev.Kind == lex.Word && lex.Is(r.text[prev.Pos:prev.End], "for") {
				r.cursor = start
				return r.refuseNamed("FOR PORTION OF stores parts of rows as new rows without keys", "change the rows with UPDATE and INSERT")
			}
			if r.beginsWrite() {
				if r.compound {
					return r.refuseNamed("it is written in a compound statement", "send the statement by itself")
				}
				return r.refuseNamed(r.tokenText()+" in a statement of an unknown form", plainForm)
			}
			if r.compound && r.isAny("execute", "prepare") {
				if err := r.dynamicStatement(); err != nil {
					return err
				}
			}
		}
		prev = r.tok
		if !r.atEnd() {
			r.next()
		}
	}
	return nil
}

// dynamicStatement reads PREPARE … FROM or EXECUTE [IMMEDIATE], from the first word. It refuses the statement
// if its string literals, joined together, contain a statement that writes a configured table. The value of a
// variable is not known here.
func (r *reader) dynamicStatement() error {
	form := "PREPARE"
	if r.is("execute") {
		form = "EXECUTE IMMEDIATE"
		r.Opaque = true
	}
	r.next()
	var b strings.Builder
	whole := true
	for ; !r.atEnd() && !r.is("using"); r.next() {
		switch s := r.tokenText(); r.tok.Kind {
		case lex.String:
			b.WriteString(stringContent(s))
		case lex.HexString:
			whole = false
		case lex.Number:
			whole = whole && (len(s) < 2 || s[1] != 'x')
		}
	}
	if !whole {
		return &insert.Refusal{Reason: "the text in " + form + " is written in hexadecimal digits", Fix: "write it as a string"}
	}
	text := b.String()
	in := reader{text: text, settings: r.settings, schema: r.schema, Findings: insert.Findings{Use: r.Use}}
	in.s = r.settings.Scanner(text)
	for in.next(); !in.atQueryEnd(); in.next() {
		if in.tok.Kind == lex.Word && in.beginsWrite() {
			for !in.atQueryEnd() {
				if err := in.refuseNamed("it is written by the text in "+form, "send that text as a separate query"); err != nil {
					return err
				}
				if in.tok.Kind == ';' {
					in.next()
				}
			}
			break
		}
	}
	r.s.Seen |= in.s.Seen &^ statementFlags
	r.skipToEnd()
	return nil
}
