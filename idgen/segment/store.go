package segment

import (
	"context"
	"math"
)

// maxRowStep is the largest step a row may have: what Leaf's int column holds.
const maxRowStep = math.MaxInt32

// A Request asks a Store for ids of one tag.
type Request struct {
	Tag string

	// N is how many ids are wanted, up to 2^31-1. 0 takes none: the Range tells how
	// the row stands.
	N int64

	// Step is the row's step as the caller knows it. A row with a larger one gives no
	// ids but tells its step, so that raising it is noticed. 0: any step will do.
	Step int64

	// Floor is where the range begins, or above; a row below is moved up to it.
	Floor int64

	// Raise takes ids only to move the row above Floor: one that stands there, or
	// above, gives none.
	Raise bool

	// MaxStart is the last id that the range may begin with, 0 where any will do. A row that
	// stands above gives no ids.
	MaxStart int64

	// Highest is the highest id that the smallest key column with room holds, 0 if that is not
	// known. A row that is moved up by a margin is moved by less if little of the column is left.
	Highest int64

	// Seen is the end of the highest range that the caller fetched, 0 before the first.
	// The range begins there or above as well, but no row is moved up to it: one that
	// stands below has gone back.
	Seen int64
}

// A Range holds the ids [Start, End), which are the caller's alone. An empty one, with
// Start = End, tells where the row stands: ids from there up are nobody's yet.
type Range struct {
	Start, End int64
	Step       int64 // the row's, as last read
	Jumped     int64 // by how many ids the row was moved up before the range was taken, since ids above it may be in use
}

// A Store hands out ranges, each id once, to every process that shares it. It is safe
// for concurrent use.
type Store interface {
	// Fetch takes N ids or more off the tag's row, durably, before it returns. The
	// range is empty for the reasons that Request names, and for no other.
	//
	// A row that stands below Seen is refused with *RolledBackError and not moved: it
	// may be a restored backup, and creeping past Seen would pass ids that others hold. A
	// store that can move it far above Seen does that instead.
	// An unknown tag is *UnknownTagError, a row that cannot be used as it stands (a
	// step that is not in 1 … 2^31-1, a negative next id) *RowError, and one that
	// cannot move as far up to 2^63-1 wraps idgen.ErrExhausted.
	//
	// A store may try again what can pass by itself, within ctx. A request that may
	// have been carried out already takes other ids then. After an error the ids are
	// lost or were never taken; nobody issues them. Fetch returns soon after ctx ends.
	Fetch(ctx context.Context, q Request) (Range, error)
}

// Row is a tag's row.
type Row struct {
	Tag   string `db:"biz_tag"`
	MaxID int64  `db:"max_id"` // the next id that nobody has
	Step  int64  `db:"step"`   // ids per fetch
}
