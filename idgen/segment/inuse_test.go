package segment_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
)

// rows are the keys of a table, ascending.
type rows []int64

func (r rows) below(limit int64) (int64, error) {
	i, _ := slices.BinarySearch(r, limit)
	if i == 0 {
		return 0, nil
	}
	return r[i-1], nil
}

func dropInUse(t *testing.T, g *segment.Generator, r rows) {
	t.Helper()
	highest, _ := r.below(math.MaxInt64)
	if err := g.DropInUse(highest, r.below); err != nil {
		t.Fatal(err)
	}
}

// The ids in memory up to a row's key are discarded, in the current segment and in the queue. Free ids remain,
// even if other rows are higher. The store is not queried.
func TestDropInUse(t *testing.T) {
	m := memory(1, 20)
	bubble(t, m, func(t *testing.T, g *segment.Generator) {
		dropInUse(t, g, rows{7}) // a new generator has no ids
		next(t, g, 8, 1)         // from [1, 17)
		synctest.Wait()
		m.Put(segment.Row{Tag: "a", MaxID: 100, Step: 20})
		next(t, g, 10, 9) // from [9, 37)
		next(t, g, 4, 19)
		synctest.Wait() // [100, 140) is queued
		n := len(m.Requests())
		dropInUse(t, g, rows{1, 22})
		next(t, g, 1, 23)
		dropInUse(t, g, rows{22, 90, 5000})
		next(t, g, 1, 24)
		dropInUse(t, g, rows{27, 110, 5000})
		next(t, g, 1, 111)
		if s := g.Stats(); len(m.Requests()) != n || s.IDs+s.Dropped+s.Remaining != 16+20+40 {
			t.Fatalf("%+v", s)
		}
		broken := errors.New("the connection broke")
		if err := g.DropInUse(5000, func(int64) (int64, error) { return 0, broken }); err != broken {
			t.Fatal(err)
		}
		next(t, g, 1, 112)
	})
}

// The range of a fetch in progress is not known: its ids up to the highest row are discarded, and none of later
// fetches.
func TestDropInUseTrimsAFetchUnderWay(t *testing.T) {
	m := memory(1, 20)
	bubble(t, m, func(t *testing.T, g *segment.Generator) {
		next(t, g, 7, 1)
		m.Delay(time.Second)
		next(t, g, 2, 8) // [17, 37) is being fetched
		dropInUse(t, g, rows{9, 30})
		next(t, g, 7, 10) // no id in memory was in use
		next(t, g, 1, 31)
		synctest.Wait()
		m.Delay(0)
		m.Put(segment.Row{Tag: "a", MaxID: 200, Step: 20})
		next(t, g, 5, 32)
		next(t, g, 1, 200)
	})
}
