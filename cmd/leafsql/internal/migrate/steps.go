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
	Switch  Step = "switch"  // rows without a key are refused, and leaf_alloc's row begins above the highest one
	Drop    Step = "drop"    // AUTO_INCREMENT goes
	Unguard Step = "unguard" // the guard goes
	Done    Step = ""
)

var order = []Step{Widen, Switch, Drop, Unguard, Done}

// Steps are those that can be asked for.
var Steps = order[:4]

// Next is the step that comes next.
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

// Past reports whether a step is behind: done, or not needed.
func (t *Tag) Past(step Step) bool {
	i := slices.Index(order, step)
	return i >= 0 && i < slices.Index(order, t.Next())
}

// Guarded reports whether a guard stands on any shard, so that the tables come from
// AUTO_INCREMENT.
func (t *Tag) Guarded() bool {
	return slices.ContainsFunc(t.tables, func(o *table) bool { return o.Guarded })
}

func (t *table) narrow() bool { return t.def.Widen() != t.def }

// Half lists the tables on which the next step was done already, where that is not so on
// all of them: a step, or a way back, was interrupted.
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

// Statements are a step's, as far as they are known before it begins: Switch looks for
// the highest key again once the guards stand.
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

// row puts leaf_alloc's row above the highest key.
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

// Err says why a migration cannot go on, though no step is left.
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
