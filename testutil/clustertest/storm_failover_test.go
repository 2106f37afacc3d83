//go:build unix && storm

package clustertest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/haproxytest"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// unmarkedCommits has commits without marks by name: version 0.1.0, and a commit shortly before marks.
var unmarkedCommits = map[string]string{"0.1.0": "15675ff8b11eb1ec36bcd765ded1c21221fcd6da", "a commit before marks": "3d7a484cd77c199d33a87410c1ba7e9958ccee4b"}

// buildOld builds the writer with the code of a commit.
func buildOld(t *testing.T, commit string) (program string) {
	t.Helper()
	tree := t.TempDir()
	unpack := fmt.Sprintf("git -C ../.. archive %s | tar -x -C '%s'", commit, tree)
	if out, err := exec.Command("bash", "-o", "pipefail", "-c", unpack).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s; this needs a clone with all of its history", unpack, err, out)
	}
	folder := filepath.Join(tree, "testutil", "clustertest", "writer")
	source, err := os.ReadFile("writer/main.go")
	if err := errors.Join(err, os.MkdirAll(folder, 0o777), os.WriteFile(filepath.Join(folder, "main.go"), source, 0o666)); err != nil {
		t.Fatal(err)
	}
	return buildWriter(t, tree)
}

// TestStormFailOverOfOldVersions: programs without marks issue ids twice in the fail-overs of TestFailOver, with each kind and
// replication. This shows that TestFailOver would find duplicates.
func TestStormFailOverOfOldVersions(t *testing.T) {
	for version, commit := range unmarkedCommits {
		program := buildOld(t, commit)
		for _, kind := range mysqltest.Kinds() {
			for _, how := range []replication{async, fallback} {
				t.Run(fmt.Sprintf("%s on %s, %s", version, kind, how), func(t *testing.T) {
					twice, runs, rows, overwritten := 0, max(*failovers/10, 1), 0, 0
					for range runs {
						a := startReplicated(t, kind, how, true)
						a.failOver(program, program, true)
						n := a.count()
						a.waitUntil("rows after the fail-over", func() bool { return a.count() >= n+3000 })
						o := a.finish()
						twice, rows, overwritten = twice+len(o.duplicates), rows+o.rows, overwritten+o.overwritten
					}
					t.Logf("%d fail-overs, %d rows, %d ids twice, %d rows overwritten", runs, rows, twice, overwritten)
					if twice == 0 {
						t.Errorf("no id twice after %d fail-overs of the old version, want some; otherwise the test proves nothing", runs)
					}
				})
			}
		}
	}
}

// TestStormUpgrade: a fail-over during an upgrade, while programs of both versions run. Only an old program may draw a duplicate id,
// and only before a new program has moved the row up. After the old programs are replaced, there are no duplicates.
func TestStormUpgrade(t *testing.T) {
	program := buildWriter(t, "../..")
	for version, commit := range unmarkedCommits {
		old := buildOld(t, commit)
		for _, kind := range mysqltest.Kinds() {
			t.Run(fmt.Sprintf("from %s on %s", version, kind), func(t *testing.T) {
				a := startReplicated(t, kind, async, true)
				a.start(program) // it writes the mark
				a.waitUntil("a row of the new program", func() bool { return a.count() > 0 })
				a.failOver(old, program, true)
				a.waitUntil("new ids for each process", func() bool { return a.hasMoved(program) && a.hasMoved(old) })
				before := a.count()
				a.end(old)
				for range 3 {
					a.start(program)
				}
				a.waitUntil("rows after the upgrade", func() bool { return a.count() >= before+2000 && a.hasMoved(program) })
				o := a.finish()
				t.Log(o)
				for _, id := range o.duplicates {
					if id > marginStart || !a.hasDrawn(old, id) {
						t.Errorf("id %d was issued twice, want only ids that the killed process had fetched", id)
					}
				}
			})
		}
	}
}

// end ends the processes of a program.
func (a *application) end(program string) {
	for _, w := range a.writers {
		if w.program == program {
			w.end()
		}
	}
}

// hasDrawn reports whether a process of a program has drawn an id.
func (a *application) hasDrawn(program string, id int64) bool {
	return slices.ContainsFunc(a.acknowledged, func(r insertedRow) bool { return r.id == id && a.writers[r.writer].program == program })
}

// TestStormTwoPrimaries: for a minute a balancer distributes statements to two servers that both accept writes, with and
// without replication between them. No id is issued twice, and the brake limits the number of moves by a margin.
func TestStormTwoPrimaries(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		for _, circular := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, circular %t", kind, circular), func(t *testing.T) {
				p, _ := startPairWithRow(t, kind)
				if circular {
					p.AllowReplicaWrites(t)
					p.Replicate(t, p.Primary, p.Replica)
					p.Primary, p.Replica = p.Replica, p.Primary
					p.AllowReplicaWrites(t)
				} else {
					p.PauseReplication(t)
					p.AllowReplicaWrites(t)
				}
				port, err := freeport.Find()
				if err != nil {
					t.Fatal(err)
				}
				haproxytest.Run(t, fmt.Sprintf("listen both\n\tbind 127.0.0.1:%d\n\tbalance roundrobin\n\tserver a %s\n\tserver b %s", port, p.Primary.Addr(), p.Replica.Addr()))
				drawTogether(t, fmt.Sprintf("root@tcp(127.0.0.1:%d)/ids", port))
			})
		}
	}
}

// drawTogether runs six processes that fetch ranges of ten ids for a minute, each fetch on a new connection.
func drawTogether(t *testing.T, dsn string) {
	t.Helper()
	var (
		ids                     idcheck.Collector
		fetches, jumps, refused atomic.Int64
		others                  failures
		running                 sync.WaitGroup
	)
	end := time.Now().Add(*storm)
	for range 6 {
		db := openPool(t, dsn, nil)
		db.SetMaxIdleConns(0)
		store := segment.NewAllocStore(db, "leaf_alloc")
		issued := ids.Recorder()
		running.Go(func() {
			for seen := int64(0); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				r, err := store.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10, Seen: seen})
				if brake := (*segment.RowError)(nil); errors.As(err, &brake) && strings.Contains(err.Error(), "moved up by a margin") {
					refused.Add(1)
					continue
				}
				if err != nil {
					others.add(err)
					continue
				}
				fetches.Add(1)
				if r.Jumped > 0 {
					jumps.Add(1)
				}
				issued.Add(r.Start, int(r.End-r.Start))
				seen = r.End
			}
		})
	}
	running.Wait()
	t.Logf("%v: %d fetches, %d moves by a margin, %d fetches refused by the brake", *storm, fetches.Load(), jumps.Load(), refused.Load())
	ids.Verify(t)
	others.report(t)
	if jumps.Load() > 24 { // after 0, 2, 6, 14 and 30 s on each server, and more if an event of the other server resets the count
		t.Errorf("the row jumped %d times, want at most 24", jumps.Load())
	}
}
