package segment_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/idcheck"
)

var _ idgen.Generator = (*segment.Generator)(nil)

func newMemory(maxID, step int64) *segmenttest.Memory {
	return new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: maxID, Step: step})
}

// runInBubble runs a test with a fake clock and a generator for tag a.
func runInBubble(t *testing.T, m segment.Store, test func(t *testing.T, g *segment.Generator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := segment.New(m, "a", nil)
		defer g.Close()
		test(t, g)
	})
}

// wantNext calls Next for n ids, expects want, and waits for a fetch in the background.
func wantNext(t *testing.T, g *segment.Generator, n int, want int64) {
	t.Helper()
	first, err := g.Next(t.Context(), n)
	if err != nil || first != want {
		t.Fatalf("Next(%d) = %d, %v, want %d", n, first, err, want)
	}
	synctest.Wait()
}

// wantFetches fails the test unless the store received exactly fetches of these sizes. Requests that only read the
// row do not count.
func wantFetches(t *testing.T, m *segmenttest.Memory, want ...int64) {
	t.Helper()
	synctest.Wait()
	if got := fetchSizes(m); !slices.Equal(got, want) {
		t.Fatalf("fetches asked for %d, want %d", got, want)
	}
}

func fetchSizes(m *segmenttest.Memory) (ns []int64) {
	for _, q := range m.Requests() {
		if q.N > 0 {
			ns = append(ns, q.N)
		}
	}
	return ns
}

// countReads returns the number of requests that only read the row.
func countReads(m *segmenttest.Memory) int { return len(m.Requests()) - len(fetchSizes(m)) }

func TestZeroIsNeverIssued(t *testing.T) {
	for _, row := range []segmenttest.Row{{MaxID: 0, Step: 1}, {MaxID: 1, Step: 1}, {MaxID: 0, Step: 10}, {MaxID: 0, Step: 1000}} {
		runInBubble(t, newMemory(row.MaxID, row.Step), func(t *testing.T, g *segment.Generator) {
			for want := int64(1); want < 50; want++ {
				wantNext(t, g, 1, want)
			}
		})
		runInBubble(t, newMemory(row.MaxID, row.Step), func(t *testing.T, g *segment.Generator) { wantNext(t, g, 10, 1) })
	}
	runInBubble(t, newMemory(-500, 10), func(t *testing.T, g *segment.Generator) {
		if id, err := g.Next(t.Context(), 1); !isError[*segment.RowError](err) {
			t.Fatalf("Next(1) = %v, %v, want a *segment.RowError", id, err)
		}
	})
}

func TestNextRefusesBadCounts(t *testing.T) {
	m := newMemory(1, 10)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		for _, n := range []int{0, -1, math.MinInt, math.MaxInt32 + 1, math.MaxInt} {
			if id, err := g.Next(t.Context(), n); !isError[*idgen.CountError](err) {
				t.Fatalf("%v: Next(n) = %v, %v, want a *idgen.CountError", n, id, err)
			}
		}
		wantFetches(t, m)
		wantNext(t, g, math.MaxInt32, 1)
		wantNext(t, g, 1, math.MaxInt32+1)
	})
}

func TestNextReturnsErrExhausted(t *testing.T) {
	m := newMemory(math.MaxInt64-25, 10)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		// The doubled step no longer fits, but the row's step does.
		for want := int64(math.MaxInt64 - 25); want < math.MaxInt64-5; want++ {
			wantNext(t, g, 1, want)
		}
		for range 3 {
			if id, err := g.Next(t.Context(), 1); !errors.Is(err, idgen.ErrExhausted) {
				t.Fatalf("Next(1) = %v, %v, want idgen.ErrExhausted", id, err)
			}
		}
		m.Put(segmenttest.Row{Tag: "a", MaxID: math.MaxInt64 - 5, Step: 5})
		for want := int64(math.MaxInt64 - 5); want < math.MaxInt64-1; want++ {
			wantNext(t, g, 1, want)
		}
		wantNext(t, g, 1, math.MaxInt64-1)
		if id, err := g.Next(t.Context(), 1); !errors.Is(err, idgen.ErrExhausted) {
			t.Fatalf("Next(1) = %v, %v, want idgen.ErrExhausted", id, err)
		}
	})
}

func TestBlocksAreConsecutive(t *testing.T) {
	t.Run("across adjoining ranges", func(t *testing.T) {
		runInBubble(t, newMemory(1, 10), func(t *testing.T, g *segment.Generator) {
			wantNext(t, g, 7, 1)
			wantNext(t, g, 7, 8)
			wantNext(t, g, 100, 15)
			wantNext(t, g, 1, 115)
			if s := g.Stats(); s.Dropped != 0 || s.IDs != 115 {
				t.Fatalf("Stats() = %+v, want Dropped = 0 and IDs = 115", s)
			}
		})
	})
	t.Run("others in between", func(t *testing.T) {
		m := newMemory(1, 10)
		runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
			wantNext(t, g, 4, 1)
			m.Put(segmenttest.Row{Tag: "a", MaxID: 1000, Step: 10})
			wantNext(t, g, 8, 1000) // 5 … 10 are discarded
			wantNext(t, g, 2, 1008)
			if s := g.Stats(); s.Dropped != 6 {
				t.Fatalf("Stats() = %+v, want Dropped = 6", s)
			}
		})
	})
	t.Run("does not burn the end", func(t *testing.T) {
		m := newMemory(1, 10)
		runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
			wantNext(t, g, 4, 1)
			m.Fail(errDown)
			if id, err := g.Next(t.Context(), 8); !isError[*segment.UnavailableError](err) {
				t.Fatalf("Next(8) = %v, %v, want a *segment.UnavailableError", id, err)
			}
			wantNext(t, g, 6, 5)
		})
	})
}

// The step follows Leaf's rule, as seen by the store.
func TestStepFollowsLeaf(t *testing.T) {
	m := newMemory(1, 20)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 1, 1)
		wantFetches(t, m, 16)
		wantNext(t, g, 15, 2) // at half of the range, the row's step
		wantFetches(t, m, 16, 20)
		wantNext(t, g, 20, 17)
		wantFetches(t, m, 16, 20, 40) // used up immediately
		time.Sleep(20 * time.Minute)
		wantNext(t, g, 40, 37)
		wantFetches(t, m, 16, 20, 40, 40)
		time.Sleep(31 * time.Minute)
		wantNext(t, g, 39, 77)
		wantNext(t, g, 1, 116)
		wantFetches(t, m, 16, 20, 40, 40, 20)

		m.Put(segmenttest.Row{Tag: "a", MaxID: 137, Step: 500}) // raised in the row: noticed, and nothing is fetched with the lower step
		wantNext(t, g, 20, 117)
		wantFetches(t, m, 16, 20, 40, 40, 20, 40, 500)
		wantNext(t, g, 1, 137)
		if s := g.Stats(); s.Step != 500 || s.Remaining != 499 {
			t.Fatalf("Stats() = %+v, want Step = 500 and Remaining = 499", s)
		}

		m.Put(segmenttest.Row{Tag: "a", MaxID: 637, Step: 5}) // lowered: noticed after half an hour
		wantNext(t, g, 499, 138)
		wantFetches(t, m, 16, 20, 40, 40, 20, 40, 500, 1000)
		before := countReads(m)
		time.Sleep(31 * time.Minute)
		wantNext(t, g, 1000, 637)
		if n := countReads(m) - before; n != 1 {
			t.Fatalf("%v looks at the row, want 1", n)
		}
		wantNext(t, g, 1, 1637)
		wantFetches(t, m, 16, 20, 40, 40, 20, 40, 500, 1000, 500)
	})
}

// A program that uses one id wastes at most 16, however long it runs. A program that continues gets a full
// range before the 16 are used up.
func TestFirstRangeIsSmall(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 1, 1)
		time.Sleep(24 * time.Hour)
		wantFetches(t, m, 16)
		for want := int64(2); want <= 4; want++ {
			wantNext(t, g, 1, want)
		}
		wantFetches(t, m, 16, 1000)
	})
	m = newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		for want := int64(1); want < 8; want++ {
			wantNext(t, g, 1, want)
		}
		wantFetches(t, m, 16)
		wantNext(t, g, 2, 8)
		wantFetches(t, m, 16, 1000)
	})
	for wanted, first := range map[int]int64{16: 16, 17: 17, 5000: 5000} {
		m := newMemory(1, 1000)
		runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
			wantNext(t, g, wanted, 1)
			wantFetches(t, m, first, 1000)
		})
	}
	for step, first := range map[int64]int64{1: 1, 5: 5, 16: 16, 17: 16} {
		m := newMemory(1, step)
		runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
			wantNext(t, g, 1, 1)
			if got := fetchSizes(m)[0]; got != first {
				t.Fatalf("step %d: the first fetch asked for %d, want %v", step, got, first)
			}
		})
	}
}

func TestStepIsCapped(t *testing.T) {
	m := newMemory(1, 300_000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		for range 20 {
			if _, err := g.Next(t.Context(), 300_000); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if got := slices.Max(fetchSizes(m)); got != 1_000_000 {
			t.Fatalf("Max(fetchSizes(m)) = %+v, want 1_000_000", got)
		}
	})
}

// A tag that is rarely used has one range in memory, not two.
func TestQuietTagFetchesLittle(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		for want := range int64(400) {
			wantNext(t, g, 1, want+1)
			time.Sleep(time.Second)
		}
		wantFetches(t, m, 16, 1000)
	})
}

// If the step can sustain the rate, no call waits for the next range.
func TestNobodyWaitsAtASwitch(t *testing.T) {
	for _, c := range []struct {
		step   int64
		every  time.Duration // interval between ids
		delay  time.Duration // delay of the store
		blocks int
	}{
		{1000, 100 * time.Microsecond, 5 * time.Millisecond, 1},
		{1000, 25 * time.Microsecond, 20 * time.Millisecond, 1}, // 800 of 1000 ids are used during a fetch
		{100, time.Millisecond, 90 * time.Millisecond, 1},
		{1000, 500 * time.Microsecond, 5 * time.Millisecond, 10},
	} {
		m := newMemory(1, c.step)
		m.Delay(c.delay)
		runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
			for want := range int64(20_000) {
				begin := time.Now()
				wantNext(t, g, c.blocks, want*int64(c.blocks)+1)
				// The first range may be too short for the rate.
				if waited := time.Since(begin); waited > 0 && want*int64(c.blocks) > 16 {
					t.Fatalf("call %d waited %v", want, waited)
				}
				time.Sleep(c.every)
			}
			if s := g.Stats(); s.Waits > 2 || s.Fetches < 3 {
				t.Fatalf("Stats() = %+v, want Waits at most 2 and Fetches at least 3", s)
			}
		})
	}
}

// 64 goroutines use several tags: each id is issued once, and no call fails, though the step is small and the
// store slow.
func TestConcurrentCallsGetUniqueIDs(t *testing.T) {
	m := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", Step: 10}, segmenttest.Row{Tag: "b", MaxID: 5, Step: 1}, segmenttest.Row{Tag: "c", MaxID: 1, Step: 1000})
	m.Delay(100 * time.Microsecond)
	for _, tag := range []string{"a", "b", "c"} {
		var ids idcheck.Collector
		// Two generators share a row: their ranges have gaps.
		gs := []*segment.Generator{segment.New(m, tag, nil), segment.New(m, tag, nil)}
		var wg sync.WaitGroup
		var issued atomic.Int64
		for w := range 64 {
			g, r := gs[w%2], ids.Recorder()
			wg.Go(func() {
				last := int64(0)
				for c := range 500 {
					n := 1
					if (w+c)%7 == 0 {
						n = 1 + c%30
					}
					first, err := g.Next(t.Context(), n)
					if err != nil || first <= last {
						t.Errorf("Next(%d) = %d, %v, want more than %d", n, first, err, last)
						return
					}
					last = first + int64(n) - 1
					issued.Add(int64(n))
					r.Add(first, n)
				}
			})
		}
		wg.Wait()
		ids.Verify(t)
		var total segment.Stats
		for _, g := range gs {
			s := g.Stats()
			total.IDs += s.IDs
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if total.IDs != issued.Load() {
			t.Errorf("Stats() = %d ids, want %d", total.IDs, issued.Load())
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	g := segment.New(newMemory(1, 1<<30), "a", nil)
	defer g.Close()
	ctx := context.Background()
	for _, n := range []int{1, 10} {
		if got := testing.AllocsPerRun(1000, func() {
			if _, err := g.Next(ctx, n); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("Next(%d): %v allocations, want 0", n, got)
		}
	}
}

// Any sequence of calls, with other clients on the row in between, is compared with a model: ids ascend, are in
// fetched ranges and above the skipped keys, and every fetched id is issued, in memory or discarded.
func FuzzNext(f *testing.F) {
	f.Add(uint16(10), []byte{1, 1, 9, 120, 30, 1, 0, 127})
	f.Add(uint16(1), []byte{1, 2, 3, 4, 5, 129, 6, 7})
	f.Add(uint16(1000), []byte{100, 100, 127, 150, 127, 127, 127, 1, 1, 1})
	f.Add(uint16(40), []byte{1, 193, 1, 250, 1, 192, 2, 255, 255, 140, 200, 1, 3, 191, 255, 9})
	f.Fuzz(func(t *testing.T, step uint16, calls []byte) {
		m := newMemory(0, int64(step)+1)
		spy := &recordingStore{Store: m}
		runInBubble(t, spy, func(t *testing.T, g *segment.Generator) {
			var last, issued int64
			alone, skipped := true, false
			for _, c := range calls {
				switch {
				case c >= 192:
					k := last + int64(c-192)
					if err := g.Skip(t.Context(), k); err != nil {
						t.Fatalf("Skip(%d): %v", k, err)
					}
					synctest.Wait()
					if k > 0 && m.Row("a").MaxID <= k {
						t.Fatalf("MaxID = %d after Skip(%d), want more", m.Row("a").MaxID, k)
					}
					last, skipped = max(last, k), true
				case c >= 128: // another client takes a range
					if _, err := m.Fetch(t.Context(), segment.Request{Tag: "a", N: int64(c)}); err != nil {
						t.Fatal(err)
					}
					alone = false
				default:
					n := int64(c)*int64(c)/4 + 1
					first, err := g.Next(t.Context(), int(n))
					synctest.Wait()
					if err != nil || first <= last {
						t.Fatalf("Next(%d) = %d, %v after %d, want first above %v and no error", n, first, err, last, last)
					}
					if alone && first != last+1 {
						t.Fatalf("Next(%d) = %d after %d without other clients, want %d", n, first, last, last+1)
					}
					last, issued = first+n-1, issued+n
					if !spy.covers(first, last) {
						t.Fatalf("ids %d … %d were issued, want only ids that were fetched", first, last)
					}
				}
				if s := g.Stats(); s.IDs != issued || s.IDs+s.Dropped+s.Remaining != spy.fetched || alone && !skipped && s.Dropped != 0 {
					t.Fatalf("Stats() = %+v, want %d issued of %d fetched ids, and none dropped without a Skip", s, issued, spy.fetched)
				}
			}
		})
	})
}

// recordingStore records the fetched ranges.
type recordingStore struct {
	segment.Store
	spans   []segment.Range // adjoining ranges are merged
	fetched int64           // number of ids
}

func (s *recordingStore) Fetch(ctx context.Context, q segment.Request) (segment.Range, error) {
	r, err := s.Store.Fetch(ctx, q)
	if err == nil && r.Start < r.End {
		s.fetched += r.End - r.Start
		if l := len(s.spans); l > 0 && s.spans[l-1].End == r.Start {
			s.spans[l-1].End = r.End
		} else {
			s.spans = append(s.spans, r)
		}
	}
	return r, err
}

func (s *recordingStore) covers(first, last int64) bool {
	return slices.ContainsFunc(s.spans, func(r segment.Range) bool { return r.Start <= first && last < r.End })
}
