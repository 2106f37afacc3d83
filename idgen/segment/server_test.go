package segment_test

import (
	"bytes"
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// faulty is a store behind a proxy, and its table seen directly.
func faulty(t *testing.T, step int64) (through, direct *segment.AllocStore, proxy *netfault.Proxy) {
	t.Helper()
	dsn := mysqltest.Database(t)
	direct = allocStore(t, pool(t, dsn, ""), "leaf_alloc")
	if err := direct.Ensure(t.Context(), "a", 1, step); err != nil {
		t.Fatal(err)
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy = netfault.Start(t, cfg.Addr)
	cfg.Addr, cfg.Logger = proxy.Addr(), &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	t.Cleanup(func() { db.Close() })
	return segment.NewAllocStore(db, "leaf_alloc"), direct, proxy
}

// The reply to a COMMIT is lost: the range is nobody's, and the next one follows it.
func TestLostCommit(t *testing.T) {
	through, direct, proxy := faulty(t, 10)
	if _, err := through.Fetch(t.Context(), "a", 1, 0); err != nil {
		t.Fatal(err)
	}
	var committing atomic.Bool
	proxy.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
		if dir == netfault.ToServer && bytes.Contains(chunk, []byte("COMMIT")) {
			committing.Store(true)
		}
		if dir == netfault.ToClient && committing.Load() {
			return netfault.Reset
		}
		return netfault.Pass
	})
	g := segment.New(through, "a", nil)
	defer g.Close()
	if id, err := g.Next(t.Context(), 1); !is[*segment.UnavailableError](err) {
		t.Fatal(id, err)
	}
	proxy.Heal()
	id, err := g.Next(t.Context(), 1)
	if err != nil || id != 21 {
		t.Fatalf("%d, %v, want 21: 11 … 20 went with the reply", id, err)
	}
	if row, err := direct.Row(t.Context(), "a"); err != nil || row.MaxID != 31 {
		t.Fatal(row, err)
	}
}

// The database goes away in the middle of everything, again and again: no id twice, no
// restart, and memory serves meanwhile.
func TestServerAway(t *testing.T) {
	through, direct, proxy := faulty(t, 50)
	g := segment.New(through, "a", &segment.Options{Timeout: 2 * time.Second})
	defer g.Close()
	var ids idcheck.Collector
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	var served, failed atomic.Int64
	for w := range 16 {
		r := ids.Recorder()
		wg.Go(func() {
			for n := w; ctx.Err() == nil; n++ {
				first, err := g.Next(ctx, 1+n%3)
				switch {
				case err == nil:
					served.Add(1)
					r.Add(first, 1+n%3)
				case is[*segment.UnavailableError](err):
					failed.Add(1)
				case ctx.Err() == nil:
					t.Error(err)
				}
			}
		})
	}
	await := func(n *atomic.Int64, more int64) {
		for want := n.Load() + more; n.Load() < want && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	for range 3 {
		await(&served, 1000)
		proxy.Cut()
		await(&served, 1000)
		proxy.Down()
		await(&failed, 16)
		if err := proxy.Up(); err != nil {
			t.Fatal(err)
		}
	}
	await(&served, 1000)
	stop()
	wg.Wait()
	report := ids.Verify(t)
	row, err := direct.Row(t.Context(), "a")
	if err != nil || report.Max >= row.MaxID {
		t.Error(report, row, err)
	}
}

// The server stops answering without closing: bounded by the fetch's time limit.
func TestServerSilent(t *testing.T) {
	through, _, proxy := faulty(t, 50)
	g := segment.New(through, "a", &segment.Options{Timeout: 200 * time.Millisecond})
	defer g.Close()
	if _, err := g.Next(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	proxy.Drop(netfault.Both)
	for {
		_, err := g.Next(t.Context(), 1)
		if is[*segment.UnavailableError](err) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	proxy.Heal()
	for {
		_, err := g.Next(t.Context(), 1)
		if err == nil {
			break
		}
		if !is[*segment.UnavailableError](err) {
			t.Fatal(err)
		}
	}
}

// Close leaves nothing running, whatever it interrupts.
func TestCloseLeavesNothing(t *testing.T) {
	through, _, proxy := faulty(t, 50)
	before := goleak.IgnoreCurrent()
	proxy.Delay(netfault.Both, 50*time.Millisecond)
	g := segment.New(through, "a", nil)
	wait := calls(t.Context(), g, 8, 1)
	for g.Stats().Waits == 0 {
		time.Sleep(time.Millisecond)
	}
	g.Close()
	wait()
	proxy.Down()
	goleak.VerifyNone(t, before)
}
