//go:build storm

package fleet

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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

// rate returns the time per call of do while a number of goroutines call it.
func rate(t *testing.T, workers int, do func(worker int) error) time.Duration {
	t.Helper()
	const duration = time.Second
	var running sync.WaitGroup
	var calls atomic.Int64 // calls that ended in time
	began := time.Now()
	for w := range workers {
		running.Go(func() {
			for time.Since(began) < duration {
				if err := do(w); err != nil {
					t.Error(err)
					break
				}
				if time.Since(began) < duration {
					calls.Add(1)
				}
			}
		})
	}
	running.Wait()
	return duration / time.Duration(max(calls.Load(), 1))
}

// inProgress are the numbers of statements in progress at which costs are measured. The lowest keeps the processors busy.
var inProgress = []int{16, 64, 256, 1024}

// measure returns the costs of a server for clients on the same machine, for each number of statements in progress, on
// ten rows.
func measure(t *testing.T, dsn string) (costs []Costs) {
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
	db.SetMaxIdleConns(inProgress[len(inProgress)-1])
	store := segment.NewAllocStore(db, "leaf_alloc")
	fetch := func(tag string, n int64) error {
		_, err := store.Fetch(t.Context(), segment.Request{Tag: tag, N: n, Step: 1000})
		return err
	}
	for w := range 10 {
		db.Exec(fmt.Sprintf("INSERT INTO leaf_alloc VALUES ('own%d', 1, 1000, '', NOW())", w))
	}
	var reply time.Duration
	for i, n := range inProgress {
		c := Costs{InProgress: n}
		rate(t, n, func(w int) error { return fetch(fmt.Sprint("own", w%10), 1) }) // opens the connections
		c.Busy[ReadRow] = rate(t, n, func(w int) error { return fetch(fmt.Sprint("own", w%10), 0) })
		c.Busy[Fetch] = rate(t, n, func(w int) error { return fetch(fmt.Sprint("own", w%10), 1) })
		c.Row = rate(t, n, func(int) error { return fetch("own0", 1) })
		c.Busy[Connect] = rate(t, n, func(int) error {
			dc, err := connector.Connect(t.Context())
			if err == nil {
				_, err = dc.(driver.ExecerContext).ExecContext(t.Context(), "SET NAMES utf8mb4, autocommit = 1, lock_wait_timeout = 1", nil)
				dc.Close()
			}
			return err
		})
		c.Busy[ReadIdentity] = rate(t, n, func(int) error {
			_, err := serverid.Query(t.Context(), db)
			return err
		})
		c.Busy[ReadWorker], c.Busy[WriteWorker], c.Busy[Refuse] = c.Busy[ReadRow], c.Busy[Fetch], c.Busy[Connect]*2/3
		if i == 0 {
			reply = max(rate(t, 1, func(int) error { return fetch("own0", 1) })-c.Busy[Fetch]-c.Row, 0)
		}
		c.Reply = reply
		costs = append(costs, c)
	}
	return costs
}

// average returns the averages of two measurements.
func average(a, b []Costs) []Costs {
	a = slices.Clone(a)
	for i := range a {
		for k := range kinds {
			a[i].Busy[k] = (a[i].Busy[k] + b[i].Busy[k]) / 2
		}
		a[i].Row, a[i].Reply = (a[i].Row+b[i].Row)/2, (a[i].Reply+b[i].Reply)/2
	}
	return a
}

// compared are the figures by which the model and a real server are compared: the number of statements, and the waits of
// INSERTs in seconds. One wait for each tag of each process is that of its first fetch, and the others are short.
var compared = [4]string{"statements", "wait that half of the tags exceed", "wait that a tenth of the tags exceed", "longest wait"}

func (r *Record) figures(cfg Config, within time.Duration) [len(compared)]float64 {
	all, _ := r.Count(0, within, Connect, ReadRow, Fetch, ReadIdentity)
	tags := cfg.Processes * cfg.Tags
	return [...]float64{float64(all), r.Longest(tags / 2).Seconds(), r.Longest(tags / 10).Seconds(), r.Longest(1).Seconds()}
}

// TestStormModelMatchesServer starts a fleet on a real MariaDB several times, and the same fleet on the model with the
// costs that were measured on that server just before and just after. The average numbers of statements have to be equal
// within 20 %. The waits are only logged: they depend on the other work of the machine. They can be compared only after a
// start at once, which overloads the server.
func TestStormModelMatchesServer(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--innodb-flush-log-at-trx-commit=1", "--max-connections=4000"}})
	dsn := server.Target().Database(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "leaf_alloc")
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	const tags, rounds, duration = 10, 3, 30 * time.Second
	for tag := range tags {
		if err := store.Ensure(t.Context(), fmt.Sprint("t", tag), 1, 1000); err != nil { // with the server's mark
			t.Fatal(err)
		}
	}
	parsed, _ := mysql.ParseDSN(dsn)
	inner, err := mysql.NewConnector(parsed)
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []struct {
		name   string
		within time.Duration
		rate   float64
	}{{"within a second", time.Second, 1}, {"at once", 0, 2}} {
		t.Run(load.name, func(t *testing.T) {
			cfg := Config{Processes: *processes, Share: 1, Tags: tags, Rate: load.rate, Batch: 1, Within: load.within, Seed: 1}
			var got, want [len(compared)]float64
			before := measure(t, dsn)
			for range rounds {
				real := &realServer{NewRecord(), inner}
				f := Start(cfg, real, real.Record)
				time.Sleep(duration)
				f.Stop()
				for tag := range f.IDs {
					f.IDs[tag].Verify(t)
				}
				after := measure(t, dsn)
				cfg.Costs, before = average(before, after), after
				t.Logf("costs %+v", cfg.Costs)
				var model *Server
				synctest.Test(t, func(t *testing.T) {
					model = NewServer(cfg)
					f := Start(cfg, model, model.Record)
					time.Sleep(duration)
					f.Stop()
				})
				r, m := real.figures(cfg, duration), model.figures(cfg, duration)
				t.Logf("real server %.4g, connections %v; model %.4g, connections %v", r, real.most, m, model.most)
				for i := range compared {
					got[i], want[i] = got[i]+r[i]/rounds, want[i]+m[i]/rounds
				}
			}
			for i, name := range compared {
				ratio := got[i] / want[i]
				t.Logf("%s: %.4g on the real server, %.4g on the model: %+.0f %%", name, got[i], want[i], 100*(ratio-1))
				if i == 0 && (ratio < 0.8 || ratio > 1.2) {
					t.Errorf("%s: %.4g on the real server, want the model's %.4g within 20 %%", name, got[i], want[i])
				}
			}
		})
	}
}
