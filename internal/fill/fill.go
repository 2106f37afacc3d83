// Package fill is leafsql without database/sql, for a program that speaks MySQL's protocol itself, as package proxy does: it
// fills the statements that the client of another connection sends. Package driver implements it.
//
//	s, err := fill.Attach(ctx, connector, conn, fill.Login{Database: "shop"})
//	plan, err := s.Plan(ctx, text)  // an error is the answer: nothing is to be sent
//	if !plan.Fills() {
//		…                           // the caller sends the text as it is
//		s.Sent(plan, false, err)
//	} else {
//		answer, err := s.Run(ctx, plan)
//	}
package fill

import (
	"context"
	"database/sql/driver"
)

// Attach returns the session of a connection that is logged in, which uses the generators of a connector of package driver.
// The connection has to implement what go-sql-driver's do. Its results and rows come back untouched in an Answer,
// and its statements get the arguments that the client's had: if a value implements
// KeyValue() any, its key is judged by that. Its Close is called if a statement fails in such
// a way that the session is not what the client left. What leafsql reads of the server itself is
// read with the connector's own account.
var Attach func(ctx context.Context, connector driver.Connector, conn driver.Conn, login Login) (Session, error)

// Login is what a client's login decided.
type Login struct {
	Database  string // the database in use, "" for none
	FoundRows bool   // affected counts are of rows found: CLIENT_FOUND_ROWS
	Several   bool   // a text may hold several statements: CLIENT_MULTI_STATEMENTS

	// Account names the client's account, and its host if the server is told that. Sessions of one account share for a
	// minute the kinds of statements that the server let them run. "" shares nothing.
	Account string
}

// A Session fills the statements of one connection. Like the connection it is used by one goroutine at a time. Everything that
// changes the session apart from statements has to be reported: UseDatabase, Reset, SetSeveral, SetNoBackslashEscapes.
type Session interface {
	// Plan plans a text. It may query the connection about the session. The error of a text that
	// must not be sent is a *driver.RefusedError, or the server's.
	Plan(ctx context.Context, text string) (Plan, error)

	// Run runs a text that Fills, and has one part. Errors are the server's, *driver.RefusedError or *driver.FillError; the
	// statement did not run then. ctx bounds the wait for ids.
	Run(context.Context, Plan) (Answer, error)

	// Prepare prepares a text that Prepares. The caller has prepared the text on the connection
	// already, for the client to see the answer; executions go through the Prepared.
	Prepare(context.Context, Plan) (Prepared, error)

	// Sent notes how a text ended that the caller sent as it is, or one execution of a
	// statement that it prepared.
	Sent(plan Plan, prepared bool, err error)

	// UseDatabase notes the database that is in use since COM_INIT_DB.
	UseDatabase(name string)

	// Reset notes that the session began again, with COM_CHANGE_USER or, if the same is true of
	// a connection's login, COM_RESET_CONNECTION. Prepared statements are gone with it. knownDB
	// reports whether login.Database is the one in use.
	Reset(login Login, knownDB bool)

	// SetSeveral notes what COM_SET_OPTION changed.
	SetSeveral(bool)

	// SetNoBackslashEscapes notes the sql_mode flag in the status of the server's last answer.
	// It is not known any more once it has changed: if a stored program sets sql_mode, servers
	// put back the mode after it, but not the status.
	SetNoBackslashEscapes(on, known bool)

	// NoBackslashEscapes returns whether sql_mode has it, if the session was queried and nothing has
	// changed since.
	NoBackslashEscapes() (on, queried bool)
}

// A Plan is how a text is to be run.
type Plan struct {
	Text string
	Statement
}

// A Statement is what a text was planned as.
type Statement interface {
	// Fills reports whether the text is to be run by Run. Otherwise the caller sends it as it is.
	Fills() bool

	// Prepares reports whether the text is to be prepared by Prepare: it writes a table that a rule
	// means, though perhaps a temporary one at this time.
	Prepares() bool

	// HasEffects reports whether Sent has to be called.
	HasEffects() bool

	// Parts returns the statements of the text if it is filled, more than one if each has to be planned
	// and run by itself, in their order, until one has an error.
	Parts(text string) []string
}

// An Answer is the outcome of a statement.
type Answer struct {
	// Result is the connection's, of the statement that wrote the rows, unless Rows is set.
	// If none had to be written it is none of the connection's.
	Result driver.Result
	ID     int64 // the statement's id, in place of the one in Result

	// Rows are the connection's, of a statement that answers with rows.
	Rows driver.Rows

	// Source is the connection's result of the step that read the source of an INSERT …
	// SELECT or LOAD DATA; nil for other statements.
	Source driver.Result
}

// A Prepared is a statement that the client prepared and that may have to be filled.
type Prepared interface {
	// Run executes it, as Session.Run does a text.
	Run(context.Context, []driver.NamedValue) (Answer, error)

	// Bulk draws the ids for an execution for that many rows, whose command may be less than room bytes longer with them. arg
	// gives the arguments that may be keys, by row and index, in their order. It returns nil if nothing is to be filled now, as in
	// a temporary table: the client's statement is to be executed as it was prepared. The error is
	// the answer.
	Bulk(ctx context.Context, rows, room int, arg func(row, i int) driver.Value) (Bulk, error)

	// Close closes what it has on the server.
	Close() error
}

// A Bulk is one execution of a Prepared for many rows at once, with the ids of those that lack
// a key: MariaDB's clients send the arguments of all of them in one command.
//
//	b, err := prepared.Bulk(ctx, rows, room, argument)
//	for range rows {
//		for _, arg := range b.Args() {
//			id, ok := b.ID(arg) // or it is the row's own argument
//		}
//	}
//	… // b.Stmt() is executed with them
//	answer, err := b.Ran(ctx, result, err)
type Bulk interface {
	// Stmt returns the connection's statement that is to be executed.
	Stmt() driver.Stmt

	// Args returns its arguments in each row: an index of the client's, or -1 for an id.
	Args() []int

	// ID returns the id in the place of an argument. It is called in the order of Args, row
	// by row. The id is an integer, or a string or bytes that are a UUID. ok is false for an argument of the row's own.
	ID(arg int) (id driver.Value, ok bool)

	// Key reports whether an argument is in the place of a key, or -1 of an id.
	Key(arg int) bool

	// Ran notes how the execution ended, and returns its answer.
	Ran(context.Context, driver.Result, error) (Answer, error)
}
