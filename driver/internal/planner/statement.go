package planner

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// A Statement is what a text comes to: a plan, or why it is refused.
type Statement struct {
	Way     Way
	Plan    *insert.Plan
	Effects bool // on the session or on tables, to be noted when it ran
	MayFill bool // it writes a table that a rule means and that has nothing to fill now, such as a temporary one

	Accepted atomic.Bool // the copy of a staged statement ran, so that the server finds the names in it

	db      string          // the database in use, in which names are read also if a prepared statement runs in another one
	place   catalog.Name    // of the table that MayFill means
	unknown bool            // no plan: the session's settings decide
	refusal *insert.Refusal // no plan
	expires time.Time       // when it is to be planned anew; zero: it holds as long as the schema
}

// A Way is how a statement is executed.
type Way uint8

const (
	PassedThrough Way = iota // to the inner driver as it is
	Filled                   // with keys in its text or among its arguments
	Staged                   // through a temporary table
	InParts                  // as two texts
)

func newStatement(p *insert.Plan) *Statement {
	st := &Statement{Plan: p, Way: Filled, Effects: p.HasEffects()}
	switch {
	case p.Cut > 0:
		st.Way = InParts
	case len(p.Inserts) == 0:
		st.Way = PassedThrough
	case p.Inserts[0].Staging != nil:
		st.Way = Staged
	}
	return st
}

// passThrough is every text's statement where nothing is configured.
var passThrough = newStatement(new(insert.Plan))

// positional says whether some insert relies on the columns that the catalog told:
// it lists none, or its rows go through a stage.
func (st *Statement) positional() bool {
	return st.Way == Staged || slices.ContainsFunc(st.Plan.Inserts, func(in insert.Insert) bool { return in.Positional })
}

// Fills reports whether the text is not sent as it is.
func (st *Statement) Fills() bool { return st.Way != PassedThrough }

// Prepares reports whether the text writes a table that a rule means, though perhaps a temporary one at this time.
func (st *Statement) Prepares() bool { return st.Fills() || st.MayFill }

// HasEffects reports whether the planner has to know how the statement ended.
func (st *Statement) HasEffects() bool { return st.Effects }

// Parts returns the statements of the text if it is filled, more than one if each has to be planned and run by itself.
func (st *Statement) Parts(text string) []string {
	if !st.Fills() || len(st.Plan.Ends) == 0 {
		return []string{text}
	}
	parts := make([]string, 0, len(st.Plan.Ends)+1)
	begin := 0
	for _, end := range st.Plan.Ends {
		parts = append(parts, text[begin:end])
		begin = end
	}
	return append(parts, text[begin:])
}

// Likely returns the text that most executions of a statement send: each row that may get a key gets one. A statement that
// runs in several steps, or has more keys than a statement may have placeholders, is judged by its own text.
func (st *Statement) Likely(text string) string {
	if st.Way != Filled {
		return text
	}
	blocks := lo.Map(st.Plan.Inserts, func(in insert.Insert, _ int) insert.Block {
		return insert.Block{First: 1, N: in.Lacking + len(in.ArgKeys)}
	})
	if t := st.Plan.Template(blocks); !t.Literal {
		return t.Text
	}
	return text
}
