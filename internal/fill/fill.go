// Package fill is leafsql without database/sql, for a program that implements MySQL's protocol itself,
// like package proxy. To fill a statement is to add ids as keys to the rows that it inserts without a key.
// Package driver implements this package.
//
//	s, err := fill.Attach(ctx, connector, conn, fill.Login{Database: "shop"})
//	plan, err := s.Plan(ctx, text)  // an error is the response to the client: send nothing
//	if !plan.Fills() {
//		…                           // send the text unchanged
//		s.RecordSent(plan, false, err)
//	} else {
//		answer, err := s.Run(ctx, plan)
//	}
package fill

import (
	"context"
	"database/sql/driver"
)

// Attach returns the session of a connection that is logged in. The session uses the generators of
// connector, which must be a *driver.Connector. conn must implement the interfaces that go-sql-driver's
// connections do, or Attach returns an error. Results and rows of conn are returned unchanged in an
// Answer. Statements on conn get the client's arguments. If an argument has a method KeyValue() any, its
// result is used to find out whether the argument is a key. conn is closed if a statement fails
// and the session cannot be restored to the client's state. Queries that are not about the session run
// on other connections, with the connector's account.
var Attach func(ctx context.Context, connector driver.Connector, conn driver.Conn, login Login) (Session, error)

// Login has the session's settings that a client chose in its login.
type Login struct {
	Database        string // the database in use, or ""
	FoundRows       bool   // affected counts include unchanged rows: CLIENT_FOUND_ROWS
	MultiStatements bool   // a query may have several statements: CLIENT_MULTI_STATEMENTS

	// Account is the name of the client's account, with its host if the server sees that host. If the
	// server permits a statement to one session of an account, statements of the same kind on the same columns are
	// permitted to all sessions of the account for a minute. With "" the session shares no permissions.
	Account string
}

// A Session fills the statements of one connection. Like the connection, it is not safe for concurrent
// use. The caller has to report all changes of the session other than by statements: Use,
// Reset, SetMultiStatements, SetBackslashEscapes.
type Session interface {
	// Plan plans a query. It may send queries about the session on the connection. The error of a query
	// that must not be sent is a *driver.RefusedError or the server's.
	Plan(ctx context.Context, text string) (Plan, error)

	// Run runs a query without Parts for which Fills is true. The error is the server's, or a
	// *driver.RefusedError or *driver.FillError if the statement did not run. The wait for ids ends with
	// ctx.
	Run(context.Context, Plan) (Answer, error)

	// Prepare prepares a query for which Prepares is true. The caller has already prepared it on the
	// connection, for the response to the client; executions use the Prepared, which the caller has to
	// close.
	Prepare(context.Context, Plan) (Prepared, error)

	// RecordSent records the result of a query that the caller sent unchanged, or of one execution of a
	// statement that the caller prepared.
	RecordSent(plan Plan, prepared bool, err error)

	// Use records the database in use after COM_INIT_DB.
	Use(name string)

	// Reset records that the session was reset, with COM_CHANGE_USER or COM_RESET_CONNECTION, or by a
	// login. Its prepared statements are gone. knownDB is set if login.Database is the database in use.
	Reset(login Login, knownDB bool)

	// SetMultiStatements records whether COM_SET_OPTION allows several statements in a query.
	SetMultiStatements(bool)

	// SetBackslashEscapes records whether the status of the server's last response shows for certain that sql_mode does not
	// have NO_BACKSLASH_ESCAPES. certain has to be false after the flag has changed, because the status may be wrong: if a
	// stored program sets sql_mode, servers restore the mode at its end, but not the status.
	SetBackslashEscapes(certain bool)

	// NoBackslashEscapes returns whether sql_mode has NO_BACKSLASH_ESCAPES. queried reports whether the
	// value was read from the session and is still valid.
	NoBackslashEscapes() (on, queried bool)
}

// A Plan states how a query has to be run.
type Plan struct {
	Text string
	Statement
}

// A Statement is the result of planning a query.
type Statement interface {
	// Fills reports whether the query has to be run by Run. Otherwise the caller sends it unchanged.
	Fills() bool

	// Prepares reports whether the query has to be prepared by Prepare: it writes a table that a rule
	// includes, even if that is a temporary table at present.
	Prepares() bool

	// HasEffects reports whether RecordSent has to be called.
	HasEffects() bool

	// Parts returns the statements of the query if each has to be planned and run by itself, in order, up to
	// the first error. Otherwise it returns nil.
	Parts(text string) []string
}

// An Answer is the result of a statement.
type Answer struct {
	// Result is the connection's result of the statement that wrote the rows, or nil if Rows is set. If
	// there were no rows to write, it may be an empty result that does not come from the connection.
	Result driver.Result
	ID     int64 // the statement's id, to be returned in place of Result's id

	// Rows are the connection's rows if the statement returns rows. The caller has to close them.
	Rows driver.Rows

	// Source is the connection's result of reading the source of an INSERT … SELECT or LOAD DATA; nil
	// for other statements.
	Source driver.Result
}

// A Prepared is a statement that the client prepared and that may need keys. It is not safe for
// concurrent use.
type Prepared interface {
	// Run executes the statement, with the results of Session.Run.
	Run(context.Context, []driver.NamedValue) (Answer, error)

	// StartBulk reserves the ids for an execution with the given number of rows. It returns an error if the ids
	// would add room bytes or more to the command. arg returns the i-th argument of a row; it is called for
	// the arguments that may be keys, row by row. The result is nil if no keys are needed now, as for a
	// temporary table: then the caller executes the client's statement as it was prepared. An error is the
	// response to the client.
	StartBulk(ctx context.Context, rows, room int, arg func(row, i int) driver.Value) (Bulk, error)

	// Close closes the statement on the server.
	Close() error
}

// A Bulk is one execution of a Prepared for many rows at once, with ids for the rows without a key.
// MariaDB's clients can send the arguments of many rows in one command.
//
//	b, err := prepared.StartBulk(ctx, rows, room, argument)
//	for range rows {
//		for _, arg := range b.Args() {
//			id, ok := b.NextID(arg) // if not ok, send the row's own argument
//		}
//	}
//	… // execute b.Stmt() with these arguments
//	answer, err := b.Finish(ctx, result, err)
type Bulk interface {
	// Stmt returns the connection's statement to execute. The caller must not close it.
	Stmt() driver.Stmt

	// Args returns the arguments of each row: the index of a client's argument, or -1 for an id.
	Args() []int

	// NextID returns the id that replaces an argument. It has to be called in the order of Args, row by
	// row. The id is an integer, or a UUID as a string or bytes. ok is false if the row's own argument
	// is sent.
	NextID(arg int) (id driver.Value, ok bool)

	// IsKey reports whether an element of Args is the argument of a key, or -1 for an id.
	IsKey(arg int) bool

	// Finish records the result of the execution, and returns the Answer. It has to be called after each
	// execution.
	Finish(context.Context, driver.Result, error) (Answer, error)
}
