package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/pool"
)

// recording makes connections that call before and sent for each statement. An error of
// before is returned instead of sending the statement. Either function may be nil.
type recording struct {
	driver.Connector
	before func(ctx context.Context, text string) error
	sent   func(text string)
}

// counting returns a recording that counts statements in n.
func counting(inner driver.Connector, n *atomic.Int64) recording {
	return recording{Connector: inner, sent: func(string) { n.Add(1) }}
}

func (r recording) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recordingConn{dc.(innerConn), r}, nil
}

type recordingConn struct {
	innerConn
	to recording
}

// tell calls the server and records the statement. After ErrSkip it records nothing, since nothing was sent.
func (c *recordingConn) tell(ctx context.Context, text string, call func() error) error {
	if c.to.before != nil {
		if err := c.to.before(ctx, text); err != nil {
			return err
		}
	}
	err := call()
	if c.to.sent != nil && err != driver.ErrSkip {
		c.to.sent(text)
	}
	return err
}

func (c *recordingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.tell(ctx, text, func() error {
		res, err = c.innerConn.ExecContext(ctx, text, args)
		return err
	})
	return res, err
}

func (c *recordingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.tell(ctx, text, func() error {
		rows, err = c.innerConn.QueryContext(ctx, text, args)
		return err
	})
	return rows, err
}

func (c *recordingConn) PrepareContext(ctx context.Context, text string) (st driver.Stmt, err error) {
	err = c.tell(ctx, text, func() error {
		st, err = c.innerConn.PrepareContext(ctx, text)
		return err
	})
	return st, err
}

// openRecorded opens a pool on a database in which setup has run. Its statements are
// recorded, including those of internal pools.
func openRecorded(t *testing.T, dsn, params string, setup []string, record func(driver.Connector) recording) (*sql.DB, *Connector) {
	t.Helper()
	cfg, err := ParseDSN(dsn + "?" + params)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, text := range setup {
		if _, err := plain.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	inner, err := mysql.NewConnector(pool.AdaptConfig(cfg.MySQL))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Wrap(record(inner), cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { db.Close() })
	return db, c
}
