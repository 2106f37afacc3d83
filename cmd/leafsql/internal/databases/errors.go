package databases

import (
	"context"
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"
)

// IsError reports whether err is the server's, with one of these numbers.
func IsError(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// Numbers of the server's errors that mean something here.
const (
	ErrLogin           = 1045
	ErrLoginSocket     = 1698
	ErrDatabaseDenied  = 1044
	ErrUnknownDatabase = 1049
	ErrUnknownColumn   = 1054
	ErrTableDenied     = 1142
	ErrColumnDenied    = 1143
	ErrNoSuchTable     = 1146
	ErrLockWait        = 1205
	ErrSpecificAccess  = 1227
	ErrTriggerBinlog   = 1419
)

// WayOut says what to do about an error of a server, or of the way there.
func WayOut(err error) string {
	switch {
	case IsError(err, ErrLogin, ErrLoginSocket):
		return "correct user and password in the DSN"
	case IsError(err, ErrUnknownDatabase):
		return "create the database, or correct the DSN"
	case Denied(err):
		return "grant this user the right, or run it as another one"
	case IsError(err, ErrLockWait):
		return "end long transactions on the table, and run it again"
	case errors.Is(err, context.Canceled):
		return "run it again"
	}
	return "see that the server runs, and that the DSN leads there"
}

// ErrForeignKeys are those of a column that cannot change its type alone.
var ErrForeignKeys = []uint16{1832, 1833, 3780}

// Denied reports whether err says that the user has not the right.
func Denied(err error) bool {
	return IsError(err, ErrDatabaseDenied, ErrTableDenied, ErrColumnDenied, ErrSpecificAccess)
}
