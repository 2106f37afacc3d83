//go:build storm

package fleet

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/serverid"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var processes = flag.Int("fleet.processes", 300, "processes of TestStormModelMatchesServer")

// realServer sends the statements about ids to a real server. Like the model, it answers the others itself.
type realServer struct {
	*Record
	inner driver.Connector
}

func (s *realServer) Connect(context.Context) (driver.Conn, error) {
	return &realConn{conn: conn{server: &Server{Record: s.Record}, pool: noPool}, real: s}, nil
}
func (s *realServer) Driver() driver.Driver { return mysql.MySQLDriver{} }

// realConn opens its connection to the real server at the first statement about ids.
type realConn struct {
	conn
	real     *realServer
	settings string
	inner    interface {
		driver.Conn
		driver.ExecerContext
		driver.QueryerContext
		driver.Validator
	}
}

// open reports whether a statement is sent to the real server, and opens the connection.
func (c *realConn) open(ctx context.Context, text string) (bool, error) {
	k := kindOf(text)
	if !k.isStore() {
		if k == Connect {
			c.settings = text
		}
		return false, nil
	}
	if c.inner == nil {
		dc, err := c.real.inner.Connect(ctx)
		if err != nil {
			return true, err
		}
		c.inner = dc.(interface {
			driver.Conn
			driver.ExecerContext
			driver.QueryerContext
			driver.Validator
		})
		c.real.note(Connect)
		c.enter(storePool)
		if _, err := c.inner.ExecContext(ctx, c.settings, nil); err != nil {
			return true, err
		}
	}
	c.real.note(k)
	return true, nil
}

func (c *realConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if store, err := c.open(ctx, text); err != nil {
		return nil, err
	} else if store {
		return c.inner.ExecContext(ctx, text, args)
	}
	return c.conn.ExecContext(ctx, text, args)
}

func (c *realConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if store, err := c.open(ctx, text); err != nil {
		return nil, err
	} else if store {
		return c.inner.QueryContext(ctx, text, args)
	}
	return c.conn.QueryContext(ctx, text, args)
}

func (c *realConn) IsValid() bool { return c.inner == nil || c.inner.IsValid() }

func (c *realConn) Close() error {
	if c.inner != nil {
		c.inner.Close()
	}
	return c.conn.Close()
}

// rate returns the time per call of do, which is called by a number of goroutines at once.
func rate(t *testing.T, workers int, do func(worker int) error) time.Duration {
	t.Helper()
	const duration = 2 * time.Second
	done := make(chan int)
	began := time.Now()
	for w := range workers {
		go func() {
			n := 0
			for time.Since(began) < duration {
				if err := do(w); err != nil {
					t.Error(err)
					break
				}
				n++
			}
			done <- n
		}()
	}
	all := 0
	for range workers {
		all += <-done
	}
	return time.Since(began) / time.Duration(all)
}

// measure returns the costs of a server for clients on the same machine, with a number of statements at once on ten rows.
func measure(t *testing.T, dsn string, workers int) (c Costs) {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	defer db.Close()
	db.SetMaxIdleConns(workers)
	store := segment.NewAllocStore(db, "leaf_alloc")
	fetch := func(tag string, n int64) error {
		_, err := store.Fetch(t.Context(), segment.Request{Tag: tag, N: n, Step: 1000})
		return err
	}
	for w := range 10 {
		db.Exec(fmt.Sprintf("INSERT INTO leaf_alloc VALUES ('own%d', 1, 1000, '', NOW())", w))
	}
	rate(t, workers, func(w int) error { return fetch(fmt.Sprint("own", w%10), 1) })
	c.Busy[ReadRow] = rate(t, workers, func(w int) error { return fetch(fmt.Sprint("own", w%10), 0) })
	c.Busy[Fetch] = rate(t, workers, func(w int) error { return fetch(fmt.Sprint("own", w%10), 1) })
	c.Row = rate(t, workers, func(int) error { return fetch("own0", 1) })
	c.Reply = max(rate(t, 1, func(int) error { return fetch("own0", 1) })-c.Busy[Fetch]-c.Row, 0)
	c.Busy[Connect] = rate(t, workers, func(int) error {
		dc, err := connector.Connect(t.Context())
		if err == nil {
			_, err = dc.(driver.ExecerContext).ExecContext(t.Context(), "SET NAMES utf8mb4, autocommit = 1, lock_wait_timeout = 1", nil)
			dc.Close()
		}
		return err
	})
	c.Busy[ReadIdentity] = rate(t, workers, func(int) error {
		_, err := serverid.Query(t.Context(), db)
		return err
	})
	c.Busy[ReadWorker], c.Busy[WriteWorker] = c.Busy[ReadRow], c.Busy[Fetch]
	return c
}

// outcome has the figures that the model and a real server are compared by.
type outcome struct {
	statements       int
	longest, typical time.Duration // waits at the start
}

func (r *Record) outcome(within time.Duration) outcome {
	all, _ := r.Count(0, within, Connect, ReadRow, Fetch, ReadIdentity)
	return outcome{all, r.Wait(1), r.Wait(0.5)}
}

// TestStormModelMatchesServer starts a fleet on a real MariaDB, and the same fleet on the model with the costs that were
// measured on that server just before and just after. The numbers of statements have to be equal within 20 %. The waits are only
// logged: on a machine that does other work, too, they change by more than that from one second to the next.
func TestStormModelMatchesServer(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--innodb-flush-log-at-trx-commit=1", "--max-connections=4000"}})
	dsn := server.Target().Database(t)
	cfg := Config{Processes: *processes, Share: 1, Tags: 10, Rate: 1, Batch: 1, Within: time.Second, Seed: 1}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "leaf_alloc")
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	for tag := range cfg.Tags {
		name := fmt.Sprint("t", tag)
		if err := store.Ensure(t.Context(), name, 1, 1000); err != nil { // with the server's mark
			t.Fatal(err)
		}
	}
	before := measure(t, dsn, 4*cfg.Processes)
	parsed, _ := mysql.ParseDSN(dsn)
	inner, err := mysql.NewConnector(parsed)
	if err != nil {
		t.Fatal(err)
	}
	const seconds = 30
	real := &realServer{NewRecord(), inner}
	f := Start(cfg, real, real.Record)
	time.Sleep(seconds * time.Second)
	f.Stop()
	for tag := range f.IDs {
		f.IDs[tag].Verify(t)
	}
	after := measure(t, dsn, 4*cfg.Processes)
	t.Logf("costs before %+v, after %+v", before, after)
	for k := range kinds {
		cfg.Costs.Busy[k] = (before.Busy[k] + after.Busy[k]) / 2
	}
	cfg.Costs.Row, cfg.Costs.Reply = (before.Row+after.Row)/2, (before.Reply+after.Reply)/2
	var model *Server
	synctest.Test(t, func(t *testing.T) {
		model = NewServer(cfg)
		f := Start(cfg, model, model.Record)
		time.Sleep(seconds * time.Second)
		f.Stop()
	})
	t.Logf("real:  %+v, connections %v", real.outcome(seconds*time.Second), real.most)
	t.Logf("model: %+v, connections %v", model.outcome(seconds*time.Second), model.most)
	got, want := real.outcome(seconds*time.Second).statements, model.outcome(seconds*time.Second).statements
	if ratio := float64(got) / float64(want); ratio < 0.8 || ratio > 1.2 {
		t.Errorf("%d statements on the real server, want the model's %d within 20 %%", got, want)
	}
}
