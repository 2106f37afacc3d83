package segment_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// startCalls starts n concurrent calls of Next. wait returns their results.
func startCalls(ctx context.Context, g *segment.Generator, n, ids int) (wait func() (firsts []int64, errs []error)) {
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		firsts []int64
		errs   []error
	)
	for range n {
		wg.Go(func() {
			first, err := g.Next(ctx, ids)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else {
				firsts = append(firsts, first)
			}
		})
	}
	return func() ([]int64, []error) { wg.Wait(); return firsts, errs }
}

func TestColdStartIsOneFetch(t *testing.T) {
	m := newMemory(1, 1000)
	m.Delay(5 * time.Millisecond)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		firsts, errs := startCalls(t.Context(), g, 64, 1)()
		if len(firsts) != 64 || errs != nil {
			t.Fatalf("firsts = %+v, errs = %+v, want 64 firsts and no errs", firsts, errs)
		}
		wantFetches(t, m, 64, 1000) // the second range is a prefetch
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		if s := g.Stats(); s.Waits != 64 || s.Fetches != 2 || s.IDs != 64 || s.Remaining != 1000 {
			t.Fatalf("Stats() = %+v, want Waits = 64, Fetches = 2, IDs = 64 and Remaining = 1000", s)
		}
	})
}

// Demand is added up: 64 blocks do not take 64 fetches.
func TestColdStartAddsUpDemand(t *testing.T) {
	m := newMemory(1, 10)
	m.Delay(5 * time.Millisecond)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		firsts, errs := startCalls(t.Context(), g, 64, 500)()
		if len(firsts) != 64 || errs != nil {
			t.Fatalf("firsts = %+v, errs = %+v, want 64 firsts and no errs", firsts, errs)
		}
		if got := m.Requests(); len(got) > 3 {
			t.Fatalf("Requests() = %+v, want len(got) at most 3", got)
		}
	})
}

func TestWaitersHaveTheirOwnContexts(t *testing.T) {
	m := newMemory(1, 1000)
	m.Delay(time.Second)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		hasty := startCalls(ctx, g, 1, 1) // starts the fetch, which continues after this call has ended
		synctest.Wait()
		patient := startCalls(t.Context(), g, 1, 5)
		if _, errs := hasty(); len(errs) != 1 || !errors.Is(errs[0], context.DeadlineExceeded) || time.Since(begin) != 300*time.Millisecond {
			t.Fatalf("hasty() = %+v with time.Since(begin) = %v, want 1 errs, context.DeadlineExceeded and time.Since(begin) = 300ms", errs, time.Since(begin))
		}
		if firsts, errs := patient(); errs != nil || firsts[0] != 1 || time.Since(begin) != 2*time.Second { // one read of the row, one fetch
			t.Fatalf("patient() = %+v, %+v with time.Since(begin) = %v, want no errs, firsts[0] = 1 and time.Since(begin) = 2s", firsts, errs, time.Since(begin))
		}
		wantFetches(t, m, 16)

		// Ids in memory are issued even if the context has ended; none are fetched then.
		if id, err := g.Next(ctx, 1); err != nil || id != 6 {
			t.Fatalf("Next(1) = %v, %v, want 6 and no error", id, err)
		}
		if id, err := g.Next(ctx, 5000); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Next(5000) = %v, %v, want context.DeadlineExceeded", id, err)
		}
		wantFetches(t, m, 16)
	})
}

// Each try has more time than the previous one, until the caller gives up.
func TestFetchHasATimeLimit(t *testing.T) {
	m := newMemory(1, 1000)
	m.Delay(time.Hour)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		begin := time.Now()
		_, err := g.Next(t.Context(), 1)
		if !isError[*segment.UnavailableError](err) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 1m0s") {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Fatalf("Since(begin) = %+v, want time.Minute", took)
		}
		if n := len(m.Requests()); n != 4 { // limits of 5, 10, 20 and 40 s; the last one has not ended
			t.Fatalf("%v tries, want 4", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		if _, err := g.Next(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the last fetch failed: no answer within 1m0s") {
			t.Fatal(err)
		}
		if n := len(m.Requests()); n != 4+20 {
			t.Fatalf("%v tries, want 4+20", n)
		}
	})
}

// A slow store gives ids, also after a slow read of the row, and later tries start with a sufficient limit.
func TestSlowStoreStillGivesIDs(t *testing.T) {
	for name, first := range map[string]func(g *segment.Generator) error{
		"next": func(g *segment.Generator) error { _, err := g.Next(context.Background(), 1); return err },
		"look": func(g *segment.Generator) error { _, err := g.Look(context.Background()); return err },
		"skip": func(g *segment.Generator) error { return g.Skip(context.Background(), 5) },
	} {
		m := newMemory(1, 1000)
		m.Delay(17 * time.Second)
		runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
			begin := time.Now()
			if err := first(g); err != nil {
				t.Fatal(name, err)
			}
			want := 5 + 10 + 17 + 17 // one read of the row, then fetches
			if name == "look" {
				want -= 17
			}
			if took := time.Since(begin); took != time.Duration(want)*time.Second {
				t.Fatalf("%v: Since(begin) = %+v, want time.Duration(want)*time.Second", name, took)
			}
			begin = time.Now()
			if _, err := g.Next(t.Context(), 3000); err != nil || time.Since(begin) > 35*time.Second {
				t.Fatalf("%v: Next(3000) = %v with time.Since(begin) = %v, want time.Since(begin) at most 35s and no error", name, err, time.Since(begin))
			}
			time.Sleep(time.Minute) // lets the fetch in progress end
			m.Delay(0)
			if _, err := g.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.Delay(time.Hour) // a quick answer makes the next limit short again
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			if _, err := g.Next(ctx, 100_000); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 5s") {
				t.Error(err)
			}
		})
	}
}

func TestOutageIsRetriedWithPauses(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 1, 1)
		m.Fail(errDown)
		for want := int64(2); want <= 16; want++ { // from memory
			wantNext(t, g, 1, want)
		}
		// Each call that finds no ids fails with the cause, in bounded time.
		for range 20 {
			begin := time.Now()
			id, err := g.Next(t.Context(), 1)
			e, ok := errors.AsType[*segment.UnavailableError](err)
			if !ok || e.Tag != "a" || !errors.Is(err, errDown) {
				t.Fatalf("id = %v, err = %v, want ok = true, e.Tag = \"a\" and errDown", id, err)
			}
			if waited := time.Since(begin); waited > time.Second {
				t.Fatalf("a call failed after %v, want at most time.Second", waited)
			}
		}
		// If the context ends first, the error includes the store's error.
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := g.Next(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), errDown.Error()) {
			t.Fatal(err)
		}
		// Attempts continue without calls, at most a second apart.
		before := len(m.Requests())
		time.Sleep(time.Minute)
		if n := len(m.Requests()) - before; n < 60 || n > 121 {
			t.Fatalf("%v attempts in a minute, want n at least 60 and n at most 121", n)
		}
		// The store is back: the first answer comes within a pause, also to waiting calls.
		waiting := startCalls(t.Context(), g, 3, 1)
		m.Fail(nil)
		begin := time.Now()
		if firsts, errs := waiting(); errs != nil || len(firsts) != 3 || time.Since(begin) > time.Second {
			t.Fatalf("waiting() = %+v, %+v with time.Since(begin) = %v, want no errs, 3 firsts and time.Since(begin) at most 1s", firsts, errs, time.Since(begin))
		}
		wantNext(t, g, 1, 20)
	})
}

// A failed prefetch is retried in the background before the ids run out, and not by every call.
func TestFailedPrefetchIsRetried(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 1, 1)
		m.Fail(errDown)
		for want := int64(2); want <= 14; want++ {
			wantNext(t, g, 1, want)
		}
		wantFetches(t, m, 16, 1000)
		m.Fail(nil)
		time.Sleep(50 * time.Millisecond)
		wantFetches(t, m, 16, 1000, 1000)
		for want := int64(15); want <= 400; want++ {
			wantNext(t, g, 1, want)
		}
		if s := g.Stats(); s.Waits != 1 || s.Failures != 1 || s.Fetches != 2 {
			t.Fatalf("Stats() = %+v, want Waits = 1, Failures = 1 and Fetches = 2", s)
		}
	})
}

// Two attempts never follow each other immediately, and their distance varies.
func TestBackOffGrowsWithJitter(t *testing.T) {
	distances := make(map[time.Duration]bool)
	m := newMemory(1, 10)
	m.Fail(errDown)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		last, bound := time.Now(), 50*time.Millisecond
		g.Next(t.Context(), 1)
		for range 30 {
			g.Next(t.Context(), 1)
			d := time.Since(last)
			if d < bound/2 || d > bound {
				t.Fatalf("an attempt after %v, want %v to %v", d, bound/2, bound)
			}
			distances[d] = true
			last, bound = time.Now(), min(2*bound, time.Second)
		}
	})
	if len(distances) < 20 {
		t.Errorf("distances of attempts = %v, want at least 20 different ones", distances)
	}
}

// The table's answers are returned immediately, and each call queries again.
func TestAnswersAreNotOutages(t *testing.T) {
	m := new(segmenttest.Memory)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		begin := time.Now()
		for range 5 {
			if id, err := g.Next(t.Context(), 1); !isError[*segment.UnknownTagError](err) || isError[*segment.UnavailableError](err) {
				t.Fatalf("Next(1) = %v, %v, want a *segment.UnknownTagError and not a *segment.UnavailableError", id, err)
			}
		}
		m.Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: -1})
		if id, err := g.Next(t.Context(), 1); !isError[*segment.RowError](err) {
			t.Fatalf("Next(1) = %v, %v, want a *segment.RowError", id, err)
		}
		m.Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 10})
		wantNext(t, g, 1, 1)
		if time.Since(begin) != 0 {
			t.Fatalf("an answer was waited for %v, want 0", time.Since(begin))
		}
		before := len(m.Requests())
		time.Sleep(time.Hour)
		if n := len(m.Requests()) - before; n > 0 || before != 8 {
			t.Fatalf("%v requests, and %v in the background, want n = 0 and before = 8", before, n)
		}
	})
}

func TestRolledBackRowFailsNext(t *testing.T) {
	for name, change := range map[string]func(*segmenttest.Memory){
		"lowered":   func(m *segmenttest.Memory) { m.Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 10}) },
		"recreated": func(m *segmenttest.Memory) { m.Delete("a"); m.Put(segmenttest.Row{Tag: "a", MaxID: 0, Step: 10}) },
		"restored":  func(m *segmenttest.Memory) { m.Put(segmenttest.Row{Tag: "a", MaxID: 129, Step: 10}) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(100, 20)
			runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
				wantNext(t, g, 10, 100) // ids of [100, 116); [116, 136) is prefetched
				wantNext(t, g, 2, 110)
				change(m)
				for want := int64(112); want < 136; want++ {
					wantNext(t, g, 1, want)
				}
				for range 100 {
					id, err := g.Next(t.Context(), 1)
					e, ok := errors.AsType[*segment.RolledBackError](err)
					if !ok || e.Tag != "a" || e.Seen != 136 || e.Start >= 136 {
						t.Fatalf("id = %v, err = %v, want ok = true, e.Tag = \"a\", e.Seen = 136 and e.Start below 136", id, err)
					}
				}
				m.Put(segmenttest.Row{Tag: "a", MaxID: 136, Step: 10})
				wantNext(t, g, 1, 136)
			})
		})
	}
}

// lyingStore is a store that does not keep the contract.
type lyingStore func(q segment.Request) segment.Range

func (l lyingStore) Fetch(_ context.Context, q segment.Request) (segment.Range, error) {
	return l(q), nil
}

func TestWrongRangesAreRefused(t *testing.T) {
	runInBubble(t, lyingStore(func(q segment.Request) segment.Range {
		if q.N == 0 {
			return segment.Range{Start: 1, End: 1, Step: 10}
		}
		return segment.Range{Start: 1, End: 11, Step: 10}
	}), func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 10, 1)
		if id, err := g.Next(t.Context(), 1); !isError[*segment.RolledBackError](err) {
			t.Fatalf("Next(1) = %v, %v, want a *segment.RolledBackError", id, err)
		}
	})
	for _, r := range []segment.Range{
		{}, {Start: 5, End: 5}, {Start: 5, End: 5, Step: 10}, {Start: 7, End: 5, Step: 10}, {Start: 5, End: 14, Step: 10},
		{Start: 0, End: 10, Step: 10}, {Start: 5, End: 15}, {Start: -20, End: -10, Step: 10}, {Start: -1 << 63, End: 0, Step: 10},
	} {
		runInBubble(t, lyingStore(func(q segment.Request) segment.Range {
			if q.N == 0 {
				return segment.Range{Start: 0, End: 0, Step: 10}
			}
			return r
		}), func(t *testing.T, g *segment.Generator) {
			if id, err := g.Next(t.Context(), 10); !isError[*segment.RowError](err) {
				t.Fatalf("%v: Next(10) = %v, %v, want a *segment.RowError", r, id, err)
			}
			if err := g.Skip(t.Context(), 20); !isError[*segment.RowError](err) {
				t.Fatalf("%v: Skip(20) = %v, want a *segment.RowError", r, err)
			}
		})
	}
}

func TestCloseEndsWaitingCalls(t *testing.T) {
	m := newMemory(1, 100)
	m.Delay(time.Second)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		begin := time.Now()
		waiting := startCalls(t.Context(), g, 3, 1)
		synctest.Wait()
		for range 2 {
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if firsts, errs := waiting(); firsts != nil || len(errs) != 3 || !errors.Is(errs[0], idgen.ErrClosed) || time.Since(begin) != 0 {
			t.Fatalf("waiting() = %+v, %+v with time.Since(begin) = %v, want no firsts, 3 errs, idgen.ErrClosed and time.Since(begin) = 0", firsts, errs, time.Since(begin))
		}
	})
	m.Delay(0)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 60, 1) // and starts the prefetch
		g.Close()
		for _, n := range []int{1, 10} {
			if id, err := g.Next(t.Context(), n); err != idgen.ErrClosed {
				t.Fatalf("Next(n) = %v, %v, want err = idgen.ErrClosed", id, err)
			}
		}
		if s := g.Stats(); s.IDs != 60 || s.Dropped != 100 || s.Remaining != 0 {
			t.Fatalf("Stats() = %+v, want IDs = 60, Dropped = 100 and Remaining = 0", s)
		}
	})
	m.Fail(errDown)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		g.Next(t.Context(), 1)
		g.Close()
		before := len(m.Requests())
		time.Sleep(time.Hour)
		if n := len(m.Requests()) - before; n > 0 {
			t.Fatalf("%v attempts after Close, want 0", n)
		}
	})
}

// deafStore is a store that ignores the end of its context.
type deafStore chan struct{}

func (d deafStore) Fetch(context.Context, segment.Request) (segment.Range, error) {
	<-d
	return segment.Range{}, errDown
}

// Close does not wait forever for a store that breaks its contract.
func TestCloseReturnsWithADeafStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := make(deafStore)
		g := segment.New(store, "a", nil)
		waiting := startCalls(t.Context(), g, 1, 1)
		synctest.Wait()
		begin := time.Now()
		g.Close()
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("Since(begin) = %+v, want at most 5*time.Second", took)
		}
		if _, errs := waiting(); len(errs) != 1 || !errors.Is(errs[0], idgen.ErrClosed) {
			t.Fatalf("waiting() = %+v, want 1 errs and idgen.ErrClosed", errs)
		}
		close(store)
	})
}

// An outage that no caller sees is logged once, and so is its end.
func TestOutageIsLoggedOnce(t *testing.T) {
	m := newMemory(1, 10)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		g := segment.New(m, "a", &segment.Options{Logger: slog.New(slog.NewTextHandler(&out, nil)), Timeout: time.Second})
		defer g.Close()
		wantNext(t, g, 1, 1)
		m.Fail(errDown)
		wantNext(t, g, 5, 2)
		time.Sleep(time.Minute)
		m.Fail(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		text := out.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, `"leafsql: ids cannot be fetched" tag=a wanted=10 err="the database is down"`) ||
			!strings.Contains(text, `"leafsql: ids can be fetched again" tag=a`) {
			t.Fatalf("String() = %+v, want two lines, text with `\"leafsql: ids cannot be fetched\" tag=a wanted=10 err=\"the database is down\"` and text with `\"leafsql: ids can be fetched again\" tag=a`", text)
		}
	})
}

// The end of the ids is logged once. It is not logged that ids can be fetched again, which is false: reading
// the row is not fetching a range.
func TestEndOfIDsIsLoggedOnce(t *testing.T) {
	m := newMemory(math.MaxInt64-30, 10)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		g := segment.New(m, "a", &segment.Options{Logger: slog.New(slog.NewTextHandler(&out, nil)), Timeout: time.Second})
		defer g.Close()
		for range 60 {
			g.Next(t.Context(), 1)
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "the ids are used up") {
			t.Fatalf("String() = %+v, want one line and text with \"the ids are used up\"", text)
		}
	})
}
