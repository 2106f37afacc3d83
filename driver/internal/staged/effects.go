package staged

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// clockWords are the keywords and functions that return the statement's time.
var clockWords = lex.WordSet("now current_timestamp localtime localtimestamp sysdate unix_timestamp curdate curtime current_date current_time utc_date utc_time utc_timestamp")

// Names of tables may follow a word of wordsBeforeTables, up to a word of wordsAfterTables. A statement that begins with
// one of writeVerbs writes a table; writeModifiers may be between the verb and the table's name. countFunctions are the
// server's functions that return data about other statements; their names may be quoted.
var (
	wordsBeforeTables = lex.WordSet("from join straight_join into update table tables insert replace delete truncate for")
	wordsAfterTables  = lex.WordSet("select where set values value group order having limit return then else do begin end if when case")
	writeVerbs        = lex.WordSet("insert replace update delete truncate load call execute")
	writeModifiers    = lex.WordSet("low_priority high_priority delayed quick ignore")
	countFunctions    = lex.WordSet(lex.IDFunction + " row_count found_rows")
)

// skipHeader skips the start of a definition such as CREATE … FUNCTION.
func skipHeader(s *lex.Scanner) {
	for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad && !s.Is(t, "function") && !s.Is(t, "procedure") && !s.Is(t, "body"); {
		t = s.Next()
	}
}

// findEffects returns the effects of a piece of SQL. Unqualified names get no database.
func findEffects(s lex.Scanner) (e insert.Effects) {
	var prev lex.Token
	var word string           // the previous token, in lower case, if it is a word or a name
	var atVar bool            // the last variable is at a place where SET assigns a variable
	var name insert.TableName // the name being read
	var outside []bool        // for each open parenthesis, the value of the variable tables outside of it
	tables := false           // tables may be named here
	first := false            // the name being read is a table's
	results := false          // a word that may set variables was read
	listed := false           // a comma is in front of the name
	out := false              // after INTO or CALL
	for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
		before := word
		word = ""
		if prev.Kind == lex.Var && prev.End-prev.Pos == 1 && (t.Kind == lex.Name || t.Kind == lex.String) { // @`x`, @'x'
			e.Vars = append(e.Vars, "@"+strings.ToLower(strings.Trim(s.Text[t.Pos:t.End], "`'\"")))
			prev.End = t.End
			continue
		}
		at := tables && (prev.Kind == ',' || prev.Kind == '(' || prev.Kind == lex.Word && (wordsBeforeTables[before] || writeModifiers[before]))
		switch t.Kind {
		case lex.Assign, '=':
			if t.Kind == lex.Assign && (prev.Kind == lex.Var || prev.Kind == lex.Name) || atVar && prev.Kind == lex.Var {
				e.Kinds |= insert.Assigns
			}
		case lex.Var:
			atVar = before == "set" || prev.Kind == ','
			addVariable(&e, s, t)
		case '(':
			outside = append(outside, tables)
			tables = at
		case ')':
			if n := len(outside); n > 0 {
				tables, outside = outside[n-1], outside[:n-1]
			}
		case ';':
			tables, out = false, false
		case '.':
			word = before // before stays the word in front of db.t
		case lex.Word, lex.Name:
			text := lex.Unquote(s.Text[t.Pos:t.End])
			word = strings.ToLower(text)
			peek := s
			open := peek.Next()
			call := open.Kind == '('
			if prev.Kind == '.' {
				name.DB = name.Table
			} else {
				name.DB, first, listed = "", at, prev.Kind == ','
			}
			if name.Table = text; strings.EqualFold(name.DB, "new") && (out || open.Kind == lex.Assign || open.Kind == '=' && (listed || before == "set")) {
				e.SetColumns = append(e.SetColumns, strings.ToLower(text))
			}
			switch {
			case open.Kind == '.' && prev.Kind != '.':
				word = before
			case prev.Kind == '%' && word == "rowcount":
				e.PreviousCall = "SQL%ROWCOUNT"
			case prev.Kind != '.' && (!call && t.Kind == lex.Word || call && (first || countFunctions[word] || t.Kind == lex.Word && word == "update" || s.IsBuiltIn(t, open))) && addWordEffect(&e, word, before, call, call && peek.Next().Kind != ')', results):
			case before == "call", call && !first && (prev.Kind == '.' || !s.IsBuiltIn(t, open)):
				e.Calls = append(e.Calls, name)
			case first && (prev.Kind == '.' || t.Kind == lex.Name || !lex.IsKeyword(word) && !wordsBeforeTables[word] && !(writeModifiers[word] && (writeVerbs[before] || writeModifiers[before]))):
				e.Tables = append(e.Tables, name)
			}
			if t.Kind == lex.Word && prev.Kind != '.' {
				out = word != "from" && (out || word == "into" || word == "call")
				tables = tables && !wordsAfterTables[word] || wordsBeforeTables[word] && (!writeVerbs[word] || isWriteVerb(word, before, call))
				results = results || word == "into" && !writeVerbs[before] && !writeModifiers[before] || word == "call" || word == "diagnostics"
			}
		}
		prev = t
	}
	if results && len(e.Vars) > 0 {
		e.Kinds |= insert.Assigns
	}
	return e
}

// addWordEffect adds the effects of a word or a call, and reports whether it has any. A word with an effect is
// not a name. before is the word in front of it. argument is set for a call with an argument. counts is set if
// ROW_COUNT and FOUND_ROWS without parentheses may be counts, as in GET DIAGNOSTICS.
func addWordEffect(e *insert.Effects, word, before string, call, argument, counts bool) bool {
	switch {
	case call && word == lex.IDFunction:
		if e.Kinds |= insert.ReadsID; argument {
			e.Kinds |= insert.SetsID
		}
	case (call || counts) && (word == "row_count" || word == "found_rows"):
		e.PreviousCall = strings.ToUpper(word) + "()"
	case word == "temporary":
		e.Kinds |= insert.MakesTemporary
	case writeVerbs[word] && isWriteVerb(word, before, call):
		e.Kinds |= insert.Writes
	case clockWords[word]:
		e.Kinds |= insert.ReadsClock
	default:
		return false
	}
	return true
}

// isWriteVerb reports whether word, which is in writeVerbs, is used as a verb.
func isWriteVerb(word, before string, call bool) bool {
	if word == "update" { // UPDATE is not a function
		return before != "key" && before != "for"
	}
	return !call
}

// addVariable adds a user variable, or the effect of reading a system variable.
func addVariable(e *insert.Effects, s lex.Scanner, t lex.Token) {
	switch name := s.SystemVariable(t); name {
	case "":
		if t.End-t.Pos > len("@") {
			e.Vars = append(e.Vars, strings.ToLower(s.Text[t.Pos:t.End]))
		}
	case "warning_count", "error_count", "autocommit", "in_transaction":
		e.PreviousCall = "@@" + name
	default:
		if lex.IsIDVariable(name) {
			e.Kinds |= insert.ReadsID
		}
	}
}
