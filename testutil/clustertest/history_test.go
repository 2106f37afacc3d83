//go:build unix

package clustertest_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// rowNumber returns the number in the row of a tag on a server.
func rowNumber(t *testing.T, p *clustertest.Pair, s *mysqltest.Server, tag string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(p.Query(t, s, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLateEventsIssueNoIDTwice: a replica accepts writes and then applies the primary's last fetches, so its row goes back. The mark
// goes back with the number, and no id is issued twice, also by processes that start afterwards.
func TestLateEventsIssueNoIDTwice(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		for _, image := range []string{"FULL", "MINIMAL"} {
			t.Run(string(kind)+" "+image, func(t *testing.T) {
				p, h := startPairWithRow(t, kind, "--binlog-row-image="+image)
				primary, replica := openStore(t, p.Primary.Addr()), openStore(t, p.Replica.Addr())
				p.PauseReplication(t)
				h.fetch(primary, 0)
				last := h.fetch(primary, 0)
				p.AllowReplicaWrites(t)
				moved := h.fetchJump(replica, 0)
				p.ResumeReplication(t)
				for deadline := time.Now().Add(time.Minute); rowNumber(t, p, p.Replica, "a") != last.End; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("the row on the replica is at %d, want %d", rowNumber(t, p, p.Replica, "a"), last.End)
					}
				}
				h.fetchJump(openStore(t, p.Replica.Addr()), 0)
				h.fetch(replica, moved.End)
			})
		}
	}
}

// openStore returns a store like that of a new process that connects to an address.
func openStore(t *testing.T, addr string) *segment.AllocStore {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+addr+")/ids")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	store := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "leaf_alloc")
	store.Logger = slog.New(slog.DiscardHandler)
	return store
}

// TestReplicaHasTheRow: with each binlog format, a replica has the same row as the primary, including its mark.
func TestReplicaHasTheRow(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		for _, format := range []string{"ROW", "MIXED", "STATEMENT"} {
			t.Run(string(kind)+" "+format, func(t *testing.T) {
				p, _ := startPairWithRow(t, kind, "--binlog-format="+format)
				store := openStore(t, p.Primary.Addr())
				const text = "SELECT CONCAT(max_id, ' ', COALESCE(description, '-')) FROM leaf_alloc WHERE biz_tag = 'a'"
				for _, spoil := range []string{"", "UPDATE ids.leaf_alloc SET description = 'orders'", "UPDATE ids.leaf_alloc SET description = 'leafsql@00112233445566ff 0 0'", ""} {
					if spoil != "" {
						p.Execute(t, p.Primary, spoil)
					}
					if _, err := store.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err != nil {
						t.Fatal(err)
					}
					p.AwaitReplica(t)
					if here, there := p.Query(t, p.Primary, text), p.Query(t, p.Replica, text); here != there {
						t.Errorf("row on the replica = %q, want %q as on the primary", there, here)
					}
				}
			})
		}
	}
}

// A history records the fetched ranges, which must not overlap.
type history struct {
	*testing.T
	ranges []segment.Range
}

// fetch fetches a range for a process that has seen the ids below seen.
func (h *history) fetch(store *segment.AllocStore, seen int64) segment.Range {
	h.Helper()
	r, err := store.Fetch(h.Context(), segment.Request{Tag: "a", N: 100, Step: 10, Seen: seen})
	if err != nil {
		h.Fatal(err)
	}
	for _, o := range h.ranges {
		if r.Start < o.End && o.Start < r.End {
			h.Errorf("Fetch() = %+v, want no overlap with the earlier range %+v", r, o)
		}
	}
	h.ranges = append(h.ranges, r)
	return r
}

// fetchJump is like fetch, and the row has to be moved up by a margin.
func (h *history) fetchJump(store *segment.AllocStore, seen int64) segment.Range {
	h.Helper()
	r := h.fetch(store, seen)
	if r.Jumped == 0 {
		h.Errorf("Fetch() = %+v, want a range above a margin", r)
	}
	return r
}

// startPairWithRow starts a pair with the row of one tag in leaf_alloc.
func startPairWithRow(t *testing.T, kind mysqltest.Kind, args ...string) (*clustertest.Pair, *history) {
	t.Helper()
	p := clustertest.NewPair(t, kind, args...)
	store := openStore(t, p.Primary.Addr())
	if err := errors.Join(store.Create(t.Context()), store.Ensure(t.Context(), "a", 1, 10)); err != nil {
		t.Fatal(err)
	}
	p.AwaitReplica(t)
	return p, &history{T: t}
}

// TestFailBackIssuesNoIDTwice: the primary fails over to its replica and back, and each time the next primary lacks ranges. One process only
// draws on the first server and never sees the other one.
func TestFailBackIssuesNoIDTwice(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind)+", its data copied from the other server", func(t *testing.T) {
			p, h := startPairWithRow(t, kind)
			first, one, two := p.Primary, openStore(t, p.Primary.Addr()), openStore(t, p.Replica.Addr())
			r := h.fetch(one, 0)
			p.AwaitReplica(t)
			p.PauseReplication(t)
			r = h.fetch(one, r.End)
			p.FailOver(t)
			h.fetchJump(two, 0)
			if err := first.Launch(); err != nil {
				t.Fatal(err)
			}
			p.ResyncReplica(t)
			p.PauseReplication(t)
			lost := h.fetch(two, 0)
			p.FailOver(t)
			if back := h.fetchJump(one, r.End); back.Start < lost.End {
				t.Errorf("Fetch() = %+v, want a range above the lost one %+v", back, lost)
			}
			h.fetch(openStore(t, p.Primary.Addr()), 0)
		})
		t.Run(string(kind)+", its data as it was", func(t *testing.T) {
			p, h := startPairWithRow(t, kind)
			first, one, both := p.Primary, openStore(t, p.Primary.Addr()), openStore(t, p.BalancerAddr())
			r := h.fetch(one, 0)
			p.AwaitReplica(t)
			p.PauseReplication(t)
			r = h.fetch(one, r.End)
			p.FailOver(t)
			met := h.fetchJump(both, 0)
			if err := errors.Join(first.Launch(), p.Primary.Kill9()); err != nil {
				t.Fatal(err)
			}
			p.Promote(t, first)
			r = h.fetch(one, r.End)
			h.fetch(openStore(t, first.Addr()), 0)
			h.fetchJump(both, met.End) // the row is below the ids of the other server
			h.fetch(one, r.End)
		})
	}
}

// TestTwoFailOversIssueNoIDTwice: the second new primary lacks the last ranges of the first server, the ranges of the second server,
// and the move by a margin.
func TestTwoFailOversIssueNoIDTwice(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			p, h := startPairWithRow(t, kind)
			one, two, second := openStore(t, p.Primary.Addr()), openStore(t, p.Replica.Addr()), p.Replica
			p.PauseReplication(t)
			p.AddReplica(t)
			third := p.Replica
			h.fetch(one, 0)
			p.AwaitReplica(t)
			p.PauseReplication(t)
			h.fetch(one, 0)
			p.Replica = second
			p.FailOver(t)
			h.fetchJump(two, 0)
			h.fetch(two, 0)
			p.Replica = third
			p.FailOver(t)
			three := openStore(t, p.Primary.Addr())
			h.fetchJump(three, 0)
			h.fetch(three, 0)
		})
	}
}

// TestRestartOfADurableServerMovesNoRow: a primary that flushes each commit is killed and started again. It has lost nothing, so the row is not
// moved up by a margin.
func TestRestartOfADurableServerMovesNoRow(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			p, h := startPairWithRow(t, kind)
			store := openStore(t, p.Primary.Addr())
			end := h.fetch(store, 0).End
			for range 3 {
				if err := errors.Join(p.Primary.Kill9(), p.Primary.Launch()); err != nil {
					t.Fatal(err)
				}
				r := h.fetch(openStore(t, p.Primary.Addr()), 0)
				if r.Start != end || r.Jumped != 0 {
					t.Errorf("Fetch() = %+v after a restart, want it to start at %d", r, end)
				}
				end = r.End
			}
		})
	}
}
