package segment

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
	"github.com/leafsql/leafsql/internal/part"
	"github.com/leafsql/leafsql/internal/quote"
)

// UnknownTagError means that a tag has no row in the table. The INSERT in its text writes no mark: the first fetch does.
type UnknownTagError struct {
	Tag   string
	Table string // as it is written in SQL; empty for a store without tables

	columns tagrow.Columns // of the table; the zero value for leaf_alloc's
}

func (e *UnknownTagError) Error() string {
	c := cmp.Or(e.columns, tagrow.LeafAlloc)
	return fmt.Sprintf("leafsql: tag %q has no row in %s; start this process again with leafCreate=true, or add one that starts above the ids in use: INSERT INTO %[2]s (%[3]s, %[4]s, %[5]s) VALUES (%[6]s, <highest id%[7]s>, 1000)",
		e.Tag, table(e.Table), c.Tag, c.Next, c.Step, quote.String(e.Tag), c.After())
}

// RowError means that a tag's row, or its table, cannot give ids as it is.
type RowError struct {
	Tag    string
	Table  string // as UnknownTagError.Table
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

	columns tagrow.Columns // as UnknownTagError's
	highest int64          // of the smallest key column; 0 if that is not known
}

func (e *RolledBackError) Error() string {
	c := cmp.Or(e.columns, tagrow.LeafAlloc)
	return fmt.Sprintf("leafsql: tag %q in %s went back to %d after ids below %d were fetched; raise it above every id that any process may hold: "+
		"UPDATE %[2]s SET %[5]s = GREATEST(%[5]s, %[4]d, <highest id in all tables and shards of this tag>) + %[8]d WHERE %[6]s = %[7]s",
		e.Tag, table(e.Table), e.Start, e.Seen, c.Next, c.Tag, quote.String(e.Tag), Margin(cmp.Or(e.highest, maxEnd)-e.Seen))
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

// UnavailableError means that there was no id in memory and the store failed to give
// any. Cause is the store's error; a later call tries again.
type UnavailableError struct {
	Tag   string
	Cause error
}

func (e *UnavailableError) Error() string {
	way := "they come again as soon as the store answers"
	switch n, _ := tagrow.ServerError(e.Cause); n {
	case 1044, 1142, 1143: // denied
		way = "GRANT SELECT, UPDATE on the table to this user, with leafCreate also INSERT"
	case 1045, 1698: // access denied
		way = "correct user and password in the DSN"
	case 1049:
		way = "create the database, or correct the DSN"
	case tagrow.ErrNoTable:
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
	_, unknown := errors.AsType[*UnknownTagError](err)
	_, row := errors.AsType[*RowError](err)
	_, back := errors.AsType[*RolledBackError](err)
	_, count := errors.AsType[*idgen.CountError](err)
	_, full := errors.AsType[*FullError](err)
	return unknown || row || back || count || full || errors.Is(err, idgen.ErrExhausted)
}

// gaveUp is the error of a call whose context ended with err; nil: it had no deadline.
func (g *Generator) gaveUp(err error) error {
	if err == nil {
		return &UnavailableError{Tag: g.tag, Cause: noAnswerError(g.patience())}
	}
	if g.failure != nil {
		return fmt.Errorf("leafsql: waiting for ids for tag %q: %w; the last fetch failed: %v", g.tag, err, part.Of(g.failure))
	}
	return fmt.Errorf("leafsql: waiting for ids for tag %q: %w", g.tag, err)
}
