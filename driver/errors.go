package driver

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRefused is what errors.Is finds in every refusal of a statement or a
// table: the statement did not reach the server and no row was written.
var ErrRefused = errors.New("leafsql: refused")

// RefusedError says why a statement that writes a configured table was not
// run: leafsql cannot give its rows their keys, and running it as it is would
// leave the keys to the server.
type RefusedError struct {
	Table  string // as far as it is known: db.table or table
	Reason string
	Way    string // what to do instead
}

func (e *RefusedError) Error() string {
	return sentence("table "+e.Table, e.Reason, e.Way)
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// TableError says that a configured table cannot be filled at all as things
// stand: its key column cannot hold the ids, it still has AUTO_INCREMENT under
// leafAutoIncrement=refuse, or its leaf_alloc row lies behind the table.
type TableError struct {
	Table  string
	Column string // "" where no column could be named
	Reason string
	Way    string // often the SQL that mends it
}

func (e *TableError) Error() string {
	what := "table " + e.Table
	if e.Column != "" {
		what += ", key column " + e.Column
	}
	return sentence(what, e.Reason, e.Way)
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *TableError) Is(target error) bool { return target == ErrRefused }

// FillError says that a statement was not run because its ids could not be
// had. It unwraps to the generator's error, so that errors.Is finds
// context.DeadlineExceeded and errors.As the generator's own types.
type FillError struct {
	Table string
	Rows  int // ids asked for
	Err   error
}

func (e *FillError) Error() string {
	return fmt.Sprintf("leafsql: %d ids for table %s: %s", e.Rows, e.Table, strings.TrimPrefix(e.Err.Error(), "leafsql: "))
}

func (e *FillError) Unwrap() error { return e.Err }

// ConfigError says which parameter of a DSN or field of a Config is wrong.
type ConfigError struct {
	Param  string // the DSN's name of it
	Reason string
	Way    string
}

func (e *ConfigError) Error() string { return sentence(e.Param, e.Reason, e.Way) }

// sentence is the shape of every message of this package.
func sentence(what, cause, way string) string {
	s := "leafsql: " + what + ": " + cause
	if way != "" {
		s += "; " + way
	}
	return s
}
