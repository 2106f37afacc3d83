package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// dialHost is a host with clocks that are set by hand.
type dialHost struct {
	host
	wallAt time.Time
	monoAt time.Duration
}

func (d *dialHost) wall() time.Time     { return d.wallAt }
func (d *dialHost) mono() time.Duration { return d.monoAt }

// The clock follows the machine's clock forward and never back.
func TestClockNeverGoesBack(t *testing.T) {
	const s = 1000
	type step struct{ wall, mono, now int64 } // in ms; mono counts from the start of the process
	for name, steps := range map[string][]step{
		"steadily":                   {{100 * s, 0, 100 * s}, {101 * s, 1 * s, 101 * s}, {160 * s, 60 * s, 160 * s}},
		"set forward":                {{100 * s, 0, 100 * s}, {501 * s, 1 * s, 501 * s}, {502 * s, 2 * s, 502 * s}},
		"set back":                   {{100 * s, 0, 100 * s}, {71 * s, 1 * s, 101 * s}, {72 * s, 2 * s, 102 * s}},
		"set back, it catches up":    {{100 * s, 0, 100 * s}, {91 * s, 1 * s, 101 * s}, {200 * s, 10 * s, 200 * s}},
		"set back, then forward":     {{100 * s, 0, 100 * s}, {91 * s, 1 * s, 101 * s}, {97 * s, 2 * s, 102 * s}, {104 * s, 3 * s, 104 * s}},
		"forward, then back":         {{100 * s, 0, 100 * s}, {501 * s, 1 * s, 501 * s}, {102 * s, 2 * s, 502 * s}},
		"suspended":                  {{100 * s, 0, 100 * s}, {3700 * s, 10, 3700 * s}},
		"slower than the monotonic":  {{100 * s, 0, 100 * s}, {109 * s, 10 * s, 110 * s}, {118 * s, 20 * s, 120 * s}},
		"faster than the monotonic":  {{100 * s, 0, 100 * s}, {111 * s, 10 * s, 111 * s}, {122 * s, 20 * s, 122 * s}},
		"a process that began late":  {{100 * s, 50 * s, 100 * s}, {101 * s, 51 * s, 101 * s}},
		"the same time, asked twice": {{100 * s, 0, 100 * s}, {100 * s, 0, 100 * s}},
		"set back before 1970":       {{100 * s, 0, 100 * s}, {-100 * s, 1 * s, 101 * s}},
		"one millisecond back":       {{100 * s, 0, 100 * s}, {100 * s, 1, 100*s + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &dialHost{}
			c := clock{host: d}
			for i, st := range steps {
				d.wallAt, d.monoAt = milliTime(st.wall), time.Duration(st.mono)*time.Millisecond
				if now := c.now(); !now.Equal(milliTime(st.now)) || c.unixMilli() != st.now {
					t.Errorf("step %d: %v, %d; want %d", i, now, c.unixMilli(), st.now)
				}
			}
		})
	}
}

// Time never goes back for several goroutines that call follow.
func TestClockNeverGoesBackConcurrently(t *testing.T) {
	var (
		c    = clock{host: machine{began: time.Now()}}
		mono atomic.Int64
		wg   sync.WaitGroup
	)
	for g := range int64(4) {
		wg.Go(func() {
			last := int64(0)
			for i := range int64(5000) {
				m := time.Duration(mono.Add(1)) * time.Millisecond
				c.follow(milliTime(1_000_000+m.Milliseconds()+(i*7919+g*104729)%2000-1000), m)
				now := (int64(m) + c.shift.Load()) / int64(time.Millisecond)
				if now < last {
					t.Errorf("follow() = %d after %d, want a time that does not go back", now, last)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	for _, tt := range []struct {
		name        string
		ctx         func(t *testing.T) context.Context
		sleep, want time.Duration
		err         error
	}{
		{"to its end", func(t *testing.T) context.Context { return t.Context() }, time.Minute, time.Minute, nil},
		{"not at all", func(t *testing.T) context.Context { return t.Context() }, 0, 0, nil},
		{"below 0", func(t *testing.T) context.Context { return t.Context() }, -time.Minute, 0, nil},
		{"until a deadline", func(t *testing.T) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			t.Cleanup(cancel)
			return ctx
		}, time.Minute, time.Second, context.DeadlineExceeded},
		{"after the end", func(*testing.T) context.Context { return ended }, time.Minute, 0, context.Canceled},
		{"after the end, not at all", func(*testing.T) context.Context { return ended }, 0, 0, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := machine{began: time.Now()}
				err := m.sleep(tt.ctx(t), tt.sleep)
				if !errors.Is(err, tt.err) || m.mono() != tt.want {
					t.Errorf("%v after %v; want %v after %v", err, m.mono(), tt.err, tt.want)
				}
			})
		})
	}
}

// A search reads many slots in the time of one read.
func TestEachRunsConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine{began: time.Now()}
		var calls [16]atomic.Int32
		m.forEach(len(calls), func(i int) {
			time.Sleep(time.Second)
			calls[i].Add(1)
		})
		for i := range calls {
			if n := calls[i].Load(); n != 1 {
				t.Errorf("%d was called %d times, want 1", i, n)
			}
		}
		if m.mono() != time.Second {
			t.Errorf("took %v, want time.Second", m.mono())
		}
		m.forEach(0, func(int) { t.Error("each called its function for no slots, want no call") })
	})
}

// countingHost is a host with random numbers that count up.
type countingHost struct {
	host
	n uint64
}

func (c *countingHost) random() uint64 { c.n++; return c.n }

func TestNoncesAreRandom(t *testing.T) {
	if got, want := newNonce(&countingHost{}), fmt.Sprintf("%016x%016x", 1, 2); got != want {
		t.Errorf("%s; want all 128 bits: %s", got, want)
	}
	seen := make(map[string]bool)
	for range 10_000 {
		n := newNonce(machine{})
		if len(n) != 32 || seen[n] || (Doc{Nonce: n}).isUnused() {
			t.Fatalf("nonce = %q, seen before: %v, want a new one with 32 digits", n, seen[n])
		}
		seen[n] = true
	}
}
