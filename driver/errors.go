package driver

import (
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/part"
	"github.com/leafsql/leafsql/internal/servererr"
)

// ErrRefused is what errors.Is finds in every refusal of a statement or a
// table: the statement did not reach the server and no row was written.
var ErrRefused = errors.New("leafsql: refused")

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
	what := "statement"
	if e.Table != "" {
		what = "table " + e.Table
	}
	if e.Column != "" {
		what += ", key column " + e.Column
	}
	return sentence(what, e.Reason, e.Fix)
}

// refused makes a RefusedError of what the rooms below refuse; other errors stay as they are.
func refused(err error) error {
	if r, ok := errors.AsType[*insert.Refusal](err); ok {
		return &RefusedError{Table: r.On(), Reason: r.Reason, Fix: r.Fix}
	}
	return err
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// FillError says that a statement was not run because its ids could not be
// had, or because the counter could not be moved above a key that it gives. It
// unwraps to the generator's error, so that errors.Is finds
// context.DeadlineExceeded and errors.As the generator's own types.
type FillError struct {
	Table string
	Rows  int   // ids asked for; 0 where Key is set
	Key   int64 // the key that the counter has to pass; 0 where Rows is set
	Err   error
}

func (e *FillError) Error() string {
	cause, way := part.Text(e.Err), ""
	what := "cannot get an id"
	switch {
	case e.Key > 0:
		what = fmt.Sprintf("cannot move the counter above the key %d", e.Key)
		way = "leafExplicit=keep lets explicit keys go without it"
	case e.Rows > 1:
		what = fmt.Sprintf("cannot get %d ids", e.Rows)
	}
	return sentence("table "+e.Table, what+": "+cause, way)
}

func (e *FillError) Unwrap() error { return e.Err }

// catalogFailure says that a statement of leafsql's own failed, one that reads
// what the server knows of tables. The application's statement was not run. An
// answer of the server is told in the text only: it is not about what the
// application sent.
type catalogFailure struct {
	what string // was to be read
	err  error
	fix  string
}

func (e *catalogFailure) Error() string {
	return sentence("reading "+e.what, part.Text(e.err), e.fix)
}

// Unwrap gives the end of a context or a connection, not the server's answer.
func (e *catalogFailure) Unwrap() error {
	var answer *mysql.MySQLError
	if errors.As(e.err, &answer) {
		return nil
	}
	return e.err
}

func catalogError(what string, err error) error {
	way := ""
	switch {
	case servererr.Is(err, servererr.UnknownDatabase, servererr.NoSuchTable):
		way = "leafsql reads information_schema, which this server or the proxy before it does not have; connect to the server itself"
	case servererr.Denied(err):
		way = "GRANT SELECT on what it names to this user"
	}
	return &catalogFailure{what, err, way}
}

// ConfigError says which parameter of a DSN or field of a Config is wrong.
type ConfigError struct {
	Param  string // the DSN's name of it
	Reason string
	Fix    string
}

func (e *ConfigError) Error() string { return sentence(e.Param, e.Reason, e.Fix) }

// sentence is the shape of every message of this package.
func sentence(what, cause, way string) string {
	s := "leafsql: " + what + ": " + cause
	if way != "" {
		s += "; " + way
	}
	return s
}
