package driver

import (
	"errors"

	"github.com/leafsql/leafsql/driver/internal/counters"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// ErrRefused matches every *RefusedError with errors.Is: the statement or its table
// was refused, the statement was not sent to the server, and no row was written.
var ErrRefused = insert.ErrRefused

// RefusedError is the error for a statement that writes a configured table and was not
// run, because leafsql cannot generate the keys of its rows. The cause is the form of the
// statement, or a table that cannot be filled at present: its key column cannot hold the
// ids, the column still has AUTO_INCREMENT under leafAutoIncrement=refuse, or max_id in its
// row of leaf_alloc is not above the table's keys.
type RefusedError struct {
	Table  string // db.table or table; empty if unknown
	Column string // key column if the table is the cause and the column is known, otherwise empty
	Reason string
	Fix    string // hint for the user; often SQL that fixes the table
}

func (e *RefusedError) Error() string {
	r := insert.Refusal{Table: insert.TableName{Table: e.Table}, Column: e.Column, Reason: e.Reason, Fix: e.Fix}
	return r.Error()
}

// countRefusal counts a statement that was not run because of err, and returns err with an
// internal error converted to the exported one. It returns other errors unchanged.
func (c *Connector) countRefusal(err error) error {
	if err != nil {
		c.tables.Counts.CountRefusal(err)
		err = publicError(err)
	}
	return err
}

// publicError returns err with an *insert.Refusal converted to a *RefusedError.
func publicError(err error) error {
	if r, ok := errors.AsType[*insert.Refusal](err); ok {
		return &RefusedError{Table: r.TableText(), Column: r.Column, Reason: r.Reason, Fix: r.Fix}
	}
	return err
}

// Is reports whether target is ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// FillError is the error for a statement that was not run because no ids were
// available, or because the counter could not be raised above a row's explicit
// key. Table is db.table. Rows is the number of ids requested; if it is 0, Key is the
// explicit key. FillError unwraps to Err, the generator's error, for errors.Is with
// context.DeadlineExceeded and errors.As with the generator's error types.
type FillError = counters.FillError

// ConfigError is the error for an invalid DSN parameter or Config field. Param is its
// name, Reason the cause, and Fix a hint.
type ConfigError = counters.ConfigError

func configError(param, reason, fix string) error {
	return &ConfigError{Param: param, Reason: reason, Fix: fix}
}
