package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fullRegistry returns a registry of n slots that other processes hold for rest and somewhat longer each.
func fullRegistry(n int, cfg Config, rest time.Duration) *fakeRegistry {
	f := newFakeOf(n, cfg)
	for i := range n {
		f.write(i, otherDoc(nowMilli().Add(rest+time.Duration(i)*time.Millisecond), "o"))
	}
	return f
}

// TestSearchWithoutASlotFails: the error of a search that finds no slot, and the duration of the search.
func TestSearchWithoutASlotFails(t *testing.T) {
	for name, tt := range map[string]struct {
		rest    time.Duration
		garbage bool
		reason  string
	}{
		"all held":                            {time.Minute, false, "taken"},
		"all held but one that is unreadable": {time.Minute, true, "taken"},
		"held, by clocks hours ahead":         {5 * time.Hour, false, "ahead"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fullRegistry(4, Config{}, tt.rest)
				f.set(fakeFaults{garbage: tt.garbage})
				began := time.Now()
				_, err := mustKeep(t, f.source(), Config{Workers: 4}).Wait(t.Context())
				e, ok := errors.AsType[*UnavailableError](err)
				if !ok || e.Reason != tt.reason || e.Owner != "o" || e.Until.Sub(began) < tt.rest-time.Hour || tt.reason == "taken" && e.Worker > 1 {
					t.Errorf("err = %v, want ok = true, e.Reason = %v, e.Owner = \"o\", e.Until.Sub(began) at least %v and (tt.reason other than \"taken\" or e.Worker at most 1)", err, tt.reason, tt.rest-time.Hour)
				}
				if took := time.Since(began); took < time.Second || took > 2*time.Second {
					t.Errorf("took %v, want took at least 1s and took at most 2s", took)
				}
			})
		})
	}
}

// TestStaleVerdictIsNotUsed: the readings of an earlier search may be out of date.
func TestStaleVerdictIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fullRegistry(1, Config{}, time.Minute)
		time.AfterFunc(500*time.Millisecond, func() { f.write(0, freeDoc(milliTime(1))) })
		if _, err := mustKeep(t, f.source(), Config{Workers: 1}).Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A registry without a free worker id is read once as a whole, and then with at most one read a
// second: the slots with the leases that end next, and the others in turns.
func TestFullRegistryIsLeftInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1024
		f := fullRegistry(n, Config{}, 40*time.Second)
		const crashed = 77
		go func() { // all slots but one are renewed
			for range 30 {
				time.Sleep(10 * time.Second)
				for i := range n {
					if i != crashed {
						f.write(i, otherDoc(nowMilli().Add(time.Minute), "o"))
					}
				}
			}
		}()
		var j logRecorder
		k := mustKeep(t, f.source(), Config{Logger: j.logger()})
		began := time.Now()
		if _, err := k.Wait(t.Context()); err == nil {
			t.Fatal("Wait() on a full registry = <nil>, want an error")
		}
		if reads := f.takeReadCount(); reads > n+10 {
			t.Errorf("%d reads until the verdict, want at most %v", reads, n+10)
		}
		for minute := range 2 {
			time.Sleep(time.Minute)
			if reads := f.takeReadCount(); reads > 60 {
				t.Errorf("%d reads in minute %d, want reads at most 60", reads, minute+1)
			}
		}
		if n := j.count("no worker id: "); n != 1 {
			t.Errorf("the reason is in the log %d times, want 1", n)
		}
		// The slot of the crashed process is taken as soon as possible.
		s := k.waitForPhase(phaseHolding)
		time.Sleep(5 * time.Minute) // until the other leases have ended
		if took, due := time.Since(began), 40*time.Second+2*time.Minute; s.Worker != crashed || s.Since.Sub(began) < due || s.Since.Sub(began) > due+30*time.Second {
			t.Errorf("worker id %d after %v, want s.Worker = %v, s.Since.Sub(began) at least %v and s.Since.Sub(began) at most %v", s.Worker, took, crashed, due, due+30*time.Second)
		}
	})
}

// A slot that is returned is found when its turn comes: half of the 60 documents read in a minute
// are slots with leases that do not end next.
func TestFullRegistryFreesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 64
		f := fullRegistry(n, Config{}, 150*time.Second)
		k := mustKeep(t, f.source(), Config{Workers: n})
		k.Wait(t.Context())
		time.Sleep(10 * time.Second)
		f.write(50, freeDoc(milliTime(1)))
		began := time.Now()
		if s := k.waitForPhase(phaseHolding); s.Worker != 50 || time.Since(began) > 3*time.Minute {
			t.Errorf("worker id %d after %v, want s.Worker = 50 and time.Since(began) at most 3m", s.Worker, time.Since(began))
		}
	})
}

// TestContendedSearchContinues: a registry that answers is not away, even if other processes are always
// faster. Waiting calls fail after some seconds.
func TestContendedSearchContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		f.set(fakeFaults{deny: 1})
		k := mustKeep(t, f.source(), Config{Workers: 4})
		began := time.Now()
		if _, err := k.Wait(t.Context()); !errors.Is(err, errContended) || time.Since(began) < 2*time.Second || time.Since(began) > 15*time.Second {
			t.Errorf("%v after %v, want errContended, time.Since(began) at least 2s and time.Since(began) at most 15s", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		f.set(fakeFaults{})
		began = time.Now()
		k.waitForPhase(phaseHolding)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %v, want at most 3*time.Second", took)
		}
	})
}

// switchingRegistry is a registry whose reads of its own document return the given answers, and then
// the last one; "" is an error.
type switchingRegistry struct {
	*fakeRegistry
	answers []string
}

func (s *switchingRegistry) Get(ctx context.Context, slot int) (Doc, Version, error) {
	d, v, err := s.fakeRegistry.Get(ctx, slot)
	if slot != RegistrySlot || err != nil {
		return d, v, err
	}
	d.Nonce = s.answers[0]
	d.Registry = d.Nonce
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	if d.Nonce == "" {
		return Doc{}, "", errAway
	}
	return d, v, nil
}

// A take is void if the registry changed during it, or if that can't be determined.
// It ends the search, and its document does not make the history of the slot
// known.
func TestVoidTakeEndsTheSearch(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []string
		waits   time.Duration
	}{
		"another one after it":  {[]string{"r", "other"}, unknownWait},
		"another one before it": {[]string{"other", "r", "r"}, 15 * time.Second},
		"unreadable after it":   {[]string{"r", "", "r"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(8)
				s := &switchingRegistry{f, tt.answers}
				began := time.Now()
				k := mustKeep(t, Source{Slots: s}, Config{Workers: 8})
				k.waitForPhase(phaseHolding)
				if took := time.Since(began); took < tt.waits || took > tt.waits+3*time.Second {
					t.Errorf("took %v, want %v", took, tt.waits)
				}
				held := 0
				for i := range 8 {
					if !f.doc(i).Free {
						held++
					}
				}
				if held != 1 {
					t.Errorf("%d slots are held, want 1", held)
				}
			})
		})
	}
}

// A process that takes a slot whose document was written under another identity of the registry
// waits until unknown leases have ended.
func TestForeignDocumentIsQuarantined(t *testing.T) {
	for registry, waits := range map[string]time.Duration{"r": 0, "": unknownWait, "before": unknownWait} {
		t.Run(registry, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				d := freeDoc(nowMilli().Add(-time.Second))
				d.Registry = registry
				f.write(0, d)
				began := time.Now()
				k := mustHold(t, f.source(), Config{Workers: 1})
				if took := time.Since(began); took < waits || took > waits+time.Second {
					t.Errorf("took %v; want %v", took, waits)
				}
				if d := f.doc(0); d.Registry != "r" || d.Free || !k.Status().Start.After(began.Add(waits).Add(-time.Second)) {
					t.Errorf("slot 0 = %+v, want one held under the new identity, with ids from %v after the start on", d, waits)
				}
			})
		})
	}
}

// The slot that Last returns is tried first if it is free. Last is called in
// a search, but not in a renewal.
func TestLastSlotIsTriedFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		last int
		ok   bool
		held bool // by another process
		want bool
	}{
		"free":              {11, true, false, true},
		"held":              {11, true, true, false},
		"not known":         {11, false, false, false},
		"not in the layout": {64, true, false, false},
		"nonsense":          {-1, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hits, asked := 0, 0
				for range 8 { // each is the same slot by chance once in 64 times
					f := newFake(64)
					if tt.held {
						f.write(tt.last, otherDoc(nowMilli().Add(time.Minute), "o"))
					}
					src := f.source()
					src.Last = func(context.Context) (int, bool) { asked++; return tt.last, tt.ok }
					if mustHold(t, src, Config{Workers: 64}).Status().Worker == tt.last {
						hits++
					}
				}
				time.Sleep(time.Hour)
				if got := hits == 8; got != tt.want || asked != 8 {
					t.Errorf("%d of 8 took the worker id held last, which was asked for %d times, want got = %v and asked = 8", hits, asked, tt.want)
				}
			})
		})
	}
}

// No worker id is taken while Config.Check returns an error: a process with a clock past the
// layout's end never takes one.
func TestCheckPreventsTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(8)
		var ok atomic.Bool
		beyond := errors.New("leafsql: beyond the end")
		k := mustKeep(t, f.source(), Config{Workers: 8, Check: func(time.Time) error {
			if !ok.Load() {
				return beyond
			}
			return nil
		}})
		if _, err := k.Wait(t.Context()); !errors.Is(err, beyond) {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		if len(f.puts) > 0 || len(f.gets) > 0 {
			t.Errorf("%d writes, %d reads, want no f.puts and no f.gets", len(f.puts), len(f.gets))
		}
		ok.Store(true)
		k.waitForPhase(phaseHolding)
	})
}

// After an outage in which all processes lost their worker ids, each takes its own
// again at once.
func TestOwnSlotsAreRetaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const holders, slots = 12, 16
		cfg := Config{Workers: slots, Lease: 12 * time.Second, Issued: nowMilli}
		f := newFakeOf(slots, cfg)
		keepers, own := make([]*Keeper, holders), make([]int, holders)
		for i := range keepers {
			keepers[i] = mustHold(t, f.source(), cfg)
			own[i] = keepers[i].Status().Worker
		}
		time.Sleep(time.Minute)
		f.set(fakeFaults{away: true})
		time.Sleep(12 * time.Second * 17 / 10)
		f.set(fakeFaults{})
		back := time.Now()
		for i, k := range keepers {
			s := k.waitForPhase(phaseHolding)
			if s.Worker != own[i] || time.Since(back) > 2*time.Second {
				t.Errorf("process %d has worker id %d %v after, its own is %d, want s.Worker = %v and time.Since(back) at most 2s", i, s.Worker, time.Since(back), own[i], own[i])
			}
		}
	})
}

// Of many processes that crash one after another none has to wait if the
// registry existed before.
func TestCrashedProcessesDoNotWait(t *testing.T) {
	for name, first := range map[string]Config{
		"declared new": {NewRegistry: true},
		"in use":       {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeRegistry{}
				if !first.NewRegistry {
					f = newFake(1024)
				}
				for life := range 200 {
					src := f.source()
					cfg := first
					if life > 0 {
						cfg.NewRegistry = false
					}
					began := time.Now()
					crash := &crashingRegistry{Slots: src.Slots}
					src.Slots = crash
					k := mustHold(t, src, cfg)
					if took := time.Since(began); took > 3*time.Second {
						t.Fatalf("life %d waited %v, want at most 3*time.Second", life, took)
					}
					time.Sleep(900 * time.Millisecond) // three minutes in total
					crash.dead.Store(true)
					k.Close()
				}
			})
		})
	}
}

// crashingRegistry is a registry as seen by a process that may have crashed.
type crashingRegistry struct {
	Slots
	dead atomic.Bool
}

func (c *crashingRegistry) Get(ctx context.Context, slot int) (Doc, Version, error) {
	if c.dead.Load() {
		return Doc{}, "", errAway
	}
	return c.Slots.Get(ctx, slot)
}

func (c *crashingRegistry) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, bool, error) {
	if c.dead.Load() {
		return "", false, &NotWrittenError{errAway}
	}
	return c.Slots.Put(ctx, slot, d, expected)
}

// Processes that start searching together do not all try the same slots.
func TestConcurrentStartsTryDifferentSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1024)
		f.set(fakeFaults{delay: 10 * time.Millisecond})
		seen := make(map[int]bool)
		keepers := make([]*Keeper, 64)
		for i := range keepers {
			keepers[i] = mustKeep(t, f.source(), Config{Owner: fmt.Sprint(i)})
			keepers[i].start()
		}
		began := time.Now()
		for _, k := range keepers {
			id := k.waitForPhase(phaseHolding).Worker
			if seen[id] {
				t.Errorf("worker id %d given twice", id)
			}
			seen[id] = true
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v, want at most time.Second", took)
		}
	})
}
