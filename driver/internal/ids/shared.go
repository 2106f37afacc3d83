package ids

import "sync"

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
	users int // guarded by shared.mu
	value V
}

// get returns the value of a key, for a user who releases it. If there is none it is
// built, which must not wait for anything. before is closed when earlier values of the
// key were closed, and nil where there are none.
func (s *shared[K, V]) get(key K, build func(before <-chan struct{}) (V, error)) (V, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		s.inUse, s.closing = make(map[K]*use[V]), make(map[K]chan struct{})
	}
	u := s.inUse[key]
	if u == nil {
		value, err := build(s.closing[key])
		if err != nil {
			return value, err
		}
		u = &use[V]{value: value}
		s.inUse[key] = u
	}
	u.users++
	return u.value, nil
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
