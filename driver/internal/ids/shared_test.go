package ids

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// value counts what becomes of it.
type value struct{ built, closed atomic.Int32 }

func build(v *value) func(<-chan struct{}) (*value, error) {
	return func(<-chan struct{}) (*value, error) {
		v.built.Add(1)
		return v, nil
	}
}

// counting counts how often values are closed.
func counting() *shared[string, *value] {
	return &shared[string, *value]{close: func(v *value) error {
		return fmt.Errorf("closed %d times", v.closed.Add(1))
	}}
}

func get(t *testing.T, s *shared[string, *value], key string, v *value) *value {
	t.Helper()
	got, err := s.get(t.Context(), key, build(v))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (s *shared[K, V]) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inUse) == 0 && len(s.closing) == 0
}

// TestSharedByMany: however many come and go, one value is alive at a time, built once
// and closed once, and nothing is kept of it.
func TestSharedByMany(t *testing.T) {
	s := counting()
	var alive, builds, closes atomic.Int32
	s.close = func(*value) error {
		alive.Add(-1)
		closes.Add(1)
		return nil
	}
	var users sync.WaitGroup
	for g := range 16 {
		users.Go(func() {
			key := fmt.Sprint(g % 2)
			for range 500 {
				v, err := s.get(t.Context(), key, func(before <-chan struct{}) (*value, error) {
					if before != nil {
						<-before
					}
					builds.Add(1)
					if n := alive.Add(1); n > 2 {
						t.Errorf("%d values of 2 keys", n)
					}
					return new(value), nil
				})
				if err != nil || v == nil {
					t.Error(v, err)
				}
				s.release(key)
			}
		})
	}
	users.Wait()
	if builds.Load() != closes.Load() || alive.Load() != 0 || !s.empty() {
		t.Errorf("%d built, %d closed; %v and %v are kept", builds.Load(), closes.Load(), s.inUse, s.closing)
	}
}

// TestSharedUsers: the last user's release closes, with the error of that.
func TestSharedUsers(t *testing.T) {
	s := counting()
	a, other := new(value), new(value)
	if get(t, s, "a", a) != a || get(t, s, "a", other) != a || get(t, s, "b", other) != other {
		t.Error("another value")
	}
	if err := s.release("a"); err != nil || a.closed.Load() != 0 {
		t.Error("closed while somebody uses it:", err)
	}
	if err := s.release("a"); err == nil || err.Error() != "closed 1 times" {
		t.Error(err)
	}
	if a.built.Load() != 1 || other.built.Load() != 1 || other.closed.Load() != 0 {
		t.Error(a, other)
	}
	if get(t, s, "a", other) != other || other.built.Load() != 2 {
		t.Error("a closed value is given out")
	}
}

// TestSharedWhileBuilding: others build other keys meanwhile; who wants the same waits
// as long as its context lets it; a failure is the builder's alone.
func TestSharedWhileBuilding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := counting()
		gate, failed := make(chan struct{}), errors.New("no")
		first := make(chan error)
		go func() {
			_, err := s.get(t.Context(), "a", func(<-chan struct{}) (*value, error) {
				<-gate
				return nil, failed
			})
			first <- err
		}()
		synctest.Wait()
		get(t, s, "b", new(value))
		s.release("b")

		ctx, cancel := context.WithCancelCause(t.Context())
		gone := make(chan error)
		go func() {
			_, err := s.get(ctx, "a", build(new(value)))
			gone <- err
		}()
		v, waited := new(value), make(chan *value)
		go func() { waited <- get(t, s, "a", v) }()
		synctest.Wait()
		why := errors.New("enough")
		cancel(why)
		if err := <-gone; err != why {
			t.Error(err)
		}
		synctest.Wait()
		if v.built.Load() != 0 {
			t.Error("two build at a time")
		}
		close(gate)
		if err := <-first; err != failed {
			t.Error(err)
		}
		if <-waited != v {
			t.Error("another value")
		}
		s.release("a")
		if v.built.Load() != 1 || v.closed.Load() != 1 || !s.empty() {
			t.Error(v, s.inUse, s.closing)
		}
	})
}

// TestSharedFailure: nothing is kept or closed of what could not be built.
func TestSharedFailure(t *testing.T) {
	s := counting()
	failed := errors.New("no")
	if v, err := s.get(t.Context(), "a", func(<-chan struct{}) (*value, error) { return new(value), failed }); v != nil || err != failed {
		t.Error(v, err)
	}
	if !s.empty() {
		t.Error(s.inUse, s.closing)
	}
}

// TestSharedWhileClosing: a key's next value is built at once, and told when all
// before it are closed, in whatever order that happens.
func TestSharedWhileClosing(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			gates := map[*value]chan struct{}{}
			s := &shared[string, *value]{close: func(v *value) error { <-gates[v]; return nil }}
			var values [3]*value
			var before [3]<-chan struct{}
			for i := range values {
				v := new(value)
				values[i], gates[v] = v, make(chan struct{})
				if i == 2 {
					close(gates[values[order[0]]])
					synctest.Wait()
				}
				if _, err := s.get(t.Context(), "a", func(b <-chan struct{}) (*value, error) { before[i] = b; return v, nil }); err != nil {
					t.Fatal(err)
				}
				if i < 2 {
					go s.release("a")
					synctest.Wait()
				}
			}
			if before[0] != nil {
				t.Error("the first value is told of one before it")
			}
			select {
			case <-before[2]:
				t.Errorf("%v: one before it still closes", order)
			default:
			}
			close(gates[values[order[1]]])
			<-before[1]
			<-before[2]
			close(gates[values[2]])
			s.release("a")
			if synctest.Wait(); !s.empty() {
				t.Error(s.inUse, s.closing)
			}
		})
	}
}
