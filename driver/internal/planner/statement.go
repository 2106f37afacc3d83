package planner

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// A Statement is the result of planning a query: a plan or a refusal.
type Statement struct {
	Way     Way
	Plan    *insert.Plan
	Effects bool // it has effects on the session or on tables, so RecordEffects has to be called

	CopySucceeded atomic.Bool // a staged statement has run successfully before, so the server can resolve the names in its update list

	db            string          // database in use when the query was planned; unqualified names are in it even if a prepared statement runs in another database
	mayFill       catalog.Name    // a table that it writes, that a rule includes and that is not filled now, such as a temporary table; zero if there is none
	needsSettings bool            // there is no plan until the session's settings are known
	refusal       *insert.Refusal // the refusal, if there is no plan because of it
	shape         shape           // its privileges, for a guarded session
	expires       time.Time       // time at which it must be planned again; zero: valid as long as the schema
}

// A Way is a way to execute a statement.
type Way uint8

const (
	PassedThrough Way = iota // sent to the inner driver unchanged
	Filled                   // with keys in the query or in its arguments
	Staged                   // through a temporary table
	InParts                  // as two queries
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

// passThrough is the statement of every query if no table is configured.
var passThrough = newStatement(new(insert.Plan))

// isPositional reports whether an insert relies on the columns that the catalog returned: it lists no columns,
// or its rows go through a temporary table.
func (st *Statement) isPositional() bool {
	return st.Way == Staged || slices.ContainsFunc(st.Plan.Inserts, func(in insert.Insert) bool { return in.Positional })
}

// Fills reports whether the query is sent with changes.
func (st *Statement) Fills() bool { return st.Way != PassedThrough }

// Prepares reports whether the query writes a table that a rule includes, even if that is a temporary
// table at present.
func (st *Statement) Prepares() bool { return st.Fills() || st.mayFill.Table != "" }

// HasEffects reports whether RecordEffects has to be called with the result of the statement.
func (st *Statement) HasEffects() bool { return st.Effects }

// Parts returns the statements of the query, in order, if the query is filled and each of several statements has
// to be planned and run by itself. Otherwise it returns nil.
func (st *Statement) Parts(text string) []string {
	if !st.Fills() || len(st.Plan.Ends) == 0 {
		return nil
	}
	parts := make([]string, 0, len(st.Plan.Ends)+1)
	begin := 0
	for _, end := range st.Plan.Ends {
		parts = append(parts, text[begin:end])
		begin = end
	}
	return append(parts, text[begin:])
}

// LikelyText returns the query that most executions of a statement send: each row that may get a key gets
// one. For a statement that runs in several steps, or that needs more placeholders than a statement may
// have, it returns text.
func (st *Statement) LikelyText(text string) string {
	if st.Way != Filled {
		return text
	}
	blocks := lo.Map(st.Plan.Inserts, func(in insert.Insert, _ int) insert.Block {
		return insert.Block{First: 1, N: in.RowsWithoutKey + len(in.ArgKeys)}
	})
	if t := st.Plan.Template(blocks); !t.Literal {
		return t.Text
	}
	return text
}
