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

// wait returns the first of n ids, after a fetch if too few are in memory.
func (g *Generator) wait(ctx context.Context, n int64) (int64, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return 0, idgen.ErrClosed
	}
	if first, ok := g.take(n); ok {
		if s := g.cur.Load(); s.taken() > s.checkAt.Load() {
			g.prefetchIfDue(s)
		}
		g.mu.Unlock()
		return first, nil
	}
	w := &waiter{n: n, done: make(chan struct{})}
	err := g.await(ctx, w)
	return w.first, err
}

// await waits until a fetch has served w or ctx ends. The caller holds g.mu, which await unlocks.
func (g *Generator) await(ctx context.Context, w *waiter) error {
	if err := ctx.Err(); err != nil {
		defer g.mu.Unlock()
		return g.contextError(err)
	}
	g.waiters = append(g.waiters, w)
	g.stats.Waits++
	g.fetch()
	g.mu.Unlock()

	limit, cancel := g.limitContext(ctx)
	defer cancel()
	select {
	case <-w.done:
		return w.err
	case <-limit.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.done: // done at the same moment
		return w.err
	default:
	}
	w.finished = true
	return g.contextError(ctx.Err())
}

// fetch starts a fetch, unless a fetch is in progress or a retry is scheduled. A fetch is independent of the calls that
// wait for it: it continues when a caller's context ends.
func (g *Generator) fetch() {
	if g.fetching || g.retry != nil || g.closed {
		return
	}
	q, step := g.nextRequest(time.Now())
	if q.N == 0 && step > 0 {
		return // no call waits, and too few ids are left in the columns for a fetch in advance: see Fit
	}
	g.fetching = true
	life := g.restarts
	g.tasks.Go(func() {
		began := time.Now()
		r, err := g.load(g.ctx, q)
		now := time.Now()

		g.mu.Lock()
		defer g.mu.Unlock()
		if g.restarts != life {
			if g.fetching = false; len(g.waiters) > 0 {
				g.fetch()
			}
			return
		}
		if !g.closed && err == nil {
			if step > 0 && r.Start < r.End {
				g.pace.recordFetch(step, now.Sub(began), now)
				g.stats.Step = step
			}
			g.receive(q, r, now)
		}
		g.fetchFloor = 0
		g.fetching = false // after the waiting calls are served: their ids count as used in the next check
		switch s := g.cur.Load(); {
		case g.closed:
		case err != nil:
			g.handleFailure(err, step)
		case len(g.waiters) > 0:
			g.fetch()
		case step > 0:
			g.prefetchIfDue(s)
		default: // no ids were requested; the next call for ids checks whether a fetch is due
			s.checkAt.Store(s.taken())
		}
	})
}

// tryPrefetch measures the rate and checks whether a fetch is due. It does nothing if the lock is held: a later
// call checks again.
func (g *Generator) tryPrefetch(s *segment) {
	if !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if s == g.cur.Load() {
		g.prefetchIfDue(s)
	}
}

// prefetchIfDue starts a fetch if the remaining ids of s might run out before the fetch ends. Otherwise it sets
// checkAt, the number of taken ids at which the next check is due.
func (g *Generator) prefetchIfDue(s *segment) {
	now := time.Now()
	taken := s.taken()
	g.pace.measure(g.stats.IDs+s.issued(), now)
	switch left := s.size - taken; {
	case g.fetching || len(g.queue) > 0:
		s.checkAt.Store(s.size)
	case left <= max(s.size/2, g.pace.usedDuringFetch()) || g.pace.outlivedFirst(now):
		s.checkAt.Store(s.size)
		g.fetch()
	default:
		s.checkAt.Store(min(taken+max(s.size/16, 1), s.size))
	}
}

// nextRequest returns the next request to the store. If the row's step is unknown or outdated, the request only
// reads the row. If calls of Skip wait, the request takes a range above their keys that is as long as the row's step.
// Otherwise it takes as many ids as the rate of use requires. Except for reads, it takes at least the ids that calls of
// Next wait for. step is 0 for reads, and for requests because of calls of Skip.
func (g *Generator) nextRequest(now time.Time) (q Request, step int64) {
	q = Request{Tag: g.tag, Seen: g.seen, Floor: g.floor}
	if !g.pace.rowIsRecent(now) {
		return q, 0
	}
	g.refuseOversized()
	q.Step = g.pace.rowStep
	var wanted, key int64
	for _, w := range g.waiters {
		if !w.finished {
			wanted, key = min(wanted+w.n, maxRowStep), max(key, w.key)
		}
	}
	if key > 0 {
		// Like the first range, the first range above a key is small, so that a program that writes a few rows with
		// keys wastes few ids.
		n := q.Step
		if !g.raised {
			g.raised, n = true, min(n, firstRange)
		}
		q.Raise, q.Floor = true, key+1
		q.N = min(max(n, wanted), math.MaxInt64-q.Floor)
		g.fitRequest(&q, wanted)
		return q, 0
	}
	g.pace.measure(g.stats.IDs+g.cur.Load().issued(), now)
	step = g.pace.nextStep(now)
	q.N = max(step, wanted)
	g.fitRequest(&q, wanted)
	return q, step
}

// load sends a request to the store and checks the answer.
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
	return r, &RowError{Tag: g.tag, Reason: fmt.Sprintf("the store returned [%d, %d), step %d, for %+v", r.Start, r.End, r.Step, q), Fix: "fix the store, which violates the contract of segment.Store"}
}

// receive records the store's answer, a range or only the row's state, and serves the waiting calls.
func (g *Generator) receive(q Request, r Range, now time.Time) {
	g.failure, g.pause = nil, 0
	if r.Start == r.End {
		g.recordRow(r, now)
	} else {
		g.rowNext = max(g.rowNext, r.End)
		if g.warned { // only a fetched range proves that fetches work again
			g.log.Info("leafsql: ids can be fetched again", "tag", g.tag)
		}
		g.warned = false
		g.stats.Fetches++
		if r.Jumped > 0 {
			g.stats.Jumps++
		}
		g.seen = r.End
		g.pace.hasRange = true
		g.enqueue(span{r.Start, r.End})
	}
	g.serve()
}

// recordRow records the row's next id and step.
func (g *Generator) recordRow(r Range, now time.Time) {
	g.rowNext = max(g.rowNext, r.End)
	g.pace.recordRow(r.Step, now)
}

// serve finishes the waiting calls that can now succeed: first calls of Skip for keys below the row's next
// id, then calls of Next in the order in which they came.
func (g *Generator) serve() {
	for _, w := range g.waiters {
		if !w.finished && w.key > 0 && w.key < g.rowNext {
			g.discardUpTo(w.key)
			w.finish(nil)
		}
	}
	short := false
	for _, w := range g.waiters {
		if !w.finished && w.n > 0 && !short {
			first, ok := g.take(w.n)
			if short = !ok; ok {
				w.first = first
				w.finish(nil)
			}
		}
	}
	g.waiters = slices.DeleteFunc(g.waiters, func(w *waiter) bool { return w.finished })
}

// handleFailure passes the error to the waiting calls, and schedules the next attempt if the store may recover by
// itself. A request with step 0 (see nextRequest) is repeated only if a call still waits.
func (g *Generator) handleFailure(err error, step int64) {
	if errors.Is(err, idgen.ErrExhausted) && step > g.pace.rowStep {
		g.pace.step = 0 // a fetch of the row's step may still be possible
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
		g.pace.rowStep = 0 // the row may get another step when it is fixed
		g.failWaiters(err)
		return
	}
	if isNoAnswer(err) { // waiting calls have their own time limit
		if step > 0 || g.hasWaiters() {
			g.fetch()
		}
		return
	}
	g.failWaiters(&UnavailableError{Tag: g.tag, Cause: err})
	g.pause = min(max(2*g.pause, minPause), maxPause)
	g.retry = time.AfterFunc(g.pause/2+rand.N(g.pause/2), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.retry = nil
		if step > 0 || g.hasWaiters() {
			g.fetch()
		}
	})
}
