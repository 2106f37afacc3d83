package snowflake

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/worker"
)

var _ idgen.Generator = (*Generator)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small has only 16 ids a millisecond, so that they are used up soon.
var small = Layout{Time: 41, Worker: 6, Sequence: 4, Epoch: 1}

// today is the time at which the tests' bubbles begin, unless a test sets another one.
var today = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// bubble runs f in a synctest bubble that begins at a time.
func bubble(t *testing.T, at time.Time, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(at))
		f(t)
	})
}

// next calls Next, and fails the test on an error.
func next(t testing.TB, g *Generator, n int) int64 {
	t.Helper()
	id, err := g.Next(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// parts reads an id of g.
func parts(t testing.TB, g *Generator, id int64) Parts {
	t.Helper()
	p, err := g.Layout().Decompose(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNextAscends(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		g := new(registry).generator(t, Leaf, 1, 0)
		last := int64(0)
		for i := range 5000 {
			n := 1 + i*7%4096
			first := next(t, g, n)
			if first <= last {
				t.Fatalf("Next() = %d, want more than %d", first, last)
			}
			last = first + int64(n) - 1
			from, to := parts(t, g, first), parts(t, g, last)
			if !from.Time.Equal(to.Time) || from.Worker != 0 || to.Worker != 0 || to.Sequence-from.Sequence != n-1 {
				t.Fatalf("a block of %d ids from %+v to %+v, want consecutive ids of one millisecond", n, from, to)
			}
		}
	})
}

// Without a burst the time in an id is the clock's, except for the
// rounding of two clocks.
func TestTimeIsTheClocks(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		for _, l := range []Layout{Leaf, twitter, discord, javaScript} {
			g := new(registry).generator(t, l, 1, 0)
			for range 100 {
				time.Sleep(1234567 * time.Microsecond)
				if p := parts(t, g, next(t, g, 1)); time.Since(p.Time) < 0 || time.Since(p.Time) >= 2*time.Millisecond {
					t.Fatalf("%s: an id of %v at %v, want time.Since(p.Time) at least 0 and time.Since(p.Time) below 2ms", l, p.Time, time.Now())
				}
			}
		}
	})
}

func TestNextRefusesBadCounts(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		g := new(registry).generator(t, Leaf, 1, 0)
		for _, n := range []int{-1, 0, 4097, 1 << 40} {
			before := next(t, g, 1)
			_, err := g.Next(t.Context(), n)
			if e, ok := errors.AsType[*idgen.CountError](err); !ok || e.N != n || e.Max != 4096 {
				t.Errorf("%d ids: %v, want ok = true, e.N = %v and e.Max = 4096", n, err, n)
			}
			if id := next(t, g, 1); id != before+1 {
				t.Errorf("Next() after a refused call = %d, want %d", id, before+1)
			}
		}
		if p := parts(t, g, next(t, g, 4096)); p.Sequence != 0 {
			t.Errorf("a whole millisecond's block begins at %d, want 0", p.Sequence)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Layout{Time: 41}, nil, worker.Config{}); err == nil {
		t.Error("New() with an invalid layout = <nil>, want an error")
	}
	if _, err := New(Leaf, nil, worker.Config{Lease: time.Second}); err == nil {
		t.Error("New() with a lease of 1s = <nil>, want an error")
	}
	bubble(t, today, func(t *testing.T) {
		future := Leaf
		future.Epoch = time.Now().UnixMilli() + 1
		g, err := New(future, new(registry).source(1), worker.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		var e *EpochError
		if _, err := g.Next(t.Context(), 1); !errors.As(err, &e) || !e.Begin.Equal(time.UnixMilli(future.Epoch)) || !errors.Is(err, idgen.ErrExhausted) {
			t.Errorf("epoch in the future: Next() = %v, want an EpochError with its begin", err)
		}
	})
}

func TestEpochEnds(t *testing.T) {
	for _, layout := range []Layout{
		{Time: 30, Worker: 10, Sequence: 4, Epoch: today.UnixMilli()},
		{Time: 41, Worker: 0, Sequence: 22, Epoch: 0}, // a place has all 63 bits
	} {
		bubble(t, layout.End().Add(-20*time.Second), func(t *testing.T) {
			g := new(registry).generator(t, layout, 1, 0)
			time.Sleep(time.Until(layout.End()))
			last, ids := int64(0), 0
			for {
				first, err := g.Next(t.Context(), 1<<layout.Sequence)
				if e, ok := errors.AsType[*EpochError](err); ok {
					if !e.End.Equal(layout.End()) || !errors.Is(err, idgen.ErrExhausted) {
						t.Errorf("%s: Next() = %v, want an EpochError with the layout's end", layout, err)
					}
					break
				}
				if err != nil || first <= last {
					t.Fatalf("%s: Next() = %d, %v, want more than %d and no error", layout, first, err, last)
				}
				last = first
				ids++
			}
			if p := parts(t, g, last); ids > 2 || !p.Time.Equal(layout.End()) { // 2: the clocks' rounding
				t.Errorf("%s: %d blocks, the last of %+v, want at most 2, up to %v", layout, ids, p, layout.End())
			}
			time.Sleep(time.Hour)
			if id, err := g.Next(t.Context(), 1); !errors.Is(err, idgen.ErrExhausted) {
				t.Errorf("%s: after the end: %d, %v, want idgen.ErrExhausted", layout, id, err)
			}
		})
	}
}

func TestEndOfEpochIsLogged(t *testing.T) {
	for years, want := range map[int]bool{4: true, 6: false} {
		bubble(t, Leaf.End().AddDate(-years, 0, 0), func(t *testing.T) {
			var log bytes.Buffer
			g, err := New(Leaf, new(registry).source(1), worker.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			g.Close()
			if got := strings.Contains(log.String(), "ends soon"); got != want {
				t.Errorf("%d years ahead: %q, want got = %v", years, log.String(), want)
			}
		})
	}
}

// The ids of two runs with the same worker id ascend, even if the clock was set back
// between them: a small step is waited for, a larger one is an error with the time.
func TestClockSetBackKeepsIDsAscending(t *testing.T) {
	state := t.TempDir()
	var last int64
	bubble(t, today, func(t *testing.T) {
		g, err := static(t, small, state)
		if err != nil {
			t.Fatal(err)
		}
		last = next(t, g, 16)
		for range 500 {
			last = next(t, g, 16) + 15 // until ids are half a second ahead
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	})
	bubble(t, today.Add(-time.Hour), func(t *testing.T) {
		g, err := static(t, small, state)
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.Next(t.Context(), 1)
		e, ok := errors.AsType[*worker.UnavailableError](err)
		if !ok || e.Reason != "ahead" || e.Worker != 7 || time.Until(e.Until) < time.Hour-2*time.Second || time.Until(e.Until) > time.Hour+time.Second {
			t.Errorf("an hour back: %v, want ok = true, e.Reason = \"ahead\", e.Worker = 7, time.Until(e.Until) at least 1h-2s and time.Until(e.Until) at most 1h+1s", err)
		}
	})
	bubble(t, today.Add(-3*time.Second), func(t *testing.T) {
		g, err := static(t, small, state)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Next(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "its ids are safe from") {
			t.Errorf("a wait longer than its context: %v, want context.DeadlineExceeded and an error with \"its ids are safe from\"", err)
		}
	})
	bubble(t, today.Add(-3*time.Second), func(t *testing.T) {
		g, err := static(t, small, state)
		if err != nil {
			t.Fatal(err)
		}
		id := next(t, g, 1)
		if waited := 3*time.Second + time.Until(today); waited < 0 || time.Until(today) > -500*time.Millisecond {
			t.Errorf("3 s back were waited out until %v, want waited at least 0 and time.Until(today) at most -500ms", time.Now())
		}
		if id <= last {
			t.Errorf("Next() = %d, want more than %d", id, last)
		}
	})
}

func TestCloseReturnsTheWorkerID(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		g := r.generator(t, small, 1, 0)
		last := parts(t, g, next(t, g, 1)).Time
		for range 2 {
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.Next(t.Context(), 1); !errors.Is(err, idgen.ErrClosed) {
			t.Errorf("after Close: %v, want idgen.ErrClosed", err)
		}
		if d := r.doc(0); !d.Free || !d.HighWater.Equal(last) {
			t.Errorf("returned document = %+v, want a free one with the time of the last id, %d", d, last.UnixMilli())
		}
	})
}

// Close ends waiting calls of Next at once.
func TestCloseEndsWaitingCalls(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		g := new(registry).generator(t, small, 1, 0)
		for g.last.Load()>>4+1 <= g.keeper.UnixMilli()-small.Epoch+29_999 {
			next(t, g, 16)
		}
		began := time.Now()
		failed := make(chan error)
		for range 3 {
			go func() {
				for {
					if _, err := g.Next(t.Context(), 16); err != nil {
						failed <- err
						return
					}
				}
			}()
		}
		time.Sleep(time.Second)
		go g.Close()
		for range 3 {
			if err := <-failed; !errors.Is(err, idgen.ErrClosed) {
				t.Error(err)
			}
		}
		if waited := time.Since(began); waited > 1010*time.Millisecond {
			t.Errorf("Close was noticed after %v, want at most 1010*time.Millisecond", waited)
		}
	})
}

// draw runs n goroutines with per calls of Next each, of many sizes, and returns the ids.
func draw(t testing.TB, g *Generator, n, per int) []int64 {
	var (
		wg  sync.WaitGroup
		ids = make([][]int64, n)
	)
	for i := range n {
		wg.Go(func() {
			for k := range per {
				size := 1 + (i+k)%5
				first, err := g.Next(t.Context(), size)
				if err != nil {
					t.Error(err)
					return
				}
				if k := len(ids[i]); k > 0 && first <= ids[i][k-1] {
					t.Errorf("Next() = %d after %d, want a greater id", first, ids[i][k-1])
					return
				}
				for s := range int64(size) {
					ids[i] = append(ids[i], first+s)
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(ids...)
}

// distinct fails the test if an id occurs twice.
func distinct(t testing.TB, ids []int64) {
	t.Helper()
	slices.Sort(ids)
	if all := len(ids); len(slices.Compact(ids)) != all {
		t.Error("ids were issued twice")
	}
	if len(ids) == 0 || ids[0] < 1 {
		t.Errorf("%d ids, want at least one, and all above 0", len(ids))
	}
}

func TestConcurrentCallsGetUniqueIDs(t *testing.T) {
	for _, l := range []Layout{Leaf, javaScript} {
		g := new(registry).generator(t, l, 1, 0)
		distinct(t, draw(t, g, 64, 1000))
	}
}

// Generators with different worker ids issue different ids, although their times and
// sequences are equal.
func TestWorkersIssueDifferentIDs(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		var ids []int64
		for range 4 {
			ids = append(ids, draw(t, r.generator(t, small, 4, 0), 4, 1000)...)
		}
		distinct(t, ids)
	})
}

func TestNextDoesNotAllocate(t *testing.T) {
	g := new(registry).generator(t, Leaf, 1, time.Hour)
	ctx := t.Context()
	for _, n := range []int{1, 100} {
		if allocs := testing.AllocsPerRun(10_000, func() {
			if _, err := g.Next(ctx, n); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Errorf("%v allocations for %d ids, want allocs = 0", allocs, n)
		}
	}
}
