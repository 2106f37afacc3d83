package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Close works for a keeper that was never used, and repeatedly.
// The source is closed once, and only if it was opened.
func TestCloseClosesTheSourceOnce(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, f *fakeRegistry, k *Keeper) (opened int){
		"unused": func(*testing.T, *fakeRegistry, *Keeper) int { return 0 },
		"held":   func(t *testing.T, f *fakeRegistry, k *Keeper) int { k.Wait(t.Context()); return 1 },
		"held for long": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			k.Wait(t.Context())
			time.Sleep(time.Hour)
			return 1
		},
		"at once": func(t *testing.T, f *fakeRegistry, k *Keeper) int { k.start(); synctest.Wait(); return 1 },
		"lost":    func(t *testing.T, f *fakeRegistry, k *Keeper) int { k.Wait(t.Context()); lose(t, f, k); return 1 },
		"while searching": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			f.set(fakeFaults{away: true})
			k.Wait(t.Context())
			return 1
		},
		"while it hangs": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			f.set(fakeFaults{hangs: true})
			k.start()
			time.Sleep(time.Second)
			return 1
		},
		"while waiting": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			f.wipe()
			k.start()
			time.Sleep(time.Minute)
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(4)
				k := mustKeep(t, f.source(), Config{Workers: 4})
				opened := use(t, f, k)
				began := time.Now()
				for range 2 {
					go k.Close()
					k.Close()
				}
				synctest.Wait()
				if took := time.Since(began); took > 5*time.Second || f.closed != opened {
					t.Errorf("took %v, the source was closed %d times, want %d", took, f.closed, opened)
				}
				if s := k.Status(); s.Phase != phaseClosed || !s.Limit.IsZero() {
					t.Errorf("%+v", s)
				}
				for slot := range 4 {
					if d := f.doc(slot); d.Nonce != "" && !d.Free && f.faults == (fakeFaults{}) {
						t.Errorf("after Close: slot %d = %+v, want a free slot", slot, d)
					}
				}
			})
		})
	}
}

// The time that is returned to the registry covers exactly the ids that were issued.
func TestReturnedTimeCoversIssuedIDs(t *testing.T) {
	for name, tt := range map[string]struct {
		issued func(s *Status) time.Time
		want   func(s *Status) time.Time
	}{
		"nobody says":     {nil, func(s *Status) time.Time { return s.Limit }},
		"nothing":         {func(*Status) time.Time { return time.Time{} }, func(*Status) time.Time { return milliTime(1) }},
		"before it":       {func(s *Status) time.Time { return s.Start.Add(-time.Hour) }, func(s *Status) time.Time { return s.Start.Add(-time.Hour) }},
		"up to now":       {func(*Status) time.Time { return nowMilli() }, func(*Status) time.Time { return nowMilli() }},
		"up to the limit": {func(s *Status) time.Time { return s.Limit }, func(s *Status) time.Time { return s.Limit }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				var (
					k     *Keeper
					s     *Status
					wrong atomic.Bool
					cfg   = Config{Workers: 1, Owner: "me"}
				)
				if tt.issued != nil {
					cfg.Issued = func() time.Time {
						wrong.Store(wrong.Load() || !k.Status().Limit.IsZero())
						return tt.issued(s)
					}
				}
				k = mustHold(t, f.source(), cfg)
				s = k.Status()
				time.Sleep(time.Second)
				nonce := f.doc(0).Nonce
				k.Close()
				if got, want := f.doc(0), (Doc{nonce, tt.want(s), true, "me", "r"}); got != want {
					t.Errorf("given back as %+v; want %+v", got, want)
				}
				if wrong.Load() {
					t.Error("the last issued time was read while ids could be issued, want a read after the end of the lease")
				}
			})
		})
	}
}

// A process that ends at any point of a take returns the worker id.
func TestCloseDuringATakeReturnsTheID(t *testing.T) {
	for after := time.Duration(0); after < 500*time.Millisecond; after += 10 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(4)
			f.set(fakeFaults{delay: 40 * time.Millisecond})
			k := mustKeep(t, f.source(), Config{Workers: 4})
			k.start()
			time.Sleep(after)
			k.Close()
			for slot := range 4 {
				if d := f.doc(slot); !d.Free {
					t.Errorf("closed after %v: slot = %+v, want a free slot", after, d)
				}
			}
		})
	}
}

// A registry that hangs does not keep an application from ending.
func TestCloseDoesNotHang(t *testing.T) {
	for _, lease := range []time.Duration{6 * time.Second, time.Minute, time.Hour} {
		for _, listens := range []bool{false, true} {
			t.Run(fmt.Sprint(lease, listens), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg, most := Config{Workers: 1, Lease: lease}, min(lease/12, 5*time.Second)
					f := newFakeOf(1, cfg)
					src := f.source()
					if listens {
						src.OnChange = func(ctx context.Context, _ int, _ Doc, _ bool) { <-ctx.Done() }
						most += 2 * time.Second
					}
					k := mustHold(t, src, cfg)
					f.set(fakeFaults{hangs: true})
					time.Sleep(lease/6 + 100*time.Millisecond) // a renewal is in progress
					began := time.Now()
					go k.Close()
					k.waitForPhase(phaseClosed)
					if took := time.Since(began); took > 0 {
						t.Errorf("ids could be issued for another %v, want 0", took)
					}
					k.Close()
					if took := time.Since(began); took > most {
						t.Errorf("took %v, want at most %v", took, most)
					}
				})
			})
		}
	}
}
