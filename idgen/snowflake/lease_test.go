package snowflake

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// burst draws blocks of a whole millisecond until one must be waited for or
// fails, and gives how many and the last id's time.
func burst(t testing.TB, g *Generator) (blocks int, last time.Time) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		first, err := g.Next(ctx, 1<<g.Layout().Sequence)
		if errors.Is(err, context.Canceled) {
			return blocks, last
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks++
		last = parts(t, g, first).Time
	}
}

// A burst borrows Lease.Ahead, which is below the bound, and is then paced by
// the clock.
func TestBurstIsBounded(t *testing.T) {
	for _, bound := range []time.Duration{6 * time.Second, time.Minute} {
		bubble(t, today, func(t *testing.T) {
			g := new(registry).generator(t, small, 1, bound)
			l := g.term.Load().lease
			blocks, last := burst(t, g)
			if want := time.UnixMilli(l.Now()).Add(l.Ahead()); !last.Equal(want) || blocks != int(l.Ahead().Milliseconds())+1 {
				t.Errorf("%v: %d blocks to %v, want to %v", bound, blocks, last, want)
			}
			if last.UnixMilli() > l.Limit() || l.Ahead() > bound {
				t.Errorf("%v: borrowed to %v, the limit is %v", bound, last, time.UnixMilli(l.Limit()))
			}
			// Nothing has changed by being refused: the very next place is next.
			began := time.Now()
			for i := range 100 {
				p := parts(t, g, next(t, g, 16))
				if want := last.Add(time.Duration(i+1) * time.Millisecond); !p.Time.Equal(want) {
					t.Fatalf("an id of %v, want %v", p.Time, want)
				}
			}
			if d := time.Since(began); d < 99*time.Millisecond || d > 101*time.Millisecond {
				t.Errorf("100 ms of ids took %v", d)
			}
		})
	}
}

// Without a registry the limit stands still: ids go up to it, no further, and
// go on when it answers again.
func TestLimit(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		g := r.generator(t, small, 1, 0)
		l := g.term.Load().lease
		r.away(true)
		limit := l.Limit()
		time.Sleep(40 * time.Second)
		for range 20 {
			if _, last := burst(t, g); last.UnixMilli() > limit {
				t.Fatalf("an id of %v, the limit is %v", last, time.UnixMilli(limit))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := l.Limit(); got != limit {
			t.Fatalf("the limit has moved to %d", got)
		}
		place := g.term.Load().last.Load()
		if ms := place>>4 + small.Epoch; ms != limit {
			t.Errorf("ids go to %d, the limit is %d", ms, limit)
		}

		began := time.Now()
		_, err := g.Next(t.Context(), 16)
		e, ok := errors.AsType[*LeaseError](err)
		if !ok || e.Worker != 0 || e.Cause != nil || time.Since(began) < maxWait || time.Since(began) > maxWait+50*time.Millisecond {
			t.Errorf("at the limit: %v after %v", err, time.Since(began))
		}
		if now := g.term.Load().last.Load(); now != place {
			t.Errorf("a refused call moved the last place from %d to %d", place, now)
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Next(ctx, 16); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("at the limit, with a second to wait: %v after %v", err, time.Since(began))
		}

		r.away(false)
		id := next(t, g, 16) // waits for the retry of the renewal
		if ms := parts(t, g, id).Time.UnixMilli(); ms != limit+1 {
			t.Errorf("goes on at %d, the limit was %d", ms, limit)
		}
	})
}

// A lost lease ends issuing at once; a successor goes on above.
func TestSuccessor(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		g := r.generator(t, small, 6, 0)
		seen := make(map[int]bool)
		var last int64
		for len(seen) < 6 {
			id := next(t, g, 1) // waits for the successor
			if id <= last {
				t.Fatalf("%d after %d", id, last)
			}
			old := g.term.Load().lease
			_, ahead := burst(t, g)
			if id = next(t, g, 1); id <= last {
				t.Fatalf("%d after %d", id, last)
			}
			last = id
			if p := parts(t, g, id); p.Worker != old.Worker() || p.Time.Before(ahead) {
				t.Fatalf("%+v of worker id %d, after %v", p, old.Worker(), ahead)
			}
			seen[old.Worker()] = true
			r.rob(old.Worker())
			<-old.Done()
		}
		began := time.Now()
		_, err := g.Next(t.Context(), 1)
		e, ok := errors.AsType[*LeaseError](err)
		_, lost := errors.AsType[*worker.LostError](err)
		_, taken := errors.AsType[*worker.TakenError](err)
		if !ok || !lost && !taken || time.Since(began) > maxWait+50*time.Millisecond {
			t.Errorf("with every worker id lost: %v after %v", err, time.Since(began))
		}
		if !seen[e.Worker] {
			t.Errorf("LeaseError of worker id %d", e.Worker)
		}
		time.Sleep(10 * time.Minute) // until the thief's bounds have ended
		id := next(t, g, 1)
		if id <= last {
			t.Errorf("%d after %d", id, last)
		}
		if p := parts(t, g, id); time.Since(p.Time).Abs() > time.Second {
			t.Errorf("%+v at %v", p, time.Now())
		}
	})
}

// Searches for a successor are further and further apart, 10 s at most: a
// registry whose worker ids are all taken is left in peace.
func TestSearchesApart(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		g := r.generator(t, small, 1, time.Minute)
		r.rob(0)
		<-g.term.Load().lease.Done()
		reads := func(during time.Duration) int {
			r.mu.Lock()
			before := r.reads
			r.mu.Unlock()
			time.Sleep(during)
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.reads - before
		}
		time.Sleep(30 * time.Second)
		// A search reads for 3 s, 5 times, and then rests for 5 to 10 s.
		if n := reads(time.Minute); n < 10 || n > 45 {
			t.Errorf("%d reads in a minute", n)
		}
		time.Sleep(5 * time.Minute) // until the thief's bound has ended
		next(t, g, 1)
	})
}

// Many goroutines draw while the lease is lost again and again, each time with
// ids far ahead of the clock.
func TestLostUnderLoad(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		layout := small
		layout.Sequence = 3
		g := r.generator(t, layout, 64, 6*time.Second)
		stop := make(chan struct{})
		var robber sync.WaitGroup
		terms := 1
		robber.Go(func() {
			for {
				l := g.term.Load().lease
				r.rob(l.Worker())
				select {
				case <-l.Done():
					terms++
				case <-stop:
					return
				}
				for g.term.Load().lease == l {
					select {
					case <-time.After(time.Millisecond):
					case <-stop:
						return
					}
				}
			}
		})
		ids := draw(t, g, 64, 400)
		close(stop)
		robber.Wait()
		if terms < 5 {
			t.Errorf("only %d leases", terms)
		}
		distinct(t, ids)
	})
}

// Closing the lease under the generator ends the generator.
func TestLeaseClosed(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		g := new(registry).generator(t, small, 1, 0)
		if err := g.term.Load().lease.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if id, err := g.Next(t.Context(), 1); err == nil || time.Since(began) > 0 {
			t.Errorf("%d, %v after %v", id, err, time.Since(began))
		}
	})
}

// What a lease gives back counts every id that was issued, also those drawn
// in the very moment it ends: whoever comes next begins above it.
func TestGivenBack(t *testing.T) {
	for range 200 {
		r := new(registry)
		g := r.generator(t, small, 1, time.Hour)
		last := make([]int64, 2)
		var wg sync.WaitGroup
		for i := range last {
			wg.Go(func() {
				for {
					id, err := g.Next(t.Context(), 16)
					if err != nil {
						return
					}
					last[i] = id
				}
			})
		}
		time.Sleep(50 * time.Microsecond)
		g.term.Load().lease.Close()
		wg.Wait()
		for _, id := range last {
			if id == 0 {
				continue // not one before the end
			}
			if d, p := r.doc(0), parts(t, g, id); d.HW < p.Time.UnixMilli() {
				t.Fatalf("given back up to %d, an id of %d was issued", d.HW, p.Time.UnixMilli())
			}
		}
	}
}
