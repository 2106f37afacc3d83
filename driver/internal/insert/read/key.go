package read

import (
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// maxKeyTokens is the maximum number of tokens of a key's value that are examined. Longer values are
// treated as expressions.
const maxKeyTokens = 12

// keyValue reads the key's value in a row and records the edits for it.
func (w *insertReader) keyValue(follows func() bool) error {
	var tokens [maxKeyTokens]lex.Token
	params := w.paramsBefore()
	n := w.skipExpr(follows, tokens[:])
	switch {
	case n == 0:
		return w.unreadable(w.Table)
	case !w.noteKey(tokens[:], n, params):
		return w.Table.Refuse("only the server can compute its key", "write a whole number or DEFAULT, or SELECT the value first and pass it as an argument; if the table always takes its key from another table, exclude it with !table in leafTables")
	case w.invalid:
		return errInvalid
	}
	return nil
}

// noteKey records the meaning of a key's value for its row, and reports whether the meaning is known. The value
// was just read and has n tokens; params placeholders are in front of it.
func (w *insertReader) noteKey(tokens []lex.Token, n, params int) bool {
	w.ExplicitKey = 0
	if n > len(tokens) {
		return !w.Table.IntegerKey
	}
	value := tokens[:n]
	for len(value) > 2 && value[0].Kind == '(' && value[len(value)-1].Kind == ')' {
		value = value[1 : len(value)-1] // (1)+(2) becomes 1)+(2, whose meaning is unclear
	}
	if len(value) == 1 && n > 1 && value[0].Kind == lex.Word && lex.Is(w.text[value[0].Pos:value[0].End], "default") {
		w.invalid = true // DEFAULT in parentheses is not a value
		return true
	}
	if t := value[0]; len(value) == 1 && t.Kind == lex.Param {
		w.edit(insert.EditArgument, t.Pos, t.End, len(w.ArgKeys))
		w.ArgKeys = append(w.ArgKeys, params)
		return true
	}
	start := tokens[0].Pos
	m, floor, exact := w.tokensMeaning(value)
	if m == insert.KeyBySession {
		w.WritesZero, w.needsSettings = true, w.needsSettings || !w.settings.SessionKnown
		m = w.Table.ZeroMeaningIn(w.settings.KeepsZero)
	}
	switch m {
	case insert.KeyUnclear:
		return !w.Table.IntegerKey && w.isComputed(value)
	case insert.KeyWanted:
		w.addKeyEdit(insert.EditKey, start, w.prevEnd)
		return true
	}
	if exact {
		w.ExplicitKey = floor
	}
	if w.Table.Floors {
		w.Floor = max(w.Floor, floor)
	}
	return true
}

// tokensMeaning is like Table.KeyMeaning, for the tokens of a value without outer parentheses.
func (w *insertReader) tokensMeaning(t []lex.Token) (m insert.KeyMeaning, floor int64, exact bool) {
	first := w.text[t[0].Pos:t[0].End]
	switch kind := t[0].Kind; {
	case len(t) == 2 && (kind == '-' || kind == '+') && t[1].Kind == lex.Number:
		return w.Table.LiteralMeaning(first + w.text[t[1].Pos:t[1].End])
	case len(t) > 1:
	case kind == lex.Number:
		return w.Table.LiteralMeaning(first)
	case kind == lex.String:
		return w.Table.KeyMeaning(stringContent(first))
	case kind == lex.Word && (lex.Is(first, "null") || lex.Is(first, "default")):
		return insert.KeyWanted, 0, false
	}
	return insert.KeyUnclear, 0, false
}

// isComputed reports whether a value consists of bytes or is computed by an expression. If the key column is not an
// integer, such a value is a key. isComputed returns false for names, DEFAULT(…) and strings in several parts, since a
// key may have to be generated for their values.
func (w *insertReader) isComputed(t []lex.Token) bool {
	first := w.text[t[0].Pos:t[0].End]
	switch t[0].Kind {
	case lex.HexString, lex.BitString, lex.Var:
		return true
	case lex.Number:
		return len(first) > 1 && (first[1] == 'x' || first[1] == 'b')
	case lex.Word, lex.Name:
		for i, x := range t {
			if (i%2 == 1) != (x.Kind == '.') {
				return !lex.Is(first, "default")
			}
		}
	}
	return false
}

// checkZeroMode cuts the query, or refuses the statement, if the query itself sets the sql_mode that decides
// the meaning of a 0 as a key.
func (w *insertReader) checkZeroMode() error {
	switch {
	case w.Table.ZeroKey != insert.KeyBySession || !w.WritesZero && len(w.ArgKeys) == 0 && !(w.staged && (w.keyColumn >= 0 || w.loadColumns != nil)):
	case w.setsSQLMode:
		return errCut
	case containsAny(w.text[w.head.from:w.head.to], "sql_mode"): // in SET STATEMENT … FOR, or in a hint
		return w.Table.Refuse("it sets its own sql_mode, which decides whether 0 is a key", "set the session's sql_mode before the statement, or leafZero in the DSN")
	}
	return nil
}
