// Package control has what only package driver does with a generator of package segment, which is not for applications.
//
//	c := control.Of(generator)
//	c.Fit(highest)
package control

import (
	"context"

	"github.com/leafsql/leafsql/idgen"
)

// Of returns the control of a *segment.Generator. Package segment sets it.
var Of func(idgen.Generator) Control

// A Control ties a generator to the tables whose keys its ids are. Its methods are safe for concurrent use.
type Control interface {
	// Above returns an id above all that the generator knows to be taken.
	Above(ctx context.Context) (int64, error)

	// DropInUse discards the ids in memory that rows of a table have. highest is the table's highest key, and below returns the
	// highest one below a limit.
	DropInUse(highest int64, below func(limit int64) (int64, error)) error

	// Far reports whether a key would take more than half of the room left in a column that ends at highest.
	Far(key, highest int64) bool

	// Fit adds a column that holds no id above highest to those that the ids go to.
	Fit(highest int64)

	// Look returns the state of the tag's row, and moves nothing.
	Look(ctx context.Context) (maxID, step int64, err error)

	// Restart discards the ids in memory and everything known of the row.
	Restart()
}
