package interleaved

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/part"
)

// pollTime is what a look at a member may take that is only asked beside another one.
const pollTime = 500 * time.Millisecond

// reply is what a look at a member's row found.
type reply struct {
	state
	err error
}

func (r reply) usable() bool { return r.err == nil && !r.isNew() }

// drewAlone reports whether others can have drawn from the row alone, in the block where it
// stands.
func (r reply) drewAlone() bool { return isAlone(r.err) && !r.sealed() }

// look reads the row of one member.
func (s *Store) look(ctx context.Context, tag string, k int) reply {
	m, seen := s.members[k], s.lastSeen(tag, k).end // before the look: fetches go on meanwhile
	row, err := m.read(ctx, tag)
	recorded := err
	switch {
	case err != nil:
	case row.isNew():
		recorded = m.unknown(tag) // as long as it gives no ids
	case row.next < seen:
		err = &segment.RolledBackError{Tag: tag, Table: m.rows.Table, Start: row.next, Seen: seen, Several: true}
		recorded = err
	}
	s.record(tag, k, &row, recorded)
	return reply{row, err}
}

// errBackingOff stands for a member that failed a moment ago.
var errBackingOff = errors.New("it failed a moment ago")

// How members are polled: those that failed a moment ago are left out, and those that take
// long; only those that take long; none.
const (
	quickly = iota
	again
	patiently
)

// poll looks at all members at the same time, but for one.
func (s *Store) poll(ctx context.Context, tag string, but int, how int) []reply {
	if how != patiently {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pollTime)
		defer cancel()
	}
	polled := make([]reply, len(s.members))
	var wg sync.WaitGroup
	for k := range s.members {
		if k == but || how == quickly && s.lastSeen(tag, k).backingOff() {
			polled[k].err = errBackingOff
			continue
		}
		wg.Go(func() { polled[k] = s.look(ctx, tag, k) })
	}
	wg.Wait()
	return polled
}

// pollAll looks at all members. One that has no row is no error, one that does not answer,
// or does not belong to the others, is.
func (s *Store) pollAll(ctx context.Context, tag string) ([]reply, error) {
	polled := s.poll(ctx, tag, -1, patiently)
	for k, r := range polled {
		switch {
		case isMismatch(r.err):
			return nil, r.err
		case r.err != nil && !lacksRow(r.err):
			return nil, fmt.Errorf("leafsql: tag %q: rows are created only while all stores answer, and store %d of %d fails: %w; bring it back", tag, k+1, len(polled), part.Of(r.err))
		}
	}
	return polled, nil
}

const (
	backOff    = time.Second      // how long a member that failed is left alone
	probeEvery = 20 * time.Second // how often one that works is probed
)

// lastSeen is what this process knows of a tag in one member.
type lastSeen struct {
	current bool      // ids came from it last; it has caught up
	row     *state    // where the row stood at least; nil: not known
	end     int64     // of the highest range that came from it
	failed  error     // nil if it worked when it was last asked
	warned  bool      // the log knows of the failure
	probeAt time.Time // when to probe it
	probing bool      // that is being done
}

// view is what is known of a tag, by member. It is called with s.mu held.
func (s *Store) view(tag string) []lastSeen {
	if s.tags[tag] == nil {
		s.tags[tag] = make([]lastSeen, len(s.members))
	}
	return s.tags[tag]
}

func (s *Store) lastSeen(tag string, k int) lastSeen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view(tag)[k]
}

// current is the member that ids of a tag came from last, the first one before that.
func (s *Store) current(tag string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(slices.IndexFunc(s.view(tag), isCurrent), 0)
}

func isCurrent(m lastSeen) bool { return m.current }

// top is where everything below is taken; 1 while that is not known of all members.
func (s *Store) top(tag string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	top := int64(math.MaxInt64)
	for _, m := range s.view(tag) {
		if m.failed != nil || m.row == nil {
			return 1
		}
		top = min(top, m.row.next)
	}
	return max(top, 1)
}

// backingOff says whether a member failed a moment ago. One that has no row for the tag
// answers, and may get it from any process: it is looked at each time. So is one that others
// can draw from alone, and move.
func (m lastSeen) backingOff() bool {
	return m.failed != nil && !isMismatch(m.failed) && !isAlone(m.failed) && !lacksRow(m.failed) && time.Now().Before(m.probeAt)
}

// forget has a member's row read before it is moved again.
func (s *Store) forget(tag string, k int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view(tag)[k].row = nil
}

// recordRange records a range that ends at end.
func (s *Store) recordRange(tag string, k int, row state, end int64) {
	row.next = end
	s.mu.Lock()
	m := &s.view(tag)[k]
	m.end = max(m.end, end)
	s.mu.Unlock()
	s.record(tag, k, &row, nil)
}

// record records how a member answered.
func (s *Store) record(tag string, k int, row *state, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.view(tag)[k]
	switch {
	case errors.Is(err, context.Canceled): // another member was faster
	case err != nil:
		m.probeAt = time.Now()
		if !s.restore || !lacksRow(err) || lacksRow(m.failed) { // else it is restored at once
			m.probeAt = m.probeAt.Add(backOff)
		}
		m.row, m.failed = nil, err
		for j := range s.view(tag) { // one that lags behind has to catch up
			if o := &s.view(tag)[j]; row != nil && o.row != nil && (reply{*row, err}).drewAlone() {
				o.current = o.current && o.row.epoch >= row.epoch
			}
		}
		s.warn(tag)
	default:
		if m.warned {
			s.about(tag, k).Info("leafsql: a store answers again")
		}
		m.failed, m.warned, m.probeAt = nil, false, time.Now().Add(probeEvery)
		if m.row == nil || m.row.description != row.description || m.row.next < row.next {
			m.row = row
		}
	}
}

// warn tells the log of members that fail, if ids do come from another one. It is called
// with s.mu held.
func (s *Store) warn(tag string) {
	all := s.view(tag)
	if !slices.ContainsFunc(all, func(m lastSeen) bool { return m.current && m.failed == nil }) {
		return
	}
	for k := range all {
		if m := &all[k]; m.failed != nil && !m.warned && !lacksRow(m.failed) {
			m.warned = true
			s.about(tag, k).Warn("leafsql: a store fails, and ids come from the others", "err", m.failed)
		}
	}
}

func (s *Store) about(tag string, k int) *slog.Logger {
	return s.log.With(slog.String("tag", tag), slog.Int("store", k+1), slog.Int("of", len(s.members)))
}
