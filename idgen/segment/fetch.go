package segment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

// waiter is a call of Next that found no ids. first and err belong to the call once
// done is closed.
type waiter struct {
	n     int64 // 0 when the call has given up
	done  chan struct{}
	first int64
	err   error
}

// wait takes n ids, after a fetch if there are not enough.
func (g *Generator) wait(ctx context.Context, n int64) (int64, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return 0, idgen.ErrClosed
	}
	if first, ok := g.take(n); ok {
		g.mu.Unlock()
		return first, nil
	}
	if err := ctx.Err(); err != nil {
		defer g.mu.Unlock()
		return 0, g.gaveUp(err)
	}
	w := &waiter{n: n, done: make(chan struct{})}
	g.waiters = append(g.waiters, w)
	g.stats.Waits++
	g.fetch()
	g.mu.Unlock()

	select {
	case <-w.done:
		return w.first, w.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.done: // the ids came at the same moment
		return w.first, w.err
	default:
	}
	w.n = 0
	return 0, g.gaveUp(ctx.Err())
}

// gaveUp is the error of a call whose context ended with err.
func (g *Generator) gaveUp(err error) error {
	if g.failure != nil {
		return fmt.Errorf("leafsql: waiting for ids for tag %q: %w; the last fetch failed: %v", g.tag, err, g.failure)
	}
	return fmt.Errorf("leafsql: waiting for ids for tag %q: %w", g.tag, err)
}

// fetch starts a fetch, unless one is under way or, the store being away, about to be
// tried again. It belongs to no call: no caller's context ends it.
func (g *Generator) fetch() {
	if g.fetching || g.retry != nil || g.closed {
		return
	}
	g.fetching = true
	step, seen := g.pace.next(time.Now()), g.seen
	var wanted int64
	for _, w := range g.waiters {
		wanted = min(wanted+w.n, MaxRowStep)
	}
	n := max(step, wanted)
	g.tasks.Go(func() {
		begin := time.Now()
		r, err := g.load(n, seen)
		now := time.Now()

		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.closed && err == nil {
			g.pace.arrived(step, r.Step, now.Sub(begin), now)
			g.arrived(r)
		}
		g.fetching = false // not before the waiters are served, who count as demand
		switch {
		case g.closed:
		case err != nil:
			g.failed(err)
		case len(g.waiters) > 0:
			g.fetch()
		default:
			g.stock(g.cur.Load())
		}
	})
}

// load fetches a range of at least n ids from the store and judges it.
func (g *Generator) load(n, seen int64) (Range, error) {
	ctx, cancel := context.WithTimeout(g.ctx, g.timeout)
	defer cancel()
	r, err := g.store.Fetch(ctx, g.tag, n, seen)
	switch {
	case err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		// Not to be taken for the end of the caller's own context.
		return r, fmt.Errorf("no answer within %v", g.timeout)
	case err != nil:
		return r, err
	case max(r.Start, 0) < seen:
		return r, &RolledBackError{Tag: g.tag, Start: r.Start, Seen: seen}
	case r.End < 1 || r.Start > r.End-n:
		return r, &RangeError{Tag: g.tag, Range: r}
	}
	return r, nil
}

// arrived puts a range into the queue and serves who waits, first come first served.
func (g *Generator) arrived(r Range) {
	if g.warned {
		g.log.Info("leafsql: ids can be fetched again", "tag", g.tag)
	}
	g.stats.Fetches++
	g.seen = r.End
	g.failure, g.pause, g.warned = nil, 0, false

	// A range from 0 holds one id fewer: MySQL reads 0 as "generate one".
	if s := (span{max(r.Start, 1), r.End}); s.size() > 0 {
		if last := len(g.queue) - 1; last >= 0 && g.queue[last].end == s.start {
			g.queue[last].end = s.end
		} else {
			g.queue = append(g.queue, s)
		}
	}
	for len(g.waiters) > 0 {
		w := g.waiters[0]
		if w.n > 0 {
			first, ok := g.take(w.n)
			if !ok {
				return
			}
			w.first = first
			close(w.done)
		}
		g.waiters = g.waiters[1:]
	}
	g.waiters = nil
}

// failed tells who waits, and plans the next attempt if the store may come back by
// itself.
func (g *Generator) failed(err error) {
	g.stats.Failures++
	g.failure = err
	if errors.Is(err, idgen.ErrExhausted) {
		g.pace.step = 0 // the row's own step may still fit
	}
	if len(g.waiters) == 0 && !g.warned {
		g.warned = true
		g.log.Warn("leafsql: ids cannot be fetched", "tag", g.tag, "err", err)
	}
	if isAnswer(err) {
		g.fail(err)
		return
	}
	g.fail(&UnavailableError{Tag: g.tag, Cause: err})
	g.pause = min(max(2*g.pause, minPause), maxPause)
	g.retry = time.AfterFunc(g.pause/2+rand.N(g.pause/2), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.retry = nil
		g.fetch()
	})
}

// fail gives err to who waits.
func (g *Generator) fail(err error) {
	for _, w := range g.waiters {
		if w.n > 0 {
			w.err = err
			close(w.done)
		}
	}
	g.waiters = nil
}

// isAnswer reports whether err is what the store has to say, rather than its absence.
func isAnswer(err error) bool {
	var (
		unknown *UnknownTagError
		step    *StepError
		back    *RolledBackError
		rng     *RangeError
	)
	return errors.Is(err, idgen.ErrExhausted) || errors.As(err, &unknown) || errors.As(err, &step) ||
		errors.As(err, &back) || errors.As(err, &rng)
}
