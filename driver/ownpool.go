package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/go-sql-driver/mysql"
)

// ownLifetime is how long a connection of ours is used: behind a balancer that keeps
// sessions, one that was made long ago may lead to a server that was replaced.
const ownLifetime = time.Minute

// ownPool opens a pool for statements of ours. It is never the application's.
func ownPool(inner driver.Connector, conns int) *sql.DB {
	db := sql.OpenDB(ownConnector{inner})
	db.SetMaxOpenConns(conns)
	db.SetConnMaxIdleTime(30 * time.Second)
	db.SetConnMaxLifetime(ownLifetime)
	return db
}

// ownMySQL is cfg for connections of ours.
func ownMySQL(cfg *mysql.Config) *mysql.Config {
	own := cfg.Clone()
	own.ClientFoundRows = false  // rows that changed are counted
	own.InterpolateParams = true // one round trip a question
	own.Collation = ""           // some keep arguments from being put into texts
	own.RejectReadOnly = false   // ownConn does as much, and lets the error be seen
	return own
}

// ownSession undoes what a DSN may set for the application: what we read must
// not come from an old snapshot, be cut short or be in another character set,
// and what we write must not wait for a COMMIT. The short wait is for a table that the application's own
// connection has locked.
const ownSession = "SET NAMES utf8mb4, autocommit = 1, sql_select_limit = 18446744073709551615, lock_wait_timeout = 1"

// ownConnector makes connections for pools of our own.
type ownConnector struct{ driver.Connector }

func (c ownConnector) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ic, ok := dc.(innerConn)
	if !ok {
		return dc, nil // Connector.Connect says what is missing
	}
	if _, err := ic.ExecContext(ctx, ownSession, nil); err != nil {
		dc.Close()
		return nil, err
	}
	return &ownConn{innerConn: ic}, nil
}

// ownConn is a connection of ours. After an answer that another server would not give
// it leaves the pool, so that the next attempt dials.
type ownConn struct {
	innerConn
	left bool
}

// wrongServer are the errors of servers that were demoted or left their cluster: a
// Galera node outside the primary component, read_only, a read-only transaction,
// read-only mode, a Group Replication member outside the group.
var wrongServer = []uint16{1047, 1290, 1792, 1836, 3100}

func (c *ownConn) note(err error) error {
	if isServerError(err, wrongServer...) {
		c.left = true
	}
	return err
}

// IsValid is asked by the pool when the connection comes back.
func (c *ownConn) IsValid() bool { return !c.left && c.innerConn.IsValid() }

func (c *ownConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.innerConn.ExecContext(ctx, text, args)
	return res, c.note(err)
}

func (c *ownConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.innerConn.QueryContext(ctx, text, args)
	return rows, c.note(err)
}

func (c *ownConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.innerConn.PrepareContext(ctx, text)
	if inner, ok := s.(innerStmt); ok && err == nil {
		s = &ownStmt{inner, c}
	}
	return s, c.note(err)
}

// innerStmt is what database/sql uses of go-sql-driver's statement.
type innerStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type ownStmt struct {
	innerStmt
	c *ownConn
}

func (s *ownStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	res, err := s.innerStmt.ExecContext(ctx, args)
	return res, s.c.note(err)
}

func (s *ownStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.innerStmt.QueryContext(ctx, args)
	return rows, s.c.note(err)
}
