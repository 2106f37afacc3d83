package segment

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/internal/control"
)

// Methods for leafsql's own packages, exported to the tests.

func (g *Generator) Above(ctx context.Context) (int64, error) {
	return (*controlled)(g).FirstUnused(ctx)
}
func (g *Generator) Look(ctx context.Context) (Range, error) { return g.readRow(ctx) }
func (g *Generator) Fit(highest int64)                       { (*controlled)(g).Fit(highest) }
func (g *Generator) Restart()                                { (*controlled)(g).Restart() }

func (g *Generator) DropInUse(highest int64, below func(limit int64) (int64, error)) error {
	return (*controlled)(g).DropInUse(highest, below)
}

func (s *AllocStore) EnsureWithin(ctx context.Context, tag string, maxID, step, highest int64) error {
	return allocRows{s}.EnsureWithin(ctx, tag, maxID, step, highest)
}
func (s *AllocStore) Row(ctx context.Context, tag string) (control.Row, error) {
	return allocRows{s}.Row(ctx, tag)
}
func (s *AllocStore) Tags(ctx context.Context) ([]control.Row, error) { return allocRows{s}.Tags(ctx) }
func (s *AllocStore) Marks(ctx context.Context) (control.Marks, error) {
	return allocRows{s}.Marks(ctx)
}
func (s *AllocStore) NewMark(ctx context.Context) (string, bool, error) {
	return allocRows{s}.NewMark(ctx)
}

type Sequences = sequenceStore

func OpenSequences(db *sqlx.DB, table string) *Sequences {
	return NewSequenceStore(db, table).(*Sequences)
}

func (s *sequenceStore) Ensure(ctx context.Context, name string, next, increment int64) error {
	return s.EnsureWithin(ctx, name, next, increment, 0)
}
