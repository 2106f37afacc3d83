// Package control gives leafsql's own packages access to methods of package segment's generators and stores
// that are not for applications.
//
//	c := control.Of(generator)
//	c.Fit(highest)
//	rows, err := control.AllocRowsOf(store).Tags(ctx)
package control

import (
	"context"

	"github.com/leafsql/leafsql/idgen"
)

// Of returns the control of a *segment.Generator, and panics for other generators. Package segment sets
// it.
var Of func(idgen.Generator) Control

// A Control connects a generator to the tables that use its ids as keys. Its methods are safe for
// concurrent use.
type Control interface {
	// FirstUnused returns an id above all ids that are in use as far as the generator knows.
	FirstUnused(ctx context.Context) (int64, error)

	// DropInUse discards the ids in memory that are already keys of a table. highest is the table's
	// highest key, and below returns the highest key below a limit. DropInUse returns the error of below.
	DropInUse(highest int64, below func(limit int64) (int64, error)) error

	// IsFar reports whether the next id would skip more than half of the remaining ids of a column if the
	// counter were raised above key. highest is the highest id that the column can hold.
	IsFar(key, highest int64) bool

	// Fit adds a column that holds ids up to highest to the columns that the ids have to fit.
	Fit(highest int64)

	// ReadRow returns max_id and step of the tag's row without changing it.
	ReadRow(ctx context.Context) (maxID, step int64, err error)

	// CountFailure adds a fetch that failed to the statistics.
	CountFailure()

	// Restart discards the ids in memory and the cached state of the row.
	Restart()
}
