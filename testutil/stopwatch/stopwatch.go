// Package stopwatch measures how long something takes on a machine that is busy or stands still now and then:
//
//	took := stopwatch.Start(t)
//	db.Close()
//	if took() > 5*time.Second {
//
// It counts the time in which its own goroutine got to run, so that a test's bound says what the program does and not what the
// machine does. Waiting counts as on any clock. It is no clock for benchmarks.
package stopwatch

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The time is looked at every tick. Of the time between two looks at most maxStep counts: the rest was not the program's.
const tick, maxStep = 10 * time.Millisecond, 50 * time.Millisecond

// Start starts a stopwatch that runs until the test ends, and gives what reads it.
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
