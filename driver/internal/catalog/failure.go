package catalog

import (
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/part"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Failure says that a statement of leafsql's own failed, one that reads what the server
// knows of tables. The application's statement was not run. An answer of the server is told
// in the text only: it is not about what the application sent.
type Failure struct {
	What string // was to be read
	Err  error
}

func (e *Failure) Error() string {
	way := ""
	switch {
	case servererr.Is(e.Err, servererr.UnknownDatabase, servererr.NoSuchTable):
		way = "leafsql reads information_schema, which this server or the proxy before it does not have; connect to the server itself"
	case servererr.Denied(e.Err):
		way = "GRANT SELECT on what it names to this user"
	}
	return part.Sentence("reading "+e.What, part.Text(e.Err), way)
}

// Unwrap gives the end of a context or a connection, not the server's answer.
func (e *Failure) Unwrap() error {
	if _, answer := errors.AsType[*mysql.MySQLError](e.Err); answer {
		return nil
	}
	return e.Err
}
