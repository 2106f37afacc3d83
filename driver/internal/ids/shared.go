package ids

import (
	"context"
	"sync"
)

// A shared holds values that all who name the same key have in common: one is built
// when its first user comes, and closed when its last user leaves.
type shared[K comparable, V any] struct {
	close func(V) error

	mu      sync.Mutex
	inUse   map[K]*use[V]
	closing map[K]chan struct{} // closed when the key's last value was, and all before it
}

// A use is one value with its users.
type use[V any] struct {
	users    int           // also those who wait for it; guarded by shared.mu
	building chan struct{} // holds a token while the value is looked at or built
	built    bool
	value    V
}

// get returns the value of a key, for a user who releases it. If there is none it is
// built, with no lock held; who comes meanwhile waits for that, as long as ctx lets
// it. A failure is the builder's alone: who waited builds it then. before is closed
// when earlier values of the key were closed, and nil where there are none: get does
// not wait for that.
func (s *shared[K, V]) get(ctx context.Context, key K, build func(before <-chan struct{}) (V, error)) (V, error) {
	s.mu.Lock()
	u, ok := s.inUse[key]
	if !ok {
		if s.inUse == nil {
			s.inUse, s.closing = make(map[K]*use[V]), make(map[K]chan struct{})
		}
		u = &use[V]{building: make(chan struct{}, 1)}
		s.inUse[key] = u
	}
	u.users++
	before := s.closing[key]
	s.mu.Unlock()
	err := s.build(ctx, u, before, build)
	if err != nil {
		s.release(key)
		var none V
		return none, err
	}
	return u.value, nil
}

// build builds the value of a use if nobody has.
func (s *shared[K, V]) build(ctx context.Context, u *use[V], before <-chan struct{}, build func(<-chan struct{}) (V, error)) (err error) {
	select {
	case u.building <- struct{}{}:
		defer func() { <-u.building }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !u.built {
		u.value, err = build(before)
		u.built = err == nil
	}
	return err
}

// release lets go of a key's value. The last user closes it, and waits until those
// before it are closed too.
func (s *shared[K, V]) release(key K) error {
	s.mu.Lock()
	u := s.inUse[key]
	if u.users--; u.users > 0 {
		s.mu.Unlock()
		return nil
	}
	delete(s.inUse, key)
	if !u.built {
		s.mu.Unlock()
		return nil
	}
	before, closed := s.closing[key], make(chan struct{})
	s.closing[key] = closed
	s.mu.Unlock()

	err := s.close(u.value)
	if before != nil {
		<-before
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(closed)
	if s.closing[key] == closed {
		delete(s.closing, key)
	}
	return err
}
