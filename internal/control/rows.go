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

	// EnsureWithin adds a row for a tag whose ids go to columns of which the smallest holds none above highest.
	// An existing row is not changed. next is the first id to be issued: highest id in use + 1. step is the number
	// of ids per fetch, 1 … 2^31-1; another one is a *segment.RowError. Other errors wrap the database's, after
	// retries as by Fetch.
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

	// NewMark returns the mark for a row that is added on this server, for the end of its description, or "" if
	// rows get none. lossy reports that the server may lack rows, as after a fail-over: a new row has to begin
	// higher by Margin. The table may be missing. Errors wrap the database's, after retries as by Fetch.
	NewMark(ctx context.Context) (mark string, lossy bool, err error)

	// Marks reads the descriptions of all rows. There are none if the table is missing, or has no column
	// description that this user may read. Errors wrap the database's.
	Marks(ctx context.Context) (Marks, error)
}

// Marks lists rows of a table by the marks in their descriptions. Tags are in ascending order.
type Marks struct {
	Broken   []error  // a *segment.RowError for each row that gives no ids: rows of one store of several, from versions before 0.2, or with a mark that cannot be read
	Unmarked []string // tags of rows that get their first mark from the next fetch
	Full     []string // tags of rows without room for a mark in the description
}
