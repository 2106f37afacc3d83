package driver

import (
	"context"
	"database/sql/driver"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/driver/internal/staged"
)

// innerConn is a connection of the inner driver. conn embeds it through its Session, so
// methods that conn does not override, such as BeginTx and Ping, are the inner driver's.
type innerConn = pool.Conn

var (
	_ innerConn = (*conn)(nil)
	//lint:ignore SA1019 users of sql.Conn.Raw assert it
	_ driver.Execer = (*conn)(nil)
	//lint:ignore SA1019 users of sql.Conn.Raw assert it
	_ driver.Queryer = (*conn)(nil)
)

// conn is a connection that fills INSERTs. Like every driver.Conn it is not safe for
// concurrent use.
type conn struct {
	planner.Planner
	connector      *Connector
	closeConnector bool // Close closes the connector, which has no other connection
	foundRows      bool // affected counts include rows that were found but not changed

	stageState staged.ConnState

	blocks []insert.Block      // buffer that statements reuse
	args   []driver.NamedValue // buffer that statements reuse
}

// Raw returns the inner driver's connection, for methods that conn lacks. Statements
// sent through it are not filled.
func (c *conn) Raw() driver.Conn {
	c.RecordOpaque()
	c.DBUnknown = true
	return c.Conn
}

// Close closes the connection, and its connector if sqlDriver.Open made it.
func (c *conn) Close() error {
	err := c.Conn.Close()
	if c.closeConnector {
		c.connector.Close()
	}
	return err
}

// IsValid reports whether the connection may be used again.
func (c *conn) IsValid() bool { return !c.Broken && c.Conn.IsValid() }

// ResetSession prepares the connection for its next use. It returns driver.ErrBadConn
// if the connection is broken or the connector is closed.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.Broken || c.connector.closed.Load() {
		return driver.ErrBadConn
	}
	if err := c.Conn.ResetSession(ctx); err != nil {
		return err
	}
	if c.connector.wrapped { // a wrapped driver may reset more than go-sql-driver
		c.DoubtTemporary()
	}
	c.stageState.DropLeftTables(ctx, &c.Session)
	return nil
}

// PrepareContext prepares a query. It returns a *stmt if the query may need keys or has
// effects on the session, and otherwise the inner driver's statement.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	st, err := c.Statement(ctx, text)
	switch {
	case err != nil:
	case st.Way == planner.InParts:
		err = c.prepareError(ctx, text)
	case !st.Prepares() && !st.Effects:
		return c.Conn.PrepareContext(ctx, text)
	default:
		var s *stmt
		if s, err = c.prepare(ctx, st, text); err == nil {
			return s, nil
		}
	}
	return nil, c.connector.countRefusal(err)
}

// Prepare, Exec and Query are for callers that bypass database/sql. They also fill keys.

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *conn) Exec(text string, args []driver.Value) (driver.Result, error) {
	return c.ExecContext(context.Background(), text, namedValues(args))
}

func (c *conn) Query(text string, args []driver.Value) (driver.Rows, error) {
	return c.QueryContext(context.Background(), text, namedValues(args))
}
