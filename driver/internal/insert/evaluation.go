package insert

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// An Evaluation is how a statement runs whose rows are in the text, but whose
// keys only the server can tell, such as expressions. They are put into a
// stage whose column has the key's own type, and the text runs with what came of
// them there, as any other text.
//
//	INSERT INTO stage (leafsql_n, leafsql_key) VALUES (1, 1-1), (2, @next)   Fill
//	SELECT leafsql_key FROM stage ORDER BY leafsql_n
//	INSERT INTO t (id, a) VALUES (0, 'x'), (17, 'y')                         Text
//
// The key's column has another name there, so that an expression which reads
// its own row's key does not find it.
type Evaluation struct {
	Clock   bool // a key calls the clock, and can be told the time
	Selects bool // a key reads a table

	// Variables says that one of several keys names a user variable.
	Variables bool

	text  string
	fill  [2]string // around the stage's name
	verb  int       // in fill[0], behind the INSERT
	room  int       // in text, the same
	exprs []keyExpr
}

// KeyColumn is the name of the key's column where keys are evaluated.
const KeyColumn = "leafsql_key"

// A keyExpr is a key in the text, with the placeholders in it.
type keyExpr struct{ text, params span }

func (e *Evaluation) same(o *Evaluation) bool {
	return e.fill == o.fill && slices.Equal(e.exprs, o.exprs) && e.Clock == o.Clock && e.Selects == o.Selects && e.Variables == o.Variables
}

// finishEvaluated notes a statement whose keys are evaluated.
func (w *insertReader) finishEvaluated() error {
	if w.rows {
		return refuse(w.Table, "ANALYZE runs a statement whose keys only the server knows", "run it without ANALYZE")
	}
	head := w.text[w.head.from:w.head.to]
	values := make([]string, len(w.exprs))
	apart := whole(w.s.Over(head))
	for i, e := range w.exprs {
		values[i] = w.text[e.text.from:e.text.to]
		apart = apart && whole(w.s.Over(values[i]))
	}
	if !apart {
		return w.straddled()
	}
	keys, rest := w.touched()
	if err := w.refuseBefore(cmp.Or(keys.before, rest.before)); err != nil {
		return err
	}
	switch what := keys.order(&rest); {
	case keys.stored != "":
		return refuse(w.Table, "its key calls "+keys.stored+"(), and keys are evaluated first: what that does could be seen by the other values too early", "SELECT "+keys.stored+"() before, and pass what it gives as an argument")
	case keys.selects && w.Rows > 1 && !w.settings.MariaDB && w.keyReadsTarget():
		return refuse(w.Table, "its keys read "+w.Table.Name+", and keys are evaluated first: those of later rows would not see the earlier rows", "insert the rows one by one")
	case keys.setsID:
		return w.setsIDApart("its key")
	case what != "":
		return refuse(w.Table, "its key and its other values use "+what+", and keys are evaluated first", "put the key into a user variable by a statement before")
	}
	w.edits, w.texts = w.edits[:w.firstEdit], w.texts[:w.firstText]
	w.Insert.editSpan = span{w.firstEdit, w.firstEdit}
	w.Rows, w.Lacking, w.ArgKeys, w.Floor, w.OwnKey = 0, 0, nil, 0, 0
	verb := w.verbEnd - w.head.from
	w.Evaluation = &Evaluation{
		Clock: keys.clock && hasRoom(head, verb), Selects: keys.selects, Variables: keys.variables && len(w.exprs) > 1, text: w.text, fill: [2]string{head, keyRows(KeyColumn, values)}, verb: verb, room: w.verbEnd, exprs: w.exprs,
	}
	w.inserts = append(w.inserts, w.Insert)
	return nil
}

// keyReadsTarget says whether a key names the table that the statement writes.
func (w *insertReader) keyReadsTarget() bool {
	for _, e := range w.exprs {
		s := w.s.Over(w.text[e.text.from:e.text.to])
		for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
			if (t.Kind == lex.Word || t.Kind == lex.Name) && strings.EqualFold(unquote(s.Text[t.Pos:t.End]), w.Table.Name) {
				return true
			}
		}
	}
	return false
}

// hasRoom says whether a statement can be told its time: nothing such as SET
// STATEMENT … FOR stands before its verb, and no hint behind that.
func hasRoom(head string, verb int) bool {
	return verb <= len("REPLACE") && !strings.Contains(head, "/*+")
}

// touched is what the keys touch, and what the rest of the statement does.
func (w *insertReader) touched() (keys, rest touches) {
	from := w.head.from
	for _, e := range w.exprs {
		rest.touch(w.s.Over(w.text[from:e.text.from]))
		keys.touch(w.s.Over(w.text[e.text.from:e.text.to]))
		from = e.text.to
	}
	rest.touch(w.s.Over(w.text[from:max(from, w.prevEnd)]))
	return keys, rest
}

// keyRows is what follows the name of a stage whose column values are put into.
func keyRows(column string, values []string) string {
	var b strings.Builder
	b.WriteString(" (leafsql_n, " + quoteName(column) + ") VALUES ")
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + strconv.Itoa(i+1) + ", " + v + ")")
	}
	return b.String()
}

// Keys is how many keys there are.
func (e *Evaluation) Keys() int { return len(e.exprs) }

// Fill is the text that puts the keys into a stage, which is named as SQL
// writes it. hint stands behind the verb.
func (e *Evaluation) Fill(stage, hint string) string {
	return e.fill[0][:e.verb] + hint + e.fill[0][e.verb:] + stage + e.fill[1]
}

// Text is the user's text with keys that were read from the stage, as SQL
// writes them. hint stands behind the verb.
func (e *Evaluation) Text(keys []string, hint string) string {
	var b strings.Builder
	b.WriteString(e.text[:e.room] + hint)
	from := e.room
	for i, expr := range e.exprs {
		b.WriteString(e.text[from:expr.text.from] + keys[i])
		if from = expr.text.to; from < len(e.text) && !strings.ContainsRune(" ,)", rune(e.text[from])) {
			b.WriteByte(' ') // a word may follow a parenthesis at once, and not a number
		}
	}
	b.WriteString(e.text[from:])
	return b.String()
}

// SplitArgs tells the arguments of Fill from those of Text.
func SplitArgs[T any](e *Evaluation, args []T) (fill, text []T) {
	if len(args) == 0 {
		return nil, nil
	}
	from := 0
	for _, expr := range e.exprs {
		text = append(text, args[from:expr.params.from]...)
		fill = append(fill, args[expr.params.from:expr.params.to]...)
		from = expr.params.to
	}
	return fill, append(text, args[from:]...)
}

// FillArgs is the text that puts n arguments of a statement's key column into
// a stage, "" where a version comment keeps it from being written.
func (p *Plan) FillArgs(in *Insert, stage string, n int) string {
	head := p.text[in.head.from:in.head.to]
	if !whole(lex.Scanner{Text: head}) {
		return ""
	}
	return head + stage + keyRows(in.Table.Key, slices.Repeat([]string{"?"}, n))
}

// whole says whether every version comment that a text holds a part of is in it
// from its beginning to its end.
func whole(in lex.Scanner) bool {
	for star := false; ; {
		t := in.Next()
		switch {
		case t.Kind == lex.EOF:
			return true
		case t.Kind == lex.Bad, t.Kind == '/' && star && in.Text[t.Pos-1] == '*':
			return false
		}
		star = t.Kind == '*'
	}
}

// straddled refuses a statement of which a piece cannot be sent by itself.
func (w *insertReader) straddled() error {
	return refuse(w.Table, "a version comment begins in one part of it and ends in another, and its parts go to the server one by one", "write it without that comment")
}

// pieceEnd is where what was read ends, with the version comment that ends
// behind it.
func (w *insertReader) pieceEnd() int {
	gap := w.text[w.prevEnd:w.tok.Pos]
	if end := strings.Index(gap, "*/"); end >= 0 && straddles(gap) && !strings.Contains(gap[:end], "/*") {
		return w.prevEnd + end + len("*/")
	}
	return w.prevEnd
}
