package snowflake

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/worker"
)

// burst draws blocks of a whole millisecond until one has to wait or
// fails. It returns the number of blocks and the last id's time.
func burst(t testing.TB, g *Generator) (blocks int, last time.Time) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		first, err := g.Next(ctx, 1<<g.Layout().Sequence)
		if _, unleased := errors.AsType[*LeaseError](err); unleased || errors.Is(err, context.Canceled) {
			return blocks, last
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks++
		last = parts(t, g, first).Time
	}
}

// A burst runs ahead of the clock by Status.Ahead, which is shorter than the lease, and then continues
// at the pace of the clock.
func TestBurstIsBounded(t *testing.T) {
	for _, lease := range []time.Duration{6 * time.Second, time.Minute} {
		bubble(t, today, func(t *testing.T) {
			g := new(registry).generator(t, small, 1, lease)
			s := g.Worker()
			blocks, last := burst(t, g)
			if want := time.UnixMilli(g.keeper.UnixMilli()).Add(s.Ahead); !last.Equal(want) || blocks != int(s.Ahead.Milliseconds())+1 {
				t.Errorf("%v: %d blocks to %v, want to %v", lease, blocks, last, want)
			}
			if last.After(s.Limit) || s.Ahead > lease {
				t.Errorf("lease of %v: last id of %v, want at most the limit %v", lease, last, s.Limit)
			}
			// The refused call has changed nothing: the next place follows the last one.
			began := time.Now()
			for i := range 100 {
				p := parts(t, g, next(t, g, 16))
				if want := last.Add(time.Duration(i+1) * time.Millisecond); !p.Time.Equal(want) {
					t.Fatalf("an id of %v, want %v", p.Time, want)
				}
			}
			if d := time.Since(began); d < 99*time.Millisecond || d > 101*time.Millisecond {
				t.Errorf("100 ms of ids took %v, want d at least 99ms and d at most 101ms", d)
			}
		})
	}
}

// Without a registry the limit does not move. Ids are issued up to it and continue when the
// registry answers again. Calls at the limit fail at once, since the keeper has noticed that
// the registry is away.
func TestLimitStopsIDs(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		g := r.generator(t, small, 1, 0)
		r.away(true)
		limit := g.Worker().Limit
		time.Sleep(40 * time.Second)
		for range 20 {
			if _, last := burst(t, g); last.After(limit) {
				t.Fatalf("last id of %v, want at most the limit %v", last, limit)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if got := g.Worker().Limit; !got.Equal(limit) {
			t.Fatalf("limit = %v, want %v", got, limit)
		}
		place := g.last.Load()
		if !g.issued().Equal(limit) {
			t.Errorf("issued() = %v, want the limit %v", g.issued(), limit)
		}
		began := time.Now()
		_, err := g.Next(t.Context(), 16)
		if e, ok := errors.AsType[*LeaseError](err); !ok || e.Worker != 0 || !errors.Is(e, errAway) || e.Next.Before(began) || time.Since(began) > 20*time.Millisecond {
			t.Errorf("at the limit: Next() = %v after %v, want a LeaseError at once", err, time.Since(began))
		}
		if now := g.last.Load(); now != place {
			t.Errorf("last place after a refused call = %d, want %d", now, place)
		}
		r.away(false)
		time.Sleep(2 * time.Second)
		if at := parts(t, g, next(t, g, 16)).Time; !at.Equal(limit.Add(time.Millisecond)) {
			t.Errorf("ids continue at %v, want 1ms after the limit %v", at, limit)
		}
	})
}

// A generator that loses its worker id stops at once. With another worker id its ids continue above the last one.
func TestNewWorkerIDContinuesAbove(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		g := r.generator(t, small, 6, 0)
		seen := make(map[int]bool)
		var last int64
		for len(seen) < 6 {
			id := next(t, g, 1) // waits for the search
			if id <= last {
				t.Fatalf("Next() = %d, want more than %d", id, last)
			}
			was := g.Worker()
			_, ahead := burst(t, g)
			if id = next(t, g, 1); id <= last {
				t.Fatalf("Next() = %d, want more than %d", id, last)
			}
			last = id
			if p := parts(t, g, id); p.Worker != was.Worker || p.Time.Before(ahead) {
				t.Fatalf("next id = %+v, want worker id %d and a time from %v on", p, was.Worker, ahead)
			}
			seen[was.Worker] = true
			r.takeSlots(was.Worker)
			for s := g.keeper.Status(); s.Since.Equal(was.Since) && s.Phase == "holding"; s = g.keeper.Status() {
				<-s.Changed()
			}
		}
		for _, err := g.keeper.Wait(t.Context()); err == nil; _, err = g.keeper.Wait(t.Context()) {
			time.Sleep(time.Second)
		}
		began := time.Now()
		_, err := g.Next(t.Context(), 1)
		e, ok := errors.AsType[*LeaseError](err)
		none, taken := errors.AsType[*worker.UnavailableError](err)
		if !ok || !taken || none.Reason != "taken" || time.Since(began) > 0 || e.Next.Before(began) || !seen[e.Worker] {
			t.Errorf("without a free worker id: Next() = %v after %v, want an error with the reason taken at once", err, time.Since(began))
		}
		time.Sleep(10 * time.Minute) // until the thief's bounds have ended
		id := next(t, g, 1)
		if id <= last {
			t.Errorf("Next() = %d, want more than %d", id, last)
		}
		if p := parts(t, g, id); time.Since(p.Time).Abs() > time.Second {
			t.Errorf("%+v at %v, want time.Since(p.Time).Abs() at most 1s", p, time.Now())
		}
	})
}

// Many goroutines draw while the worker id is lost again and again, each time
// with ids far ahead of the clock.
func TestLostWorkerIDsRepeatNoID(t *testing.T) {
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
				s := g.until("holding")
				r.takeSlots(s.Worker)
				for now := s; now.Since.Equal(s.Since); now = g.keeper.Status() {
					select {
					case <-now.Changed():
					case <-stop:
						return
					}
				}
				terms++
			}
		})
		ids := draw(t, g, 64, 400)
		close(stop)
		robber.Wait()
		if terms < 5 {
			t.Errorf("only %d leases, want at least 5", terms)
		}
		distinct(t, ids)
	})
}

// The time that Close returns to the registry covers every id that was issued, also ids drawn
// while it runs. The next owner begins above it.
func TestReturnedTimeCoversEveryID(t *testing.T) {
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
		g.Close()
		wg.Wait()
		for _, id := range last {
			if id == 0 {
				continue // not one before the end
			}
			if d, p := r.doc(0), parts(t, g, id); d.HighWater.Before(p.Time) {
				t.Fatalf("returned with the time %v, want at least %v, the time of an issued id", d.HighWater, p.Time)
			}
		}
	}
}

// A process that never drew an id returns the time that it found, so that its fast clock
// blocks nobody.
func TestUnusedWorkerIDReturnsItsTime(t *testing.T) {
	bubble(t, today, func(t *testing.T) {
		r := new(registry)
		g := r.generator(t, small, 1, 0)
		time.Sleep(time.Hour)
		g.Close()
		if d := r.doc(0); !d.Free || !d.HighWater.Equal(time.UnixMilli(1)) {
			t.Errorf("returned document = %+v, want a free one with the time that was found", d)
		}
	})
}

// A process with a clock past the layout's end takes no worker id.
func TestNoWorkerIDIsTakenBeyondTheEnd(t *testing.T) {
	bubble(t, small.End().Add(time.Hour), func(t *testing.T) {
		r := new(registry)
		g, err := New(small, r.source(4), worker.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for range 60 {
			_, err := g.Next(t.Context(), 1)
			if e, ok := errors.AsType[*EpochError](err); !ok || !errors.Is(err, idgen.ErrExhausted) || !e.End.Equal(small.End()) {
				t.Fatalf("Next() = %v, want an EpochError that is idgen.ErrExhausted", err)
			}
			time.Sleep(time.Second)
		}
		for slot := range 4 {
			if d := r.doc(slot); !d.Free || d.Nonce != "before" {
				t.Errorf("slot %d = %+v, want it free and unchanged", slot, d)
			}
		}
	})
}

// Errors contain the cause and the time of the next attempt.
func TestLeaseErrorNamesCauseAndRetry(t *testing.T) {
	e := &LeaseError{Worker: 3, Next: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Cause: errors.New("leafsql: nobody answers")}
	if want := "leafsql: snowflake: no id may be issued: nobody answers; the next attempt is at 15:04:05"; e.Error() != want {
		t.Errorf("e = %q, want e.Error() = %v", e, want)
	}
}
