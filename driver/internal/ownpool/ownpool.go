// Package ownpool opens pools for statements of leafsql's own, which are never
// the application's: a fetch of ids must not wait for a transaction that itself
// waits for ids.
//
//	connector, err := mysql.NewConnector(ownpool.Config(cfg))
//	db := ownpool.Open(connector, 2)
//
// Its connections run in autocommit whatever a DSN says, and leave the pool when
// their server turns out to be the wrong one. It sends no statement by itself, and
// knows nothing of tables.
package ownpool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/mysqlerr"
	"github.com/leafsql/leafsql/internal/servererr"
)

// Conn is everything of go-sql-driver's connection that database/sql and
// applications use.
type Conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// innerStmt is what database/sql uses of go-sql-driver's statement.
type innerStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

// lifetime is how long a connection of ours is used: behind a balancer that keeps
// sessions, one that was made long ago may lead to a server that was replaced.
const lifetime = time.Minute

// idleTime is how long one is kept for which there is no use.
const idleTime = 30 * time.Second

// Open opens a pool of at most conns connections that inner makes. Nothing connects
// yet.
func Open(inner driver.Connector, conns int) *sql.DB {
	ctx, cancel := context.WithCancel(context.Background())
	db := sql.OpenDB(&connector{inner, ctx, cancel, make(chan struct{}, maxDials), make(chan driver.Conn)})
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns) // fewer would be made again and again while all are wanted
	db.SetConnMaxIdleTime(idleTime)
	db.SetConnMaxLifetime(lifetime)
	return db
}

// Config is an application's cfg for connections of ours.
func Config(cfg *mysql.Config) *mysql.Config {
	own := cfg.Clone()
	own.ClientFoundRows = false                             // rows that changed are counted
	own.InterpolateParams = true                            // one round trip a question
	own.ColumnsWithAlias = false                            // columns are read by their names
	own.Collation = ""                                      // some keep arguments from being put into texts
	own.RejectReadOnly = false                              // conn does as much, and lets the error be seen
	maps.DeleteFunc(own.Params, func(name, _ string) bool { // limits for the application's statements
		return slices.Contains([]string{"max_statement_time", "max_execution_time", "max_join_size"}, strings.ToLower(name))
	})
	return own
}

// session undoes what a DSN may set for the application: what we read must
// not come from an old snapshot, be cut short or be in another character set,
// and what we write must not wait for a COMMIT, nor a COMMIT open another transaction,
// nor be cut to fit its column. The short wait is for a table that the application's own connection has locked. MySQL 8
// caches AUTO_INCREMENT's next value in information_schema, for a day by default.
const session = "SET NAMES utf8mb4, autocommit = 1, completion_type = 0, sql_select_limit = 18446744073709551615, lock_wait_timeout = 1, sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES') /*!80003 , information_schema_stats_expiry = 0 */"

const (
	// connectTime bounds how long a connection may take: a slow server needs seconds for
	// each of its replies.
	connectTime = time.Minute

	// again is how often another one is begun beside it: a server that stood still may not go
	// on with those that it had taken.
	again = 5 * time.Second

	maxDials = 16 // connections that are being made, or kept
)

// errSilent is no context.DeadlineExceeded, which would be the end of the caller's own context.
var errSilent = fmt.Errorf("leafsql: the server gave no connection within %v; see that it answers others", connectTime)

// connector makes connections for pools of our own. One that comes when whoever asked for
// it has gone is kept for who asks next: begun anew each time, no connection to a slow
// server would ever be there in time.
type connector struct {
	driver.Connector
	ctx    context.Context // ends with the pool
	cancel context.CancelFunc
	dials  chan struct{} // holds a token for each of them
	late   chan driver.Conn
}

// Close is called by the pool's.
func (c *connector) Close() error {
	c.cancel()
	return nil
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	gone, own := make(chan struct{}), make(chan func() (driver.Conn, error))
	defer close(gone)
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case dc := <-c.late:
			return dc, nil
		case d := <-own:
			return d()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-next.C:
			next.Reset(again)
			select {
			case c.dials <- struct{}{}:
				go c.dial(own, gone)
			default:
			}
		}
	}
}

// dial makes a connection for whoever asked for it, or for who asks while it is new.
func (c *connector) dial(own chan<- func() (driver.Conn, error), gone <-chan struct{}) {
	defer func() { <-c.dials }()
	ctx, cancel := context.WithTimeoutCause(c.ctx, connectTime, errSilent)
	defer cancel()
	dc, err := c.connect(ctx)
	if err != nil && context.Cause(ctx) == errSilent {
		err = errSilent
	}
	select {
	case own <- func() (driver.Conn, error) { return dc, err }:
		return
	case <-gone:
	}
	if err != nil {
		return
	}
	idle, over := context.WithTimeout(c.ctx, idleTime)
	defer over()
	select {
	case c.late <- dc:
	case <-idle.Done():
		dc.Close()
	}
}

func (c *connector) connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ic, ok := dc.(Conn)
	if !ok {
		return dc, nil // whoever wraps connections for the application says what is missing
	}
	if _, err := ic.ExecContext(ctx, session, nil); err != nil {
		dc.Close()
		return nil, err
	}
	return &conn{Conn: ic}, nil
}

// conn is a connection of ours. After an answer that another server would not give
// it leaves the pool, so that the next attempt dials.
type conn struct {
	Conn
	left bool
}

func (c *conn) note(err error) error {
	if servererr.Is(err, mysqlerr.NotWritable...) {
		c.left = true
	}
	return err
}

// IsValid is asked by the pool when the connection comes back.
func (c *conn) IsValid() bool { return !c.left && c.Conn.IsValid() }

func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.Conn.ExecContext(ctx, text, args)
	return res, c.note(err)
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, text, args)
	return rows, c.note(err)
}

func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.Conn.PrepareContext(ctx, text)
	if inner, ok := s.(innerStmt); ok && err == nil {
		s = &stmt{inner, c}
	}
	return s, c.note(err)
}

type stmt struct {
	innerStmt
	c *conn
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	res, err := s.innerStmt.ExecContext(ctx, args)
	return res, s.c.note(err)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.innerStmt.QueryContext(ctx, args)
	return rows, s.c.note(err)
}
