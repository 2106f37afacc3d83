package ids

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// value counts how often it was built and closed.
type value struct{ built, closed atomic.Int32 }

func build(v *value) func(<-chan struct{}) (*value, error) {
	return func(<-chan struct{}) (*value, error) {
		v.built.Add(1)
		return v, nil
	}
}

// counting returns a shared that counts how often values are closed.
func counting() *shared[string, *value] {
	return &shared[string, *value]{close: func(v *value) error {
		return fmt.Errorf("closed %d times", v.closed.Add(1))
	}}
}

func get(t *testing.T, s *shared[string, *value], key string, v *value) *value {
	t.Helper()
	got, err := s.get(key, build(v))
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

// TestSharedValueIsBuiltAndClosedOnce: with many concurrent users, a key has one open value at a time. Each value is built once
// and closed once, and nothing of it remains.
func TestSharedValueIsBuiltAndClosedOnce(t *testing.T) {
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
				built, earlier := false, (<-chan struct{})(nil)
				v, err := s.get(key, func(before <-chan struct{}) (*value, error) {
					built, earlier = true, before
					return new(value), nil
				})
				if err != nil || v == nil {
					t.Errorf("get() = %v, %v; want a value", v, err)
				}
				if built {
					builds.Add(1)
					if earlier != nil {
						<-earlier
					}
					if n := alive.Add(1); n > 2 {
						t.Errorf("%d open values, want at most 2 for 2 keys", n)
					}
				}
				s.release(key)
			}
		})
	}
	users.Wait()
	if builds.Load() != closes.Load() || alive.Load() != 0 || !s.empty() {
		t.Errorf("%d values built, %d closed, want equal numbers; %v and %v remain, want none", builds.Load(), closes.Load(), s.inUse, s.closing)
	}
}

// TestLastReleaseClosesSharedValue: the last user's release closes the value and returns the error of close.
func TestLastReleaseClosesSharedValue(t *testing.T) {
	s := counting()
	a, other := new(value), new(value)
	if get(t, s, "a", a) != a || get(t, s, "a", other) != a || get(t, s, "b", other) != other {
		t.Error("get() returned another value, want the shared value of each key")
	}
	if err := s.release("a"); err != nil || a.closed.Load() != 0 {
		t.Errorf("release() = %v, closed %d times; want nil and an open value, since it has a user", err, a.closed.Load())
	}
	if err := s.release("a"); err == nil || err.Error() != "closed 1 times" {
		t.Errorf("last release() = %v, want \"closed 1 times\"", err)
	}
	if a.built.Load() != 1 || other.built.Load() != 1 || other.closed.Load() != 0 {
		t.Errorf("values = %v and %v, want each built once, and the second one open", a, other)
	}
	if get(t, s, "a", other) != other || other.built.Load() != 2 {
		t.Error("get() after the last release returned the closed value, want a new one")
	}
}

// TestFailedBuildLeavesNothing: after a failed build nothing remains and nothing is closed, and the next
// user builds the value.
func TestFailedBuildLeavesNothing(t *testing.T) {
	s := counting()
	failed := errors.New("no")
	if v, err := s.get("a", func(<-chan struct{}) (*value, error) { return nil, failed }); v != nil || err != failed {
		t.Errorf("get() = %v, %v; want nil, %v", v, err, failed)
	}
	if !s.empty() {
		t.Errorf("%v and %v remain after a failed build, want none", s.inUse, s.closing)
	}
	if v := new(value); get(t, s, "a", v) != v {
		t.Error("get() after a failed build returned another value, want the new one")
	}
}

// TestNextValueIsBuiltWhileEarlierOnesClose: a key's next value is built at once, and notified when all
// earlier values are closed, in any order.
func TestNextValueIsBuiltWhileEarlierOnesClose(t *testing.T) {
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
				if _, err := s.get("a", func(b <-chan struct{}) (*value, error) { before[i] = b; return v, nil }); err != nil {
					t.Fatal(err)
				}
				if i < 2 {
					go s.release("a")
					synctest.Wait()
				}
			}
			if before[0] != nil {
				t.Error("the first value waits for an earlier one, want a nil channel")
			}
			select {
			case <-before[2]:
				t.Errorf("%v: the third value was notified before all earlier ones were closed, want later", order)
			default:
			}
			close(gates[values[order[1]]])
			<-before[1]
			<-before[2]
			close(gates[values[2]])
			s.release("a")
			if synctest.Wait(); !s.empty() {
				t.Errorf("%v and %v remain, want none", s.inUse, s.closing)
			}
		})
	}
}
