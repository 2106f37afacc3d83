//go:build unix

package clustertest_test

import (
	"context"
	"database/sql"
	"errors"
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

// TestLateEvents: a replica takes writes, and applies the primary's last fetches afterwards, so that its row goes back. The mark
// goes back with the number, and no id comes twice, also from processes that start then.
func TestLateEvents(t *testing.T) {
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		for _, image := range []string{"FULL", "MINIMAL"} {
			t.Run(string(kind)+" "+image, func(t *testing.T) {
				p := clustertest.NewPair(t, kind, "--binlog-row-image="+image)
				const tag = "a"
				var taken []segment.Range
				take := func(store *segment.AllocStore, seen int64) segment.Range {
					t.Helper()
					r, err := store.Fetch(t.Context(), segment.Request{Tag: tag, N: 100, Step: 10, Seen: seen})
					if err != nil {
						t.Fatal(err)
					}
					for _, o := range taken {
						if r.Start < o.End && o.Start < r.End {
							t.Errorf("Fetch() = %+v after %+v", r, o)
						}
					}
					taken = append(taken, r)
					return r
				}
				primary, replica, later := storeOn(t, p.Primary), storeOn(t, p.Replica), storeOn(t, p.Replica)
				if err := errors.Join(primary.Create(t.Context()), primary.Ensure(t.Context(), tag, 1, 10)); err != nil {
					t.Fatal(err)
				}
				p.Await(t)
				p.Lag(t)
				take(primary, 0)
				last := take(primary, 0)
				p.TakeWrites(t)
				moved := take(replica, 0)
				if moved.Jumped == 0 {
					t.Errorf("Fetch() = %+v on the replica", moved)
				}
				p.Resume(t)
				for deadline := time.Now().Add(time.Minute); number(t, p, p.Replica, tag) != last.End; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("the row on the replica is at %d, want %d", number(t, p, p.Replica, tag), last.End)
					}
				}
				if r := take(later, 0); r.Jumped == 0 {
					t.Errorf("Fetch() = %+v by a new process", r)
				}
				take(replica, moved.End)
			})
		}
	}
}

// storeOn is a process that is connected to one server.
func storeOn(t *testing.T, s *mysqltest.Server) *segment.AllocStore {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN("ids"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	store := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "leaf_alloc")
	store.Logger = slog.New(slog.DiscardHandler)
	return store
}

// TestReplicaHasTheRow: in each format of the binlog, a replica has the row as the primary has it, its mark included.
func TestReplicaHasTheRow(t *testing.T) {
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		for _, format := range []string{"ROW", "MIXED", "STATEMENT"} {
			t.Run(string(kind)+" "+format, func(t *testing.T) {
				p := clustertest.NewPair(t, kind, "--binlog-format="+format)
				store := storeOn(t, p.Primary)
				if err := errors.Join(store.Create(t.Context()), store.Ensure(t.Context(), "a", 1, 10)); err != nil {
					t.Fatal(err)
				}
				const text = "SELECT CONCAT(max_id, ' ', COALESCE(description, '-')) FROM leaf_alloc WHERE biz_tag = 'a'"
				for _, spoil := range []string{"", "UPDATE ids.leaf_alloc SET description = 'orders'", "UPDATE ids.leaf_alloc SET description = 'leafsql@00112233445566ff 0 0'", ""} {
					if spoil != "" {
						execOn(t, p.Primary, spoil)
					}
					if _, err := store.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err != nil {
						t.Fatal(err)
					}
					p.Await(t)
					if here, there := p.Query(t, p.Primary, text), p.Query(t, p.Replica, text); here != there {
						t.Errorf("the row is %q, and %q on the replica", here, there)
					}
				}
			})
		}
	}
}
