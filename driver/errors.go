package driver

import (
	"errors"

	"github.com/leafsql/leafsql/driver/internal/counters"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// ErrRefused is what errors.Is finds in every refusal of a statement or a
// table: the statement did not reach the server and no row was written.
var ErrRefused = insert.ErrRefused

// RefusedError says why a statement that writes a configured table was not
// run: leafsql cannot give its rows their keys, and running it as it is would
// leave the keys to the server. Either the statement is at fault, or the table
// cannot be filled at all as things stand: its key column cannot hold the ids,
// it still has AUTO_INCREMENT under leafAutoIncrement=refuse, or its leaf_alloc
// row lies behind the table.
type RefusedError struct {
	Table  string // as far as it is known: db.table or table
	Column string // the key column, where the table is at fault and it could be named; else ""
	Reason string
	Fix    string // what to do instead; often the SQL that mends the table
}

func (e *RefusedError) Error() string {
	r := insert.Refusal{Of: insert.TableName{Table: e.Table}, Column: e.Column, Reason: e.Reason, Fix: e.Fix}
	return r.Error()
}

// refused makes the errors of this package of those of the rooms below, and counts the
// statement that was not run; other errors stay as they are.
func (c *Connector) refused(err error) error {
	if err != nil {
		c.tables.Counts.Note(err)
		err = public(err)
	}
	return err
}

// public gives an error of a room below as one of this package's.
func public(err error) error {
	if r, ok := errors.AsType[*insert.Refusal](err); ok {
		return &RefusedError{Table: r.On(), Column: r.Column, Reason: r.Reason, Fix: r.Fix}
	}
	return err
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// A FillError is the error of a statement that was not run because no ids could
// be had for its rows, or because the counter could not be moved above a key that
// a row brings. Table is db.table; Rows is the number of ids requested, or Key the
// row's key. It unwraps to Err, the generator's error, so that errors.Is finds
// context.DeadlineExceeded and errors.As the generator's own types.
type FillError = counters.FillError

// A ConfigError names the parameter of a DSN, or the field of a Config, that is
// wrong: Param, with the Reason and a Fix.
type ConfigError = counters.ConfigError

func configError(param, reason, fix string) error {
	return &ConfigError{Param: param, Reason: reason, Fix: fix}
}
