package driver

import (
	"context"
	"database/sql/driver"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/ownpool"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/staged"
)

// innerConn is the inner driver's connection. conn embeds it by its Session, so that what
// it does not override, such as BeginTx and Ping, is the inner driver's own.
type innerConn = ownpool.Conn

var (
	_ innerConn = (*conn)(nil)
	//lint:ignore SA1019 users of sql.Conn.Raw assert it
	_ driver.Execer = (*conn)(nil)
	//lint:ignore SA1019 likewise
	_ driver.Queryer = (*conn)(nil)
)

// conn is a connection that fills INSERTs. Like every driver.Conn it is used
// by one goroutine at a time.
type conn struct {
	planner.Planner
	connector      *Connector
	closeConnector bool // it has the connector to itself
	foundRows      bool // affected counts are of rows found

	stage staged.Stage

	blocks []insert.Block      // scratch
	args   []driver.NamedValue // scratch
}

// Raw returns the inner driver's connection, for what only it can do. What is
// sent through it is not filled.
func (c *conn) Raw() driver.Conn {
	c.AfterOpaque()
	c.DBUnknown = true
	return c.Conn
}

// Close closes the connection.
func (c *conn) Close() error {
	err := c.Conn.Close()
	if c.closeConnector {
		c.connector.Close()
	}
	return err
}

// IsValid is false for a connection that must not be used again.
func (c *conn) IsValid() bool { return !c.Broken && c.Conn.IsValid() }

// ResetSession is called before the connection is used again.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.Broken || c.connector.closed.Load() {
		return driver.ErrBadConn
	}
	if err := c.Conn.ResetSession(ctx); err != nil {
		return err
	}
	if c.connector.wrapped { // by what may do more than go-sql-driver does
		c.DoubtTemporary()
	}
	c.stage.DropLeft(ctx, &c.Session)
	return nil
}

// PrepareContext prepares a text; one that may need keys, or that has effects, gets a
// statement of ours.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	st, err := c.Statement(ctx, text)
	switch {
	case err != nil:
	case st.Way == planner.InParts:
		err = c.prepareError(ctx, text)
	case st.Way == planner.PassedThrough && !st.Effects && !st.MayFill:
		return c.Conn.PrepareContext(ctx, text)
	default:
		var s *stmt
		if s, err = c.prepare(ctx, st, text); err == nil {
			return s, nil
		}
	}
	return nil, c.connector.refused(err)
}

// Prepare, Exec and Query are for those who go around database/sql. They must
// fill as well.

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *conn) Exec(text string, args []driver.Value) (driver.Result, error) {
	return c.ExecContext(context.Background(), text, named(args))
}

func (c *conn) Query(text string, args []driver.Value) (driver.Rows, error) {
	return c.QueryContext(context.Background(), text, named(args))
}
