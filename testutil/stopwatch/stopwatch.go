// Package stopwatch measures how long a call takes on a machine that is busy or pauses now and then:
//
//	took := stopwatch.Start(t)
//	db.Close()
//	if took() > 5*time.Second {
//
// It counts only the time in which its own goroutine could run, so that a limit in a test applies to the program and
// not to the machine. Waiting counts as on any clock. It is not suitable for benchmarks.
package stopwatch

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The clock is read every tick. At most maxStep counts between two reads: the rest was a pause of the machine.
const tick, maxStep = 10 * time.Millisecond, 50 * time.Millisecond

// Start starts a stopwatch that runs until the test ends, and returns a function
// that reads it.
func Start(tb testing.TB) (took func() time.Duration) {
	var (
		sum     atomic.Int64
		end     = make(chan struct{})
		running sync.WaitGroup
	)
	running.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-ticker.C:
			case <-end:
				return
			}
			now := time.Now()
			sum.Add(int64(min(now.Sub(last), maxStep)))
			last = now
		}
	})
	tb.Cleanup(func() { close(end); running.Wait() })
	return func() time.Duration { return time.Duration(sum.Load()) }
}
