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

// The limit of a renewed lease only grows. It is never further ahead than the lease
// and never in the past, so the registry's faults go unnoticed.
func TestLimitOnlyGrows(t *testing.T) {
	plain := func(int) fakeFaults { return fakeFaults{} }
	for _, tt := range []struct {
		name   string
		f      *fakeRegistry
		faults func(second int) fakeFaults
	}{
		{"plainly", newFake(1), plain},
		{"200 ms an answer", newFake(1), func(int) fakeFaults { return fakeFaults{delay: 200 * time.Millisecond} }},
		{"4 s an answer", newFake(1), func(int) fakeFaults { return fakeFaults{delay: 4 * time.Second} }},
		{"replies are lost", newFake(1), func(int) fakeFaults { return fakeFaults{lose: 3} }},
		{"right versions are refused", newFake(1), func(int) fakeFaults { return fakeFaults{deny: 3} }},
		{"refused for 15 s in 97", newFake(1), func(s int) fakeFaults {
			if s%97 < 15 {
				return fakeFaults{deny: 1}
			}
			return fakeFaults{}
		}},
		{"away for 30 s in 97", newFake(1), func(s int) fakeFaults { return fakeFaults{away: s%97 < 30} }},
		{"hangs for 30 s in 97", newFake(1), func(s int) fakeFaults { return fakeFaults{hangs: s%97 < 30} }},
		{"after an unknown history", &fakeRegistry{}, plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := mustHold(t, tt.f.source(), Config{Workers: 1})
				was := k.Status()
				for i := range 4 * 15 * 60 { // a quarter of an hour
					if i%4 == 0 {
						tt.f.set(tt.faults(i / 4))
					}
					time.Sleep(250 * time.Millisecond)
					s := k.Status()
					switch left := s.Limit.Sub(nowMilli()); {
					case !s.Since.Equal(was.Since):
						t.Fatalf("after %d s the lease was lost, want the first one", i/4)
					case s.Limit.Before(was.Limit):
						t.Fatalf("after %d s the limit fell by %v, want a limit that only grows", i/4, was.Limit.Sub(s.Limit))
					case left < 0 || left > time.Minute:
						t.Fatalf("after %d s the limit is %v ahead, want 0s to 1m0s", i/4, left)
					}
					was = s
				}
				tt.f.set(fakeFaults{})
			})
		})
	}
}

// A lease costs one write per renewal, that is, per sixth of the lease or up to a quarter less: one write per worker in 7.5
// to 10 s, and no read.
func TestRenewalCostsOneWrite(t *testing.T) {
	for _, lease := range []time.Duration{6 * time.Second, time.Minute, time.Hour} {
		for _, delay := range []time.Duration{0, 200 * time.Millisecond} {
			t.Run(fmt.Sprintf("%v, %v an answer", lease, delay), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := Config{Workers: 1, Lease: lease}
					f := newFakeOf(1, cfg)
					f.set(fakeFaults{delay: delay})
					k := mustHold(t, f.source(), cfg)
					began, was := time.Now().Add(1), k.Status().Limit // after the take
					f.takeReadCount()
					time.Sleep(60*lease + lease/12) // an hour, for the usual lease
					puts := f.putsSince(began, func(int) bool { return true })
					if reads := f.takeReadCount(); len(puts) < 360 || len(puts) > 480 || reads != 0 {
						t.Errorf("%d writes and %d reads in 360 sixths of the lease, want 360 … 480 writes and no read", len(puts), reads)
					}
					if last := len(puts) - 1; !puts[last].swapped { // in progress
						puts = puts[:last]
					}
					for i, p := range puts {
						if !p.swapped || p.doc.Free || i > 0 && (p.at.Sub(puts[i-1].at) > lease/6 || p.at.Sub(puts[i-1].at) < lease/8) {
							t.Fatalf("write %d = %+v, %v after the previous write, want a stored renewal after %v … %v", i, p, p.at.Sub(puts[max(i, 1)-1].at), lease/8, lease/6)
						}
						if hw := p.at.Add(lease); !p.doc.HighWater.Equal(milliTime(hw.UnixMilli())) {
							t.Fatalf("write %d: its time differs from now+%v by %v, want 0s", i, lease, p.doc.HighWater.Sub(hw))
						}
					}
					if !k.Status().Limit.After(was) {
						t.Errorf("limit after the renewals = %v, want later than %v", k.Status().Limit, was)
					}
					end := time.Now()
					k.Close()
					if puts := f.putsSince(end, func(int) bool { return true }); len(puts) != 1 || !puts[0].doc.Free {
						t.Errorf("writes of Close = %+v, want one that frees the slot", puts)
					}
				})
			})
		}
	}
}

// The registry may be away for most of the lease, from any moment on. Only the status
// shows it.
func TestShortOutageIsNotNoticed(t *testing.T) {
	for phase := time.Duration(0); phase < 10*time.Second; phase += 1700 * time.Millisecond {
		for _, away := range []fakeFaults{{away: true}, {hangs: true}, {deny: 1}} {
			t.Run(fmt.Sprintf("%+v at %v", away, phase), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(1)
					k := mustHold(t, f.source(), Config{Workers: 1})
					since := k.Status().Since
					time.Sleep(time.Minute + phase)
					f.set(away)
					failed := false
					for i := range 300 * 10 {
						if i == 300 {
							f.set(fakeFaults{})
						}
						time.Sleep(100 * time.Millisecond)
						s := k.Status()
						failed = failed || s.Err != nil && s.Next.After(time.Now().Add(-5*time.Second))
						if !s.Since.Equal(since) || s.Limit.Before(nowMilli()) {
							t.Fatalf("%v into the outage: Status() = %+v, want the same lease with a limit in the future", time.Duration(i)*100*time.Millisecond, s)
						}
					}
					if s := k.Status(); !failed || s.Err != nil {
						t.Errorf("failures were seen: %v; in the end %v, want failed = true and no s.Err", failed, s.Err)
					}
				})
			})
		}
	}
}

// If the registry is away for longer than the lease, the worker id is lost when its bound
// has passed, and not before. The process takes its own worker id again as soon as the registry is
// back, before other processes may take it.
func TestLongOutageLosesTheWorkerID(t *testing.T) {
	for _, faults := range []fakeFaults{{away: true}, {hangs: true}, {deny: 1}, {delay: 8 * time.Second, lose: 1}} {
		t.Run(fmt.Sprintf("%+v", faults), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(2)
				f.write(1, otherDoc(nowMilli().Add(time.Hour), "shop-2"))
				k := mustHold(t, f.source(), Config{Workers: 2})
				time.Sleep(63 * time.Second)
				bound := k.Status().Limit
				f.set(faults)
				for k.Status().Phase == phaseHolding {
					s := k.Status()
					if s.Limit.After(bound) {
						t.Fatalf("the limit is %v after the bound, want at most the bound", s.Limit.Sub(bound))
					}
					if nowMilli().Before(bound) && s.Limit.Before(nowMilli()) {
						t.Fatalf("%v before the bound the limit is %v, want one in the future", time.Until(bound), s.Limit)
					}
					time.Sleep(10 * time.Millisecond)
				}
				if late := time.Since(bound); late <= 0 || late > 20*time.Second {
					t.Errorf("the loss was reported %v after the bound, want at most 20s", late)
				}
				time.Sleep(time.Until(bound.Add(43 * time.Second))) // 1.7 leases in all
				f.set(fakeFaults{})
				began := time.Now()
				s := k.waitForPhase(phaseHolding)
				if took := time.Since(began); took > 2*time.Second && !faults.hangs && faults.delay == 0 || took > 8*time.Second || s.Worker != 0 || !s.Start.After(bound) {
					t.Errorf("after the outage: Status() = %+v after %v, want worker id 0 from after the bound within seconds", s, took)
				}
			})
		})
	}
}

// A worker id that another process has taken is lost at once, and not taken back.
func TestTakenWorkerIDIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		k := mustHold(t, f.source(), Config{Workers: 2})
		id := k.Status().Worker
		f.set(fakeFaults{delay: 10 * time.Millisecond}) // makes the search visible
		f.write(id, otherDoc(nowMilli().Add(time.Hour), ""))
		s := k.waitForPhase(phaseSearching)
		if s.Worker != id || !s.Limit.IsZero() {
			t.Errorf("%+v", s)
		}
		if s = k.waitForPhase(phaseHolding); s.Worker == id {
			t.Errorf("waitForPhase(phaseHolding) = %+v, want Worker other than %v", s, id)
		}
		if d := f.doc(id); d.Nonce != "other" {
			t.Errorf("taken back: %+v, want d.Nonce = \"other\"", d)
		}
	})
}

// A document that was edited into garbage is named in the error when the worker id is lost,
// and in the status before.
func TestGarbageIsNamedInErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		var j logRecorder
		k := mustHold(t, f.source(), Config{Workers: 1, Logger: j.logger()})
		f.set(fakeFaults{garbage: true, deny: 1})
		time.Sleep(30 * time.Second)
		const why = "not a worker slot's document"
		if s := k.Status(); s.Err == nil || j.count(why) != 1 {
			t.Errorf("s.Err = %v, j.String() = %s, want s.Err set and j.count(why) = 1", s.Err, j.String())
		}
		k.waitForPhase(phaseSearching)
		time.Sleep(time.Minute)
		if _, err := k.Wait(t.Context()); err == nil || j.count(why) < 3 {
			t.Errorf("Wait() = %v with j.String() = %s, want an error and j.count(why) at least 3", err, j.String())
		}
	})
}

// pausingHost is a host on which the process pauses before one of its readings of the clock.
type pausingHost struct {
	host
	after atomic.Int64 // readings before the pause
}

func (p *pausingHost) wall() time.Time {
	if p.after.Add(-1) == 0 {
		time.Sleep(100 * time.Second)
	}
	return p.host.wall()
}

// A process that pauses past its bound has lost the worker id, at any point of a
// renewal: the registry may have been wiped before the next put.
func TestPausedProcessLosesTheWorkerID(t *testing.T) {
	for reading := range int64(8) {
		t.Run(fmt.Sprint("before reading ", reading+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				p := &pausingHost{host: machine{began: time.Now()}}
				k := mustHold(t, f.source(), Config{Workers: 1, host: p})
				since := k.Status().Since
				time.Sleep(25 * time.Second)
				p.after.Store(reading + 1)
				time.Sleep(6 * time.Second)
				went := k.Status().Limit
				time.Sleep(2 * time.Minute)
				if s := k.Status(); s.Since.Equal(since) || went.After(time.Now().Add(-time.Minute)) {
					t.Errorf("Status() = %+v, want another lease; the limit was %v when the process stopped", s, went)
				}
			})
		})
	}
}

// TestCloneEndsOneLease: a snapshot of a virtual machine is started while the machine runs. Both have the same
// nonce. The first process that reads a document that it never wrote loses its worker id.
func TestCloneEndsOneLease(t *testing.T) {
	if RaceEnabled {
		return // the test reads a running keeper's memory; it also runs with the simulation
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		k, clone := mustHold(t, f.source(), Config{Workers: 4, Issued: nowMilli}), mustKeep(t, f.source(), Config{Workers: 4, Issued: nowMilli})
		id := k.Status().Worker
		time.Sleep(3 * time.Second)
		if _, _, ok := clone.CopyOf(k); !ok {
			t.Fatal("CopyOf() = false, want a copy of the lease")
		}
		synctest.Wait()
		if s := clone.Status(); s.Phase != phaseHolding || s.Worker != id {
			t.Fatalf("the copy: %+v, want s.Phase = %v and s.Worker = %v", s, phaseHolding, id)
		}
		time.Sleep(15 * time.Second)
		if a, b := k.Status(), clone.Status(); a.Phase != phaseHolding || b.Phase != phaseHolding || a.Worker == b.Worker {
			t.Errorf("both go on with one worker id: %+v, %+v, want a.Phase = %v, b.Phase = %v and a.Worker other than %v", a, b, phaseHolding, phaseHolding, b.Worker)
		}
	})
}

// TestCloneGivesNothingBack: a process that ends must not free the slot that its copy uses.
func TestCloneGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		k := mustHold(t, f.source(), Config{Workers: 1})
		d := f.doc(0)
		d.HighWater = d.HighWater.Add(5 * time.Second) // the copy's renewal
		f.write(0, d)
		k.Close()
		if got := f.doc(0); got.Free {
			t.Errorf("slot 0 after Close of the original = %+v, want a held slot", got)
		}
	})
}

// refusedServer refuses one put, and serves its document until the next put.
type refusedServer struct {
	*fakeRegistry
	n    int
	doc  Doc
	mu   sync.Mutex
	puts int
}

func (s *refusedServer) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.puts++; s.puts == s.n {
		s.doc = d
		return "", false, nil
	}
	v, ok, err := s.fakeRegistry.Put(ctx, slot, d, expected)
	if ok {
		s.doc = Doc{}
	}
	return v, ok, err
}

func (s *refusedServer) Get(ctx context.Context, slot int) (Doc, Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doc.Nonce != "" && slot >= 0 {
		return s.doc, "of what was refused", nil
	}
	return s.fakeRegistry.Get(ctx, slot)
}

// TestRefusedRenewalContinuesTheLease: a renewal is refused without a reason, and its document is read nevertheless.
// The lease continues from the document that was confirmed.
func TestRefusedRenewalContinuesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := mustHold(t, Source{Slots: &refusedServer{fakeRegistry: newFake(1), n: 3}}, Config{Workers: 1})
		since := k.Status().Since
		time.Sleep(2 * time.Minute)
		if s := k.Status(); !s.Since.Equal(since) || s.Limit.Before(nowMilli().Add(40*time.Second)) {
			t.Errorf("%+v", s)
		}
	})
}

// adjustableHost is a host with an adjustable wall clock.
type adjustableHost struct {
	host
	offset atomic.Int64
}

func (h *adjustableHost) wall() time.Time { return h.host.wall().Add(time.Duration(h.offset.Load())) }

// A clock that is far from the registry's is logged once and shown in the
// status. A clock that jumps while the process runs is noticed at the next
// renewal.
func TestClockOffsetIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j logRecorder
		f := newFake(8)
		var asked atomic.Int64
		src := f.source()
		src.Time = func(context.Context) (time.Time, error) { asked.Add(1); return nowMilli(), nil }
		h := &adjustableHost{host: machine{began: time.Now()}}
		h.offset.Store(int64(24 * time.Hour))
		ahead := mustKeep(t, src, Config{Workers: 8, Logger: j.logger(), host: h, AnyClock: true})
		began := time.Now()
		if _, err := ahead.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := ahead.Status(); s.ClockOffset != 24*time.Hour || j.count("the registry's differ") != 1 || time.Since(began) > 10*time.Second {
			t.Errorf("a day ahead: %v, %s, want s.ClockOffset = 24h, j.count(\"the registry's differ\") = 1 and time.Since(began) at most 10s", s.ClockOffset, j.String())
		}
		time.Sleep(time.Hour)
		if asked.Load() != 1 || j.count("the registry's differ") != 1 {
			t.Errorf("asked %d times, %s, want asked.Load() = 1 and j.count(\"the registry's differ\") = 1", asked.Load(), j.String())
		}

		// Other processes start together: one slot is blocked, but no spare.
		for range 7 {
			if s := mustHold(t, f.source(), Config{Workers: 8}).Status(); s.Start.Sub(s.Since) > 0 {
				t.Errorf("another process: %+v, want s.Start.Sub(s.Since) at most 0", s)
			}
		}

		h.offset.Store(int64(24*time.Hour + 3*time.Minute)) // set forward
		time.Sleep(11 * time.Second)
		if s := ahead.Status(); s.ClockOffset.Round(time.Second) != 24*time.Hour+3*time.Minute || asked.Load() != 2 {
			t.Errorf("set forward: %v, asked %d times, want s.ClockOffset.Round(1s) = 24h+3m and asked.Load() = 2", s.ClockOffset, asked.Load())
		}
		h.offset.Store(0) // right again: ids continue with the time that they had
		time.Sleep(11 * time.Second)
		if s := ahead.Status(); s.ClockOffset.Round(time.Second) != 24*time.Hour+3*time.Minute || asked.Load() != 3 || s.Phase != phaseHolding {
			t.Errorf("set right: %v, asked %d times, want s.ClockOffset.Round(1s) = 24h+3m, asked.Load() = 3 and s.Phase = %v", s.ClockOffset, asked.Load(), phaseHolding)
		}
	})
}

// Spares created by a process with a clock that is ahead block no other process.
func TestSparesOfAFastClockBlockNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRegistry{}
		h := &adjustableHost{host: machine{began: time.Now()}}
		h.offset.Store(int64(24 * time.Hour))
		mustHold(t, f.source(), Config{Workers: 32, NewRegistry: true, host: h})
		time.Sleep(3 * time.Minute)
		for i := range 31 {
			k := mustKeep(t, f.source(), Config{Workers: 32})
			began := time.Now()
			if s, err := k.Wait(t.Context()); err != nil || time.Since(began) > 2*time.Minute+time.Second {
				t.Fatalf("process %d: %+v, %v after %v, want time.Since(began) at most 2m+1s and no error", i, s, err, time.Since(began))
			}
		}
	})
}

// A process works without the registry's clock if it has none.
func TestRegistryWithoutClockWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newFake(1).source()
		src.Time = func(ctx context.Context) (time.Time, error) {
			<-ctx.Done()
			return time.Time{}, errors.New("no answer")
		}
		k := mustHold(t, src, Config{Workers: 1})
		time.Sleep(time.Hour)
		if s := k.Status(); s.Phase != phaseHolding || s.ClockOffset != 0 || s.Err != nil {
			t.Errorf("Status() = %+v, want Phase = %v, ClockOffset = 0 and no Err", s, phaseHolding)
		}
	})
}
