package segment

import (
	"context"
	"math"
)

// maxRowStep is the largest step a row may have, the maximum of Leaf's int column.
const maxRowStep = math.MaxInt32

// A Request asks a Store for ids of one tag.
type Request struct {
	Tag string

	// N is the number of ids wanted, up to 2^31-1. With 0 no ids are taken: the Range has the row's next id and
	// step.
	N int64

	// Step is the row's step as last read by the caller. If the row's step is larger, no ids are taken, and the
	// Range has the larger step: the caller notices that it was raised. 0 accepts any step.
	Step int64

	// Floor is the lowest start of the range. A row below Floor is moved up to it.
	Floor int64

	// If Raise is set, ids are taken only to move the row above Floor: a row at Floor or above gives no ids.
	Raise bool

	// MaxStart is the highest start of the range, 0 if there is no limit. A row above MaxStart gives no ids.
	MaxStart int64

	// Highest is the highest id that the smallest key column with room holds, 0 if that is not known. The margin
	// by which a row is moved up is smaller if the column has few ids left.
	Highest int64

	// Seen is the end of the highest range that the caller fetched, 0 before the first. The range begins at Seen
	// or above. A row below Seen has gone back, and is not just moved up to Seen: see Store.Fetch.
	Seen int64
}

// A Range holds the ids [Start, End), which only the caller may issue. In an empty Range, with Start = End,
// Start is the row's next id.
type Range struct {
	Start, End int64
	Step       int64 // the row's step, as last read
	Jumped     int64 // margin by which the row was moved up before the range was taken; 0 for most fetches
}

// A Store hands out ranges, each id once, to all processes that share it. It is safe for concurrent use.
type Store interface {
	// Fetch takes N ids or more off the tag's row, durably, before it returns. The range is empty only for the
	// reasons that Request names.
	//
	// Fetch refuses a row below Seen with *RolledBackError and does not move it: the row may be a restored
	// backup, and small steps past Seen would take ids that other processes hold. A store that can move the row
	// far above Seen does that instead. Fetch returns *UnknownTagError for an unknown tag, *RowError for a row
	// that cannot be used (a step outside 1 … 2^31-1, a negative next id), and an error that wraps
	// idgen.ErrExhausted if the row cannot move far enough below 2^63-1.
	//
	// Within ctx a store may repeat a request that fails with a transient error. If the request may already
	// have been carried out, the repeated one takes other ids. After an error the ids are lost or were never
	// taken; no process issues them. Fetch returns soon after ctx ends.
	Fetch(ctx context.Context, q Request) (Range, error)
}
