package interleaved

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
)

// catchUp returns the state of a member's row, after it has made sure that the row may give
// ids: it is there and part of the cluster, and the others that answer are in its epoch. They
// may be in a later one, or it is, where somebody drew from it alone: in blocks of all members,
// for all that can be told.
func (s *Store) catchUp(ctx context.Context, tag string, k int, afresh bool) (state, error) {
	for {
		last := s.lastSeen(tag, k)
		row := last.row
		if row == nil || afresh {
			r := s.look(ctx, tag, k)
			if r.err == nil && r.isNew() || lacksRow(r.err) && s.restore {
				if r.err = s.join(ctx, tag, -1, 0); r.err == nil {
					continue
				}
			}
			if r.err != nil {
				return state{}, r.err
			}
			row = &r.state
		}
		if last.current && last.row != nil && last.row.epoch == row.epoch {
			return *row, nil
		}
		latest, alone := int64(-1), error(nil)
		for _, r := range s.poll(ctx, tag, k, quickly) {
			if r.usable() {
				latest = max(latest, r.epoch)
			} else if r.drewAlone() && r.epoch > row.epoch {
				latest, alone = max(latest, r.epoch), r.err
			} else if isMismatch(r.err) {
				return state{}, r.err
			}
		}
		if latest < 0 || latest == row.epoch || latest < row.epoch && row.sealed() {
			return *row, nil
		}
		if err := s.advance(ctx, tag, k, max(latest, row.epoch)); err != nil {
			return state{}, cmp.Or(alone, err)
		}
		afresh = false
	}
}

// setCurrent notes that ids came from a member.
func (s *Store) setCurrent(tag string, k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.view(tag) {
		s.view(tag)[j].current = j == k
	}
	s.warn(tag)
	s.probe(tag)
	if !s.probing && s.ctx.Err() == nil {
		s.probing = true
		s.tasks.Go(s.keepProbing)
	}
}

// keepProbing has all members of all tags probed from time to time: one that was away, or
// has lost its rows, must have caught up before it is needed.
func (s *Store) keepProbing() {
	every := time.NewTicker(probeEvery)
	defer every.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-every.C:
		}
		s.mu.Lock()
		for tag, members := range s.tags {
			if slices.ContainsFunc(members, isCurrent) {
				s.probe(tag)
			}
		}
		s.mu.Unlock()
	}
}

// probe probes the members of a tag whose time it is. It is called with s.mu held.
func (s *Store) probe(tag string) {
	for k := range s.view(tag) {
		m := &s.view(tag)[k]
		if m.probing || time.Now().Before(m.probeAt) || s.ctx.Err() != nil {
			continue
		}
		m.probing = true
		s.tasks.Go(func() {
			ctx, cancel := context.WithTimeout(s.ctx, tagrow.RetryTime)
			defer cancel()
			_, err := s.catchUp(ctx, tag, k, true)
			if err != nil {
				s.record(tag, k, nil, err)
			}
			s.mu.Lock()
			m.probing = false
			s.mu.Unlock()
		})
	}
}
