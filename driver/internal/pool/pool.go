// Package pool opens pools for internal statements. These statements do not use the application's
// connections: a fetch of ids must not wait for a transaction that itself waits for ids.
//
//	connector, err := mysql.NewConnector(pool.AdaptConfig(cfg))
//	db := pool.Open(connector, 2)
//
// Its connections run in autocommit mode regardless of the DSN, and leave the pool if their
// server turns out not to be writable. Except for a SET on each new connection, the package
// sends no statements by itself. It does not depend on tables.
package pool

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

// Conn has the methods of go-sql-driver's connection that database/sql and
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

// Stmt has the methods of go-sql-driver's statement that take a context.
type Stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// connLifetime is the longest use of an internal connection: behind a load balancer, an old
// connection may still lead to a server that was replaced.
const connLifetime = time.Minute

// idleTime is the longest time for which an unused connection is kept. It is longer than the time between two renewals of
// a worker id, at most 10 s by default. It is not much longer, because the connections of all processes add up at the
// server of leaf_alloc.
const idleTime = 12 * time.Second

// Open returns a pool of at most conns connections of inner. It does not connect.
// The caller has to close the pool.
func Open(inner driver.Connector, conns int) *sql.DB {
	ctx, cancel := context.WithCancel(context.Background())
	db := sql.OpenDB(&connector{inner, ctx, cancel, make(chan struct{}, maxDials), make(chan driver.Conn)})
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns) // with fewer, busy pools would reconnect again and again
	db.SetConnMaxIdleTime(idleTime)
	db.SetConnMaxLifetime(connLifetime)
	return db
}

// AdaptConfig returns a copy of an application's cfg for internal connections.
func AdaptConfig(cfg *mysql.Config) *mysql.Config {
	own := cfg.Clone()
	own.ClientFoundRows = false                             // affected rows are the changed rows
	own.InterpolateParams = true                            // one round trip per query
	own.ColumnsWithAlias = false                            // columns are read by their names
	own.Collation = ""                                      // some collations prevent interpolation
	own.RejectReadOnly = false                              // conn also discards the connection, but returns the server's error
	maps.DeleteFunc(own.Params, func(name, _ string) bool { // limits for the application's statements
		return slices.Contains([]string{"max_statement_time", "max_execution_time", "max_join_size"}, strings.ToLower(name))
	})
	return own
}

// sessionSettings undoes settings of the application's DSN. Results must not come from an old snapshot, be
// incomplete or be in another character set. Writes must be committed at once, and values must not be cut to fit
// their column. A COMMIT must not begin another transaction. lock_wait_timeout is short because the
// application's own connection may have locked the table. information_schema_stats_expiry is 0 because
// MySQL 8 otherwise caches AUTO_INCREMENT's next value, for a day by default.
const sessionSettings = "SET NAMES utf8mb4, autocommit = 1, completion_type = 0, sql_select_limit = " + NoSelectLimit + ", lock_wait_timeout = 1, sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'STRICT_ALL_TABLES') /*!80003 , information_schema_stats_expiry = 0 */"

// NoSelectLimit is a value of sql_select_limit that cuts no result short. It is not the default of MySQL and MariaDB, 2^64 - 1,
// because Vitess refuses values above 2^63 - 1.
const NoSelectLimit = "9223372036854775807"

const (
	// connectTime is the longest time to connect: a slow server needs seconds for each of its replies.
	connectTime = time.Minute

	// redialInterval is the interval at which a request opens another connection while it waits: a server that was
	// frozen may never answer on the connections that it had accepted.
	redialInterval = 5 * time.Second

	maxDials = 16 // maximum of pending dials and connections that wait for a request
)

// errSilentServer does not wrap context.DeadlineExceeded, which would mean that the caller's own context ended.
var errSilentServer = fmt.Errorf("leafsql: the server opened no connection within %v; check that it accepts connections", connectTime)

// connector opens connections for internal pools. If a connection is ready only after its request has
// ended, it is kept for the next request. If each request began again, requests to a slow
// server would never get a connection.
type connector struct {
	driver.Connector
	ctx    context.Context // ends with the pool
	cancel context.CancelFunc
	dials  chan struct{} // holds a token for each dial and each connection that waits for a request
	ready  chan driver.Conn
}

// Close stops all dials and closes the waiting connections. The pool's Close calls it.
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
		case dc := <-c.ready:
			return dc, nil
		case d := <-own:
			return d()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-next.C:
			next.Reset(redialInterval)
			select {
			case c.dials <- struct{}{}:
				go c.dial(own, gone)
			default:
			}
		}
	}
}

// dial opens a connection for the request that reads own. If that request has ended (gone is closed), dial
// offers the connection to later requests for idleTime.
func (c *connector) dial(own chan<- func() (driver.Conn, error), gone <-chan struct{}) {
	defer func() { <-c.dials }()
	ctx, cancel := context.WithTimeoutCause(c.ctx, connectTime, errSilentServer)
	defer cancel()
	dc, err := c.connect(ctx)
	if err != nil && context.Cause(ctx) == errSilentServer {
		err = errSilentServer
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
	case c.ready <- dc:
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
		return dc, nil // the wrapper of the application's connections reports the missing methods
	}
	if _, err := ic.ExecContext(ctx, sessionSettings, nil); err != nil {
		dc.Close()
		return nil, err
	}
	return &conn{Conn: ic}, nil
}

// conn is an internal connection. It leaves the pool after an error that another server
// would not return, so that the next attempt opens a new connection.
type conn struct {
	Conn
	unusable bool
}

func (c *conn) noteError(err error) error {
	if servererr.Is(err, mysqlerr.NotWritable...) {
		c.unusable = true
	}
	return err
}

// IsValid reports whether the pool may keep the connection when it is returned.
func (c *conn) IsValid() bool { return !c.unusable && c.Conn.IsValid() }

func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.Conn.ExecContext(ctx, text, args)
	return res, c.noteError(err)
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, text, args)
	return rows, c.noteError(err)
}

func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.Conn.PrepareContext(ctx, text)
	if inner, ok := s.(Stmt); ok && err == nil {
		s = &stmt{inner, c}
	}
	return s, c.noteError(err)
}

type stmt struct {
	Stmt
	c *conn
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	res, err := s.Stmt.ExecContext(ctx, args)
	return res, s.c.noteError(err)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.QueryContext(ctx, args)
	return rows, s.c.noteError(err)
}
