package interleaved_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/idcheck"
)

// Stores lose their tables one at a time, while processes draw from them, come and go:
// no id comes twice.
func TestLosses(t *testing.T) {
	dsns := three(t)
	dbs := databases(t, dsns)
	const size = 20_000
	ensure(t, interleave(t, size, dsns...), "a", 1, 10)
	var ids idcheck.Collector
	var stop atomic.Bool
	var fetches atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			low := int64(1)
			for !stop.Load() { // one process after the other
				s := interleave(t, size, dsns...)
				r := ids.Recorder()
				for range 50 + rand.IntN(200) {
					q := segment.Request{Tag: "a", N: 1 + rand.Int64N(40), Step: 10}
					if rand.IntN(3000) == 0 {
						q.Floor, q.Raise = low+rand.Int64N(3*size), true
					}
					got, err := s.Fetch(t.Context(), q)
					if err != nil {
						t.Error(err)
						break
					}
					fetches.Add(1)
					if low = got.End; got.Start < got.End {
						r.Add(got.Start, int(got.End-got.Start))
					}
				}
				s.Close()
			}
		})
	}
	losses := 0
	for ; losses < 6 && !t.Failed(); losses++ {
		for n := fetches.Load(); fetches.Load() < n+300; { // in the epoch that the members are in
			time.Sleep(time.Millisecond)
		}
		dbs[losses%3].MustExec("DROP TABLE leaf_alloc")
		whole(t, dbs, "a")
	}
	stop.Store(true)
	wg.Wait()
	report := ids.Verify(t)
	t.Logf("%d losses, ids %+v", losses, report)
}

// whole waits until all stores have the tag's row again, as one of their cluster.
func whole(t *testing.T, dbs []*sqlx.DB, tag string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		clusters := map[string]bool{}
		var err error
		for _, db := range dbs {
			var text string
			err = errors.Join(err, db.Get(&text, "SELECT description FROM leaf_alloc WHERE biz_tag = ?", tag))
			_, cluster, _ := strings.Cut(text, ", set ")
			clusters[cluster] = true
		}
		if err == nil && len(clusters) == 1 && !clusters["new"] {
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Error(fmt.Errorf("not whole: %v, %w", clusters, err))
			return
		}
	}
}
