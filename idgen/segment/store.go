package segment

import (
	"context"
	"math"
)

// MaxRowStep is the largest step a row may have: what Leaf's int column holds.
const MaxRowStep = math.MaxInt32

// Range holds the ids [Start, End) that were fetched for one process, and the step
// that the tag's row asked for at that moment. Start may be below 1; ids below 1 are
// never issued.
type Range struct {
	Start, End int64
	Step       int64
}

// A Store hands out ranges, each id once, to every process that shares it. It is safe
// for concurrent use.
type Store interface {
	// Fetch takes max(n, the row's step) ids off the tag's row, durably, before it
	// returns. The row's step is a floor; 1 ≤ n ≤ MaxRowStep.
	//
	// A row whose next id is below seen is refused with *RolledBackError and not
	// moved: it may be a restored backup, and creeping past seen would pass ids that
	// others hold. An unknown tag is *UnknownTagError, a bad step *StepError, a range
	// without an id above 0 *RangeError, a row that cannot move as far up to 2^63-1
	// wraps idgen.ErrExhausted. After any error the ids are lost or were never taken;
	// nobody issues them. Fetch returns soon after ctx ends.
	Fetch(ctx context.Context, tag string, n, seen int64) (Range, error)
}
