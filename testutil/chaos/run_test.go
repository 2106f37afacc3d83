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

// A run is a crew of writers and the counts of the disturbances.
type run struct {
	*testing.T
	ctx   context.Context
	over  context.Context // ends when all rows are inserted
	end   func()          // ends over
	began time.Time
	took  time.Duration // set when all rows are inserted
	crew  *crew

	mu     sync.Mutex
	random *rand.Rand
	counts map[string]int // by disturbance
}

// newRun returns a run without a crew. The run ends after at most 40 minutes.
func newRun(t *testing.T, what string) *run {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	t.Cleanup(cancel)
	seed := uint64(time.Now().UnixNano())
	t.Logf("%s, seed %d", what, seed)
	over, end := context.WithCancel(ctx)
	return &run{T: t, ctx: ctx, over: over, end: end, random: rand.New(rand.NewPCG(seed, 0)), counts: make(map[string]int)}
}

// startCrew starts the clock and a crew of writers with a number of rows each.
func (r *run) startCrew(writers, rows int, t writerFuncs) {
	r.began = time.Now()
	r.crew = startCrew(r.ctx, r.T, writers, rows, t)
}

// countDisturbance logs and counts a disturbance.
func (r *run) countDisturbance(what, detail string) {
	r.mu.Lock()
	r.counts[what]++
	r.mu.Unlock()
	r.logEvent(what + ": " + detail)
}

// logEvent logs an event with the time and the number of acknowledged rows.
func (r *run) logEvent(what string) {
	r.Logf("%6.1f s %8d rows  %s", time.Since(r.began).Seconds(), r.crew.acknowledged(), what)
}

// sleep sleeps for d, at most until the run ends. It returns false if the run has ended, because all rows are
// inserted or its time is over.
func (r *run) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.over.Done():
		return false
	}
}

// isNearlyDone reports whether over 90 % of the rows are acknowledged, so that the writers are not disturbed any
// more.
func (r *run) isNearlyDone() bool {
	return r.crew.acknowledged() > int64(len(r.crew.members)*r.crew.rows*9/10)
}

// randomDuration returns a random duration from lo to hi.
func (r *run) randomDuration(lo, hi time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return lo + time.Duration(r.random.Int64N(int64(hi-lo)))
}

// pickWriter returns a random writer that has not finished and is not already disturbed, nil if there
// is none. The caller has to reset isDisturbed afterwards.
func (r *run) pickWriter() *member {
	r.mu.Lock()
	order := r.random.Perm(len(r.crew.members))
	r.mu.Unlock()
	for _, i := range order {
		m := r.crew.members[i]
		if m.acknowledged.Load() < int64(r.crew.rows) && m.isDisturbed.CompareAndSwap(false, true) {
			return m
		}
	}
	return nil
}

// killWriter kills one writer, like a crash. The writer is started again at once.
func (r *run) killWriter() {
	m := r.pickWriter()
	if m == nil {
		return
	}
	defer m.isDisturbed.Store(false)
	if m.signal(syscall.SIGKILL) {
		r.countDisturbance("writer killed -9", fmt.Sprint(m.number))
	}
}

// pauseWriter stops one writer for d, like a machine that swaps or a virtual machine that is moved.
func (r *run) pauseWriter(d time.Duration) {
	m := r.pickWriter()
	if m == nil {
		return
	}
	defer m.isDisturbed.Store(false)
	if !m.signal(syscall.SIGSTOP) {
		return
	}
	r.countDisturbance("writer stopped", fmt.Sprintf("%d for %v", m.number, d.Round(time.Second)))
	r.sleep(d)
	m.signal(syscall.SIGCONT)
}

// wait waits until all rows are inserted or the run's time is over.
func (r *run) wait() {
	done := make(chan struct{})
	go func() { r.crew.wg.Wait(); close(done) }()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-time.After(15 * time.Second):
			r.logEvent("")
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

// A reportLine is a line of the table at the end of a run.
type reportLine struct {
	what  string
	value any
}

// report prints the figures and the counts of the disturbances.
func (r *run) report(figures ...reportLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		figures = append(figures, reportLine{what, r.counts[what]})
	}
	figures = append(figures, reportLine{"time taken", r.took.Round(time.Second)})
	var b strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&b, "\n   %-42s %12v", f.what, f.value)
	}
	r.Log(b.String())
}
