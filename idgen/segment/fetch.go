package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

// wait takes n ids, after a fetch if there are not enough.
func (g *Generator) wait(ctx context.Context, n int64) (int64, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return 0, idgen.ErrClosed
	}
	if first, ok := g.take(n); ok {
		if s := g.cur.Load(); s.taken() > s.mark.Load() {
			g.stock(s)
		}
		g.mu.Unlock()
		return first, nil
	}
	w := &waiter{n: n, done: make(chan struct{})}
	err := g.await(ctx, w)
	return w.first, err
}

// await waits, no longer than ctx, until a fetch has served w. It is called with g.mu
// held, and lets it go.
func (g *Generator) await(ctx context.Context, w *waiter) error {
	if err := ctx.Err(); err != nil {
		defer g.mu.Unlock()
		return g.gaveUp(err)
	}
	g.waiters = append(g.waiters, w)
	g.stats.Waits++
	g.fetch()
	g.mu.Unlock()

	limit, cancel := g.limit(ctx)
	defer cancel()
	select {
	case <-w.done:
		return w.err
	case <-limit.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.done: // it came at the same moment
		return w.err
	default:
	}
	w.gone = true
	return g.gaveUp(ctx.Err())
}

// fetch starts a fetch, unless one is under way or, the store being away, about to be
// tried again. It belongs to no call: no caller's context ends it.
func (g *Generator) fetch() {
	if g.fetching || g.retry != nil || g.closed {
		return
	}
	q, step := g.request(time.Now())
	if q.N == 0 && step > 0 {
		return // nobody waits, and the columns have none to spare: see Fit
	}
	g.fetching = true
	life := g.life
	g.tasks.Go(func() {
		began := time.Now()
		r, err := g.load(g.ctx, q)
		now := time.Now()

		g.mu.Lock()
		defer g.mu.Unlock()
		if g.life != life {
			if g.fetching = false; len(g.waiters) > 0 {
				g.fetch()
			}
			return
		}
		if !g.closed && err == nil {
			if step > 0 && r.Start < r.End {
				g.pace.arrived(step, now.Sub(began), now)
				g.stats.Step = step
			}
			g.arrived(q, r, now)
		}
		g.least = 0
		g.fetching = false // not before the waiters are served, who count as demand
		switch s := g.cur.Load(); {
		case g.closed:
		case err != nil:
			g.failed(err, step)
		case len(g.waiters) > 0:
			g.fetch()
		case step > 0:
			g.stock(s)
		default: // nobody asked for ids; who does next looks after the stock
			s.mark.Store(s.taken())
		}
	})
}

// look measures the rate and sees to the stock. Who finds the lock taken leaves it to
// a later call.
func (g *Generator) look(s *segment) {
	if !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if s == g.cur.Load() {
		g.stock(s)
	}
}

// stock starts a fetch if the ids left in s might run out before it is done, else sets
// the mark at which to look again.
func (g *Generator) stock(s *segment) {
	now := time.Now()
	taken := s.taken()
	g.pace.measure(g.stats.IDs+s.issued(), now)
	switch left := s.size - taken; {
	case g.fetching || len(g.queue) > 0:
		s.mark.Store(s.size)
	case left <= max(s.size/2, g.pace.need()) || g.pace.small(now):
		s.mark.Store(s.size)
		g.fetch()
	default:
		s.mark.Store(min(taken+max(s.size/16, 1), s.size))
	}
}

// request says what to ask the store for: how the row stands where that is not known,
// else to move it above the keys that wait, by the row's step, else for ids, by the
// pace's; in either case as many ids as are wanted. step is 0 where it is not for ids.
func (g *Generator) request(now time.Time) (q Request, step int64) {
	q = Request{Tag: g.tag, Seen: g.seen, Floor: g.floor}
	if !g.pace.known(now) {
		return q, 0
	}
	g.refuse()
	q.Step = g.pace.row
	var wanted, key int64
	for _, w := range g.waiters {
		if !w.gone {
			wanted, key = min(wanted+w.n, maxRowStep), max(key, w.key)
		}
	}
	if key > 0 {
		// Like the first range, the first one for a key is small: a program that
		// writes a few seeds burns few ids.
		n := q.Step
		if !g.raised {
			g.raised, n = true, min(n, firstRange)
		}
		q.Raise, q.Floor = true, key+1
		q.N = min(max(n, wanted), math.MaxInt64-q.Floor)
		g.fit(&q, wanted)
		return q, 0
	}
	g.pace.measure(g.stats.IDs+g.cur.Load().issued(), now)
	step = g.pace.next(now)
	q.N = max(step, wanted)
	g.fit(&q, wanted)
	return q, step
}

// load sends a request to the store and judges the answer.
func (g *Generator) load(ctx context.Context, q Request) (Range, error) {
	r, err := g.try(ctx, q)
	switch {
	case err != nil:
		return r, err
	case r.Start >= 0 && r.Start < q.Seen && r.Start < r.End:
		return r, &RolledBackError{Tag: g.tag, Start: r.Start, Seen: q.Seen}
	case r.Step < 1 || r.Step > maxRowStep:
	case r.Start == r.End && (q.N == 0 || r.Step > q.Step || q.Raise && r.Start >= q.Floor || q.MaxStart > 0 && r.Start > q.MaxStart):
		return r, nil
	case q.N > 0 && r.Start >= q.Floor && r.Start <= r.End-q.N:
		return r, nil
	}
	return r, &RowError{Tag: g.tag, Reason: fmt.Sprintf("the store gave [%d, %d), step %d, for %+v", r.Start, r.End, r.Step, q), Fix: "it does not keep the contract of segment.Store"}
}

// arrived notes what the store gave, a range or only where the row stands, and serves
// who waits.
func (g *Generator) arrived(q Request, r Range, now time.Time) {
	g.failure, g.pause = nil, 0
	if r.Start == r.End {
		g.stands(r, now)
	} else {
		g.top = max(g.top, r.End)
		if g.warned { // a look at the row would not say it
			g.log.Info("leafsql: ids can be fetched again", "tag", g.tag)
		}
		g.warned = false
		g.stats.Fetches++
		if r.Jumped > 0 {
			g.stats.Jumps++
		}
		g.seen = r.End
		g.pace.begun = true
		g.add(span{r.Start, r.End})
	}
	g.serve()
}

// stands notes where the row stands.
func (g *Generator) stands(r Range, now time.Time) {
	g.top = max(g.top, r.End)
	g.pace.looks(r.Step, now)
}

// serve ends the waits that what has come allows: first those of Skip for keys that the
// row is above by now, then those of Next, first come first served.
func (g *Generator) serve() {
	for _, w := range g.waiters {
		if !w.gone && w.key > 0 && w.key < g.top {
			g.pass(w.key)
			w.finish(nil)
		}
	}
	short := false
	for _, w := range g.waiters {
		if !w.gone && w.n > 0 && !short {
			first, ok := g.take(w.n)
			if short = !ok; ok {
				w.first = first
				w.finish(nil)
			}
		}
	}
	g.waiters = slices.DeleteFunc(g.waiters, func(w *waiter) bool { return w.gone })
}

// failed tells who waits, and plans the next attempt if the store may come back by
// itself. A fetch that was not for ids (step 0) is repeated only if somebody waits by then.
func (g *Generator) failed(err error, step int64) {
	if errors.Is(err, idgen.ErrExhausted) && step > g.pace.row {
		g.pace.step = 0 // the row's own may still fit
		g.fetch()
		return
	}
	g.stats.Failures++
	g.failure = err
	if len(g.waiters) == 0 && !g.warned {
		g.warned = true
		g.log.Warn("leafsql: ids cannot be fetched", "tag", g.tag, "wanted", step, "err", err)
	}
	if isAnswer(err) {
		g.pace.row = 0 // who mends a row may give it another step
		g.fail(err)
		return
	}
	if silent(err) { // who waits has a limit
		if step > 0 || g.awaited() {
			g.fetch()
		}
		return
	}
	g.fail(&UnavailableError{Tag: g.tag, Cause: err})
	g.pause = min(max(2*g.pause, minPause), maxPause)
	g.retry = time.AfterFunc(g.pause/2+rand.N(g.pause/2), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.retry = nil
		if step > 0 || g.awaited() {
			g.fetch()
		}
	})
}
