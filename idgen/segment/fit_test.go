package segment_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// thriftyStore refuses to give more than the wanted ids, or a sixteenth of what a column has left.
type thriftyStore struct {
	*segmenttest.Memory
	t               *testing.T
	highest, wanted int64
}

func (s thriftyStore) Fetch(ctx context.Context, q segment.Request) (segment.Range, error) {
	r, err := s.Memory.Fetch(ctx, q)
	if n := r.End - r.Start; n > max(s.wanted, (s.highest+1-r.Start)/16) {
		s.t.Errorf("Fetch(%+v) = [%d, %d), want at most %d ids", q, r.Start, r.End, max(s.wanted, (s.highest+1-r.Start)/16))
	}
	return r, err
}

// Processes that end after a few ids each, and then processes that continue, use most of a small column, and no
// id beyond it.
func TestFitUsesSmallColumnAcrossRestarts(t *testing.T) {
	m := thriftyStore{new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 1000}), t, 255, 1}
	ids, processes := 0, 0
	for last := int64(0); last < 255; processes++ {
		g := segment.New(m, "a", nil)
		g.Fit(255)
		for range 12 {
			id, err := g.Next(t.Context(), 1)
			if err != nil || id <= last || id > 255 {
				t.Fatalf("Next(1) = %v, %v, want more than %v, at most 255 and no error", id, err, last)
			}
			ids++
			if last = id; id == 255 {
				break
			}
		}
		g.Close()
	}
	if ids < 150 || processes < 13 {
		t.Errorf("%d ids in %d processes, want ids at least 150 and processes at least 13", ids, processes)
	}
}

// Concurrent processes use the column to its last id. With blocks, the short ends of ranges are lost, as with
// larger columns.
func TestFitUsesColumnToItsLastID(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		m := thriftyStore{new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 1000}), t, 255, int64(8 * n)}
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			used []int64
		)
		for range 4 {
			g := segment.New(m, "a", nil)
			defer g.Close()
			g.Fit(255)
			for range 8 {
				wg.Go(func() {
					for n := n; n > 0; { // a block that does not fit any more is made smaller
						id, err := g.Next(t.Context(), n)
						var full *segment.FullError
						switch {
						case errors.As(err, &full):
							if n--; full.Highest != 255 || full.Tag != "a" || full.N != int64(n)+1 || full.Next+full.N <= 256 {
								t.Errorf("full = %+v, want Highest = 255, Tag = \"a\", N = %v and full.Next+full.N above 256", full, int64(n)+1)
							}
							continue
						case err != nil:
							t.Error(err)
							return
						}
						mu.Lock()
						for k := range int64(n) {
							used = append(used, id+k)
						}
						mu.Unlock()
					}
				})
			}
		}
		wg.Wait()
		slices.Sort(used)
		if n == 1 && len(used) != 255 || used[len(used)-1] != 255 || len(slices.Compact(used)) != len(used) {
			t.Errorf("blocks of %d: %d ids up to %d, want unique ids up to 255", n, len(used), used[len(used)-1])
		}
	}
}

// The smallest column with room limits the ranges, and calls fail if the largest column has none.
func TestFitUsesSmallestColumnWithRoom(t *testing.T) {
	m := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 250, Step: 1000})
	g := segment.New(m, "a", nil)
	defer g.Close()
	for _, highest := range []int64{65535, 255, 65535} {
		g.Fit(highest)
	}
	if id, err := g.Next(t.Context(), 10); id != 250 || err != nil {
		t.Fatalf("Next(10) = %v, %v, want 250 and no error", id, err)
	}
	if q := m.Requests()[1]; q.N != 10 || q.MaxStart != 65526 {
		t.Errorf("q = %+v, want N = 10 and MaxStart = 65526", q)
	}
	if id, err := g.Next(t.Context(), 1); id != 260 || err != nil {
		t.Fatalf("Next(1) = %v, %v, want 260 and no error", id, err)
	}
	if err := g.Skip(t.Context(), 65530); err != nil {
		t.Fatal(err)
	}
	var full *segment.FullError
	if _, err := g.Next(t.Context(), 6); !errors.As(err, &full) || *full != (segment.FullError{Tag: "a", N: 6, Next: 65532, Highest: 65535}) {
		t.Errorf("Next(6) = %v (%+v), want a FullError for 65532 … 65535", err, full)
	}
	for want := int64(65531); want <= 65535; want++ {
		if id, err := g.Next(t.Context(), 1); id != want || err != nil {
			t.Fatalf("Next(1) = %v, %v, want %v and no error", id, err, want)
		}
	}
	for range 3 {
		if _, err := g.Next(t.Context(), 1); !errors.As(err, &full) || full.Next != 65536 {
			t.Error(err)
		}
	}
	g.Fit(1<<63 - 1) // the column was widened
	if id, err := g.Next(t.Context(), 2000); id != 65536 || err != nil {
		t.Errorf("Next(2000) = %v, %v, want 65536 and no error", id, err)
	}
}

// The store determines where ids end, and a row far above a small column does not stop the generator.
func TestFitFollowsTheStoresEnd(t *testing.T) {
	m := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: math.MaxInt64 - 3, Step: 1000})
	for _, highest := range []int64{255, math.MaxInt64} {
		g := segment.New(m, "a", nil)
		defer g.Close()
		g.Fit(highest)
		var full *segment.FullError
		for _, n := range []int{math.MaxInt32, 4} {
			if id, err := g.Next(t.Context(), n); errors.As(err, &full) != (highest == 255) || errors.Is(err, idgen.ErrExhausted) == (highest == 255) {
				t.Errorf("%v: Next(n) = %v, %v, want a *FullError: %v, ErrExhausted: not %v", highest, id, err, highest == 255, highest == 255)
			}
		}
	}
}
