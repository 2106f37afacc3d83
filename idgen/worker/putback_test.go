package worker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// No process loses its worker id in a wipe, neither if no other process starts nor if
// one starts at that time and finds hardly any other slot.
func TestWipeTakesNobodysWorkerID(t *testing.T) {
	for _, tt := range []struct {
		name     string
		workers  int
		newcomer time.Duration // after the wipe; 0: none
	}{
		{"nobody comes", 6, 0},
		{"a newcomer at once", 7, time.Millisecond},
		{"a newcomer before the first renewal", 7, time.Second},
		{"a newcomer among renewals", 16, 5 * time.Second},
		{"a newcomer after them", 7, 20 * time.Second},
	} {
		for at := range 5 { // fifths of the time between two renewals
			t.Run(fmt.Sprint(tt.name, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(tt.workers)
					cfg := Config{Workers: tt.workers}
					var holders []*Keeper
					for range 6 {
						holders = append(holders, mustHold(t, f.source(), cfg))
						time.Sleep(2300 * time.Millisecond)
					}
					time.Sleep(time.Duration(at) * 2 * time.Second)
					f.wipe()
					if tt.newcomer > 0 {
						time.Sleep(tt.newcomer)
						began := time.Now()
						k := mustKeep(t, f.source(), cfg)
						defer func() {
							if s := k.waitForPhase(phaseHolding); s.Start.Sub(began) > unknownWait+time.Second {
								t.Errorf("the newcomer's ids came after %v, want at most %v", s.Start.Sub(began), unknownWait+time.Second)
							}
						}()
						k.start()
					}
					ids := map[int]bool{}
					for _, k := range holders {
						ids[k.Status().Worker] = true
					}
					for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						for _, k := range holders {
							if s := k.Status(); s.Phase != phaseHolding || !s.Limit.After(time.Now()) || !ids[s.Worker] {
								t.Fatalf("%+v", s)
							}
						}
					}
					if tt.workers < 16 {
						return
					}
					if s := mustHold(t, f.source(), cfg).Status(); s.Start.After(s.Since) {
						t.Errorf("a later process: Status() = %+v, want no wait", s)
					}
				})
			})
		}
	}
}

// Nor does it in a second wipe while a starting process gives holders the time
// to put back the documents that the first wipe removed.
func TestSecondWipeLosesNoWorkerID(t *testing.T) {
	for at := range 5 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(7)
				cfg := Config{Workers: 7}
				var holders []*Keeper
				for range 6 {
					holders = append(holders, mustHold(t, f.source(), cfg))
					time.Sleep(2300 * time.Millisecond)
				}
				f.wipe()
				k := mustKeep(t, f.source(), cfg)
				k.start()
				time.Sleep(10*time.Second + time.Duration(at)*1300*time.Millisecond)
				f.wipe()
				for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					for _, k := range holders {
						if s := k.Status(); s.Phase != phaseHolding || !s.Limit.After(time.Now()) {
							t.Fatalf("%+v", s)
						}
					}
				}
				k.waitForPhase(phaseHolding)
			})
		})
	}
}

// A holder puts its document back over a document that is older than its take, as after a fail-over, and
// over one that a starting process created in a missing slot. It
// never overwrites a slot that another process holds.
func TestHolderPutsItsDocumentBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		left Doc
		back bool
	}{
		{"the document of unknown history", initialDoc(), true},
		{"a spare", Doc{Nonce: spareNonce, HighWater: milliTime(946684800000 + 200_000), Free: true, Registry: "r"}, true},
		{"what it was taken from", freeDoc(milliTime(1)), true},
		{"what was given back later", freeDoc(milliTime(946684800000 + 5)), false},
		{"somebody's", otherDoc(milliTime(946684800000+300_000), "shop-2"), false},
		{"somebody's of before", otherDoc(milliTime(1), "shop-2"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				k := mustHold(t, f.source(), Config{Workers: 1})
				time.Sleep(25 * time.Second)
				f.write(0, tt.left)
				time.Sleep(10 * time.Second)
				if d := f.doc(0); (d.Owner == k.Status().Owner) != tt.back {
					t.Errorf("doc(0) = %+v, want (d.Owner = k.Status().Owner) = %v", d, tt.back)
				}
				if !tt.back {
					return
				}
				if s := k.Status(); s.Phase != phaseHolding || s.Limit.Before(time.Now().Add(50*time.Second)) || s.Err != nil {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// Long after the last renewal nothing is put back, since another process may have passed the
// quarantine. Nor is it if the registry is used with another lease or layout.
func TestNothingIsPutBackLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeOf(1, Config{Lease: 3 * time.Minute})
		k := mustHold(t, f.source(), Config{Workers: 1, Lease: 3 * time.Minute})
		f.set(fakeFaults{away: true})
		time.Sleep(45 * time.Second)
		f.wipe()
		f.set(fakeFaults{})
		time.Sleep(2 * time.Minute)
		if d := f.doc(0); d.Nonce != "" {
			t.Errorf("doc(0) = %+v, want Nonce = \"\"", d)
		}
		if s := k.Status(); s.Phase != phaseHolding || s.Err == nil {
			t.Errorf("Status() = %+v, want Phase = %v and Err set", s, phaseHolding)
		}
		k.waitForPhase(phaseSearching)
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		k := mustHold(t, f.source(), Config{Workers: 1})
		f.wipe()
		f.write(RegistrySlot, newFakeOf(1, Config{Lease: 30 * time.Second}).doc(RegistrySlot))
		k.waitForPhase(phaseSearching)
		if d := f.doc(0); d.Nonce != "" {
			t.Errorf("doc(0) = %+v, want Nonce = \"\"", d)
		}
	})
}

// insertingRegistry is a fake in which a put at any version succeeds if the document is missing, as in Nacos.
type insertingRegistry struct{ *fakeRegistry }

func (f insertingRegistry) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, bool, error) {
	if _, v, err := f.memorySlots.Get(ctx, slot); err == nil && v == "" {
		expected = ""
	}
	return f.fakeRegistry.Put(ctx, slot, d, expected)
}

// If a source sets Inserts, no process loses its worker id in a wipe either,
// nor in an outage long after it: a holder has adopted the new registry.
func TestWipeWithInsertsLosesNoWorkerID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j logRecorder
		f := newFake(2)
		src := f.source()
		src.Slots, src.Inserts = insertingRegistry{f}, true
		k := mustHold(t, src, Config{Workers: 2, Logger: j.logger()})
		before := k.Status().Worker
		f.wipe()
		time.Sleep(time.Hour)
		f.set(fakeFaults{away: true})
		time.Sleep(55 * time.Second)
		f.set(fakeFaults{})
		time.Sleep(10 * time.Second)
		if s := k.Status(); s.Phase != phaseHolding || s.Err != nil || s.Worker != before || j.count("writes it again") != 1 {
			t.Errorf("Status() = %+v with j.String() = %s, want Phase = %v, no Err, Worker = %v and j.count(\"writes it again\") = 1", s, j.String(), phaseHolding, before)
		}
		if d, r := f.doc(before), f.doc(RegistrySlot); d.Registry != r.Nonce {
			t.Errorf("%+v in the registry %+v, want d.Registry = %v", d, r, r.Nonce)
		}
	})
}

// A declaration as new ends with a wipe of the registry. The history of slots is then unknown to the process
// that declared it, as to all others.
func TestDeclarationAsNewEndsWithAWipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRegistry{}
		mustHold(t, f.source(), Config{Workers: 4, NewRegistry: true})
		time.Sleep(25 * time.Second)
		f.wipe()
		wiped := time.Now()
		time.Sleep(30 * time.Second) // until it has created the slots again
		s := mustHold(t, f.source(), Config{Workers: 4}).Status()
		if s.Start.Before(wiped.Add(2 * time.Minute)) {
			t.Errorf("ids begin %v after the wipe, want at least 2m0s", s.Start.Sub(wiped))
		}
	})
}
