package read

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// This file reads statements that change tables (CREATE, ALTER, DROP, RENAME, TRUNCATE), and finds the end of a stored
// program's definition.

// ddl reads a statement that begins with the given verb. CREATE TABLE … SELECT fills a new table: its
// rows keep the keys that the select gives them.
func (r *reader) ddl(verb string) error {
	c := insert.Change{Drop: verb == "drop", Truncate: verb == "truncate"}
	for r.next(); !r.atEnd(); r.next() {
		switch {
		case r.is("definer"): // = NAME, which may be any word
			r.next()
			r.next()
		case r.is("temporary"):
			c.Temporary = verb == "create" || c.Drop
		case r.isAny("table", "tables"):
			r.next()
			r.recordChanges(c, verb == "create")
			return nil
		case c.Truncate:
			r.recordChanges(c, false)
			return nil
		case r.isAny("database", "schema"):
			r.next()
			r.skipExists()
			if c.Drop && r.atName() {
				r.Changes = append(r.Changes, insert.Change{TableName: insert.TableName{DB: r.name()}, Database: true})
			}
			return nil
		case r.isAny("view", "trigger", "procedure", "function", "event", "package", "library"):
			r.Changes = append(r.Changes, insert.Change{Program: true})
			if verb == "create" && !r.is("view") || verb == "alter" && r.is("event") {
				return r.storedProgram()
			}
			return nil
		case r.is("index"): // CREATE UNIQUE INDEX … ON t changes t: another column becomes unique
			for !r.atEnd() && !r.accept("on") {
				r.next()
			}
			r.recordChange(insert.Change{})
			return nil
		case r.isAny("user", "role", "sequence", "server", "tablespace"):
			return nil
		}
	}
	return nil
}

// recordChanges records the table at the cursor and the tables that may follow: in the list of DROP, and
// after RENAME TO and EXCHANGE PARTITION … WITH TABLE.
func (r *reader) recordChanges(c insert.Change, create bool) {
	runs := r.RunsPrograms
	r.skipExists()
	if !r.recordChange(c) {
		return
	}
	if r.tok.Kind == '(' && r.peekIs("like") {
		r.next()
	}
	switch {
	case create && r.accept("like") && r.atName():
		r.Changes[len(r.Changes)-1].Like, _, _ = r.tableName()
		fallthrough
	case create:
		r.skipToEnd()
		if !containsAny(r.text[r.statementStart.tok.Pos:r.prevEnd], "select", "values") {
			r.RunsPrograms = runs // the statement's parenthesized lists are not calls
		}
	}
	for !r.atEnd() {
		follows := r.tok.Kind == ',' || r.tok.Kind == '=' || r.isAny("to", "as", "rename", "table")
		r.next()
		if follows && !r.isAny("to", "as", "table", "rename") {
			r.recordChange(c)
		}
	}
}

// skipExists skips IF [NOT] EXISTS.
func (r *reader) skipExists() {
	if r.accept("if") {
		r.accept("not")
		r.accept("exists")
	}
}

// recordChange records the table at the cursor, and reports whether there is one.
func (r *reader) recordChange(c insert.Change) bool {
	if !r.atName() && r.tok.Kind != '.' {
		return false
	}
	var ok bool
	if c.TableName, _, ok = r.tableName(); ok {
		r.Changes = append(r.Changes, c)
	}
	return ok
}

// hasChanged reports whether the query changes a table before this statement, so that the facts
// about the table are out of date when the statement runs.
func (r *reader) hasChanged(n insert.TableName) bool {
	return slices.ContainsFunc(r.Changes, func(c insert.Change) bool {
		sameDB := strings.EqualFold(c.DB, n.DB) || c.DB == "" || n.DB == ""
		return c.Program || !c.Truncate && sameDB && (c.Database || strings.EqualFold(c.Table, n.Table))
	})
}

// storedProgram skips a definition such as CREATE PROCEDURE, in which semicolons do not end the
// statement. Only the end of the body matters, since the server runs the body later. If storedProgram
// stops at a semicolon that is too early, the text in front of it is invalid on every server. A
// definition without a recognizable end is refused if it contains an INSERT and then the name of a configured table.
func (r *reader) storedProgram() error {
	start := r.cursor
	var open []byte // first letters of the words that opened the blocks
	conditions := 0 // number of WHEN and ELSEIF words without their THEN so far
	for prev := (lex.Token{}); !r.atQueryEnd(); r.next() {
		if r.tok.Kind == ';' {
			if len(open) == 0 {
				break
			}
			conditions = 0
		}
		if r.tok.Kind == lex.Word && prev.Kind != '.' {
			switch before := r.text[prev.Pos:prev.End]; {
			case r.is("end"):
				if len(open) > 0 && endsBlock(open[len(open)-1], prev, before) {
					open = open[:len(open)-1]
				}
			case r.isAny("when", "elseif") || r.is("elsif") && prev.Kind == ';':
				conditions++
			case r.is("then") && conditions > 0:
				conditions--
			case r.is("then"), !lex.Is(before, "end") && r.opensBlock(prev, before):
				open = append(open, r.text[r.tok.Pos]|0x20)
			}
		}
		prev = r.tok
	}
	r.program = true
	if len(open) == 0 && r.tok.Kind != lex.Bad {
		return nil
	}
	at := r.cursor
	for r.cursor = start; !r.atQueryEnd(); r.next() {
		if r.tok.Kind == lex.Word && r.beginsWrite() {
			if err := r.refuseNamed("a stored program without a recognizable end", "send it through a connection without mysql-leaf"); err != nil {
				return err
			}
		}
	}
	r.cursor = at
	return nil
}

// opensBlock reports whether the word opens a block that END closes. IF does not count, because there is also a
// function IF: storedProgram counts the THEN of the IF instead.
func (r *reader) opensBlock(prev lex.Token, before string) bool {
	switch {
	case r.is("begin"):
		return !isOperand(prev, before)
	case r.is("repeat"):
		return r.peek().Kind != '('
	case r.is("for"): // MariaDB's FOR x IN …
		s := r.s
		s.Next()
		t := s.Next()
		return lex.Is(r.text[t.Pos:t.End], "in")
	}
	return r.isAny("case", "loop", "while")
}

// endsBlock reports whether END after the token prev ends a block: at the start of a statement, or as the
// end of a CASE expression or of REPEAT … UNTIL.
func endsBlock(block byte, prev lex.Token, before string) bool {
	return prev.Kind == ';' || lex.Is(before, "begin") || (block == 'c' || block == 'r') && !isOperand(prev, before)
}

// isOperand reports whether a word after the token prev is a name in an expression. BEGIN and END may be
// names, since they are not reserved words.
func isOperand(prev lex.Token, before string) bool {
	if prev.Kind != lex.Word {
		return !endsOperand(byte(prev.Kind))
	}
	return beforeOperands[strings.ToLower(before)]
}

var beforeOperands = lex.WordSet("select distinct where and or not by on set when between having in return")
