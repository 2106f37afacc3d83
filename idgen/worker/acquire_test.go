package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// registry gives an in-memory registry with n free slots.
func registry(n int) *memory {
	m := &memory{}
	for i := range n {
		m.Put(context.Background(), i, Doc{Nonce: "before", HW: 1, Free: true}, "")
	}
	return m
}

// acquired takes a worker id and gives it back at the end of the test.
func acquired(t *testing.T, s Slots, cfg Config) *Lease {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	l, err := Acquire(t.Context(), Source{Slots: s}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// anchored is a registry whose anchor reads as the answers say, then stays.
type anchored struct {
	*memory
	reads   atomic.Int64
	answers []string // "" is no answer
}

func (a *anchored) Anchor(context.Context) (string, error) {
	n := int(a.reads.Add(1)) - 1
	s := a.answers[min(n, len(a.answers)-1)]
	if s == "" {
		return "", errors.New("no answer")
	}
	return s, nil
}

func (a *anchored) touched() (held, freed int) {
	for i := range 64 {
		d, _, _ := a.Get(context.Background(), i)
		switch {
		case !d.Free:
			held++
		case d.Anchor != "":
			freed++ // which tells nothing where that is another's
		}
	}
	return held, freed
}

func TestVoidTakeEndsTheSearch(t *testing.T) {
	for name, answers := range map[string][]string{
		"stale first read":    {"old", "new"},
		"wiped twice":         {"a", "b", "b", "c"},
		"unreadable at first": {"a", "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &anchored{memory: registry(64), answers: answers}
				began := time.Now()
				acquired(t, s, Config{Workers: 64})
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("took %v", took)
				}
				void := len(answers) / 2
				if held, freed := s.touched(); held != 1 || freed != void {
					t.Errorf("%d slots are held and %d freed; want 1 and %d", held, freed, void)
				}
				// What a void take leaves behind tells nothing after the wipe.
				last := answers[len(answers)-1]
				for i := range 64 {
					d, _, _ := s.Get(t.Context(), i)
					if d.Free && d.Anchor != "" && !unknown(d, last) && last != answers[0] {
						t.Errorf("slot %d was freed as %+v", i, d)
					}
				}
			})
		})
	}
}

// TestDocumentOfAnotherAnchor: who takes a slot waits out what a document does
// not tell that was written in another life of the registry.
func TestDocumentOfAnotherAnchor(t *testing.T) {
	for anchor, waits := range map[string]time.Duration{"": 0, "now": 0, "before": 2 * time.Minute} {
		t.Run(anchor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memory{}
				m.Put(t.Context(), 0, Doc{Nonce: "n", HW: time.Now().UnixMilli() - 1, Free: true, Anchor: anchor}, "")
				began := time.Now()
				acquired(t, &anchored{memory: m, answers: []string{"now"}}, Config{Workers: 1})
				if took := time.Since(began); took.Round(time.Second) != waits {
					t.Errorf("took %v; want %v", took, waits)
				}
				if d, _, _ := m.Get(t.Context(), 0); d.Anchor != "now" {
					t.Errorf("taken as %+v", d)
				}
			})
		})
	}
}

// unreadable has one slot that no text can be made of.
type unreadable struct {
	*memory
	slot int
}

func (u unreadable) Get(ctx context.Context, slot int) (Doc, Version, error) {
	if slot == u.slot {
		return Doc{}, "", errors.New("not a worker slot's document")
	}
	return u.memory.Get(ctx, slot)
}

// TestNoSlotToTake: what a search says that finds none, and how long it looks.
func TestNoSlotToTake(t *testing.T) {
	held := func(ahead time.Duration) *memory {
		m := &memory{}
		for i := range 4 {
			d := Doc{Nonce: "n", HW: time.Now().Add(ahead).UnixMilli() + int64(i), Owner: "o"}
			m.Put(context.Background(), i, d, "")
		}
		return m
	}
	for name, tt := range map[string]struct {
		slots func() Slots
		ahead bool // a ClockError, else a TakenError
	}{
		"all held":                            {func() Slots { return held(time.Minute) }, false},
		"all held but one that is unreadable": {func() Slots { return unreadable{held(time.Minute), 2} }, false},
		"held, by clocks hours ahead":         {func() Slots { return held(5 * time.Hour) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tt.slots()
				began := time.Now()
				_, err := Acquire(t.Context(), Source{Slots: s, Last: func(context.Context) (int, bool) { return 2, true }}, Config{Workers: 4, Logger: quiet()})
				taken, isTaken := errors.AsType[*TakenError](err)
				clock, isClock := errors.AsType[*ClockError](err)
				switch {
				case tt.ahead && (!isClock || clock.Owner != "o" || clock.Behind < 4*time.Hour), !tt.ahead && (!isTaken || taken.Owner != "o" || taken.Worker != 0):
					t.Errorf("%v", err)
				}
				if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestStaleVerdict: what one search saw may be over.
func TestStaleVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		v, _, _ := m.Put(t.Context(), 0, Doc{Nonce: "n", HW: time.Now().Add(time.Minute).UnixMilli()}, "")
		time.AfterFunc(2*time.Second, func() {
			m.Put(context.Background(), 0, Doc{Nonce: "n", HW: 1, Free: true}, v)
		})
		acquired(t, m, Config{Workers: 1})
	})
}

// TestContendedSearchGoesOn: a registry that answers is there, however long
// others are faster.
func TestContendedSearchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(4)
		f.set(fakeFaults{deny: 1})
		time.AfterFunc(time.Minute, func() { f.set(fakeFaults{}) })
		acquired(t, f, Config{Workers: 4})
	})
}

// TestDeclaredNewOnce: a successor comes when others may be running, whatever
// was declared at the start.
func TestDeclaredNewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		l := acquired(t, f, Config{Workers: 2, NewRegistry: true})
		f.set(fakeFaults{away: true})
		<-l.Done()
		f.set(fakeFaults{})
		f.memory.mu.Lock()
		f.memory.slots = nil
		f.memory.mu.Unlock()
		began := time.Now()
		next, err := l.Successor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		if waited := time.Since(began); waited < 2*time.Minute {
			t.Errorf("the wiped registry's slot was used after %v", waited)
		}
	})
}
