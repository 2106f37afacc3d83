package catalog

import (
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Failure is the error of an internal statement that reads the server's catalog or session.
// The application's statement was not run. A server error is in the message, but is not
// unwrapped, because it is not about the application's query.
type Failure struct {
	What string // subject of the failed query
	Err  error
}

func (e *Failure) Error() string {
	way := ""
	switch {
	case servererr.Is(e.Err, servererr.UnknownDatabase, servererr.NoSuchTable):
		way = "this server, or a proxy in front of it, has no information_schema; connect to the server directly"
	case servererr.Denied(e.Err):
		way = "GRANT SELECT on the objects named in the error to this user"
	}
	return errprefix.Format("reading "+e.What, errprefix.TrimText(e.Err), way)
}

// Unwrap returns the error of a context or a connection, and nil for an error of the server.
func (e *Failure) Unwrap() error {
	if _, answer := errors.AsType[*mysql.MySQLError](e.Err); answer {
		return nil
	}
	return e.Err
}
