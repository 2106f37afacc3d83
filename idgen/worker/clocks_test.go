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

// A process whose clock is ahead takes nothing, however often it is started, and
// robs nobody. It says both times, and goes on by itself once they agree.
func TestClockAheadTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(16)
		src := f.source()
		src.Time = func(context.Context) (time.Time, error) { return now(), nil }
		var right []*Keeper
		for range 4 {
			right = append(right, holding(t, src, Config{Workers: 16}))
		}
		h := &hands{host: machine{began: time.Now()}}
		h.off.Store(int64(time.Hour))
		for range 20 {
			k, err := Keep(func(context.Context) (Source, error) { return src, nil }, Config{Workers: 16, Logger: quiet(), host: h, Owner: "shop-7:1"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = k.Wait(t.Context())
			if _, ok := errors.AsType[*UnusableError](err); !ok {
				t.Fatal(err)
			}
			for _, want := range []string{"clock is 1h0m0s ahead", "2000-01-01T01:00:", "at shop-7:1, 2000-01-01T00:00:", "leafAnyClock=true"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
			k.Close()
			time.Sleep(time.Second)
		}
		for range 12 {
			right = append(right, holding(t, src, Config{Workers: 16}))
		}
		for _, k := range right {
			if s := k.Status(); s.Phase != phaseHolding || s.Start.After(now()) {
				t.Errorf("%+v", s)
			}
		}
	})
}

// Where the registry's clock is the one that is behind, who holds a worker id
// goes on, who comes is told, and gets one with AnyClock, or once the clock is right.
func TestRegistryClockBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		var behind atomic.Int64
		src := f.source()
		src.Time = func(context.Context) (time.Time, error) { return now().Add(-time.Duration(behind.Load())), nil }
		before := holding(t, src, Config{Workers: 4})
		behind.Store(int64(10 * time.Minute))
		k := keep(t, src, Config{Workers: 4})
		if _, err := k.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "10m0s ahead") {
			t.Errorf("%v", err)
		}
		holding(t, src, Config{Workers: 4, AnyClock: true})
		time.Sleep(10 * time.Minute)
		if s := before.Status(); s.Phase != phaseHolding {
			t.Errorf("%+v", s)
		}
		behind.Store(0)
		k.until(phaseHolding)
	})
}

// Within a minute, and behind by any time, nothing is said: such a clock robs nobody.
func TestClockBehindTakes(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, -time.Minute, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(1)
			src := f.source()
			src.Time = func(context.Context) (time.Time, error) { return now(), nil }
			h := &hands{host: machine{began: time.Now()}}
			h.off.Store(int64(ahead))
			holding(t, src, Config{Workers: 1, host: h})
		})
	}
}
