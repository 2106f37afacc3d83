package control

import "context"

// AllocRowsOf returns the rows of a *segment.AllocStore, and panics for other values. Package segment sets it.
var AllocRowsOf func(store any) AllocRows

// SequenceRowsOf returns the rows of a store that segment.NewSequenceStore returned, and panics for other values.
// Package segment sets it.
var SequenceRowsOf func(store any) Rows

// Row has the columns of a tag's row.
type Row struct {
	Tag   string `db:"biz_tag"`
	MaxID int64  `db:"max_id"` // the next unused id
	Step  int64  `db:"step"`   // ids per fetch
}

// Rows reads and adds rows of a store's table. Its methods are safe for concurrent use.
type Rows interface {
	// Create creates the table if it does not exist. It queries the table first, so that the right to create is
	// needed only once. Errors wrap the database's, after retries as by Fetch.
	Create(ctx context.Context) error

	// EnsureWithin adds a row for a tag. It does not change an existing row. next is the first id to be issued:
	// the highest id in use + 1. highest is the highest id that fits into all columns for the ids. step is the
	// number of ids per fetch, 1 … 2^31-1; the error for any other step is a *segment.RowError. Other errors wrap
	// the database's, after retries as by Fetch.
	EnsureWithin(ctx context.Context, tag string, next, step, highest int64) error

	// Row returns the tag's row without moving it, or *segment.UnknownTagError. Other errors wrap the database's.
	// Transient ones are retried, as by Fetch: on Galera a CREATE TABLE of another node aborts concurrent reads of
	// the table.
	Row(ctx context.Context, tag string) (Row, error)
}

// AllocRows are the rows of leaf_alloc.
type AllocRows interface {
	Rows

	// Tags returns all rows, ordered by tag. Errors wrap the database's, and are not retried.
	Tags(ctx context.Context) ([]Row, error)

	// NewMark returns the mark for a row that is added on this server, or "" if rows get no marks. The mark
	// belongs at the end of the row's description. lossy is set if the server may lack rows, as after a
	// fail-over: a new row then has to begin higher, by Margin. The table may be missing. Errors wrap the
	// database's, after retries as by Fetch.
	NewMark(ctx context.Context) (mark string, lossy bool, err error)

	// Marks reads the marks in the descriptions of all rows. It finds none if the table is missing, or has no
	// column description that this user may read. Errors wrap the database's.
	Marks(ctx context.Context) (Marks, error)
}

// Marks lists rows of a table by the marks in their descriptions. Tags are in ascending order.
type Marks struct {
	Broken   []error  // a *segment.RowError for each row that gives no ids: its mark cannot be read, or a version before 0.2 wrote it for one of several stores
	Unmarked []string // tags of rows whose next fetch writes their first mark
	Full     []string // tags of rows without room for a mark in the description
}
