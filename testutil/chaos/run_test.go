//go:build storm

package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A run is a crew of writers, and what was done to them and to what they need.
type run struct {
	*testing.T
	ctx   context.Context
	over  context.Context // once all rows are in
	end   func()          // says that they are
	began time.Time
	took  time.Duration // once all rows are in
	crew  *crew

	mu     sync.Mutex
	random *rand.Rand
	counts map[string]int
}

// newRun has no crew yet. It ends after 40 minutes, whatever happens.
func newRun(t *testing.T, what string) *run {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	t.Cleanup(cancel)
	seed := uint64(time.Now().UnixNano())
	t.Logf("%s, seed %d", what, seed)
	over, end := context.WithCancel(ctx)
	return &run{T: t, ctx: ctx, over: over, end: end, random: rand.New(rand.NewPCG(seed, 0)), counts: make(map[string]int)}
}

// hire starts the clock and a crew of so many writers, of so many rows each.
func (r *run) hire(writers, rows int, t trade) {
	r.began = time.Now()
	r.crew = hire(r.ctx, r.T, writers, rows, t)
}

// note says what happens, and counts it.
func (r *run) note(what, detail string) {
	r.mu.Lock()
	r.counts[what]++
	r.mu.Unlock()
	r.say(what + ": " + detail)
}

func (r *run) say(what string) {
	r.Logf("%6.1f s %8d rows  %s", time.Since(r.began).Seconds(), r.crew.acknowledged(), what)
}

// nap waits, and reports whether the run goes on: whether it has time, and writers that have not finished.
func (r *run) nap(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.over.Done():
		return false
	}
}

// calm reports whether so few rows are left that their writers are let alone.
func (r *run) calm() bool { return r.crew.acknowledged() > int64(len(r.crew.members)*r.crew.rows*9/10) }

func (r *run) between(lo, hi time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return lo + time.Duration(r.random.Int64N(int64(hi-lo)))
}

// victim is any writer that has not finished and is not stopped already. It
// is to be let go afterwards; nil if there is none.
func (r *run) victim() *member {
	r.mu.Lock()
	order := r.random.Perm(len(r.crew.members))
	r.mu.Unlock()
	for _, i := range order {
		m := r.crew.members[i]
		if m.acknowledged.Load() < int64(r.crew.rows) && m.caught.CompareAndSwap(false, true) {
			return m
		}
	}
	return nil
}

// kill ends one writer as a crash does. It is started again at once.
func (r *run) kill() {
	m := r.victim()
	if m == nil {
		return
	}
	defer m.caught.Store(false)
	if m.signal(syscall.SIGKILL) {
		r.note("writer killed -9", fmt.Sprint(m.number))
	}
}

// stop holds one writer up, as a machine that swaps or is moved does.
func (r *run) stop(d time.Duration) {
	m := r.victim()
	if m == nil {
		return
	}
	defer m.caught.Store(false)
	if !m.signal(syscall.SIGSTOP) {
		return
	}
	r.note("writer stopped", fmt.Sprintf("%d for %v", m.number, d.Round(time.Second)))
	r.nap(d)
	m.signal(syscall.SIGCONT)
}

// wait waits until all rows are in.
func (r *run) wait() {
	done := make(chan struct{})
	go func() { r.crew.wg.Wait(); close(done) }()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-time.After(15 * time.Second):
			r.say("")
		}
	}
	r.end()
	r.took = time.Since(r.began)
	if r.ctx.Err() != nil {
		for _, m := range r.crew.members {
			r.Errorf("writer %d has %d rows, last refusal: %s", m.number, m.acknowledged.Load(), m.lastRefusal())
		}
	}
}

// A figure is a line of the table at the end of a run.
type figure struct {
	what  string
	value any
}

// report prints the figures, and how often each thing happened.
func (r *run) report(figures ...figure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		figures = append(figures, figure{what, r.counts[what]})
	}
	figures = append(figures, figure{"time taken", r.took.Round(time.Second)})
	var b strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&b, "\n   %-42s %12v", f.what, f.value)
	}
	r.Log(b.String())
}
