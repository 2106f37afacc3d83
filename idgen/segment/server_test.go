package segment_test

import (
	"bytes"
	"context"
	"database/sql"
	"strings"
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
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// storeOverProxy returns a store that uses a proxy, and one that uses the same table directly.
func storeOverProxy(t *testing.T, step int64) (through, direct *segment.AllocStore, proxy *netfault.Proxy) {
	t.Helper()
	return storeOverProxyOn(t, mysqltest.Database(t), step, nil)
}

func storeOverProxyOn(t *testing.T, dsn string, step int64, params map[string]string) (through, direct *segment.AllocStore, proxy *netfault.Proxy) {
	t.Helper()
	direct = allocStore(t, pool(t, dsn, ""), "leaf_alloc")
	if err := direct.Ensure(t.Context(), "a", 1, step); err != nil {
		t.Fatal(err)
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy = netfault.Start(t, cfg.Addr)
	cfg.Addr, cfg.Logger, cfg.Params = proxy.Addr(), &mysql.NopLogger{}, params
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	t.Cleanup(func() { db.Close() })
	return segment.NewAllocStore(db, "leaf_alloc"), direct, proxy
}

// The reply to a fetch is lost: no call gets its range, and another range follows.
func TestLostReplyIssuesNoRange(t *testing.T) {
	through, direct, proxy := storeOverProxy(t, 10)
	g := segment.New(through, "a", nil)
	defer g.Close()
	if id, err := g.Next(t.Context(), 10); err != nil || id != 1 {
		t.Fatalf("Next(10) = %v, %v, want 1 and no error", id, err)
	}
	for g.Stats().Remaining != 10 { // [11, 21)
		time.Sleep(time.Millisecond)
	}
	var lost atomic.Bool
	proxy.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
		if dir == netfault.ToServer && bytes.Contains(chunk, []byte("UPDATE")) {
			lost.CompareAndSwap(false, true)
		}
		if dir == netfault.ToClient && lost.Load() {
			proxy.Filter(nil)
			return netfault.Reset
		}
		return netfault.Pass
	})
	if id, err := g.Next(t.Context(), 20); err != nil || id != 41 {
		t.Fatalf("%d, %v, want 41: 21 … 40 went with the reply", id, err)
	}
	if row, err := direct.Row(t.Context(), "a"); err != nil || row.MaxID < 61 {
		t.Fatalf("Row(\"a\") = %+v, %v, want MaxID at least 61 and no error", row, err)
	}
}

// A connection is cut after every byte of a fetch, in either direction: the resulting range is unique, and a
// range that may have been taken is not used again.
func TestCutConnectionsGiveUniqueRanges(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for name, params := range map[string]map[string]string{"one statement": nil, "transaction": {"autocommit": "0"}} {
			t.Run(server.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				through, direct, proxy := storeOverProxyOn(t, server.Database(t), 10, params)
				var total [3]atomic.Int64
				fetch(t, through, segment.Request{Tag: "a", N: 10})
				proxy.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
					total[dir].Add(int64(len(chunk)))
					return netfault.Pass
				})
				end := fetch(t, through, segment.Request{Tag: "a", N: 10, Step: 10, Seen: 11}).End
				proxy.Filter(nil)
				burnt := int64(0)
				for _, dir := range []netfault.Direction{netfault.ToServer, netfault.ToClient} {
					bytes := int(total[dir].Load())
					for n := 0; n < bytes; n++ {
						if n > 10 && n < bytes-10 && n%7 > 0 {
							continue
						}
						proxy.CutAfter(dir, n)
						r, err := through.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10, Seen: end})
						if err != nil || r.Start < end || r.End-r.Start != 10 {
							t.Fatalf("cut after %d bytes (%v): %v, %v, want r.Start at least %v, r.End-r.Start = 10 and no error", n, dir, r, err, end)
						}
						burnt += r.Start - end
						end = r.End
						if row, err := direct.Row(t.Context(), "a"); err != nil || row.MaxID != end {
							t.Fatalf("cut after %d bytes (%v): MaxID = %d, %v, want the end of the range, %d", n, dir, row.MaxID, err, end)
						}
					}
				}
				if burnt == 0 {
					t.Error("lost replies of executed requests = 0, want at least 1")
				}
			})
		}
	}
}

// The database becomes unavailable at random times, repeatedly: no id is issued twice, no restart is needed,
// and ids in memory are issued meanwhile.
func TestOutagesIssueNoIDTwice(t *testing.T) {
	through, direct, proxy := storeOverProxy(t, 50)
	g := segment.New(through, "a", &segment.Options{Timeout: 2 * time.Second})
	defer g.Close()
	var ids idcheck.Collector
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	var served, failed, passed atomic.Int64
	for w := range 16 {
		r := ids.Recorder()
		wg.Go(func() {
			for n := w; ctx.Err() == nil; n++ {
				above := passed.Load()
				if n%100 == 0 {
					k := above + int64(n%37)
					if g.Skip(ctx, k) == nil {
						for old := passed.Load(); old < k && !passed.CompareAndSwap(old, k); old = passed.Load() {
						}
					}
					continue
				}
				first, err := g.Next(ctx, 1+n%3)
				switch {
				case err == nil && first <= above:
					t.Errorf("Next() = %d after Skip(%d), want a greater id", first, above)
				case err == nil:
					served.Add(1)
					r.Add(first, 1+n%3)
				case isError[*segment.UnavailableError](err):
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
		t.Errorf("%v: Row(\"a\") = %+v, %v, want report.Max below %v and no error", report, row, err, row.MaxID)
	}
}

// The server's process is killed under load and restarted: ids that were issued are not issued again.
func TestServerKilled(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind})
			db := pool(t, server.DSN(""), "")
			db.MustExec("CREATE DATABASE shop")
			store := allocStore(t, db, "shop.leaf_alloc")
			if err := store.Ensure(t.Context(), "a", 1, 10); err != nil {
				t.Fatal(err)
			}
			var ids idcheck.Collector
			var wg sync.WaitGroup
			ctx, stop := context.WithCancel(t.Context())
			var served atomic.Int64
			for range 4 { // number of processes
				g := segment.New(segment.NewAllocStore(db, "shop.leaf_alloc"), "a", nil)
				defer g.Close()
				for range 4 {
					r := ids.Recorder()
					wg.Go(func() {
						for ctx.Err() == nil {
							if first, err := g.Next(ctx, 7); err == nil {
								r.Add(first, 7)
								served.Add(1)
							}
						}
					})
				}
			}
			for range 2 {
				for want := served.Load() + 2000; served.Load() < want; {
					time.Sleep(time.Millisecond)
				}
				if err := server.Kill9(); err != nil {
					t.Fatal(err)
				}
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			for want := served.Load() + 2000; served.Load() < want; {
				time.Sleep(time.Millisecond)
			}
			stop()
			wg.Wait()
			ids.Verify(t)
		})
	}
}

// The server stops answering without closing connections: calls are limited by the longest try, and so is
// Close. A COMMIT in a transaction that never ends behaves the same.
func TestSilentServerEndsCallsInTime(t *testing.T) {
	for name, silent := range map[string]struct {
		params map[string]string
		at     string
	}{
		"one statement":     {nil, "UPDATE"},
		"look":              {nil, "SELECT"},
		"transaction":       {map[string]string{"autocommit": "0"}, "UPDATE"},
		"end of the look":   {map[string]string{"autocommit": "0"}, "ROLLBACK"},
		"commit of a range": {map[string]string{"autocommit": "0"}, "COMMIT"},
		"read of a range":   {map[string]string{"autocommit": "0"}, "LAST_INSERT_ID()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through, _, proxy := storeOverProxyOn(t, mysqltest.Database(t), 50, silent.params)
			if name == "commit of a range" {
				fetch(t, through, segment.Request{Tag: "a", N: 1}) // the row has been read
			}
			g := segment.New(through, "a", &segment.Options{Timeout: 200 * time.Millisecond})
			defer g.Close()
			var stuck atomic.Bool
			proxy.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
				if dir == netfault.ToServer && bytes.Contains(chunk, []byte(silent.at)) {
					stuck.Store(true)
				}
				if stuck.Load() {
					return netfault.Discard
				}
				return netfault.Pass
			})
			for !stuck.Load() { // a busy machine may not get there in time
				if id, err := g.Next(t.Context(), 1); !isError[*segment.UnavailableError](err) || !strings.Contains(err.Error(), "no answer within 2.4s") {
					t.Fatalf("Next(1) = %v, %v, want a *segment.UnavailableError and an error with \"no answer within 2.4s\"", id, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := g.Skip(ctx, 1000); err == nil {
				t.Fatal("Skip(1000) with a silent server = <nil>, want an error")
			}
			proxy.Heal()
			for {
				_, err := g.Next(t.Context(), 1)
				if err == nil {
					break
				}
				if !isError[*segment.UnavailableError](err) {
					t.Fatal(err)
				}
			}
			proxy.Drop(netfault.Both)
			go g.Next(t.Context(), 5000)
			for g.Stats().Waits < 3 {
				time.Sleep(time.Millisecond)
			}
			took := stopwatch.Start(t)
			g.Close()
			if took() > 5*time.Second {
				t.Fatalf("Close took %v, want at most 5*time.Second", took())
			}
		})
	}
}

// A read-only connection is replaced by another one.
func TestReadOnlyConnectionIsReplaced(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := pool(t, server.Database(t), "")
		db.SetMaxOpenConns(1)
		s := allocStore(t, db, "leaf_alloc")
		if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
			t.Fatal(err)
		}
		fetch(t, s, segment.Request{Tag: "a", N: 10})
		db.MustExec("SET SESSION TRANSACTION READ ONLY")
		if r := fetch(t, s, segment.Request{Tag: "a", N: 10}); r.Start != 11 {
			t.Fatalf("fetch(s, segment.Request{Tag: \"a\", N: 10}) = %+v, want Start = 11", r)
		}
	}
	server := mysqltest.TargetOf(t, mysqltest.MariaDB)
	db := pool(t, server.Database(t), "tx_read_only=1")
	allocStore(t, pool(t, mysqltest.WithDatabase(server.DSN(), databaseOf(t, db)), ""), "leaf_alloc").Ensure(t.Context(), "a", 1, 10)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if r, err := segment.NewAllocStore(db, "leaf_alloc").Fetch(ctx, segment.Request{Tag: "a", N: 10}); err == nil || !strings.Contains(err.Error(), "1792") {
		t.Fatalf("Fetch(segment.Request{Tag: \"a\", N: 10}) = %+v, %v, want an error with \"1792\"", r, err)
	}
}

// Close stops everything, whatever it interrupts.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	through, _, proxy := storeOverProxy(t, 50)
	before := goleak.IgnoreCurrent()
	proxy.Delay(netfault.Both, 50*time.Millisecond)
	g := segment.New(through, "a", nil)
	wait := startCalls(t.Context(), g, 8, 1)
	for g.Stats().Waits == 0 {
		time.Sleep(time.Millisecond)
	}
	g.Close()
	wait()
	proxy.Down()
	goleak.VerifyNone(t, before)
}
