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
	// needed only once. Like Fetch, it retries after transient errors. Errors wrap the database's.
	Create(ctx context.Context) error

	// EnsureWithin adds a row for a tag. It does not change an existing row. next is the first id to be issued:
	// the highest id in use + 1. highest is the highest id that fits into all columns for the ids. step is the
	// number of ids per fetch, 1 … 2^31-1; the error for any other step is a *segment.RowError. Like Fetch, it
	// retries after transient errors. Other errors wrap the database's.
	EnsureWithin(ctx context.Context, tag string, next, step, highest int64) error

	// Row returns the tag's row, and takes no ids from it. It returns *segment.UnknownTagError if there is no row.
	// Other errors wrap the database's. Like Fetch, Row retries after transient errors: on Galera a CREATE TABLE of
	// another node aborts concurrent reads of the table.
	Row(ctx context.Context, tag string) (Row, error)
}

// AllocRows are the rows of leaf_alloc.
type AllocRows interface {
	Rows

	// Tags returns all rows, ordered by tag. Errors wrap the database's, and are not retried.
	Tags(ctx context.Context) ([]Row, error)

	// NewMark returns the mark for a row that is added on this server, or "" if rows get no marks. A mark is a text
	// at the end of a row's description; it names the server on which ids were last fetched from the row. lossy is
	// set if the server may lack rows, as after a fail-over: the first id of the new row then has to be higher, by
	// Margin. The table may be missing. Like Fetch, NewMark retries after transient errors. Errors wrap the
	// database's.
	NewMark(ctx context.Context) (mark string, lossy bool, err error)

	// Marks reads the marks in the descriptions of all rows. It returns no marks and no error if the table is
	// missing, or has no column description that this user may read. Errors wrap the database's.
	Marks(ctx context.Context) (Marks, error)
}

// Marks lists rows of a table by the marks in their descriptions. Tags are in ascending order.
type Marks struct {
	Broken   []error  // a *segment.RowError for each row from which no ids can be fetched: its mark cannot be parsed, or a version before 0.2 wrote the row for one of several stores
	Unmarked []string // tags of rows without a mark; the next fetch writes the mark
	Full     []string // tags of rows without room for a mark in the description
}
