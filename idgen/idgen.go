// Package idgen defines the interface of generators of primary keys.
//
//	var ids idgen.Generator = segment.New(store, "orders", nil)
//	first, err := ids.Next(ctx, 3) // first, first+1 and first+2 are the caller's
//
// The generators themselves are in the packages segment (ranges of leaf_alloc) and
// snowflake (time, worker id and sequence). This package uses no SQL, no clock and
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
	// 1 … 2^63-1. It may wait until ctx ends. After an error none
	// of the n ids is in use. Gaps between issued ids are normal.
	Next(ctx context.Context, n int) (first int64, err error)
}

var (
	// ErrClosed is returned by a generator that was closed.
	ErrClosed = errors.New("leafsql: the id generator is closed; open a new one")

	// ErrExhausted is returned if all ids up to the generator's highest are used up.
	// Waiting does not help.
	ErrExhausted = errors.New("leafsql: the ids are used up")
)

// CountError is returned by Next if n is below 1, or larger than the number of consecutive
// ids that the generator can issue.
type CountError struct {
	N   int // the n of the call
	Max int // the largest n that is allowed
}

func (e *CountError) Error() string {
	if e.N < 1 {
		return fmt.Sprintf("leafsql: %d ids requested; request at least 1", e.N)
	}
	return fmt.Sprintf("leafsql: %d consecutive ids requested, the generator can issue at most %d; write fewer rows in one statement", e.N, e.Max)
}
