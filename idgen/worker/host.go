package worker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// host is the part of the operating system that a Keeper uses. The simulation replaces
// it.
type host interface {
	wall() time.Time                                  // the machine's clock; it may jump
	mono() time.Duration                              // time since the start of the host; it never jumps
	sleep(ctx context.Context, d time.Duration) error // returns ctx's error if ctx ends first
	withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	forEach(n int, f func(i int)) // calls f(0) … f(n-1), concurrently if it can
	start(f func())               // runs f in the background
	random() uint64
}

// machine is the real host.
type machine struct{ began time.Time }

func (m machine) wall() time.Time     { return time.Now().Round(0) }
func (m machine) mono() time.Duration { return time.Since(m.began) }
func (m machine) start(f func())      { go f() }

func (m machine) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (m machine) withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (m machine) forEach(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// random returns a random number from the kernel: two clones of a virtual machine must not continue with
// the same numbers.
func (m machine) random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// newNonce returns 128 random bits in hex.
func newNonce(h host) string {
	return fmt.Sprintf("%016x%016x", h.random(), h.random())
}

// clock is the machine's clock, except that it never goes back. Its time is the monotonic clock
// plus a shift that only grows. The shift grows if the wall clock is set forward, or if the
// machine was suspended; it does not change if the wall clock is set back.
type clock struct {
	host  host
	shift atomic.Int64 // ns
}

// unixMilli returns the time in Unix milliseconds, with the shift of the last call of now.
func (c *clock) unixMilli() int64 {
	return (int64(c.host.mono()) + c.shift.Load()) / int64(time.Millisecond)
}

// now reads the wall clock and returns the time, to the millisecond.
func (c *clock) now() time.Time {
	c.follow(c.host.wall(), c.host.mono())
	return time.UnixMilli(c.unixMilli())
}

// drift returns a value that changes when the machine's clock jumps.
func (c *clock) drift() time.Duration {
	return time.Duration(c.host.wall().UnixNano()) - c.host.mono()
}

// follow updates the shift from both clocks.
func (c *clock) follow(wall time.Time, mono time.Duration) {
	want := wall.UnixNano() - int64(mono)
	for {
		shift := c.shift.Load()
		if want <= shift || c.shift.CompareAndSwap(shift, want) {
			return
		}
	}
}
