// Package migrate takes tables from AUTO_INCREMENT, or from Java Leaf, to mysql-leaf:
// one step at a time, in the order in which no id can be given twice.
//
//	tags, err := migration.Look(ctx)
//	for _, tag := range tags {
//		err = migration.Do(ctx, tag, tag.Next(), say)
//	}
//
// Where a migration stands is read from the databases alone, so that it goes on after
// whatever ended it, and a step is verified by looking again.
//
// Under AUTO_INCREMENT the server gives a writer without leafsql the number above the
// highest id, which lies in a range that a process with leafsql holds. So both must not
// write at the same time: a trigger, the guard, refuses rows without a key from the
// moment at which leaf_alloc's row begins above them.
//
// Java Leaf needs no guard: it works on the same row.
package migrate

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/column"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/part"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
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

// A Migration is of some tables.
type Migration struct {
	Set      *databases.Set
	Tables   []string // by name, or where the DSN has none, rules as in leafTables
	KeepType bool     // Widen is left out
}

// A Tag is where the tables of one tag stand, on all shards.
type Tag struct {
	*survey.Tag
	survey *survey.Survey
	tables []*table
	widen  bool
}

type table struct {
	*survey.Table
	def     column.Definition
	toggle  []string // takes AUTO_INCREMENT away, or gives it back
	guarded bool
}

// A Statement changes one thing on one server.
type Statement struct {
	Server string   `json:"server"`
	SQL    []string `json:"sql"`
	on     *databases.Server
	do     func(context.Context) error // nil: the SQL says it all
}

// Configure makes rules of the tables where the DSNs have none.
func (m *Migration) Configure() error {
	for _, shard := range m.Set.Shards {
		if len(shard.Config.Tables) > 0 {
			continue
		}
		rules, err := driver.ParseDSN("/?leafTables=" + url.QueryEscape(strings.Join(m.Tables, ",")))
		switch {
		case err != nil:
			return err
		case len(rules.Tables) == 0: // auto, or none
			return fmt.Errorf("leafsql: migrate: %q names no table; write db.table", m.Tables)
		}
		shard.Config.Auto, shard.Config.Tables = false, rules.Tables
	}
	return nil
}

// Look finds where the tables stand.
func (m *Migration) Look(ctx context.Context) ([]*Tag, error) {
	s, err := survey.Take(ctx, m.Set, nil)
	if err != nil {
		return nil, err
	}
	var tags []*Tag
	found := make(map[string]bool)
	for _, tag := range s.Tags {
		t := &Tag{Tag: tag, survey: s, widen: !m.KeepType}
		wanted := false
		for _, o := range tag.Tables {
			for _, name := range m.Tables {
				name, _, _ = strings.Cut(name, ":")
				if strings.EqualFold(name, o.Bare()) || strings.EqualFold(name, o.Name()) {
					wanted, found[name] = true, true
				}
			}
		}
		if !wanted {
			continue
		}
		for _, o := range tag.Tables {
			one, err := look(ctx, o)
			if err != nil {
				return nil, err
			}
			t.tables = append(t.tables, one)
		}
		tags = append(tags, t)
	}
	for _, name := range m.Tables {
		if name, _, _ = strings.Cut(name, ":"); !found[name] {
			return nil, fmt.Errorf("leafsql: no table %s takes ids from leaf_alloc here; write it as on the server, and add it to leafTables where the DSN has that", name)
		}
	}
	return tags, nil
}

func look(ctx context.Context, t *survey.Table) (*table, error) {
	if t.Err != nil {
		return nil, t.Err
	}
	create, err := t.Create(ctx)
	if err != nil {
		return nil, err
	}
	one := &table{Table: t}
	if one.def, err = column.Of(create, t.Column); err != nil {
		return nil, err
	}
	other := one.def.WithAutoIncrement()
	if t.AutoIncrement {
		other = one.def.WithoutAutoIncrement()
	}
	if one.toggle, err = t.Alter(ctx, other); err != nil {
		return nil, err
	}
	guards, err := t.Shard.List(ctx, "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = ? AND event_object_table = ? AND trigger_name = ?"+
		" AND action_timing = 'BEFORE' AND event_manipulation = 'INSERT' AND action_statement LIKE '%SIGNAL%'",
		t.Database, t.Table.Table, guardName(t))
	one.guarded = len(guards) > 0
	return one, err
}

// guardName is the guard's; names end after 64 letters.
func guardName(t *survey.Table) string {
	name := []rune(t.Table.Table)
	return string(name[:min(len(name), 64-len("_needs_id"))]) + "_needs_id"
}

func (t *table) guard() string {
	return quote.In(t.Database, guardName(t.Table))
}

// Next is the step that comes next.
func (t *Tag) Next() Step {
	any := slices.ContainsFunc[[]*table]
	counted := any(t.tables, func(o *table) bool { return o.AutoIncrement })
	switch {
	case t.widen && any(t.tables, (*table).narrow):
		return Widen
	case counted && (t.Row == nil || t.TooLow() || any(t.tables, func(o *table) bool { return o.AutoIncrement && !o.guarded })):
		return Switch
	case counted:
		return Drop
	case any(t.tables, func(o *table) bool { return o.guarded }):
		return Unguard
	}
	return Done
}

// Past reports whether a step is behind: done, or not needed.
func (t *Tag) Past(step Step) bool {
	order := []Step{Widen, Switch, Drop, Unguard, Done}
	i := slices.Index(order, step)
	return i >= 0 && i < slices.Index(order, t.Next())
}

func (t *table) narrow() bool { return t.def.Widen() != t.def }

// Err says why a migration cannot go on, though no step is left.
func (t *Tag) Err() error {
	switch {
	case len(t.Unknown()) > 0:
		_, err := t.Start(0)
		return err
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

// Statements are a step's, as far as they are known before it begins: Switch looks for
// the highest key again once the guards stand.
func (t *Tag) Statements(step Step) (all []Statement) {
	for _, o := range t.tables {
		add := func(sql ...string) { all = append(all, on(o.Shard.Server, sql...)) }
		switch {
		case step == Widen && o.narrow():
			add(o.def.Widen().Alter(o.Quoted()))
		case step == Switch && o.AutoIncrement && !o.guarded:
			add("CREATE TRIGGER " + o.guard() + " BEFORE INSERT ON " + o.Quoted() + " FOR EACH ROW IF COALESCE(NEW." + quote.Name(o.Column) + ", 0) = 0 THEN" +
				" SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'leafsql: this row has no id, its writer does not use mysql-leaf yet'; END IF")
		case step == Drop && o.AutoIncrement:
			add(o.toggle...)
		case step == Unguard && o.guarded:
			add("DROP TRIGGER " + o.guard())
		}
	}
	if step == Switch {
		all = append(all, t.row()...)
	}
	return all
}

func on(s *databases.Server, sql ...string) Statement { return Statement{s.Label, sql, s, nil} }

// row puts leaf_alloc's row above the highest key.
func (t *Tag) row() (all []Statement) {
	add := func(c survey.Change) { all = append(all, Statement{c.On.Label, []string{c.Text}, c.On, c.Run}) }
	for _, create := range t.survey.CreateAllocs() {
		add(create)
	}
	highest, _ := t.Highest()
	switch {
	case t.Row == nil:
		add(t.survey.AddRow(t.Name, highest+1))
	case t.TooLow():
		add(t.survey.RaiseRow(t.Row.Tag, highest+1))
	}
	return all
}

// Do runs the step that is next, says each statement before it runs, and looks whether
// the step did what it is for. A Switch that fails leaves no new guard behind.
func (m *Migration) Do(ctx context.Context, t *Tag, step Step, say func(Statement)) (after *Tag, err error) {
	if next := t.Next(); step != next || step == Done {
		return nil, fmt.Errorf("leafsql: the next step of %s is not %q but %q; without -do the command says what it does", t.Name, step, next)
	}
	if err := t.Err(); err != nil {
		return nil, err
	}
	if step == Switch {
		if err := m.Set.AllStores(); err != nil {
			return nil, err
		}
	}
	if step == Unguard {
		if err := t.strict(); err != nil {
			return nil, err
		}
	}
	statements := t.Statements(step)
	if step == Switch {
		statements = statements[:len(statements)-len(t.row())]
		defer func() {
			if err != nil {
				err = errors.Join(err, m.dropNew(context.WithoutCancel(ctx), t, say))
			}
		}()
	}
	if err := run(ctx, statements, say); err != nil {
		return nil, err
	}
	if after, err = m.again(ctx, t); err != nil {
		return nil, err
	}
	if step == Switch { // no number of AUTO_INCREMENT's is given any more
		if err := run(ctx, after.row(), say); err != nil {
			return nil, err
		}
		if after, err = m.again(ctx, t); err != nil {
			return nil, err
		}
	}
	if after.Next() == step {
		return nil, fmt.Errorf("leafsql: %s of %s ran and did not do what it is for: another session may have changed it; look with leafsql check, then run it again", step, t.Name)
	}
	return after, nil
}

// dropNew drops guards that were not there before.
func (m *Migration) dropNew(ctx context.Context, before *Tag, say func(Statement)) error {
	after, err := m.again(ctx, before)
	if err != nil {
		return fmt.Errorf("leafsql: the guards could not be taken away again: %w; leafsql migrate -back does", part.Of(err))
	}
	for _, o := range after.tables {
		o.guarded = o.guarded && slices.ContainsFunc(before.tables, func(b *table) bool { return b.Where() == o.Where() && !b.guarded })
	}
	return run(ctx, after.Statements(Unguard), say)
}

// Back undoes what came last, as long as a guard stands.
func (m *Migration) Back(ctx context.Context, t *Tag, say func(Statement)) (after *Tag, err error) {
	var statements []Statement
	for _, o := range t.tables {
		if o.guarded && !o.AutoIncrement {
			statements = append(statements, on(o.Shard.Server, o.toggle...))
		}
	}
	if len(statements) == 0 {
		statements = t.Statements(Unguard)
	}
	if len(statements) == 0 && slices.ContainsFunc(t.tables, func(o *table) bool { return o.AutoIncrement }) {
		return t, nil // it is where it began, or an interrupted -back had come this far
	}
	if len(statements) == 0 {
		return nil, fmt.Errorf("leafsql: %s has no guard, and no AUTO_INCREMENT: the migration is over, or came from Java Leaf, which needs none to go back; for the numbers of the server again, stop all writers and run: %s",
			t.Name, strings.Join(t.tables[0].toggle, "; "))
	}
	if err := run(ctx, statements, say); err != nil {
		return nil, err
	}
	return m.again(ctx, t)
}

// again looks at one tag.
func (m *Migration) again(ctx context.Context, t *Tag) (*Tag, error) {
	tags, err := m.Look(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range tags {
		if o.Name == t.Name {
			return o, o.Err()
		}
	}
	return nil, fmt.Errorf("leafsql: the tables of %s are gone; look with leafsql check", t.Name)
}

// strict is an error where a writer without leafsql would store the key 0.
func (t *Tag) strict() error {
	for _, o := range t.tables {
		if mode := o.Shard.Global["sql_mode"]; !strings.Contains(mode, "STRICT_") {
			return fmt.Errorf("leafsql: %s is not strict: without the guard a writer without leafsql stores the key 0; leafsql check says how to make it strict", o.Shard.Label)
		}
	}
	return nil
}

// run runs it on a connection of its own, so that nothing that it set stays.
func (s Statement) run(ctx context.Context) error {
	if s.do != nil {
		return s.do(ctx)
	}
	conn, err := s.on.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	for _, text := range s.SQL {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, statements []Statement, say func(Statement)) error {
	for _, s := range statements {
		say(s)
		switch err := s.run(ctx); {
		case servererr.Is(err, servererr.TriggerNeedsSuper):
			return fmt.Errorf("leafsql: migrate on %s: %w; create triggers as a user with SUPER, or SET GLOBAL log_bin_trust_function_creators = 1 for this step", s.Server, err)
		case servererr.Is(err, databases.ErrForeignKeys...):
			return fmt.Errorf("leafsql: migrate on %s: %w; drop these foreign keys, widen the columns on both sides and add them again, or leave the type with -keep-type", s.Server, err)
		case servererr.Is(err, servererr.LockWait):
			return fmt.Errorf("leafsql: migrate on %s: %w; end long transactions on the table, and run the step again", s.Server, err)
		case err != nil:
			return fmt.Errorf("leafsql: migrate on %s: %w; what ran before stays, and the step can be run again", s.Server, part.Of(err))
		}
	}
	return nil
}
