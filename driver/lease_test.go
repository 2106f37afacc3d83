package driver

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

const insertT = "INSERT INTO t (a, b) VALUES (1, 2)"

// leased is a Config over noop whose table takes snowflakes with a worker id
// from spec.
func leased(spec string) *Config {
	cfg := NewConfig()
	cfg.MySQL.DBName = "shop"
	cfg.Auto = false
	cfg.Tables = []Rule{{Table: "t", Kind: Snowflake}}
	cfg.Worker = spec
	cfg.NewRegistry = true
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

func wrapNoop(t *testing.T, cfg *Config) *Connector {
	t.Helper()
	c, err := Wrap(noop{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A Connector closed by its pool and by hand lets go once of what others share.
func TestConnectorClosedTwice(t *testing.T) {
	one, two := wrapNoop(t, leased("static(901)")), wrapNoop(t, leased("static(901)"))
	db := sql.OpenDB(two)
	defer db.Close()
	if _, err := db.Exec(insertT); err != nil {
		t.Fatal(err)
	}
	sql.OpenDB(one).Close()
	one.Close()
	if _, err := db.Exec(insertT); err != nil {
		t.Errorf("the other pool: %v", err)
	}
}

func acquire(t *testing.T) *worker.Lease {
	t.Helper()
	src := worker.Source{Slots: &workertest.Memory{}}
	l, err := worker.Acquire(t.Context(), src, worker.Config{NewRegistry: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// The caller's lease is given back with the last connector that was given it,
// whatever became of its generator.
func TestWorkerLeaseIsGivenBack(t *testing.T) {
	t.Run("never connected", func(t *testing.T) {
		cfg := leased("")
		cfg.WorkerLease = acquire(t)
		sql.OpenDB(wrapNoop(t, cfg)).Close()
		if err := cfg.WorkerLease.Err(); !errors.Is(err, worker.ErrClosed) {
			t.Errorf("after db.Close: %v", err)
		}
	})
	t.Run("no generator", func(t *testing.T) {
		cfg := leased("")
		cfg.WorkerLease = acquire(t)
		cfg.Snowflake = "41-10-12@4102444800000" // begins in 2100
		db := sql.OpenDB(wrapNoop(t, cfg))
		_, err := db.Exec(insertT)
		if _, ok := errors.AsType[*snowflake.EpochError](err); !ok || cfg.WorkerLease.Err() != nil {
			t.Errorf("%v; the lease: %v", err, cfg.WorkerLease.Err())
		}
		db.Close()
		if err := cfg.WorkerLease.Err(); !errors.Is(err, worker.ErrClosed) {
			t.Errorf("after db.Close: %v", err)
		}
	})
	t.Run("two pools", func(t *testing.T) {
		cfg := leased("")
		cfg.WorkerLease = acquire(t)
		one, two := sql.OpenDB(wrapNoop(t, cfg)), sql.OpenDB(wrapNoop(t, cfg))
		for _, db := range []*sql.DB{one, two} {
			if _, err := db.Exec(insertT); err != nil {
				t.Error(err)
			}
		}
		one.Close()
		if _, err := two.Exec(insertT); err != nil {
			t.Errorf("after the other pool's Close: %v", err)
		}
		two.Close()
		if err := cfg.WorkerLease.Err(); !errors.Is(err, worker.ErrClosed) {
			t.Errorf("after db.Close: %v", err)
		}
	})
	t.Run("not the only generator's", func(t *testing.T) {
		cfg := leased("")
		cfg.WorkerLease = acquire(t)
		other, err := snowflake.New(snowflake.Leaf, cfg.WorkerLease)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		db := sql.OpenDB(wrapNoop(t, cfg))
		if _, err := db.Exec(insertT); err == nil {
			t.Error("two generators issue under one lease")
		}
		db.Close()
		if err := cfg.WorkerLease.Err(); err != nil {
			t.Errorf("a lease with another generator was closed: %v", err)
		}
	})
	t.Run("Wrap failed", func(t *testing.T) {
		cfg := leased("")
		cfg.WorkerLease = acquire(t)
		cfg.Store = "not a DSN"
		if _, err := Wrap(noop{}, cfg); err == nil || cfg.WorkerLease.Err() != nil {
			t.Errorf("Wrap: %v; the lease: %v", err, cfg.WorkerLease.Err())
		}
	})
}

// gated is one worker id, given back when the gate is open and not before.
type gated struct {
	workertest.Memory
	gate <-chan struct{}
}

func (g *gated) Close() error {
	<-g.gate
	return nil
}

// A pool opened while an equal one closes waits for its worker id, and so does
// a third when the second is closed meanwhile.
func TestReopenWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // after the layout's epoch
		gate := make(chan struct{})
		slots := &gated{gate: gate}
		searches := 0
		open := func() *sql.DB {
			c := wrapNoop(t, leased("static(903)"))
			c.ids.snowflakes.lease = func(ctx context.Context) (*worker.Lease, error) {
				searches++
				return worker.Acquire(ctx, worker.Source{Slots: slots}, worker.Config{Workers: 1, NewRegistry: true, Logger: c.cfg.Logger})
			}
			return sql.OpenDB(c)
		}
		one := open()
		if _, err := one.Exec(insertT); err != nil {
			t.Fatal(err)
		}
		go one.Close()
		synctest.Wait()
		two := open()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := two.ExecContext(ctx, insertT); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the pool before closes: %v", err)
		}
		go two.Close()
		synctest.Wait()
		three := open()
		inserted := make(chan error)
		go func() {
			_, err := three.Exec(insertT)
			inserted <- err
		}()
		synctest.Wait()
		if searches != 1 {
			t.Errorf("%d searches while the first worker id is not given back", searches)
		}
		close(gate)
		if err := <-inserted; err != nil {
			t.Errorf("after it was: %v", err)
		}
		three.Close()
		if n := len(sharedSnowflakes.m); n != 0 {
			t.Errorf("%d sources are kept", n)
		}
	})
}

// The same with a real lock on local state.
func TestReopenStatic(t *testing.T) {
	cfg := leased("static(904)")
	cfg.State = t.TempDir()
	var closing sync.WaitGroup
	for i := range 20 {
		db := sql.OpenDB(wrapNoop(t, cfg))
		if _, err := db.Exec(insertT); err != nil {
			t.Errorf("pool %d: %v", i, err)
		}
		done := make(chan struct{})
		closing.Go(func() {
			close(done)
			db.Close()
		})
		<-done
	}
	closing.Wait()
}

// leafLease means nothing to a fixed worker id, so it makes no other source.
func TestLeaseOfAFixedWorkerID(t *testing.T) {
	for i, lease := range []time.Duration{time.Minute, 30 * time.Second} {
		cfg := leased("static(902)")
		cfg.Lease = lease
		db := sql.OpenDB(wrapNoop(t, cfg))
		defer db.Close()
		if _, err := db.Exec(insertT); err != nil {
			t.Errorf("pool %d: %v", i, err)
		}
	}
}

// A source that fails is asked again after a pause that grows to 10 s. The
// reason is in every error, also of statements with less patience than a
// search, and once in the log.
func TestFailedSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		cfg := leased("static(905)")
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c := wrapNoop(t, cfg)
		reason := errors.New("leafsql: the reason")
		var searches atomic.Int32
		c.ids.snowflakes.lease = func(context.Context) (*worker.Lease, error) {
			searches.Add(1)
			time.Sleep(100 * time.Millisecond)
			return nil, reason
		}
		db := sql.OpenDB(c)
		waited := 0
		for range 6000 { // a minute
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			_, err := db.ExecContext(ctx, insertT)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				waited++
			}
			if searches.Load() > 1 && !errors.Is(err, reason) {
				t.Fatalf("after a failed search: %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		db.Close() // nothing is logged any more
		if n := searches.Load(); n < 6 || n > 20 || waited == 0 {
			t.Errorf("%d searches in a minute, waited for %d times", n, waited)
		}
		if n := strings.Count(log.String(), "the reason"); n != 1 {
			t.Errorf("the reason is in the log %d times: %s", n, log.String())
		}
	})
}
