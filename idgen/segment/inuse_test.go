package segment_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// tableKeys are the keys of a table, ascending.
type tableKeys []int64

func (r tableKeys) below(limit int64) (int64, error) {
	i, _ := slices.BinarySearch(r, limit)
	if i == 0 {
		return 0, nil
	}
	return r[i-1], nil
}

func mustDropInUse(t *testing.T, g *segment.Generator, r tableKeys) {
	t.Helper()
	highest, _ := r.below(math.MaxInt64)
	if err := g.DropInUse(highest, r.below); err != nil {
		t.Fatal(err)
	}
}

// The ids in memory up to a row's key are discarded, in the current segment and in the queue. Free ids remain,
// even if other rows are higher. The store is not queried.
func TestDropInUseKeepsFreeIDs(t *testing.T) {
	m := newMemory(1, 20)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		mustDropInUse(t, g, tableKeys{7}) // a new generator has no ids
		wantNext(t, g, 8, 1)              // from [1, 17)
		synctest.Wait()
		m.Put(segmenttest.Row{Tag: "a", MaxID: 100, Step: 20})
		wantNext(t, g, 10, 9) // from [9, 37)
		wantNext(t, g, 4, 19)
		synctest.Wait() // [100, 140) is queued
		n := len(m.Requests())
		mustDropInUse(t, g, tableKeys{1, 22})
		wantNext(t, g, 1, 23)
		mustDropInUse(t, g, tableKeys{22, 90, 5000})
		wantNext(t, g, 1, 24)
		mustDropInUse(t, g, tableKeys{27, 110, 5000})
		wantNext(t, g, 1, 111)
		if s := g.Stats(); len(m.Requests()) != n || s.IDs+s.Dropped+s.Remaining != 16+20+40 {
			t.Fatalf("Stats() = %+v, want len(m.Requests()) = %v and s.IDs+s.Dropped+s.Remaining = 16+20+40", s, n)
		}
		broken := errors.New("the connection broke")
		if err := g.DropInUse(5000, func(int64) (int64, error) { return 0, broken }); err != broken {
			t.Fatal(err)
		}
		wantNext(t, g, 1, 112)
	})
}

// The range of a fetch in progress is not known: its ids up to the highest row are discarded, and none of later
// fetches.
func TestDropInUseTrimsAFetchInProgress(t *testing.T) {
	m := newMemory(1, 20)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 7, 1)
		m.Delay(time.Second)
		wantNext(t, g, 2, 8) // [17, 37) is being fetched
		mustDropInUse(t, g, tableKeys{9, 30})
		wantNext(t, g, 7, 10) // no id in memory was in use
		wantNext(t, g, 1, 31)
		synctest.Wait()
		m.Delay(0)
		m.Put(segmenttest.Row{Tag: "a", MaxID: 200, Step: 20})
		wantNext(t, g, 5, 32)
		wantNext(t, g, 1, 200)
	})
}
