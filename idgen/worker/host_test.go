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

// The clock follows the machine's forward and never back.
func TestClockFollows(t *testing.T) {
	const s = 1000
	type step struct{ wall, mono, now, behind int64 } // in ms; mono counts from the start of the process
	for name, steps := range map[string][]step{
		"steadily":                   {{100 * s, 0, 100 * s, 0}, {101 * s, 1 * s, 101 * s, 0}, {160 * s, 60 * s, 160 * s, 0}},
		"set forward":                {{100 * s, 0, 100 * s, 0}, {501 * s, 1 * s, 501 * s, 0}, {502 * s, 2 * s, 502 * s, 0}},
		"set back":                   {{100 * s, 0, 100 * s, 0}, {71 * s, 1 * s, 101 * s, 30 * s}, {72 * s, 2 * s, 102 * s, 30 * s}},
		"set back, it catches up":    {{100 * s, 0, 100 * s, 0}, {91 * s, 1 * s, 101 * s, 10 * s}, {200 * s, 10 * s, 200 * s, 0}},
		"set back, then forward":     {{100 * s, 0, 100 * s, 0}, {91 * s, 1 * s, 101 * s, 10 * s}, {97 * s, 2 * s, 102 * s, 5 * s}, {104 * s, 3 * s, 104 * s, 0}},
		"forward, then back":         {{100 * s, 0, 100 * s, 0}, {501 * s, 1 * s, 501 * s, 0}, {102 * s, 2 * s, 502 * s, 400 * s}},
		"suspended":                  {{100 * s, 0, 100 * s, 0}, {3700 * s, 10, 3700 * s, 0}},
		"slower than the monotonic":  {{100 * s, 0, 100 * s, 0}, {109 * s, 10 * s, 110 * s, 1 * s}, {118 * s, 20 * s, 120 * s, 2 * s}},
		"faster than the monotonic":  {{100 * s, 0, 100 * s, 0}, {111 * s, 10 * s, 111 * s, 0}, {122 * s, 20 * s, 122 * s, 0}},
		"a process that began late":  {{100 * s, 50 * s, 100 * s, 0}, {101 * s, 51 * s, 101 * s, 0}},
		"the same time, asked twice": {{100 * s, 0, 100 * s, 0}, {100 * s, 0, 100 * s, 0}},
		"set back before 1970":       {{100 * s, 0, 100 * s, 0}, {-100 * s, 1 * s, 101 * s, 201 * s}},
		"one millisecond back":       {{100 * s, 0, 100 * s, 0}, {100 * s, 1, 100*s + 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var c clock
			for i, st := range steps {
				now, behind := c.follow(st.wall, ms(st.mono))
				if now != st.now || behind != st.behind {
					t.Errorf("step %d: %d, %d behind; want %d, %d", i, now, behind, st.now, st.behind)
				}
				if at := c.at(ms(st.mono)); at != now {
					t.Errorf("step %d: at %d, followed to %d", i, at, now)
				}
			}
		})
	}
}

// Readings between two milliseconds don't run ahead of the wall clock, nor
// behind it by more than their rounding.
func TestClockRounds(t *testing.T) {
	var c clock
	const offset = 1_700_000_000_000 * int64(time.Millisecond)
	for mono := time.Duration(0); mono < 50*time.Millisecond; mono += 137 * time.Microsecond {
		wall := (offset + int64(mono) + 700_000) / int64(time.Millisecond)
		if now, behind := c.follow(wall, mono); now < wall || now > wall+1 || behind != now-wall {
			t.Fatalf("at %v: %d, %d behind; the wall clock says %d", mono, now, behind, wall)
		}
	}
}

// Several goroutines that follow never see time go back.
func TestClockAtOnce(t *testing.T) {
	var (
		c    clock
		mono atomic.Int64
		wg   sync.WaitGroup
	)
	for g := range 4 {
		wg.Go(func() {
			jumps := newStream(uint64(g))
			last := int64(0)
			for range 5000 {
				at := ms(mono.Add(1))
				now, _ := c.follow(1_000_000+at.Milliseconds()+int64(jumps.n(2000))-1000, at)
				if now < last {
					t.Errorf("%d after %d", now, last)
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

// A search reads many slots in the time of one.
func TestEachAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine{began: time.Now()}
		var calls [16]atomic.Int32
		m.each(len(calls), func(i int) {
			time.Sleep(time.Second)
			calls[i].Add(1)
		})
		for i := range calls {
			if n := calls[i].Load(); n != 1 {
				t.Errorf("%d was called %d times", i, n)
			}
		}
		if m.mono() != time.Second {
			t.Errorf("took %v", m.mono())
		}
		m.each(0, func(int) { t.Error("called") })
	})
}

// counted is a host whose random numbers count.
type counted struct {
	host
	n uint64
}

func (c *counted) random() uint64 { c.n++; return c.n }

func TestNonce(t *testing.T) {
	if got, want := newNonce(&counted{}), fmt.Sprintf("%016x%016x", 1, 2); got != want {
		t.Errorf("%s; want all 128 bits: %s", got, want)
	}
	seen := make(map[string]bool)
	for range 10_000 {
		n := newNonce(machine{})
		if len(n) != 32 || seen[n] || n == initialNonce {
			t.Fatalf("nonce %q, seen before: %v", n, seen[n])
		}
		seen[n] = true
	}
}
