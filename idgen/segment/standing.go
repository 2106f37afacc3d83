package segment

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// standing is what is known of a tag.
type standing struct {
	last   int  // the store that ids came from last
	turned bool // and whether the others were looked at when it came to that
	stores []known
}

// known is what is known of a tag in one store.
type known struct {
	place  *place    // where the row stood at least; nil: not known
	seen   int64     // the end of the highest range that came from it
	failed error     // nil if it worked when it was last asked
	tend   time.Time // when to look at it again
	busy   bool      // that is being done
}

func (s *Interleaved) of(tag string) *standing {
	t, ok := s.tags[tag]
	if !ok {
		t = &standing{stores: make([]known, len(s.shares))}
		s.tags[tag] = t
	}
	return t
}

func (s *Interleaved) last(tag string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(tag).last
}

// place is where a row stood, nil if it has to be looked at, and whether the others need
// not be.
func (s *Interleaved) place(tag string, k int) (p *place, turned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(tag)
	return t.stores[k].place, t.last == k && t.turned
}

func (s *Interleaved) seen(tag string, k int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(tag).stores[k].seen
}

// top is where everything below is taken; 1 while that is not known of all stores.
func (s *Interleaved) top(tag string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	top := int64(maxEnd)
	for _, k := range s.of(tag).stores {
		if k.failed != nil || k.place == nil {
			return 1
		}
		top = min(top, k.place.next)
	}
	return max(top, 1)
}

// leftAlone says whether a store failed a moment ago. One that has no row for the tag
// answers, and may get it from any process: it is looked at each time.
func (s *Interleaved) leftAlone(tag string, k int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.of(tag).stores[k]
	return st.failed != nil && !isStores(st.failed) && !gone(st.failed) && time.Now().Before(st.tend)
}

func (s *Interleaved) forget(tag string, k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(tag).stores[k].place = nil
}

// took notes a range that ends at end.
func (s *Interleaved) took(tag string, k int, p place, end int64) {
	p.next = end
	s.mu.Lock()
	st := &s.of(tag).stores[k]
	st.seen = max(st.seen, end)
	s.mu.Unlock()
	s.note(tag, k, &p, nil)
}

// note notes how a store answered.
func (s *Interleaved) note(tag string, k int, p *place, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.of(tag).stores[k]
	log := s.log.With(slog.String("tag", tag), slog.Int("store", k+1), slog.Int("of", len(s.shares)))
	switch {
	case errors.Is(err, context.Canceled): // another store was faster
	case err != nil:
		if st.failed == nil && !gone(err) {
			log.Warn("leafsql: a store fails, and ids come from the others", "err", err)
		}
		st.tend = time.Now()
		if !s.restore || !gone(err) || gone(st.failed) { // else it is restored at once
			st.tend = st.tend.Add(tendAgain)
		}
		st.place, st.failed = nil, err
	default:
		if st.failed != nil && !gone(st.failed) {
			log.Info("leafsql: a store answers again")
		}
		st.failed, st.tend = nil, time.Now().Add(tendEvery)
		if st.place == nil || st.place.mark != p.mark || st.place.next < p.next {
			st.place = p
		}
	}
}

// turn notes that ids came from a store.
func (s *Interleaved) turn(tag string, k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(tag)
	t.last, t.turned = k, true
	s.tend(tag, t)
	if !s.tending && s.ctx.Err() == nil {
		s.tending = true
		s.tasks.Go(s.keepTending)
	}
}

// keepTending has all stores of all tags looked at from time to time: one that was away,
// or has lost its rows, must be ready before it is needed.
func (s *Interleaved) keepTending() {
	every := time.NewTicker(tendEvery)
	defer every.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-every.C:
		}
		s.mu.Lock()
		for tag, t := range s.tags {
			if t.turned {
				s.tend(tag, t)
			}
		}
		s.mu.Unlock()
	}
}

// tend has the stores of a tag looked at whose time it is. It is called with s.mu held.
func (s *Interleaved) tend(tag string, t *standing) {
	for j := range t.stores {
		st := &t.stores[j]
		if st.busy || time.Now().Before(st.tend) || s.ctx.Err() != nil {
			continue
		}
		st.busy = true
		s.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(s.ctx, retryTime)
			defer cancel()
			_, err := s.ready(ctx, tag, j, true)
			if err != nil {
				s.note(tag, j, nil, err)
			}
			s.mu.Lock()
			st.busy = false
			s.mu.Unlock()
		})
	}
}
