package migrate

import (
	"context"
	"fmt"
	"slices"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// Undo undoes the last step, as long as there is a guard. It returns the state afterwards.
func (m *Migration) Undo(ctx context.Context, t *Tag, say func(Statement)) (after *Tag, err error) {
	t, release, err := m.lockTag(ctx, t)
	if err != nil {
		return nil, err
	}
	defer release()
	var statements []Statement
	for _, o := range t.tables {
		if o.HasGuard && !o.AutoIncrement {
			statements = append(statements, newStatement(o.Shard.Server, o.alterAuto...))
		}
	}
	if len(statements) == 0 {
		statements = t.Statements(Unguard)
	}
	if len(statements) == 0 && t.HasAutoIncrement() {
		return t, nil // the migration is at its start, or an earlier -back was interrupted after this part
	}
	if len(statements) == 0 {
		return nil, fmt.Errorf("leafsql: %s has no guard and no AUTO_INCREMENT: the migration is complete, or the table came from Java Leaf and needs no step back; to use AUTO_INCREMENT again, stop all writers and run the statements that leafsql migrate shows as the way back", t.Name)
	}
	if _, err := runAll(ctx, statements, say); err != nil {
		return nil, err
	}
	return m.findTag(ctx, t)
}

// UndoStatements returns the statements that add AUTO_INCREMENT to the tables of a completed migration
// again, on all shards.
func (t *Tag) UndoStatements() []Statement {
	var all []Statement
	for _, o := range t.tables {
		if o.alterAuto != nil && !o.AutoIncrement {
			all = append(all, newStatement(o.Shard.Server, o.alterAuto...))
		}
	}
	return all
}

// dropNewGuards drops the guards that this run created.
func (m *Migration) dropNewGuards(ctx context.Context, before *Tag, ran []Statement, say func(Statement)) error {
	after, err := m.findTag(ctx, before)
	if err != nil {
		return fmt.Errorf("leafsql: the guards could not be removed: %w; remove them with leafsql migrate -back", errprefix.Trim(err))
	}
	for _, o := range after.tables {
		o.HasGuard = o.HasGuard && slices.ContainsFunc(ran, func(s Statement) bool {
			return s.Server == o.Shard.Label && slices.Equal(s.SQL, []string{o.CreateGuard()})
		})
	}
	_, err = runAll(ctx, after.Statements(Unguard), say)
	return err
}
