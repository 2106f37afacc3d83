//go:build unix

package clustertest_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var failovers = flag.Int("failovers", 1, "how often TestFailOver kills each primary")

// TestFailOver: the primary is killed with ranges that its replica lacks. Processes that ran before draw on, others start
// afterwards, and no id comes twice. Without the marks some do.
func TestFailOver(t *testing.T) {
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			p := clustertest.NewPair(t, kind)
			store, closeStore := openStore(t, p)
			defer closeStore()
			if err := store.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range *failovers + 1 {
				tag, control := fmt.Sprint("tag", i), i == 0
				if err := store.Ensure(t.Context(), tag, 1, 10); err != nil {
					t.Fatal(err)
				}
				if control {
					execOn(t, p.Primary, "UPDATE ids.leaf_alloc SET description = 'leafsql@off'")
				}
				p.Await(t)
				r, first := failOver(t, p, tag)
				t.Logf("%s: %d ids, %d twice, the first one after %v", tag, r.Issued, r.Duplicates, first)
				if (r.Duplicates > 0) != control {
					t.Errorf("%s: %d of %d ids come twice", tag, r.Duplicates, r.Issued)
				}
				if first > 5*time.Second || !control && first == 0 {
					t.Errorf("%s: ids come %v after the new primary takes writes", tag, first)
				}
				p.AddReplica(t)
			}
		})
	}
}

func openStore(t *testing.T, p *clustertest.Pair) (*segment.AllocStore, func()) {
	t.Helper()
	db, err := sql.Open("mysql", p.DSN())
	if err != nil {
		t.Fatal(err)
	}
	store := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "leaf_alloc")
	store.Logger = slog.New(slog.DiscardHandler)
	return store, func() { db.Close() }
}

func execOn(t *testing.T, s *mysqltest.Server, text string) {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN("ids"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// failOver runs three processes before and during a fail-over, and three more afterwards.
func failOver(t *testing.T, p *clustertest.Pair, tag string) (idcheck.Report, time.Duration) {
	var (
		ids      idcheck.Collector
		issued   atomic.Int64
		promoted atomic.Pointer[time.Time]
		first    atomic.Int64
		running  sync.WaitGroup
	)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	process := func() {
		recorder := ids.Recorder()
		running.Go(func() {
			store, closeStore := openStore(t, p)
			defer closeStore()
			g := segment.New(store, tag, &segment.Options{Logger: store.Logger})
			defer g.Close()
			for ctx.Err() == nil {
				id, err := g.Next(ctx, 1)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				if at := promoted.Load(); at != nil && id > 1<<36 { // not one that was in memory
					first.CompareAndSwap(0, int64(time.Since(*at)))
				}
				recorder.Add(id, 1)
				issued.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	reach := func(n int64) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); issued.Load() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d ids within a minute, want %d", issued.Load(), n)
			}
		}
	}
	for range 3 {
		process()
	}
	reach(300)
	p.Lag(t)
	before := number(t, p, p.Replica, tag)
	reach(issued.Load() + 1000)
	if at := number(t, p, p.Primary, tag); at < before+300 {
		t.Fatalf("the row is at %d, and at %d on the replica: nothing is lost", at, before)
	}
	at := p.FailOver(t)
	promoted.Store(&at)
	for range 3 {
		process()
	}
	reach(issued.Load() + 3000)
	cancel()
	running.Wait()
	return ids.Report(), time.Duration(first.Load())
}

func number(t *testing.T, p *clustertest.Pair, s *mysqltest.Server, tag string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(p.Query(t, s, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
