package read

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// This file records the edits of an INSERT and the finished plan.

// A smallPlan is a plan with room for the contents of most plans of one INSERT, in one allocation.
type smallPlan struct {
	insert.Plan
	inserts [1]insert.Insert
	edits   [2]insert.Edit
	texts   [1]string
}

// preallocate allocates the plan. It is called when the plan is certain to have an INSERT.
func (r *reader) preallocate() {
	if r.Edits == nil {
		p := &smallPlan{}
		r.spare = &p.Plan
		r.Inserts, r.Edits, r.Texts = p.inserts[:0], p.edits[:0], p.texts[:0]
	}
}

func (r *reader) plan() *insert.Plan {
	plan := r.spare
	if plan == nil {
		plan = &insert.Plan{}
	}
	r.NumInput = r.params
	if r.Cut > 0 {
		plan.Init(r.text, insert.Findings{Cut: r.Cut, CutInput: r.CutInput, Ends: r.Ends, NumInput: r.NumInput})
		return plan
	}
	if r.Results != 1 {
		for i := range r.Inserts {
			r.Inserts[i].Update = min(r.Inserts[i].Update, insert.RowUpdate)
		}
	}
	r.RunsPrograms = r.RunsPrograms && r.schema.Temporary != nil
	plan.Init(r.text, r.Findings)
	return plan
}

func (r *reader) edit(kind insert.EditKind, pos, end, ref int) {
	r.Edits = append(r.Edits, insert.Edit{Pos: int32(pos), End: int32(end), Ref: int32(ref), Kind: kind})
}

func (r *reader) insertText(kind insert.EditKind, pos int, text string) {
	r.replaceText(kind, pos, pos, text)
}

func (r *reader) replaceText(kind insert.EditKind, pos, end int, text string) {
	r.edit(kind, pos, end, len(r.Texts))
	r.Texts = append(r.Texts, text)
}

// separateWord adds a space if a word follows the key directly.
func (w *insertReader) separateWord() {
	if w.tok.Pos == w.prevEnd && w.tok.Kind == lex.Word {
		w.insertText(insert.EditFilled, w.prevEnd, " ")
	}
}

// addKeyEdit records a row without a key. The generated key will replace text[pos:end].
func (w *insertReader) addKeyEdit(kind insert.EditKind, pos, end int) {
	w.edit(kind, pos, end, w.params)
	w.RowsWithoutKey++
}

// paramsBefore returns the number of placeholders in front of the current token.
func (w *insertReader) paramsBefore() int {
	if w.tok.Kind == lex.Param {
		return w.params - 1
	}
	return w.params
}

// endSource records that the source of the rows ends at the current token.
func (w *insertReader) endSource() {
	w.source.to, w.sourceInput, w.tailEdit = w.prevEnd, w.params, len(w.Edits)
}

// discardEdits removes the statement's edits from the plan.
func (w *insertReader) discardEdits() {
	w.Edits = w.Edits[:w.firstEdit]
	w.Texts = w.Texts[:w.firstText]
}

// newName returns a name that does not occur in the query.
func (r *reader) newName() string {
	if r.alias == "" {
		r.alias = "leafsql_key"
		for strings.Contains(r.text, r.alias) {
			r.alias += "_"
		}
	}
	return r.alias
}
