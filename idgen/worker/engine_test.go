package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The process that creates the registry logs its place once, as a warning unless the
// registry was declared new.
func TestRegistryCreationIsLogged(t *testing.T) {
	for declared, level := range map[bool]string{true: "INFO", false: "WARN"} {
		t.Run(level, func(t *testing.T) { testRegistryIsMade(t, declared, level) })
	}
}

func testRegistryIsMade(t *testing.T, declared bool, level string) {
	synctest.Test(t, func(t *testing.T) {
		var j logRecorder
		f := &fakeRegistry{}
		for i := range 4 {
			mustHold(t, f.source(), Config{Workers: 4, NewRegistry: declared && i == 0, Layout: "l", Logger: j.logger()})
		}
		all, leveled := j.count("a new registry of worker ids was created"), j.count("level="+level+" msg=\"leafsql: a new registry of worker ids was created")
		if all != 1 || leveled != 1 || j.count("registry=fake") == 0 {
			t.Errorf("got %d lines, %d of level %s, want one: %s", all, leveled, level, j.String())
		}
		if d := f.doc(RegistrySlot); d.Owner != "lease 1m0s, layout l; slots made: 4" || d.Registry != d.Nonce {
			t.Errorf("the registry's document is %+v, want d.Owner = \"lease 1m0s, layout l; slots made: 4\" and d.Registry = %v", d, d.Nonce)
		}
	})
}

// A registry has one lease and one layout, those of the first process. Processes with others are refused
// and retry about once a minute.
func TestOtherTermsAreRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"another lease":  {Workers: 4, Lease: 10 * time.Second, Layout: "l"},
		"another layout": {Workers: 4, Layout: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeRegistry{}
				mustHold(t, f.source(), Config{Workers: 4, Layout: "l", NewRegistry: true})
				time.Sleep(10 * time.Second)
				cfg.Owner = "another"
				k := mustKeep(t, f.source(), cfg)
				_, err := k.Wait(t.Context())
				_, ok := errors.AsType[*UnusableError](err)
				if !ok || !strings.Contains(err.Error(), `(fake) is used with "lease 1m0s, layout l"`) || !errorForm.MatchString(err.Error()) {
					t.Errorf("Wait() = %v, want an error that names the registry's lease and layout", err)
				}
				puts := len(f.putsSince(time.Now(), func(slot int) bool { return f.doc(slot).Owner == "another" }))
				f.takeReadCount()
				time.Sleep(5 * time.Minute)
				if n := f.takeReadCount(); n > 12 || puts > 0 {
					t.Errorf("%d reads in five minutes, %d writes, want n at most 12 and puts at most 0", n, puts)
				}
			})
		})
	}
}

// All slots are created once, a while after the start, by the running processes. Afterwards
// each process reads and writes only its own slot.
func TestSlotsAreCreatedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		f     *fakeRegistry
		cfg   Config
		usual int // number of slots to create
	}{
		"an empty registry":        {&fakeRegistry{}, Config{Workers: 100}, 100},
		"one that is declared new": {&fakeRegistry{}, Config{Workers: 100, NewRegistry: true}, 100},
		"one in use":               {newFake(100), Config{Workers: 100}, 0},
		"some are there": {func() *fakeRegistry {
			f := newFake(20)
			f.write(RegistrySlot, Doc{Nonce: "r", HighWater: milliTime(1), Free: true, Owner: "lease 1m0s, layout "})
			return f
		}(), Config{Workers: 100}, 80},
		"half was made": {func() *fakeRegistry { f := newFake(48); return f }(), Config{Workers: 100}, 52},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				k := mustHold(t, tt.f.source(), tt.cfg)
				time.Sleep(time.Minute)
				made := make(map[int]bool)
				for _, p := range tt.f.putsSince(began, func(slot int) bool { return slot >= 0 && slot != k.Status().Worker }) {
					made[p.slot] = true
					if !p.doc.Free {
						t.Errorf("created slot = %+v, want a free slot", p)
					}
					switch d := p.doc; {
					case d.IsInitial():
					case tt.cfg.NewRegistry && d.HighWater.After(p.at.Add(time.Second)):
						t.Errorf("in a registry declared new, a created slot is free from %v on, want about %v", d.HighWater, p.at)
					case !tt.cfg.NewRegistry && d.HighWater.Before(p.at.Add(2*time.Minute)):
						t.Errorf("with an unknown history, a created slot is free from %v on, want 2m0s after %v", d.HighWater, p.at)
					}
				}
				if len(made) < tt.usual-1 || len(made) > tt.usual {
					t.Errorf("%d slots were created, want %d", len(made), tt.usual)
				}
				for slot := range tt.cfg.Workers {
					if d := tt.f.doc(slot); d.Nonce == "" || d.IsInitial() {
						t.Errorf("slot %d = %+v, want a created slot", slot, d)
					}
				}
				if d := tt.f.doc(RegistrySlot); !strings.HasSuffix(d.Owner, "; slots made: 100") {
					t.Errorf("the registry's document is %+v, want suffix \"; slots made: 100\"", d)
				}
				tt.f.takeReadCount()
				later := time.Now()
				time.Sleep(time.Hour)
				if reads, puts := tt.f.takeReadCount(), tt.f.putsSince(later, func(slot int) bool { return slot != k.Status().Worker }); reads > 0 || len(puts) > 0 {
					t.Errorf("later: %d reads, %d writes of others, want reads at most 0 and no puts", reads, len(puts))
				}
			})
		})
	}
}

// Processes that end before all slots are created share the work.
func TestSlotCreationIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRegistry{}
		for life := range 30 {
			k := mustHold(t, f.source(), Config{Workers: 256, NewRegistry: life == 0})
			time.Sleep(900 * time.Millisecond)
			k.Close()
		}
		if d := f.doc(RegistrySlot); !strings.HasSuffix(d.Owner, "; slots made: 256") {
			t.Errorf("the registry's document is %+v, want suffix \"; slots made: 256\"", d)
		}
	})
}

// A registry with problems gets only the requests of the lease, and the remaining slots are
// created later. A document that can't be read stops no process.
func TestFailedSlotCreationIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRegistry{}
		k := mustKeep(t, f.source(), Config{Workers: 64, NewRegistry: true})
		k.waitForPhase(phaseHolding)
		f.set(fakeFaults{away: true, garbage: true})
		time.Sleep(30 * time.Second)
		f.set(fakeFaults{garbage: true})
		time.Sleep(2 * time.Minute)
		if d := f.doc(RegistrySlot); !strings.HasSuffix(d.Owner, "; slots made: 64") {
			t.Errorf("the registry's document is %+v, want suffix \"; slots made: 64\"", d)
		}
	})
}

// If the registry's identity changes, the history of earlier documents is unknown.
// Free slots are written again under the new identity, so that other processes don't
// wait as long.
func TestIdentityChangeMakesHistoryUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, identity := &fakeRegistry{}, "one"
		src := f.source()
		src.Identity = func(ctx context.Context) (string, error) {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("Identity was called with a context without deadline, want a deadline")
			}
			return identity, nil
		}
		live := mustHold(t, src, Config{Workers: 20, NewRegistry: true})
		time.Sleep(time.Minute)
		if s := mustHold(t, src, Config{Workers: 20}).Status(); s.Start.After(s.Since) {
			t.Errorf("before the change: Status() = %+v, want no wait", s)
		}
		ahead := freeDoc(nowMilli().Add(150 * time.Second)) // returned by a process with a fast clock
		slot := 0
		for ; !f.doc(slot).Free; slot++ {
		}
		ahead.Registry = f.doc(slot).Registry
		f.write(slot, ahead)
		identity = "two"
		began := time.Now()
		first := mustHold(t, src, Config{Workers: 20})
		if waited := time.Since(began); waited < unknownWait || waited > unknownWait+time.Second {
			t.Errorf("the first one after it waited %v, want waited at least %v and waited at most %v", waited, unknownWait, unknownWait+time.Second)
		}
		if s := mustHold(t, src, Config{Workers: 20}).Status(); s.Start.Sub(s.Since) > time.Second {
			t.Errorf("the second one after it: %+v, want s.Start.Sub(s.Since) at most 1s", s)
		}
		if d := f.doc(slot); d.HighWater.Before(ahead.HighWater) {
			t.Errorf("slot after the change = %+v, want a time of at least %v", d, ahead.HighWater)
		}
		if s := live.Status(); s.Phase != phaseHolding || s.Worker == first.Status().Worker {
			t.Errorf("process with an earlier worker id: Status() = %+v, want it holding another one", s)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		src := newFake(1).source()
		src.Identity = func(context.Context) (string, error) { return "", errAway }
		if _, err := mustKeep(t, src, Config{Workers: 1}).Wait(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("an identity that can't be read: %v, want errAway", err)
		}
	})
}

// TestPutResultsProveOutcomes: the engine concludes nothing from the results of a put that they do not prove.
func TestPutResultsProveOutcomes(t *testing.T) {
	for _, tt := range []struct {
		ok   bool
		err  error
		want outcome
		why  string
	}{
		{true, nil, swapped, "<nil>"},
		{true, errAway, unclear, "away"},
		{true, &NotWrittenError{errAway}, unclear, "away"},
		{false, nil, refused, "another process"},
		{false, errAway, unclear, "away"},
		{false, context.Canceled, unclear, "canceled"},
		{false, context.DeadlineExceeded, unclear, "no answer within"},
		{false, &NotWrittenError{errAway}, refused, "away"},
		{false, fmt.Errorf("a lock: %w", &NotWrittenError{context.DeadlineExceeded}), refused, "no answer within"},
	} {
		e := &engine{source: Source{Slots: answeringRegistry{tt.ok, tt.err}}, host: machine{}, timing: timingFor(time.Minute)}
		if _, got, err := e.put(t.Context(), 0, Doc{}, ""); got != tt.want || !strings.Contains(fmt.Sprint(err), tt.why) {
			t.Errorf("put returned %t, %v: outcome %d, %v; want %d, %q", tt.ok, tt.err, got, err, tt.want, tt.why)
		}
	}
	if s := fmt.Sprint(latest(milliTime(1), milliTime(3), milliTime(2)).UnixMilli(), earliest(milliTime(2), milliTime(1), milliTime(3)).UnixMilli()); s != "3 1" {
		t.Errorf("Sprint(…) = %+v, want \"3 1\"", s)
	}
}

// answeringRegistry returns the same results for every put.
type answeringRegistry struct {
	ok  bool
	err error
}

func (answeringRegistry) Get(context.Context, int) (Doc, Version, error) { return Doc{}, "", nil }
func (a answeringRegistry) Put(context.Context, int, Doc, Version) (Version, bool, error) {
	return "", a.ok, a.err
}

// In a prepared registry processes with its terms need not wait.
func TestPrepareRetriesRefusedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRegistry{faults: fakeFaults{deny: 3}}
		cfg := Config{Workers: 100, Layout: "l", Logger: discardLogger()}
		if err := Prepare(t.Context(), func(context.Context) (Source, error) { return f.source(), nil }, cfg); err != nil {
			t.Fatal(err)
		}
		for slot := range cfg.Workers {
			if d := f.doc(slot); hasUnknownHistory(d, f.doc(RegistrySlot).Registry) {
				t.Errorf("slot %d = %+v, want a known history", slot, d)
			}
		}
	})
}

func TestPreparedRegistryCausesNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRegistry{}
		cfg := Config{Workers: 100, Logger: discardLogger()}
		if err := Prepare(t.Context(), func(context.Context) (Source, error) { return f.source(), nil }, cfg); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		first := mustKeep(t, f.source(), cfg)
		if why := first.waitForPhase(phaseWaiting).Reason(); !strings.Contains(why, "has lost documents") {
			t.Errorf("Reason() = %+v, want text with \"has lost documents\"", why)
		}
		first.waitForPhase(phaseHolding)
		if waited := time.Since(began); waited < 119*time.Second || waited > 2*time.Minute+time.Second {
			t.Errorf("the first process waited %v, want waited at least 119s and waited at most 2m+1s", waited)
		}
		began = time.Now()
		mustHold(t, f.source(), cfg)
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the second one waited %v, want at most time.Second", waited)
		}
	})
}

// Prepare returns an error if nothing can be written, and if it would write future times.
func TestPrepareGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Workers: 100, Logger: discardLogger()}
		f := newFakeOf(0, cfg)
		src := f.source()
		src.Time = func(context.Context) (time.Time, error) { return nowMilli().Add(-time.Hour), nil }
		open := func(context.Context) (Source, error) { return src, nil }
		err := Prepare(t.Context(), open, cfg)
		if _, ok := errors.AsType[*UnusableError](err); !ok || !strings.Contains(err.Error(), "1h0m0s ahead") || f.doc(0).Nonce != "" {
			t.Errorf("err = %v, f.doc(0) = %+v, want ok = true, an error with \"1h0m0s ahead\" and f.doc(0).Nonce = \"\"", err, f.doc(0))
		}
		cfg.AnyClock = true
		f.set(fakeFaults{deny: 1})
		began := time.Now()
		err = Prepare(t.Context(), open, cfg)
		if d := time.Since(began); err == nil || !strings.Contains(err.Error(), "prepare the registry of worker ids: ") || d < time.Second || d > time.Minute {
			t.Errorf("after %v: %v, want an error with \"prepare the registry of worker ids: \", d >= time.Second and d <= time.Minute", d, err)
		}
	})
}

// TestTakeArrivesLate: a take of a slot with an unknown history may arrive after its process has stopped waiting for the
// answer. The history of the document that it wrote is unknown to its own process too.
func TestTakeArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		f.write(0, initialDoc())
		arrived := time.Time{}
		m := hookedRegistry{fakeRegistry: f, before: func(_ context.Context, slot int, d Doc) error {
			if slot == 0 && arrived.IsZero() {
				time.Sleep(50 * time.Second)
				arrived = time.Now()
			}
			return nil
		}}
		k := mustKeep(t, Source{Slots: m}, Config{Workers: 1})
		k.start()
		k.waitForPhase(phaseHolding)
		if s := k.Status(); s.Start.Before(arrived.Add(2 * time.Minute)) {
			t.Errorf("ids begin %v after the first take arrived, want at least 2m0s", s.Start.Sub(arrived))
		}
		if d := f.putsSince(arrived, func(slot int) bool { return slot == 0 })[0]; !d.swapped || d.doc.Registry != "" {
			t.Errorf("%+v", d)
		}
	})
}
