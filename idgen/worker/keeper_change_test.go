package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// change is a call of a source's OnChange.
type change struct {
	worker int
	doc    Doc
	held   bool
}

// changeRecorder records the calls of a source's OnChange, and whether two overlap.
type changeRecorder struct {
	t         *testing.T
	busy      atomic.Bool
	changes   []change
	blocks    bool // each call lasts until its context ends
	callTimes []time.Duration
}

func (a *changeRecorder) onChange(ctx context.Context, worker int, d Doc, held bool) {
	if !a.busy.CompareAndSwap(false, true) {
		a.t.Error("OnChange was called while another call was running, want one call at a time")
	}
	a.changes = append(a.changes, change{worker, d, held})
	deadline, ok := ctx.Deadline()
	if ok {
		a.callTimes = append(a.callTimes, time.Until(deadline))
	}
	if ok == held {
		a.t.Errorf("held %v: has a deadline: %v, want not %v", held, ok, held)
	}
	if a.blocks {
		<-ctx.Done()
	} else {
		time.Sleep(time.Second)
	}
	a.busy.Store(false)
}

// OnChange is called once after a worker id was taken and once after it was
// returned or lost, in that order, in all cases.
func TestOnChangeIsCalledInOrder(t *testing.T) {
	uses := map[string]func(t *testing.T, f *fakeRegistry, k *Keeper) (leases int){
		"closed": func(t *testing.T, f *fakeRegistry, k *Keeper) int { k.Wait(t.Context()); return 1 },
		"closed later": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			k.Wait(t.Context())
			time.Sleep(time.Minute)
			return 1
		},
		"lost": func(t *testing.T, f *fakeRegistry, k *Keeper) int { k.Wait(t.Context()); lose(t, f, k); return 1 },
		"lost twice, and others taken": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			k.Wait(t.Context())
			for range 2 {
				lose(t, f, k)
				f.set(fakeFaults{})
				k.waitForPhase(phaseHolding)
			}
			return 3
		},
		"given up while waiting": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			f.wipe()
			k.start()
			time.Sleep(20 * time.Second)
			return 1
		},
		"never held": func(t *testing.T, f *fakeRegistry, k *Keeper) int {
			f.set(fakeFaults{away: true})
			k.Wait(t.Context())
			return 0
		},
	}
	for _, stays := range []bool{false, true} {
		for name, use := range uses {
			t.Run(fmt.Sprintf("%s, stays %v", name, stays), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(4)
					a := &changeRecorder{t: t, blocks: stays}
					src := f.source()
					src.OnChange = a.onChange
					k := mustKeep(t, src, Config{Workers: 4})
					n := use(t, f, k)
					k.Close()
					if len(a.changes) != 2*n {
						t.Fatalf("OnChange was called %d times for %d leases, want %d: %+v", len(a.changes), n, 2*n, a.changes)
					}
					nonces := map[string]bool{}
					for i := 0; i < len(a.changes); i += 2 {
						from, to := a.changes[i], a.changes[i+1]
						if !from.held || to.held || from.worker != to.worker || from.doc.Nonce != to.doc.Nonce {
							t.Errorf("OnChange was called with %+v, then %+v, want the same lease held, then not held", from, to)
						}
						if from.doc.Free || from.doc.HighWater.IsZero() || from.doc.Owner == "" || to.doc.HighWater.Before(from.doc.HighWater) {
							t.Errorf("the documents were %+v, then %+v, want a held one, then one with an equal or later time", from.doc, to.doc)
						}
						nonces[from.doc.Nonce] = true
					}
					if len(nonces) != n {
						t.Errorf("OnChange was called for %d leases, want %d", len(nonces), n)
					}
					for _, d := range a.callTimes {
						if d != 2*time.Second {
							t.Errorf("the second call had %v, want 2*time.Second", d)
						}
					}
				})
			})
		}
	}
}
