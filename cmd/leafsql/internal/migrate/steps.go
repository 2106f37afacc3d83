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
	Switch  Step = "switch"  // rows without a key are refused, and leaf_alloc's row starts above the highest key
	Drop    Step = "drop"    // AUTO_INCREMENT is dropped
	Unguard Step = "unguard" // the guard is dropped
	Done    Step = ""
)

var order = []Step{Widen, Switch, Drop, Unguard, Done}

// Steps are the steps that a user can request.
var Steps = order[:4]

// Next returns the next step, or Done.
func (t *Tag) Next() Step {
	any := slices.ContainsFunc[[]*table]
	auto := t.AutoIncrement()
	switch {
	case t.widen && any(t.tables, (*table).narrow):
		return Widen
	case auto && (t.Row == nil || t.TooLow() || any(t.tables, func(o *table) bool { return o.AutoIncrement && !o.Guarded })):
		return Switch
	case auto:
		return Drop
	case t.Guarded():
		return Unguard
	}
	return Done
}

// Past reports whether a step is done or not needed.
func (t *Tag) Past(step Step) bool {
	i := slices.Index(order, step)
	return i >= 0 && i < slices.Index(order, t.Next())
}

// Guarded reports whether there is a guard on any shard. If so, the tables come from AUTO_INCREMENT.
func (t *Tag) Guarded() bool {
	return slices.ContainsFunc(t.tables, func(o *table) bool { return o.Guarded })
}

func (t *table) narrow() bool { return t.def.Widen() != t.def }

// Half returns the tables on which the next step is done already, if it is not done on all of them: a step, or
// its reversal, was interrupted.
func (t *Tag) Half() []*survey.Table {
	var half []*survey.Table
	for _, o := range t.tables {
		done := false
		switch t.Next() {
		case Widen:
			done = !o.narrow()
		case Switch:
			done = o.Guarded
		case Drop:
			done = o.Guarded && !o.AutoIncrement
		case Unguard:
			done = !o.Guarded
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
		add := func(sql ...string) { all = append(all, on(o.Shard.Server, sql...)) }
		switch {
		case step == Widen && o.narrow():
			add(o.Modify(o.def.Widen()))
		case step == Switch && o.AutoIncrement && !o.Guarded:
			add(o.CreateGuard())
		case step == Drop && o.AutoIncrement:
			add(o.alterAuto...)
		case step == Unguard && o.Guarded:
			add("DROP TRIGGER " + quote.In(o.Database, o.Guard()))
		}
	}
	if step == Switch {
		all = append(all, t.row()...)
	}
	return all
}

func on(s *databases.Server, sql ...string) Statement { return Statement{s.Label, sql, s} }

// row returns the statements that put leaf_alloc's row above the highest key.
func (t *Tag) row() (all []Statement) {
	add := func(c survey.Change) { all = append(all, on(c.On, c.SQL)) }
	for _, create := range t.survey.CreateAlloc() {
		add(create)
	}
	highest, _ := t.Highest()
	switch {
	case t.Row == nil:
		add(t.survey.AddRow(t.Tag, highest+1))
	case t.TooLow():
		add(t.survey.RaiseRow(t.Row.Tag, highest+1))
	}
	return all
}

// Err returns the reason why a migration cannot continue or, after the last step, why its tables cannot be
// filled; otherwise nil.
func (t *Tag) Err() error {
	for _, o := range t.tables {
		if err := o.Invisible(o.def); err != nil {
			return err
		}
	}
	switch {
	case t.Broken != nil, len(t.Unknown()) > 0:
		_, err := t.Start()
		return err
	case t.Next() == Widen && len(t.foreignKeys) > 0:
		return fmt.Errorf("leafsql: foreign keys of the key of %s: %s; drop them, widen the columns on both sides and add them again, or leave the type with -keep-type",
			t.Name, strings.Join(t.foreignKeys, ", "))
	case t.Next() != Done:
		return nil
	case t.Row == nil:
		return fmt.Errorf("leafsql: %s has no AUTO_INCREMENT, and leaf_alloc no row %s; where Java Leaf gives its keys, name its tag: %s::segment(TAG); else leafsql init adds the row",
			t.tables[0].Where(), t.Name, t.tables[0].Bare())
	case t.TooLow():
		return fmt.Errorf("leafsql: the row %s of leaf_alloc is not above the keys in use; leafsql init raises it", t.Name)
	}
	return nil
}
