package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// audience is a source's Held. It hears every call, and whether two overlap.
type audience struct {
	t     *testing.T
	busy  atomic.Bool
	heard []Holding
	stays bool // each call goes on until its context ends
	left  []time.Duration
}

func (a *audience) held(ctx context.Context, h Holding) {
	if !a.busy.CompareAndSwap(false, true) {
		a.t.Error("told two things at once")
	}
	a.heard = append(a.heard, h)
	deadline, ok := ctx.Deadline()
	if ok {
		a.left = append(a.left, time.Until(deadline))
	}
	if ok == h.Held {
		a.t.Errorf("Held %v: has a deadline: %v", h.Held, ok)
	}
	if a.stays {
		<-ctx.Done()
	} else {
		time.Sleep(time.Second)
	}
	a.busy.Store(false)
}

// A source hears of every holding once when it began and once when it was
// over, in that order, whatever becomes of it.
func TestHeldIsTold(t *testing.T) {
	ends := map[string]func(t *testing.T, f *fake, src Source) (leases int){
		"closed": func(t *testing.T, f *fake, src Source) int {
			leased(t, src, Config{Workers: 4}).Close()
			return 1
		},
		"closed later": func(t *testing.T, f *fake, src Source) int {
			l := leased(t, src, Config{Workers: 4})
			time.Sleep(time.Minute)
			l.Close()
			return 1
		},
		"lost": func(t *testing.T, f *fake, src Source) int {
			l := leased(t, src, Config{Workers: 4})
			lose(t, f, l)
			l.Close()
			return 1
		},
		"lost, with successors": func(t *testing.T, f *fake, src Source) int {
			l := leased(t, src, Config{Workers: 4})
			for range 2 {
				lose(t, f, l)
				next, err := keep(t, func() (*Lease, error) { return l.Successor(t.Context()) })
				if err != nil {
					t.Fatal(err)
				}
				l = next
			}
			l.Close()
			return 3
		},
		"given up while waiting": func(t *testing.T, f *fake, src Source) int {
			f.slots = nil // unknown history
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if l, err := Acquire(ctx, src, Config{Workers: 4, Logger: quiet()}); err == nil {
				t.Errorf("worker id %d at once", l.Worker())
			}
			return 1
		},
		"never held": func(t *testing.T, f *fake, src Source) int {
			f.set(fakeFaults{away: true})
			if _, err := tryLease(t, src, Config{Workers: 4}); err == nil {
				t.Error("a lease of nobody")
			}
			return 0
		},
	}
	for _, stays := range []bool{false, true} {
		for name, end := range ends {
			t.Run(fmt.Sprintf("%s, stays %v", name, stays), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(4)
					a := &audience{t: t, stays: stays}
					n := end(t, f, Source{Slots: f, Held: a.held})
					synctest.Wait()
					if len(a.heard) != 2*n {
						t.Fatalf("told %d times of %d leases: %+v", len(a.heard), n, a.heard)
					}
					nonces := map[string]bool{}
					for i := 0; i < len(a.heard); i += 2 {
						from, to := a.heard[i], a.heard[i+1]
						if !from.Held || to.Held || from.Worker != to.Worker || from.Doc.Nonce != to.Doc.Nonce {
							t.Errorf("told %+v, then %+v", from, to)
						}
						if from.Doc.Free || from.Doc.HW == 0 || from.Doc.Owner == "" || to.Doc.HW < from.Doc.HW {
							t.Errorf("the documents were %+v, then %+v", from.Doc, to.Doc)
						}
						nonces[from.Doc.Nonce] = true
					}
					if len(nonces) != n {
						t.Errorf("told of %d leases, which were %d", len(nonces), n)
					}
					for _, d := range a.left {
						if d != 2*time.Second {
							t.Errorf("the second call had %v", d)
						}
					}
				})
			})
		}
	}
}

// ends gives the ways in which a source is used up.
var ends = map[string]func(t *testing.T, f *fake, src Source){
	"closed": func(t *testing.T, f *fake, src Source) {
		leased(t, src, Config{Workers: 4}).Close()
	},
	"closed twice": func(t *testing.T, f *fake, src Source) {
		l := leased(t, src, Config{Workers: 4})
		l.Close()
		l.Close()
	},
	"closed with local state": func(t *testing.T, f *fake, src Source) {
		leased(t, src, Config{Workers: 4, State: t.TempDir(), Registry: "r"}).Close()
	},
	"closed by two at once": func(t *testing.T, f *fake, src Source) {
		l := leased(t, src, Config{Workers: 4})
		go l.Close()
		l.Close()
	},
	"closed while the registry hangs": func(t *testing.T, f *fake, src Source) {
		l := leased(t, src, Config{Workers: 4})
		f.set(fakeFaults{hangs: true})
		l.Close()
	},
	"lost and closed": func(t *testing.T, f *fake, src Source) {
		l := leased(t, src, Config{Workers: 4})
		lose(t, f, l)
		if f.timesClosed() != 0 {
			t.Error("closed before a successor could be taken")
		}
		l.Close()
	},
	"handed on": func(t *testing.T, f *fake, src Source) {
		l := leased(t, src, Config{Workers: 4})
		lose(t, f, l)
		next, err := l.Successor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if f.timesClosed() != 0 {
			t.Error("closed by a lease that had handed it on")
		}
		next.Close()
		next.Close()
	},
	"no successor": func(t *testing.T, f *fake, src Source) {
		l := leased(t, src, Config{Workers: 4})
		lose(t, f, l)
		f.set(fakeFaults{away: true})
		if _, err := l.Successor(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("a successor: %v", err)
		}
		l.Close()
	},
	"all taken": func(t *testing.T, f *fake, src Source) {
		for i := range 4 {
			f.write(i, Doc{Nonce: "other", HW: time.Now().Add(time.Minute).UnixMilli()})
		}
		if _, err := tryLease(t, src, Config{Workers: 4}); err == nil {
			t.Error("a lease")
		}
	},
	"away": func(t *testing.T, f *fake, src Source) {
		f.set(fakeFaults{hangs: true})
		if _, err := tryLease(t, src, Config{Workers: 4}); err == nil {
			t.Error("a lease")
		}
	},
	"given up while waiting": func(t *testing.T, f *fake, src Source) {
		f.slots = nil
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Acquire(ctx, src, Config{Workers: 4, Logger: quiet()}); err == nil {
			t.Error("a lease")
		}
	},
	"a bad bound": func(t *testing.T, f *fake, src Source) {
		if _, err := tryLease(t, src, Config{Bound: 1}); err == nil {
			t.Error("a lease")
		}
	},
	"state without a name": func(t *testing.T, f *fake, src Source) {
		if _, err := tryLease(t, src, Config{State: t.TempDir()}); err == nil {
			t.Error("a lease")
		}
	},
	"state in use": func(t *testing.T, f *fake, src Source) {
		dir := t.TempDir()
		leased(t, Source{Slots: newFake(4)}, Config{Workers: 4, State: dir, Registry: "r"})
		if _, err := tryLease(t, src, Config{Workers: 4, State: dir, Registry: "r"}); !errors.Is(err, ErrInUse) {
			t.Errorf("%v", err)
		}
	},
	"a full disk": func(t *testing.T, f *fake, src Source) {
		dir := t.TempDir()
		st, err := openState(dir, "r", 4)
		if err != nil {
			t.Fatal(err)
		}
		st.Close()
		fill(t, st.path)
		if _, err := tryLease(t, src, Config{Workers: 4, State: dir, Registry: "r"}); err == nil {
			t.Error("a lease")
		}
	},
}

// Whatever becomes of a source, it is closed, and once.
func TestSlotsAreClosedOnce(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(4)
				ends[name](t, f, Source{Slots: f})
				synctest.Wait()
				if n := f.timesClosed(); n != 1 {
					t.Errorf("closed %d times", n)
				}
			})
		})
	}
}
