package segment

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/quote"
)

// UnknownTagError means that a tag has no row in the table. Its message has an INSERT for the row.
type UnknownTagError struct {
	Tag   string
	Table string // in SQL's spelling; empty for a store without tables

	columns tagtable.Columns // columns of the table; the zero value means leaf_alloc's
}

func (e *UnknownTagError) Error() string {
	c := cmp.Or(e.columns, tagtable.LeafAlloc)
	return fmt.Sprintf("leafsql: tag %q has no row in %s; restart this process with leafCreate=true, or add one that starts above the ids in use: INSERT INTO %[2]s (%[3]s, %[4]s, %[5]s) VALUES (%[6]s, <highest id%[7]s>, 1000)",
		e.Tag, tableOrDefault(e.Table), c.Tag, c.Next, c.Step, quote.String(e.Tag), c.NextSuffix())
}

// RowError means that a tag's row, or its table, cannot give ids in its present state.
type RowError struct {
	Tag    string
	Table  string // like UnknownTagError.Table
	Reason string
	Fix    string // often the SQL that fixes the row
}

func (e *RowError) Error() string {
	return fmt.Sprintf("leafsql: tag %q in %s: %s; %s", e.Tag, tableOrDefault(e.Table), e.Reason, e.Fix)
}

// RolledBackError means that a row's next id is below a range that was fetched before, so its ids may be in use. The
// row was lowered, deleted and added again, or restored from an old backup or a replica that lagged. The error
// persists until the row's next id is raised.
type RolledBackError struct {
	Tag   string
	Table string // like UnknownTagError.Table
	Start int64  // the row's next id
	Seen  int64  // end of the highest range that this process fetched; other processes may have fetched higher ones

	columns tagtable.Columns // like UnknownTagError.columns
	highest int64            // highest id of the smallest key column; 0 if that is not known
}

func (e *RolledBackError) Error() string {
	c := cmp.Or(e.columns, tagtable.LeafAlloc)
	return fmt.Sprintf("leafsql: tag %q in %s went back to %d after ids below %d were fetched; raise it above every id that any process may hold: "+
		"UPDATE %[2]s SET %[5]s = GREATEST(%[5]s, %[4]d, <highest id in all tables and shards of this tag>) + %[8]d WHERE %[6]s = %[7]s",
		e.Tag, tableOrDefault(e.Table), e.Start, e.Seen, c.Next, c.Tag, quote.String(e.Tag), control.Margin(cmp.Or(e.highest, maxEnd)-e.Seen))
}

// FullError means that none of the key columns that package driver has announced has room for N more ids.
type FullError struct {
	Tag     string
	N       int64 // ids wanted
	Next    int64 // lower bound of the first of these ids
	Highest int64 // highest id of the largest column
}

func (e *FullError) Error() string {
	return fmt.Sprintf("leafsql: tag %q: %d ids from %d do not fit the key column, whose highest value is %d; make it BIGINT", e.Tag, e.N, e.Next, e.Highest)
}

// UnavailableError means that no id was in memory and that the fetch of more ids failed. Cause is the store's error.
// Later calls try again.
type UnavailableError struct {
	Tag   string
	Cause error
}

func (e *UnavailableError) Error() string {
	way := "ids are issued again as soon as the store answers"
	switch n, _ := tagtable.ServerError(e.Cause); n {
	case 1044, 1142, 1143: // denied
		way = "GRANT SELECT, UPDATE on the table to this user, with leafCreate also INSERT"
	case 1045, 1698: // access denied
		way = "correct the user and password in leafStore, or in the DSN if leafStore is not set"
	case 1049:
		way = "create the database, or correct the DSN"
	case tagtable.NoSuchTableNumber:
		way = "create it with leafsql init, or restart the process with leafCreate=true"
	}
	return fmt.Sprintf("leafsql: no ids for tag %q: %s; %s", e.Tag, errprefix.TrimText(e.Cause), way)
}

// Unwrap returns the store's error.
func (e *UnavailableError) Unwrap() error { return e.Cause }

func tableOrDefault(name string) string {
	if name == "" {
		return "leaf_alloc"
	}
	return name
}

// isAnswer reports whether the store answered with err. Other errors mean that the store is unavailable.
func isAnswer(err error) bool {
	_, unknown := errors.AsType[*UnknownTagError](err)
	_, row := errors.AsType[*RowError](err)
	_, back := errors.AsType[*RolledBackError](err)
	_, count := errors.AsType[*idgen.CountError](err)
	_, full := errors.AsType[*FullError](err)
	return unknown || row || back || count || full || errors.Is(err, idgen.ErrExhausted)
}

// contextError returns the error of a call that waited until its context ended with err. If err is nil, the call waited
// for maxWait.
func (g *Generator) contextError(err error) error {
	if err == nil {
		return &UnavailableError{Tag: g.tag, Cause: noAnswerError(g.maxWait())}
	}
	if g.failure != nil {
		return fmt.Errorf("leafsql: waiting for ids for tag %q: %w; the last fetch failed: %v", g.tag, err, errprefix.Trim(g.failure))
	}
	return fmt.Errorf("leafsql: waiting for ids for tag %q: %w", g.tag, err)
}
