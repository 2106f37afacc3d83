package insert

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// An Evaluation is how a statement runs whose rows are in the text, but whose
// keys only the server can tell, such as expressions. They are put into a
// temporary table with the key's own type, and the text runs with what came of
// them there, as any other text.
//
//	INSERT INTO stage (leafsql_n, id) VALUES (1, 1-1), (2, @next)   Fill
//	SELECT id FROM stage ORDER BY leafsql_n
//	INSERT INTO t (id, a) VALUES (NULL, 'x'), (17, 'y')             Text
type Evaluation struct {
	text  string
	fill  [2]string // around the stage's name
	exprs []keyExpr
}

// A keyExpr is a key in the text, with the placeholders in it.
type keyExpr struct{ text, params span }

func (e *Evaluation) same(o *Evaluation) bool {
	return e.fill == o.fill && slices.Equal(e.exprs, o.exprs)
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
	w.edits, w.texts = w.edits[:w.firstEdit], w.texts[:w.firstText]
	w.Insert.editSpan = span{w.firstEdit, w.firstEdit}
	w.Rows, w.Lacking, w.ArgKeys, w.Floor = 0, 0, nil, 0
	w.Evaluation = &Evaluation{text: w.text, fill: [2]string{head, keyRows(w.Table, values)}, exprs: w.exprs}
	w.inserts = append(w.inserts, w.Insert)
	return nil
}

// keyRows is what follows the name of a stage that values are put into.
func keyRows(t *Table, values []string) string {
	var b strings.Builder
	b.WriteString(" (leafsql_n, " + quoteName(t.Key) + ") VALUES ")
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + strconv.Itoa(i+1) + ", " + v + ")")
	}
	return b.String()
}

// Fill is the text that puts the keys into a stage, which is named as SQL
// writes it.
func (e *Evaluation) Fill(stage string) string { return e.fill[0] + stage + e.fill[1] }

// Text is the user's text with keys that were read from the stage, as SQL
// writes them.
func (e *Evaluation) Text(keys []string) string {
	var b strings.Builder
	from := 0
	for i, expr := range e.exprs {
		b.WriteString(e.text[from:expr.text.from] + keys[i])
		from = expr.text.to
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
	return head + stage + keyRows(in.Table, slices.Repeat([]string{"?"}, n))
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
