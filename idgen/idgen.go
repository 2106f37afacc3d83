// Package idgen says what a generator of primary keys is.
//
//	var ids idgen.Generator = segment.New(store, "orders", nil)
//	first, err := ids.Next(ctx, 3) // first, first+1 and first+2 are the caller's
//
// The generators themselves are in the packages segment (ranges of leaf_alloc) and
// snowflake (time, worker id and sequence). The package knows no SQL, no clock and
// no network.
package idgen

import (
	"context"
	"errors"
	"fmt"
)

// A Generator issues ids that no other generator with the same source ever issues.
// It is safe for concurrent use.
type Generator interface {
	// Next returns the first of n consecutive ids, first … first+n-1, each in
	// 1 … 2^63-1. It may wait, but no longer than ctx lets it. After an error none
	// of the n ids is in use; gaps between issued ids are normal.
	Next(ctx context.Context, n int) (first int64, err error)
}

var (
	// ErrClosed is the error of a generator that was closed.
	ErrClosed = errors.New("leafsql: the id generator is closed; open a new one")

	// ErrExhausted means that the ids up to the generator's highest are used up.
	// Waiting does not help.
	ErrExhausted = errors.New("leafsql: the ids are used up")
)

// CountError refuses a call of Next for fewer than one id, or for more consecutive
// ids than the generator can give.
type CountError struct {
	N   int // what was asked for
	Max int // the most that may be asked for
}

func (e *CountError) Error() string {
	if e.N < 1 {
		return fmt.Sprintf("leafsql: %d ids asked for; ask for at least 1", e.N)
	}
	return fmt.Sprintf("leafsql: %d consecutive ids asked for, the generator gives at most %d; write fewer rows in one statement", e.N, e.Max)
}
