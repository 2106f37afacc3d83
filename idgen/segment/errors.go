package segment

import (
	"errors"
	"fmt"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/part"
	"github.com/leafsql/leafsql/internal/quote"
)

// UnknownTagError means that a tag has no row in the table.
type UnknownTagError struct {
	Tag   string
	Table string // as it is written in SQL; empty for a store without tables

	columns columns // of the table; the zero value for leaf_alloc's
}

func (e *UnknownTagError) Error() string {
	c := e.columns.orLeafs()
	if c.several {
		return fmt.Sprintf("leafsql: tag %q has no row in %s of any of the stores; leafsql init adds it in all of them, and so does leafCreate=true where the tables are empty", e.Tag, table(e.Table))
	}
	return fmt.Sprintf("leafsql: tag %q has no row in %s; add one that starts above the ids in use: INSERT INTO %[2]s (%[3]s, %[4]s, %[5]s) VALUES (%[6]s, <highest id%[7]s>, 1000)",
		e.Tag, table(e.Table), c.tag, c.next, c.step, quote.String(e.Tag), c.after())
}

// RowError means that a tag's row, or the table it is in, cannot give ids as it stands,
// or that it does not belong to the stores of an [Interleaved] as they are named.
type RowError struct {
	Tag    string
	Table  string // as UnknownTagError.Table; of several stores also which one, from 1, of how many
	Reason string
	Fix    string // often the SQL that mends it
}

func (e *RowError) Error() string {
	return fmt.Sprintf("leafsql: tag %q in %s: %s; %s", e.Tag, table(e.Table), e.Reason, e.Fix)
}

// RolledBackError refuses a row that stands below a range fetched before: it was
// lowered, deleted and added again, or came back from an old backup or a replica that
// was behind, and its ids may be in use. It lasts until the row is raised.
type RolledBackError struct {
	Tag   string
	Table string // as UnknownTagError.Table
	Start int64  // where the row stands
	Seen  int64  // the end of the highest range this process fetched; others may have fetched higher ones

	columns columns // as UnknownTagError's
}

func (e *RolledBackError) Error() string {
	c := e.columns.orLeafs()
	if c.several {
		return fmt.Sprintf("leafsql: tag %q in %s of one of the stores went back to %d after ids below %d were fetched; delete its row there, which the other stores add again under leafCreate=true: "+
			"DELETE FROM %[2]s WHERE biz_tag = %[5]s", e.Tag, table(e.Table), e.Start, e.Seen, quote.String(e.Tag))
	}
	return fmt.Sprintf("leafsql: tag %q in %s went back to %d after ids below %d were fetched; raise it above every id that any process may hold: "+
		"UPDATE %[2]s SET %[5]s = GREATEST(%[5]s, %[4]d, <highest id in all tables and shards of this tag>) + 1000000 WHERE %[6]s = %[7]s",
		e.Tag, table(e.Table), e.Start, e.Seen, c.next, c.tag, quote.String(e.Tag))
}

// FullError means that the columns that the ids go to hold no N more: see [Generator.Fit].
type FullError struct {
	Tag     string
	N       int64 // ids wanted
	Next    int64 // where they would begin, or above
	Highest int64 // what the largest of the columns holds
}

func (e *FullError) Error() string {
	return fmt.Sprintf("leafsql: tag %q: %d ids from %d on do not fit the key column, which ends at %d; make it BIGINT", e.Tag, e.N, e.Next, e.Highest)
}

// storesError is the RowError of stores that do not belong together as they are named:
// see [Interleaved]. Its table is that of one of them.
type storesError struct{ RowError }

func refusedStore(tag, table string, store, stores int, reason, fix string) error {
	return &storesError{RowError{tag, fmt.Sprintf("%s of store %d of %d", table, store, stores), reason, fix}}
}

func (e *storesError) Unwrap() error { return &e.RowError }

func isStores(err error) bool {
	var stores *storesError
	return errors.As(err, &stores)
}

// UnavailableError means that there was no id in memory and the store failed to give
// any. Cause is the store's error; a later call tries again.
type UnavailableError struct {
	Tag   string
	Cause error
}

func (e *UnavailableError) Error() string {
	way := "they come again as soon as the store answers"
	switch n, _ := serverError(e.Cause); n {
	case 1044, 1142, 1143: // denied
		way = "GRANT SELECT, UPDATE on the table to this user, with leafCreate also INSERT"
	case 1045, 1698: // access denied
		way = "correct user and password in the DSN"
	case 1049:
		way = "create the database, or correct the DSN"
	case errNoTable:
		way = "leafsql init creates it, and so does a process that starts with leafCreate=true"
	}
	return fmt.Sprintf("leafsql: no ids for tag %q: %s; %s", e.Tag, part.Text(e.Cause), way)
}

func (e *UnavailableError) Unwrap() error { return e.Cause }

func table(name string) string {
	if name == "" {
		return "leaf_alloc"
	}
	return name
}

// isAnswer reports whether err is the store's answer, not a sign that the store is away.
func isAnswer(err error) bool {
	var (
		unknown *UnknownTagError
		row     *RowError
		back    *RolledBackError
		count   *idgen.CountError
		full    *FullError
	)
	return errors.Is(err, idgen.ErrExhausted) || errors.As(err, &unknown) || errors.As(err, &row) || errors.As(err, &back) || errors.As(err, &count) || errors.As(err, &full)
}
