package driver

import (
	"context"
	"database/sql/driver"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/ownpool"
	"github.com/leafsql/leafsql/driver/internal/plancache"
	"github.com/leafsql/leafsql/driver/internal/session"
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
	session.Session
	connector      *Connector
	closeConnector bool // it has the connector to itself

	schema  *schema
	plans   *plancache.Cache[*statement] // of schema and of what is known of the session
	planned int                          // the session's Changes that they are of

	temporary map[catalog.Name]temporaryTable // plans that saw one are the connection's own

	// A routine or a stored text ran, and may have made temporary tables or changed
	// others; those looked at since then are verified.
	opaque   bool
	verified []catalog.Name

	// The last text and its statement: most connections run one text many times.
	lastText string
	last     *statement

	stageRuns int    // that began a transaction or a savepoint
	stageLeft string // the stage, as SQL writes it, that is still there; "" for none

	blocks []insert.Block      // scratch
	args   []driver.NamedValue // scratch
}

// Raw returns the inner driver's connection, for what only it can do. What is
// sent through it is not filled.
func (c *conn) Raw() driver.Conn {
	c.afterOpaque()
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
	if c.connector.wrapped && len(c.temporary) > 0 { // by what may do more than go-sql-driver does
		c.doubtTemporary()
	}
	c.dropLeftStage(ctx)
	return nil
}

// PrepareContext prepares a text; one that may need keys, or that has effects, gets a
// statement of ours.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	st, err := c.statement(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case st.way == inParts:
		return nil, c.prepareError(ctx, text)
	case st.way == passedThrough && !st.effects && !st.mayFill:
		return c.Conn.PrepareContext(ctx, text)
	}
	return c.prepare(ctx, st, text)
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

func named(args []driver.Value) []driver.NamedValue {
	nv := make([]driver.NamedValue, len(args))
	for i, v := range args {
		nv[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return nv
}
