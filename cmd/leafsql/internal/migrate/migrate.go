// Package migrate moves tables from AUTO_INCREMENT, or from Java Leaf, to mysql-leaf: one step at a time, in an
// order in which no id can be issued twice.
//
//	tags, err := migration.ReadTags(ctx)
//	for _, tag := range tags {
//		err = migration.RunStep(ctx, tag, tag.Next(), say)
//	}
//
// The state of a migration is read only from the databases, so a migration can resume after any interruption. A step is
// verified by reading the state again.
//
// While a key has AUTO_INCREMENT, a writer without leafsql gets the number after the highest id, and a process
// with leafsql may hold a range with this number. So both must not write at the same time. A guard prevents this: it is a
// trigger that refuses rows without a key. The guard is created before max_id in leaf_alloc is raised above the keys.
//
// A migration from Java Leaf needs no guard, because Java Leaf uses the same row of leaf_alloc.
//
// Errors are for people: the command prints them.
package migrate

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/column"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Migration is the migration of some tables.
type Migration struct {
	Set      *databases.Set
	Tables   []string // names, or rules as in leafTables if the DSN has no rules
	KeepType bool     // skip Widen

	IgnorePrograms bool // do not refuse a step because of stored programs, or because the user cannot see them

	Texts chinese.Texts // translations of findings
}

// A Tag is the state of the tables of one tag, on all shards.
type Tag struct {
	*survey.Tag
	Obstacles []check.Finding // findings that prevent the next steps; unless it is empty, every step except Widen is refused

	survey      *survey.Survey
	tables      []*table
	widens      bool
	foreignKeys []string // foreign keys that prevent Widen
}

type table struct {
	*survey.Table
	def       column.Definition
	alterAuto []string // drops AUTO_INCREMENT, or adds it again
}

// A Statement is SQL that makes one change on one server.
type Statement struct {
	Server string   `json:"server"`
	SQL    []string `json:"sql"`
	on     *databases.Server
}

// Configure sets Tables as the rules of each DSN without rules. Call it before ReadTags.
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
			return fmt.Errorf("leafsql: migrate: %q is not a table name; write db.table", m.Tables)
		}
		shard.Config.None, shard.Config.Tables = false, rules.Tables
	}
	return nil
}

// ReadTags returns the state of the tables, with the findings that prevent the next steps. It fails if no rule
// fills one of the Tables from leaf_alloc.
func (m *Migration) ReadTags(ctx context.Context) ([]*Tag, error) {
	s, err := survey.Take(ctx, m.Set, "", nil)
	if err != nil {
		return nil, err
	}
	var tags []*Tag
	found := make(map[string]bool)
	for _, tag := range s.Tags {
		wanted := false
		for _, o := range tag.Tables {
			for _, name := range m.Tables {
				name, _, _ = strings.Cut(name, ":")
				if strings.EqualFold(name, o.ShardName()) || strings.EqualFold(name, o.Name()) {
					wanted, found[name] = true, true
				}
			}
		}
		if !wanted {
			continue
		}
		t, err := m.newTag(ctx, s, tag)
		if err != nil {
			return nil, err
		}
		tags = append(tags, t)
	}
	for _, name := range m.Tables {
		if name, _, _ = strings.Cut(name, ":"); !found[name] {
			return nil, fmt.Errorf("leafsql: no table %s gets ids from leaf_alloc here; write the name as on the server, and add it to leafTables if the DSN has leafTables", name)
		}
	}
	return tags, m.findObstacles(ctx, s, tags)
}

// newTag reads the definitions of a tag's tables.
func (m *Migration) newTag(ctx context.Context, s *survey.Survey, tag *survey.Tag) (*Tag, error) {
	t := &Tag{Tag: tag, survey: s, widens: !m.KeepType}
	next := int64(0)
	if tag.Row != nil {
		next = tag.Row.MaxID
	}
	for _, o := range tag.Tables {
		one, err := newTable(ctx, o, next)
		if err != nil {
			return nil, err
		}
		t.tables = append(t.tables, one)
		if !t.widens || !one.isNarrow() {
			continue
		}
		names, err := o.ForeignKeys(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			t.foreignKeys = append(t.foreignKeys, o.Shard.Label+": "+name)
		}
	}
	return t, nil
}

// newTable reads the definitions from which a table's ALTERs are made. next is the tag's first unused id.
func newTable(ctx context.Context, t *survey.Table, next int64) (*table, error) {
	switch {
	case t.Err != nil:
		return nil, t.Err
	case t.GuardErr != nil:
		return nil, t.GuardErr
	case t.Shard.NoTriggers != "":
		return nil, fmt.Errorf("leafsql: migrate on %s: %s has no triggers, which keep writers without leafsql away from AUTO_INCREMENT; stop the writers of %s, run leafsql init, and start them with mysql-leaf: AUTO_INCREMENT can stay", t.Shard.Label, t.Shard.NoTriggers, t.Name())
	}
	create, err := t.ReadCreate(ctx)
	if err != nil {
		return nil, err
	}
	one := &table{Table: t}
	if one.def, err = column.FromCreateTable(create, t.Column); err != nil {
		return nil, err
	}
	other := one.def.WithAutoIncrement()
	if t.AutoIncrement {
		other = one.def.WithoutAutoIncrement()
	}
	one.alterAuto, err = t.Alter(ctx, other, next)
	return one, err
}

// RunStep runs step, and fails if it is not the next step. It calls say before each statement, and verifies the
// result of the step. A Switch that fails drops the guards that it created.
func (m *Migration) RunStep(ctx context.Context, t *Tag, step Step, say func(Statement)) (after *Tag, err error) {
	t, release, err := m.lockTag(ctx, t)
	if err != nil {
		return nil, err
	}
	defer release()
	if next := t.Next(); step != next || step == Done {
		return nil, fmt.Errorf("leafsql: the next step of %s is not %q but %q; run the command without -do to see what the step does", t.Name, step, next)
	}
	if t.IsBlocked(step) {
		return nil, fmt.Errorf("leafsql: %s of %s would break programs that leafsql check reports (%s); fix these findings first", step, t.Name, t.Obstacles[0].Code)
	}
	if err := t.Err(); err != nil {
		return nil, err
	}
	if step == Unguard {
		if err := t.checkStrict(); err != nil {
			return nil, err
		}
	}
	statements := t.Statements(step)
	if step == Switch {
		statements = statements[:len(statements)-len(t.rowStatements())]
	}
	ran, err := runAll(ctx, statements, say)
	if step == Switch {
		defer func() {
			if err != nil {
				err = errors.Join(err, m.dropNewGuards(context.WithoutCancel(ctx), t, ran, say))
			}
		}()
	}
	if err != nil {
		return nil, err
	}
	if after, err = m.rereadTag(ctx, t); err != nil {
		return nil, err
	}
	if step == Switch { // from now on the server generates no AUTO_INCREMENT numbers
		if _, err = runAll(ctx, after.rowStatements(), say); err != nil {
			return nil, err
		}
		if after, err = m.rereadTag(ctx, t); err != nil {
			return nil, err
		}
	}
	if after.Next() == step {
		return nil, fmt.Errorf("leafsql: %s of %s ran without effect: another session may have changed the table; run leafsql check, then run the step again", step, t.Name)
	}
	return after, nil
}

// rereadTag reads the state of a tag, and fails if its migration cannot continue.
func (m *Migration) rereadTag(ctx context.Context, t *Tag) (*Tag, error) {
	after, err := m.findTag(ctx, t)
	if err == nil {
		err = after.Err()
	}
	return after, err
}

// findTag reads the state of a tag.
func (m *Migration) findTag(ctx context.Context, t *Tag) (*Tag, error) {
	s, err := survey.Take(ctx, m.Set, t.Name, nil)
	switch {
	case err != nil:
		return nil, err
	case len(s.Tags) == 0:
		return nil, fmt.Errorf("leafsql: the tables of %s no longer exist; run leafsql check", t.Name)
	}
	return m.newTag(ctx, s, s.Tags[0])
}

// checkStrict returns an error if a writer without leafsql would store the key 0.
func (t *Tag) checkStrict() error {
	for _, o := range t.tables {
		if mode := o.Shard.Global["sql_mode"]; !strings.Contains(mode, "STRICT_") {
			return fmt.Errorf("leafsql: %s is not strict: without the guard a writer without leafsql stores the key 0; leafsql check has the statement that makes it strict", o.Shard.Label)
		}
	}
	return nil
}

// run executes the statement on its own connection, which is closed afterwards, so that its session variables
// are lost.
func (s Statement) run(ctx context.Context) error {
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

// runAll executes statements until one fails. ran contains the statements that may have had an effect: all executed
// statements, except for one that the server refused.
func runAll(ctx context.Context, statements []Statement, say func(Statement)) (ran []Statement, err error) {
	for i, s := range statements {
		say(s)
		err := s.run(ctx)
		if _, refused := errors.AsType[*mysql.MySQLError](err); !refused {
			ran = statements[:i+1]
		}
		switch {
		case servererr.Is(err, servererr.TriggerNeedsSuper):
			return ran, fmt.Errorf("leafsql: migrate on %s: %w; create triggers as a user with SUPER, or SET GLOBAL log_bin_trust_function_creators = 1 for this step", s.Server, err)
		case servererr.Is(err, databases.ErrForeignKeys...):
			return ran, fmt.Errorf("leafsql: migrate on %s: %w; drop these foreign keys, widen the columns on both sides and add them again, or leave the type with -keep-type", s.Server, err)
		case servererr.Is(err, servererr.LockWait):
			return ran, fmt.Errorf("leafsql: migrate on %s: %w; end long transactions on the table, and run the step again", s.Server, err)
		case err != nil:
			return ran, fmt.Errorf("leafsql: migrate on %s: %w; earlier statements stay in effect; run the step again", s.Server, errprefix.Trim(err))
		}
	}
	return ran, nil
}
