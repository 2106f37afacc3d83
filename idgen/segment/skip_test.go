package segment_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
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

// mustSkip calls Skip, and waits for a fetch in the background.
func mustSkip(t *testing.T, g *segment.Generator, k int64) {
	t.Helper()
	if err := g.Skip(t.Context(), k); err != nil {
		t.Fatalf("Skip(%d): %v", k, err)
	}
	synctest.Wait()
}

// Seed rows and then generated ones: the ids are those of AUTO_INCREMENT.
func TestSkipMovesCounter(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		mustSkip(t, g, 1)
		mustSkip(t, g, 2)
		wantNext(t, g, 1, 3)
		wantNext(t, g, 2, 4)
		mustSkip(t, g, 50)
		wantNext(t, g, 1, 51)
		mustSkip(t, g, 7) // already passed
		wantNext(t, g, 1, 52)
		mustSkip(t, g, 1_000_000)
		wantNext(t, g, 3, 1_000_001)
		if s := g.Stats(); s.IDs != 8 || s.Fetches != 3 {
			t.Fatalf("Stats() = %+v, want IDs = 8 and Fetches = 3", s)
		}
		if row := m.Row("a"); row.MaxID <= 1_000_000 {
			t.Fatalf("Row(\"a\") = %+v, want MaxID above 1_000_000", row)
		}
	})
}

// Keys that are not ids, and keys below the row's known next id, cause no request.
func TestSkipOfLowKeysSendsNothing(t *testing.T) {
	m := newMemory(5000, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		mustSkip(t, g, 0)
		mustSkip(t, g, -1)
		mustSkip(t, g, math.MinInt64)
		if n := len(m.Requests()); n != 0 {
			t.Fatalf("len(m.Requests()) = %v, want 0", n)
		}
		mustSkip(t, g, 4999) // one read of the row
		mustSkip(t, g, 17)
		m.Fail(errDown)
		mustSkip(t, g, 4998)
		wantFetches(t, m)
		m.Fail(nil)
		wantNext(t, g, 1, 5000) // no id was wasted
		mustSkip(t, g, 4999)
		wantNext(t, g, 1, 5001)
		if n := len(m.Requests()); n != 2 {
			t.Fatalf("m.Requests() = %v, want n = 2", m.Requests())
		}
	})
}

// Skip discards ids of the current segment, of the span that adjoins it, and of spans further back in the
// queue.
func TestSkipDiscardsIDsInMemory(t *testing.T) {
	m := newMemory(1, 20)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 8, 1) // from [1, 17); [17, 37) is queued
		mustSkip(t, g, 10)
		wantNext(t, g, 1, 11)
		m.Put(segmenttest.Row{Tag: "a", MaxID: 100, Step: 20})
		mustSkip(t, g, 20) // past the first span, into the second
		wantNext(t, g, 10, 21)
		wantNext(t, g, 2, 31) // [100, 140) is queued
		mustSkip(t, g, 34)
		wantNext(t, g, 2, 35)
		mustSkip(t, g, 36)
		wantNext(t, g, 1, 100)
		mustSkip(t, g, 99)
		wantNext(t, g, 1, 101)
		mustSkip(t, g, 139)
		if s := g.Stats(); s.Remaining != 0 || s.IDs+s.Dropped != 16+20+40 {
			t.Fatalf("Stats() = %+v, want Remaining = 0 and s.IDs+s.Dropped = 16+20+40", s)
		}
		wantNext(t, g, 1, 140)
	})
}

// A fetch that was sent before the key was known may return ids up to it.
func TestSkipTrimsAFetchInProgress(t *testing.T) {
	m := newMemory(1, 20)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 7, 1)
		m.Delay(time.Second)
		wantNext(t, g, 2, 8) // [17, 37) is being fetched
		waiting := startCalls(t.Context(), g, 1, 10)
		mustSkip(t, g, 30)
		firsts, errs := waiting()
		if errs != nil || firsts[0] != 17 && firsts[0] != 31 {
			t.Fatalf("waiting() = %+v, %+v, want no errs and (firsts[0] = 17 or firsts[0] = 31)", firsts, errs)
		}
		if id, err := g.Next(t.Context(), 1); err != nil || id <= 30 {
			t.Fatalf("Next(1) = %v, %v, want more than 30 and no error", id, err)
		}
	})
}

// Concurrent calls share one fetch, for the highest key.
func TestSkipIsOneFetch(t *testing.T) {
	m := newMemory(1, 1000)
	m.Delay(5 * time.Millisecond)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		var wg sync.WaitGroup
		for k := range int64(64) {
			wg.Go(func() {
				if err := g.Skip(t.Context(), 10_000+k); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantFetches(t, m, 16)
		wantNext(t, g, 1, 10_064)
	})
}

// A call of Next that waits meanwhile gets ids from the same range.
func TestSkipServesBlocks(t *testing.T) {
	m := newMemory(1, 1000)
	m.Delay(time.Second)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		waiting := startCalls(t.Context(), g, 1, 3000)
		mustSkip(t, g, 500)
		if firsts, errs := waiting(); errs != nil || firsts[0] != 501 {
			t.Fatalf("waiting() = %+v, %+v, want no errs and firsts[0] = 501", firsts, errs)
		}
		wantFetches(t, m, 3000)
	})
}

// An import in ascending order causes one request a step, except for the small first one, and does not make the
// step grow.
func TestSkipAscendingFetchesOncePerStep(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		for k := range int64(20_000) {
			mustSkip(t, g, k+1)
		}
		if n := len(fetchSizes(m)); n > 21 || countReads(m) != 1 {
			t.Fatalf("%v fetches, %v looks, want n at most 21 and countReads(m) = 1", n, countReads(m))
		}
		wantNext(t, g, 1, 20_001)
	})
	// The same with ids in between, one for nine keys.
	m = newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		k := int64(0)
		for range 5000 {
			time.Sleep(time.Second)
			id, err := g.Next(t.Context(), 1)
			if err != nil || id <= k {
				t.Fatalf("Next(1) = %v, %v, want more than %v and no error", id, err, k)
			}
			k = id
			for range 9 {
				k++
				mustSkip(t, g, k)
			}
		}
		if s := g.Stats(); s.Step > 2000 || s.IDs != 5000 { // the step for an id a second alone
			t.Fatalf("Stats() = %+v, want Step at most 2000 and IDs = 5000", s)
		}
	})
}

// Several processes import concurrently: a process that finds the row above its key takes no ids.
func TestSkipByProcessesWastesNoIDs(t *testing.T) {
	m := newMemory(1, 1000)
	synctest.Test(t, func(t *testing.T) {
		var gs [8]*segment.Generator
		for i := range gs {
			gs[i] = segment.New(m, "a", nil)
			defer gs[i].Close()
		}
		for k := range int64(20_000) {
			mustSkip(t, gs[k%8], k+1)
		}
	})
	if n := m.Row("a").MaxID; n > 30_000 {
		t.Errorf("MaxID = %v, want at most 30_000", n)
	}
	if n := len(m.Requests()); n > 200 {
		t.Errorf("%v requests, want at most 200", n)
	}
}

func TestSkipToTheEndReturnsErrExhausted(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 1, 1)
		for _, k := range []int64{math.MaxInt64, math.MaxInt64 - 1} {
			if err := g.Skip(t.Context(), k); !errors.Is(err, idgen.ErrExhausted) {
				t.Fatalf("%v: Skip() = %v, want idgen.ErrExhausted", k, err)
			}
		}
		wantNext(t, g, 1, 2) // no id is lost by this
		mustSkip(t, g, math.MaxInt64-10)
		for want := int64(math.MaxInt64 - 9); want < math.MaxInt64; want++ {
			wantNext(t, g, 1, want)
		}
		if id, err := g.Next(t.Context(), 1); !errors.Is(err, idgen.ErrExhausted) {
			t.Fatalf("Next(1) = %v, %v, want idgen.ErrExhausted", id, err)
		}
		mustSkip(t, g, math.MaxInt64-1) // below the row's next id
	})
	m = newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		mustSkip(t, g, math.MaxInt64-2)
		wantNext(t, g, 1, math.MaxInt64-1)
	})
}

// A Skip that fails does not change which ids are issued.
func TestFailedSkipChangesNothing(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 1, 1)
		m.Fail(errDown)
		if err := g.Skip(t.Context(), 500); !isError[*segment.UnavailableError](err) || !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := g.Skip(ctx, 500); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wantNext(t, g, 1, 2)
		before := len(m.Requests())
		time.Sleep(time.Minute)
		if n := len(m.Requests()) - before; n > 0 {
			t.Fatalf("%v requests that nobody waits for, want 0", n)
		}
		m.Fail(nil)
		mustSkip(t, g, 500)
		wantNext(t, g, 1, 501)

		m.Put(segmenttest.Row{Tag: "a", MaxID: 3, Step: 1000})
		if err := g.Skip(t.Context(), 5000); !isError[*segment.RolledBackError](err) {
			t.Fatal(err)
		}
		m.Delete("a")
		if err := g.Skip(t.Context(), 5000); !isError[*segment.UnknownTagError](err) {
			t.Fatal(err)
		}
		wantNext(t, g, 1, 502)
		g.Close()
		if err := g.Skip(t.Context(), 1); !errors.Is(err, idgen.ErrClosed) {
			t.Fatal(err)
		}
	})
}

// Skip also notices a step that is raised in the row.
func TestSkipNoticesTheStep(t *testing.T) {
	m := newMemory(1, 10)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		mustSkip(t, g, 5)
		m.Put(segmenttest.Row{Tag: "a", MaxID: 16, Step: 500})
		mustSkip(t, g, 20)
		wantFetches(t, m, 10, 10, 500)
		wantNext(t, g, 1, 21)
	})
}

// With any concurrent calls, an id that is requested after Skip has returned is above its key, and no id is
// issued twice.
func TestSkipIsSafeConcurrently(t *testing.T) {
	m := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", Step: 7})
	m.Delay(50 * time.Microsecond)
	var ids idcheck.Collector
	for range 2 { // number of processes
		g := segment.New(m, "a", nil)
		var passed atomic.Int64
		var wg sync.WaitGroup
		for w := range 16 {
			r := ids.Recorder()
			wg.Go(func() {
				for c := range 2000 {
					if w%4 == 0 && c%4 == 0 {
						k := passed.Load() + rand.Int64N(12)
						if err := g.Skip(t.Context(), k); err != nil {
							t.Error(err)
							return
						}
						for old := passed.Load(); old < k && !passed.CompareAndSwap(old, k); old = passed.Load() {
						}
						continue
					}
					above, n := passed.Load(), 1+(w+c)%3
					first, err := g.Next(t.Context(), n)
					if err != nil || first <= above {
						t.Errorf("Next(%d) = %d, %v after Skip(%d), want a greater id", n, first, err, above)
						return
					}
					r.Add(first, n)
				}
			})
		}
		wg.Wait()
		g.Close()
	}
	ids.Verify(t)
}

func TestSkipDoesNotAllocate(t *testing.T) {
	g := segment.New(newMemory(1, 1<<30), "a", nil)
	defer g.Close()
	ctx := context.Background()
	if err := g.Skip(ctx, 1); err != nil {
		t.Fatal(err)
	}
	k := int64(1)
	if got := testing.AllocsPerRun(1000, func() {
		k += 3
		if err := g.Skip(ctx, k); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
