package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/quote"
)

// A Step changes a tag's tables on all shards.
type Step string

// The steps, in their order. Writers are deployed with mysql-leaf between Switch and Drop.
const (
	Widen   Step = "widen"   // the key becomes BIGINT
	Switch  Step = "switch"  // rows without a key are refused, and max_id in leaf_alloc is above the highest key
	Drop    Step = "drop"    // AUTO_INCREMENT is dropped
	Unguard Step = "unguard" // the guard is dropped
	Done    Step = ""
)

var stepOrder = []Step{Widen, Switch, Drop, Unguard, Done}

// Steps are the steps that a user can request.
var Steps = stepOrder[:4]

// Next returns the next step, or Done.
func (t *Tag) Next() Step {
	any := slices.ContainsFunc[[]*table]
	auto := t.HasAutoIncrement()
	switch {
	case t.widens && any(t.tables, (*table).isNarrow):
		return Widen
	case auto && (t.Row == nil || t.IsRowTooLow() || any(t.tables, func(o *table) bool { return o.AutoIncrement && !o.HasGuard })):
		return Switch
	case auto:
		return Drop
	case t.IsGuarded():
		return Unguard
	}
	return Done
}

// IsDone reports whether a step is done or not needed.
func (t *Tag) IsDone(step Step) bool {
	i := slices.Index(stepOrder, step)
	return i >= 0 && i < slices.Index(stepOrder, t.Next())
}

// IsGuarded reports whether there is a guard on any shard. If so, the tables had AUTO_INCREMENT before the migration.
func (t *Tag) IsGuarded() bool {
	return slices.ContainsFunc(t.tables, func(o *table) bool { return o.HasGuard })
}

func (t *table) isNarrow() bool { return t.def.Widen() != t.def }

// HalfDone returns the tables on which the next step is done already, if it is not done on all of them: a step,
// or its reversal, was interrupted.
func (t *Tag) HalfDone() []*survey.Table {
	var half []*survey.Table
	for _, o := range t.tables {
		done := false
		switch t.Next() {
		case Widen:
			done = !o.isNarrow()
		case Switch:
			done = o.HasGuard
		case Drop:
			done = o.HasGuard && !o.AutoIncrement
		case Unguard:
			done = !o.HasGuard
		}
		if done {
			half = append(half, o.Table)
		}
	}
	return half
}

// Statements returns a step's statements, as far as they are known before it starts: Switch reads the highest
// key again after it has created the guards.
func (t *Tag) Statements(step Step) (all []Statement) {
	for _, o := range t.tables {
		add := func(sql ...string) { all = append(all, newStatement(o.Shard.Server, sql...)) }
		switch {
		case step == Widen && o.isNarrow():
			add(o.Modify(o.def.Widen()))
		case step == Switch && o.AutoIncrement && !o.HasGuard:
			add(o.CreateGuard())
		case step == Drop && o.AutoIncrement:
			add(o.alterAuto...)
		case step == Unguard && o.HasGuard:
			add("DROP TRIGGER " + quote.Qualified(o.Database, o.GuardName()))
		}
	}
	if step == Switch {
		all = append(all, t.rowStatements()...)
	}
	return all
}

func newStatement(s *databases.Server, sql ...string) Statement { return Statement{s.Label, sql, s} }

// rowStatements returns the statements that raise max_id in leaf_alloc's row above the highest key.
func (t *Tag) rowStatements() (all []Statement) {
	add := func(c survey.Change) { all = append(all, newStatement(c.Server, c.SQL)) }
	for _, create := range t.survey.CreateAlloc() {
		add(create)
	}
	highest, _ := t.Highest()
	switch {
	case t.Row == nil:
		add(t.survey.AddRow(t.Tag, highest+1))
	case t.IsRowTooLow():
		add(t.survey.RaiseRow(t.Row.Tag, highest+1))
	}
	return all
}

// Err returns the reason why a migration cannot continue or, after the last step, why its tables cannot be
// filled; otherwise nil.
func (t *Tag) Err() error {
	for _, o := range t.tables {
		if err := o.CheckVisible(o.def); err != nil {
			return err
		}
	}
	switch {
	case t.Broken != nil, len(t.UnknownTables()) > 0:
		_, err := t.StartID()
		return err
	case t.Next() == Widen && len(t.foreignKeys) > 0:
		return fmt.Errorf("leafsql: foreign keys of the key of %s: %s; drop them, widen the columns on both sides and add them again, or leave the type with -keep-type",
			t.Name, strings.Join(t.foreignKeys, ", "))
	case t.Next() != Done:
		return nil
	case t.Row == nil:
		return fmt.Errorf("leafsql: %s has no AUTO_INCREMENT, and leaf_alloc no row %s; if Java Leaf issues its keys, name its tag: %s::segment(TAG); otherwise add the row with leafsql init",
			t.tables[0].Location(), t.Name, t.tables[0].ShardName())
	case t.IsRowTooLow():
		return fmt.Errorf("leafsql: the row %s of leaf_alloc is not above the keys in use; raise it with leafsql init", t.Name)
	}
	return nil
}
