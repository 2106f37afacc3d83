package databases

import (
	"context"
	"errors"

	"github.com/leafsql/leafsql/internal/servererr"
)

// Hint returns a hint for an error of a server, or of the connection to it.
func Hint(err error) string {
	switch {
	case servererr.Is(err, servererr.LoginDenied, servererr.SocketLoginDenied):
		return "correct the user and password in the DSN"
	case servererr.Is(err, servererr.UnknownDatabase):
		return "create the database, or correct the DSN"
	case IsDenied(err):
		return "grant this user the right, or run it as another user"
	case servererr.Is(err, servererr.LockWait):
		return "end long transactions on the table and run it again"
	case errors.Is(err, context.Canceled):
		return "run it again"
	}
	return "check that the server runs, and the address in the DSN"
}

// ErrForeignKeys contains the numbers of the server's errors for a column type that cannot be changed because of foreign
// keys.
var ErrForeignKeys = []uint16{1832, 1833, 3780}

// IsDenied reports whether err means that the user lacks a right.
func IsDenied(err error) bool {
	return servererr.Denied(err) || servererr.Is(err, servererr.SpecificAccessDenied)
}
