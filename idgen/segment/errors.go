package segment

import (
	"fmt"
	"strings"
)

// UnknownTagError means that a tag has no row of its own in the table.
type UnknownTagError struct {
	Tag   string
	Table string // as it is written in SQL; empty for a store without tables
	Rows  int64  // rows with that tag: 0, or more than 1 where biz_tag is no primary key
}

func (e *UnknownTagError) Error() string {
	if e.Rows > 1 {
		return fmt.Sprintf("leafsql: tag %q has %d rows in %s; make biz_tag the primary key", e.Tag, e.Rows, table(e.Table))
	}
	return fmt.Sprintf("leafsql: tag %q has no row in %s; add one that starts above the ids in use: INSERT INTO %[2]s (biz_tag, max_id, step) VALUES (%[3]s, <highest id + 1>, 1000)",
		e.Tag, table(e.Table), quote(e.Tag))
}

// StepError means that a row's step is not in 1 … MaxRowStep.
type StepError struct {
	Tag   string
	Table string
	Step  int64
}

func (e *StepError) Error() string {
	return fmt.Sprintf("leafsql: tag %q has step %d, not in 1 … %d; UPDATE %s SET step = 1000 WHERE biz_tag = %s",
		e.Tag, e.Step, int64(MaxRowStep), table(e.Table), quote(e.Tag))
}

// RolledBackError refuses a range that begins below one fetched before: the row was
// lowered, deleted and added again, or came back from an old backup, and its ids may
// be in use. It lasts until the row is raised.
type RolledBackError struct {
	Tag   string
	Table string
	Start int64 // where the refused range began
	Seen  int64 // the end of the highest range fetched before
}

func (e *RolledBackError) Error() string {
	return fmt.Sprintf("leafsql: tag %q went back to %d after ids below %d were fetched; raise it above every id in use: UPDATE %s SET max_id = GREATEST(max_id, %[3]d) WHERE biz_tag = %[5]s",
		e.Tag, e.Start, e.Seen, table(e.Table), quote(e.Tag))
}

// RangeError refuses a range without a usable id or smaller than what was asked for:
// a row with a negative max_id, or a store that breaks its contract.
type RangeError struct {
	Tag   string
	Table string
	Range Range
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("leafsql: tag %q gave the range [%d, %d), which cannot be used; raise it above every id in use: UPDATE %s SET max_id = <highest id + 1> WHERE biz_tag = %s",
		e.Tag, e.Range.Start, e.Range.End, table(e.Table), quote(e.Tag))
}

// UnavailableError means that there was no id in memory and the store failed to give
// any. Cause is the store's error; a later call tries again.
type UnavailableError struct {
	Tag   string
	Cause error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("leafsql: no ids for tag %q: %v; they come again as soon as the store answers", e.Tag, e.Cause)
}

func (e *UnavailableError) Unwrap() error { return e.Cause }

func table(name string) string {
	if name == "" {
		return "leaf_alloc"
	}
	return name
}

// quote writes s as an SQL string, for messages.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
