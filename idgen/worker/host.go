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

// host is what a Keeper needs of the machine it runs on. The simulation puts a
// machine of its own in its place.
type host interface {
	wall() time.Time                                  // the machine's clock; it may jump
	mono() time.Duration                              // since the start of the host; it never jumps
	sleep(ctx context.Context, d time.Duration) error // ctx's error if that ends first
	within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	each(n int, f func(i int)) // f(0) … f(n-1), at once if it can
	start(f func())            // in the background
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

func (m machine) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (m machine) each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// random asks the kernel: two clones of a virtual machine must not go on with
// the same numbers.
func (m machine) random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// newNonce is 128 random bits in hex.
func newNonce(h host) string {
	return fmt.Sprintf("%016x%016x", h.random(), h.random())
}

// clock is the machine's clock without its steps back: the monotonic clock
// plus a shift that only grows. It follows a wall clock set forward and a
// machine that was suspended; a wall clock set back is not followed.
type clock struct {
	host  host
	shift atomic.Int64 // ns
}

// milli is the time in Unix milliseconds, as of the last look at the wall clock.
func (c *clock) milli() int64 {
	return (int64(c.host.mono()) + c.shift.Load()) / int64(time.Millisecond)
}

// now looks at the wall clock and gives the time, to the millisecond.
func (c *clock) now() time.Time {
	c.follow(c.host.wall(), c.host.mono())
	return time.UnixMilli(c.milli())
}

// drift changes when the machine's clock jumps.
func (c *clock) drift() time.Duration {
	return time.Duration(c.host.wall().UnixNano()) - c.host.mono()
}

// follow takes a reading of both clocks.
func (c *clock) follow(wall time.Time, mono time.Duration) {
	want := wall.UnixNano() - int64(mono)
	for {
		shift := c.shift.Load()
		if want <= shift || c.shift.CompareAndSwap(shift, want) {
			return
		}
	}
}
