package worker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"
)

// host is what the engine needs of the machine it runs on. The simulation
// puts a machine of its own in its place.
type host interface {
	wall() int64                                      // the machine's clock, in Unix ms; it may jump
	mono() time.Duration                              // since the start of the host; it never jumps
	sleep(ctx context.Context, d time.Duration) error // ctx's error if that ends first
	each(n int, f func(i int))                        // f(0) … f(n-1), at once if it can
	random() uint64
}

// machine is the real host.
type machine struct{ began time.Time }

func (m machine) wall() int64         { return time.Now().UnixMilli() }
func (m machine) mono() time.Duration { return time.Since(m.began) }

func (m machine) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
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

func newNonce(h host) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], h.random())
	binary.BigEndian.PutUint64(b[8:], h.random())
	return hex.EncodeToString(b[:])
}

// clock is the machine's clock without its steps back: the monotonic clock
// plus a shift that only grows. It follows a wall clock set forward and a
// machine that was suspended; a wall clock set back is not followed.
type clock struct{ shift atomic.Int64 } // ns

// at is the time in Unix ms at a reading of the monotonic clock.
func (c *clock) at(mono time.Duration) int64 {
	return (int64(mono) + c.shift.Load()) / int64(time.Millisecond)
}

// follow takes a reading of both clocks and gives the time and how far the
// wall clock is behind it.
func (c *clock) follow(wall int64, mono time.Duration) (now, behind int64) {
	want := wall*int64(time.Millisecond) - int64(mono)
	for {
		shift := c.shift.Load()
		// Less than a millisecond is the rounding of the wall clock's reading.
		if want <= shift || c.shift.CompareAndSwap(shift, want) {
			break
		}
	}
	now = c.at(mono)
	return now, now - wall
}
