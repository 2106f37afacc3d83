package ids

import "sync"

// A shared holds one value per key for all users of the key. The value is built for its
// first user, and closed when its last user releases it. It is safe for concurrent use.
type shared[K comparable, V any] struct {
	close func(V) error

	mu      sync.Mutex
	inUse   map[K]*sharedValue[V]
	closing map[K]chan struct{} // closed when the key's latest released value and all earlier ones are closed
}

// A sharedValue is a value and the number of its users.
type sharedValue[V any] struct {
	users int // guarded by shared.mu
	value V
}

// get returns the value of a key, which the caller has to release. If there is none, get calls
// build, which must not block. before is closed when all earlier values of the key are closed,
// and is nil if no earlier value is still closing.
func (s *shared[K, V]) get(key K, build func(before <-chan struct{}) (V, error)) (V, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == nil {
		s.inUse, s.closing = make(map[K]*sharedValue[V]), make(map[K]chan struct{})
	}
	u := s.inUse[key]
	if u == nil {
		value, err := build(s.closing[key])
		if err != nil {
			return value, err
		}
		u = &sharedValue[V]{value: value}
		s.inUse[key] = u
	}
	u.users++
	return u.value, nil
}

// release ends one use of a key's value. The last user's call closes the value, waits until
// all earlier values of the key are also closed, and returns the error of close.
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
