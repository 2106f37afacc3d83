package worker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A process with a clock that is an hour ahead, and that is killed and restarted
// twenty times on 16 worker ids, takes none: no worker id is blocked, and no holder
// loses its own. The error contains both times.
func TestClockAheadTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(16)
		src := f.source()
		src.Time = func(context.Context) (time.Time, error) { return nowMilli(), nil }
		var (
			right              []*Keeper
			since              []time.Time
			let, blocked, robs int
		)
		for range 4 {
			k := mustHold(t, src, Config{Workers: 16})
			right, since = append(right, k), append(since, k.Status().Since)
		}
		h := &adjustableHost{host: machine{began: time.Now()}}
		h.offset.Store(int64(time.Hour))
		for range 20 {
			life := &crashingRegistry{Slots: f}
			its := src
			its.Slots = life
			_, err := mustKeep(t, its, Config{Workers: 16, host: h, Owner: "shop-7:1"}).Wait(t.Context())
			time.Sleep(time.Second)
			life.dead.Store(true)
			if _, ok := errors.AsType[*UnusableError](err); !ok {
				let++
				continue
			}
			for _, want := range []string{"clock is 1h0m0s ahead", "2000-01-01T01:00:", "at shop-7:1, 2000-01-01T00:00:", "at the registry (fake); ", "leafAnyClock=true"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
		}
		time.Sleep(10 * time.Second) // until a renewal
		for slot := range 16 {
			if f.doc(slot).HighWater.After(nowMilli().Add(2 * time.Minute)) {
				blocked++
			}
		}
		for i, k := range right {
			if s := k.Status(); s.Phase != phaseHolding || s.Since != since[i] {
				robs++
			}
		}
		if let > 0 || blocked > 0 || robs > 0 {
			t.Errorf("%d of 20 starts were not refused, %d of 16 worker ids are blocked, %d of 4 holders lost theirs, want 0 each", let, blocked, robs)
		}
	})
}

// The registry's time is read before each take: a process that took its first worker id
// when both clocks were right takes no second one when they differ.
func TestClocksAreComparedBeforeEachTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		var behind atomic.Int64
		src := f.source()
		src.Time = func(context.Context) (time.Time, error) { return nowMilli().Add(-time.Duration(behind.Load())), nil }
		k := mustHold(t, src, Config{Workers: 4})
		behind.Store(int64(time.Hour))
		lose(t, f, k)
		f.set(fakeFaults{})
		for {
			s := k.Status()
			if _, ok := errors.AsType[*UnusableError](s.Err); ok {
				break
			}
			if s.Phase == phaseHolding {
				t.Fatalf("it took worker id %d with a clock that is %v ahead, want s.Phase other than %v", s.Worker, s.ClockOffset, phaseHolding)
			}
			<-s.Changed()
		}
	})
}

// A registry that does not return its time, with an error or without an answer, prevents no
// take, and one line is logged. A clock that was found to be ahead counts as
// ahead until the registry returns a time.
func TestRegistryWithoutTimePreventsNoTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		type clock = func(context.Context) (time.Time, error)
		var its atomic.Pointer[clock]
		says := func(c clock) { its.Store(&c) }
		says(func(context.Context) (time.Time, error) { return time.Time{}, errors.New("leafsql: denied") })
		src := f.source()
		src.Time = func(ctx context.Context) (time.Time, error) { return (*its.Load())(ctx) }
		var j logRecorder
		denied := mustKeep(t, src, Config{Workers: 4, Logger: j.logger()})
		if _, err := denied.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := j.count("cannot be read, so a clock"); n != 1 || j.count("err=denied") != 1 {
			t.Errorf("logged %d times: %s, want n = 1 and j.count(\"err=denied\") = 1", n, j.String())
		}

		says(func(ctx context.Context) (time.Time, error) { <-ctx.Done(); return time.Time{}, ctx.Err() })
		began := time.Now()
		mustHold(t, src, Config{Workers: 4})
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("without an answer a take lasts %v, want at most 2*time.Second", d)
		}

		says(func(context.Context) (time.Time, error) { return nowMilli().Add(-time.Hour), nil })
		ahead := mustKeep(t, src, Config{Workers: 4})
		ahead.Wait(t.Context())
		says(func(context.Context) (time.Time, error) { return time.Time{}, errAway })
		time.Sleep(5 * time.Minute)
		if s := ahead.Status(); s.Phase != phaseSearching {
			t.Errorf("Status() = %+v, want Phase = %v", s, phaseSearching)
		}
		says(func(context.Context) (time.Time, error) { return nowMilli(), nil })
		ahead.waitForPhase(phaseHolding)
	})
}

// If the registry's clock is slow, holders of worker ids continue. New processes get an
// error, and get a worker id with AnyClock or when the clock has been set right.
func TestSlowRegistryClockRefusesNewProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		var behind atomic.Int64
		src := f.source()
		src.Time = func(context.Context) (time.Time, error) { return nowMilli().Add(-time.Duration(behind.Load())), nil }
		before := mustHold(t, src, Config{Workers: 4})
		behind.Store(int64(10 * time.Minute))
		k := mustKeep(t, src, Config{Workers: 4})
		if _, err := k.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "10m0s ahead") {
			t.Errorf("Wait() = %v, want an error with \"10m0s ahead\"", err)
		}
		mustHold(t, src, Config{Workers: 4, AnyClock: true})
		time.Sleep(10 * time.Minute)
		if s := before.Status(); s.Phase != phaseHolding {
			t.Errorf("Status() = %+v, want Phase = %v", s, phaseHolding)
		}
		behind.Store(0)
		k.waitForPhase(phaseHolding)
	})
}

// There is no error for a clock that is ahead by less than a minute or slow by any time: it robs no holder.
func TestClockBehindTakes(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, -time.Minute, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(1)
			src := f.source()
			src.Time = func(context.Context) (time.Time, error) { return nowMilli(), nil }
			h := &adjustableHost{host: machine{began: time.Now()}}
			h.offset.Store(int64(ahead))
			mustHold(t, src, Config{Workers: 1, host: h})
		})
	}
}
