package segment

import (
	"context"
	"math"
)

// maxRowStep is the largest step a row may have, the maximum of Leaf's int column.
const maxRowStep = math.MaxInt32

// A Request is a request to a Store for ids of one tag. A store has one row for each tag, with its next id. The row is
// above or below an id if its next id is.
type Request struct {
	Tag string

	// N is the number of ids wanted, up to 2^31-1. With 0 no ids are taken: the Range has the row's next id and
	// step.
	N int64

	// Step is the row's step as last read by the caller. If the row's step is larger now, no ids are taken, and the
	// Range returns the larger step to the caller. 0 accepts any step.
	Step int64

	// Floor is the lowest start of the range. If the row's next id is lower, it is raised to Floor.
	Floor int64

	// If Raise is set, ids are taken only to move the row above Floor: a row at Floor or above gives no ids.
	Raise bool

	// MaxStart is the highest start of the range, 0 if there is no limit. A row above MaxStart gives no ids.
	MaxStart int64

	// Highest is the highest id of the smallest key column that is not full, 0 if that is not known. The margin
	// by which the row's next id is raised after a fail-over is smaller if the column has few ids left.
	Highest int64

	// Seen is the end of the highest range that the caller fetched, 0 before the first. The range begins at Seen
	// or above. A row below Seen was lowered, and it is not enough to raise its next id to Seen: see Store.Fetch.
	Seen int64
}

// A Range holds the ids [Start, End), which only the caller may issue. In an empty Range, with Start = End,
// Start is the row's next id.
type Range struct {
	Start, End int64
	Step       int64 // the row's step, as last read
	Jumped     int64 // margin by which the row's next id was raised before the range was taken; 0 for most fetches
}

// A Store hands out ranges, each id once, to all processes that share it. It is safe for concurrent use.
type Store interface {
	// Fetch takes N ids or more from the tag's row, durably, before it returns. The range is empty only for the
	// reasons that Request names.
	//
	// If the row is below Seen, Fetch changes nothing and returns *RolledBackError: the row may be a restored
	// backup, and other processes may hold ids just above Seen. A store that can raise the next id
	// far above Seen does so instead. Fetch returns *UnknownTagError for an unknown tag, *RowError for a row
	// that cannot be used (a step outside 1 … 2^31-1, a negative next id), and an error that wraps
	// idgen.ErrExhausted if too few ids are left below 2^63-1.
	//
	// Within ctx a store may repeat a request that fails with a transient error. If the first request may have
	// been executed, the repeated request takes other ids. After an error the ids are lost or were never
	// taken; no process issues them. Fetch returns soon after ctx ends.
	Fetch(ctx context.Context, q Request) (Range, error)
}
