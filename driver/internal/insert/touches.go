package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// touches is what an expression has to do with what changes from one statement
// to the next, and from one expression to the next. A statement that runs as
// several must not tell the difference.
type touches struct {
	before    string // what it calls that tells of the statement before, "" nothing
	stored    string // the first function that it calls and that is not the server's own, "" none
	readsID   bool   // it reads LAST_INSERT_ID()
	setsID    bool   // it calls LAST_INSERT_ID(…)
	clock     bool   // it says the statement's time
	variables bool   // it names user variables
	assigns   bool   // it assigns one
	selects   bool   // it has a select within
	sequences bool   // it reads or moves one
}

// clocks are the words and functions that say the statement's time.
var clocks = map[string]bool{
	"now": true, "current_timestamp": true, "localtime": true, "localtimestamp": true, "sysdate": true, "unix_timestamp": true,
	"curdate": true, "curtime": true, "current_date": true, "current_time": true, "utc_date": true, "utc_time": true, "utc_timestamp": true,
}

// touch notes what a piece of the text touches.
func (u *touches) touch(in lex.Scanner) {
	prev, prevWord := lex.Token{}, ""
	for t := in.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = in.Next() {
		word := in.Text[t.Pos:t.End]
		switch t.Kind {
		case lex.Assign:
			u.assigns = u.assigns || prev.Kind == lex.Var
		case lex.Var:
			switch {
			case !strings.HasPrefix(word, "@@"):
				u.variables = true
			default:
				switch name := systemVariable(in, t); {
				case lex.Is(name, "warning_count"), lex.Is(name, "error_count"):
					u.before = "@@" + name
				case isIDVariable(name):
					u.readsID = true
				}
			}
		case lex.Name:
			if peek := in; peek.Next().Kind == '(' {
				u.calls(word)
			}
		case lex.Word:
			peek := in
			call := peek.Next().Kind == '('
			switch {
			case lex.Is(word, "nextval"), lex.Is(word, "lastval"), lex.Is(word, "setval"), lex.Is(word, "currval"),
				lex.Is(word, "value") && (lex.Is(prevWord, "next") || lex.Is(prevWord, "previous")):
				u.sequences = true
			case lex.Is(word, "select"):
				u.selects = true
			case prev.Kind == '.':
				if call {
					u.calls(word)
				}
			case call && lex.Is(word, "last_insert_id"):
				u.readsID = true
				u.setsID = u.setsID || peek.Next().Kind != ')'
			case call && (lex.Is(word, "row_count") || lex.Is(word, "found_rows")):
				u.before = strings.ToUpper(word) + "()"
			default:
				if call && !builtIn[strings.ToLower(word)] {
					u.calls(word)
				}
				u.clock = u.clock || len(word) <= len("current_timestamp") && clocks[strings.ToLower(word)]
			}
		}
		prev, prevWord = t, word
	}
}

// calls notes a call of a function that is not the server's own.
func (u *touches) calls(name string) {
	if u.stored == "" {
		u.stored = unquote(name)
	}
}

// systemVariable is the name of the system variable that a token names, or
// begins to name, as in @@session.identity; "" for a variable of the user's.
// s goes on behind the token.
func systemVariable(s lex.Scanner, t lex.Token) string {
	name, ok := strings.CutPrefix(s.Text[t.Pos:t.End], "@@")
	switch {
	case !ok:
		return ""
	case (lex.Is(name, "session") || lex.Is(name, "local")) && s.Next().Kind == '.':
		t = s.Next()
		return s.Text[t.Pos:t.End]
	}
	return name
}

// isIDVariable says whether a system variable is LAST_INSERT_ID() under another
// name.
func isIDVariable(name string) bool {
	return lex.Is(name, "identity") || lex.Is(name, "last_insert_id")
}

// order says what two expressions touch whose order decides what they come to,
// "" for nothing.
func (u *touches) order(o *touches) string {
	switch {
	case u.assigns && o.variables, u.variables && o.assigns:
		return "a user variable that it assigns"
	case u.sequences && o.sequences:
		return "a sequence"
	}
	return ""
}

// tellsOfBefore refuses what other statements would change before it is run.
func (w *insertReader) tellsOfBefore(u touches) error {
	if u.before == "" {
		return nil
	}
	return refuse(w.Table, u.before+" tells of the statement before, and this one runs as several", "put it into a user variable first")
}
