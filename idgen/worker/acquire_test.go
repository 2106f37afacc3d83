package worker

import (
	"context"
	"errors"
	"strconv"
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

func (a *anchored) touched() (held, quarantined int) {
	for i := range 64 {
		d, _, _ := a.Get(context.Background(), i)
		switch {
		case !d.Free:
			held++
		case d.HW > 1:
			quarantined++
		}
	}
	return held, quarantined
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
				l := acquired(t, s, Config{Workers: 64})
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("took %v", took)
				}
				void := len(answers) / 2
				if held, quarantined := s.touched(); held != 1 || quarantined != void {
					t.Errorf("%d slots are held and %d quarantined; want 1 and %d", held, quarantined, void)
				}
				// What a void take leaves behind covers whoever the wipe made unknown.
				for i := range 64 {
					d, _, _ := s.Get(t.Context(), i)
					if d.Free && d.HW > 1 && d.HW < time.Now().Add(116*time.Second).UnixMilli() {
						t.Errorf("slot %d was freed with hw %s", i, strconv.FormatInt(d.HW-l.Now(), 10))
					}
				}
			})
		})
	}
}
