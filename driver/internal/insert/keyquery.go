package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A KeyQuery asks for the keys of a statement that are user variables or the last
// insert id. The text then runs with what they are, as any other text. Other expressions
// are refused: an expression that is evaluated twice may come to two values.
//
//	SELECT CAST(LAST_INSERT_ID() AS BINARY), CAST(@next AS BINARY) LIMIT 1    Select
//	INSERT INTO t (id, a) VALUES ('16', 'x'), ('17', 'y')                     Text
type KeyQuery struct {
	Select string
	text   string
	exprs  []span
}

// asksKey notes a key that the server is asked for.
func (w *insertReader) asksKey(tokens []lex.Token, start int) error {
	v := withoutParens(tokens)
	lastID := len(v) == 3 && lex.Is(w.text[v[0].Pos:v[0].End], "last_insert_id") && v[1].Kind == '(' && v[2].Kind == ')'
	if variable := len(v) == 1 && v[0].Kind == lex.Var && v[0].End-v[0].Pos > 1; !variable && !lastID {
		return refuse(w.Table, "only the server could tell what its key is", "write a whole number, DEFAULT, a user variable or LAST_INSERT_ID(), or SELECT the key before and pass it as an argument")
	}
	w.exprs = append(w.exprs, span{start, w.prevEnd})
	return nil
}

// finishKeyQuery notes a statement whose keys are asked for. One that may change them
// before they are used, or that tells of the query, is refused.
func (w *insertReader) finishKeyQuery() error {
	var all Effects
	all.scan(w.s.Over(w.text[w.head.from:w.prevEnd]))
	if len(all.Calls) > 0 || all.SetsID || all.Assigns || all.Before != "" || w.Rows > 1 && w.Table.Triggers.Assigns {
		return refuse(w.Table, "its key is asked for before it runs, and it may change that, or tell of the query", "SELECT the key before, and pass it as an argument")
	}
	w.forgetRows()
	q := &KeyQuery{"SELECT ", w.text, w.exprs}
	for _, e := range w.exprs {
		q.Select += "CAST(" + w.text[e.from:e.to] + " AS BINARY), "
	}
	q.Select = strings.TrimSuffix(q.Select, ", ") + " LIMIT 1"
	w.KeyQuery = q
	w.inserts = append(w.inserts, w.Insert)
	return nil
}

// Text is the user's text with keys that the query gave, as SQL writes them.
func (q *KeyQuery) Text(keys []string) string {
	var b strings.Builder
	from := 0
	for i, e := range q.exprs {
		b.WriteString(q.text[from:e.from] + keys[i] + " ") // a word may follow a parenthesis at once, and not a number
		from = e.to
	}
	b.WriteString(q.text[from:])
	return b.String()
}
