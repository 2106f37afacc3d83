package interleaved

import (
	"cmp"
	"context"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
)

// hedgeAfter is how long a member has to answer before another one is asked as well.
const hedgeAfter = 150 * time.Millisecond

// Fetch implements segment.Store. More ids than a block has are refused with
// *idgen.CountError.
func (s *Store) Fetch(ctx context.Context, q segment.Request) (segment.Range, error) {
	if most := s.members[0].blockSize - 1; q.N > most {
		return segment.Range{}, &idgen.CountError{N: int(q.N), Max: int(most)}
	}
	for pause := tagrow.MinRetry; ; pause *= 4 {
		r, err := s.fetch(ctx, q)
		if err == nil || isAnswer(err) || ctx.Err() != nil || pause > tagrow.MaxRetry {
			return r, err
		}
		time.Sleep(pause) // members may have failed one after the other, and others work again
	}
}

// fetch is one attempt.
func (s *Store) fetch(ctx context.Context, q segment.Request) (segment.Range, error) {
	if q.Raise { // by all members: after a while without the one that does not answer
		ctx, cancel := context.WithTimeout(ctx, tagrow.RetryTime)
		defer cancel()
		return s.raise(ctx, q)
	}
	return s.hedged(ctx, q.Tag, func(ctx context.Context, k int) (segment.Range, error) { return s.fetchFrom(ctx, k, q) })
}

// hedged has one member after the other try until one succeeds. Where one fails the next is
// asked at once, and where one is slow the next is asked beside it; what the slower one
// brings is lost.
func (s *Store) hedged(ctx context.Context, tag string, try func(ctx context.Context, k int) (segment.Range, error)) (segment.Range, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		k   int
		r   segment.Range
		err error
	}
	m, first := len(s.members), s.current(tag)
	answers := make(chan answer, m)
	errs := make([]error, m)
	asked, failed := 0, 0
	ask := func() {
		k := (first + asked) % m
		asked++
		go func() {
			r, err := try(ctx, k)
			answers <- answer{k, r, err}
		}()
	}
	ask()
	for hedge := time.NewTimer(hedgeAfter); ; hedge.Reset(hedgeAfter) {
		select {
		case a := <-answers:
			if a.err == nil {
				s.setCurrent(tag, a.k)
				return a.r, nil
			}
			if ctx.Err() != nil {
				return segment.Range{}, a.err
			}
			s.record(tag, a.k, nil, a.err)
			if errs[a.k] = a.err; isMismatch(a.err) {
				return segment.Range{}, a.err // whatever the others say
			}
			if failed++; failed == m {
				return segment.Range{}, s.allFailed(tag, errs)
			}
		case <-hedge.C:
		}
		if asked < m {
			ask()
		}
	}
}

// fetchFrom takes a range from one member.
func (s *Store) fetchFrom(ctx context.Context, k int, q segment.Request) (segment.Range, error) {
	for {
		row, err := s.catchUp(ctx, q.Tag, k, q.N == 0)
		if err != nil {
			return segment.Range{}, err
		}
		if q.N == 0 || q.Step > 0 && row.step > q.Step {
			return segment.Range{Start: row.next, End: row.next, Step: row.step, Top: s.top(q.Tag)}, nil
		}
		epoch := row.epoch
		if q.Floor > row.end-q.N {
			epoch = max(epoch, s.members[k].epochAbove(q.Floor-1))
		}
		if row.next > row.end-q.N {
			epoch = max(epoch, row.epoch+1)
		}
		if epoch > row.epoch || row.sealed() {
			if err := s.advance(ctx, q.Tag, k, epoch); err != nil {
				return segment.Range{}, err
			}
			continue
		}
		r, err := s.take(ctx, k, row, row.end-q.N, q)
		if r.End > 0 || err != nil {
			return r, err
		}
		s.forget(q.Tag, k)
	}
}

// take moves a member's row, and returns the range that this took; an empty one where the
// row stands above to, or is not as it was last seen.
func (s *Store) take(ctx context.Context, k int, row state, to int64, q segment.Request) (segment.Range, error) {
	end, err := s.members[k].move(ctx, q.Tag, row, tagrow.Move{From: max(row.start+1, s.lastSeen(q.Tag, k).end), To: to, Floor: q.Floor, N: q.N})
	if err != nil || end == 0 {
		return segment.Range{}, err
	}
	s.recordRange(q.Tag, k, row, end)
	return segment.Range{Start: end - q.N, End: end, Step: row.step, Top: s.top(q.Tag)}, nil
}

// raise moves every member that answers above the keys below q.Floor. Where only the
// member that they belong to is below, the range that moves it is the answer. Otherwise all
// advance to an epoch above the keys': those that are away are behind then, and have to
// catch up.
func (s *Store) raise(ctx context.Context, q segment.Request) (segment.Range, error) {
	for {
		polled := s.poll(ctx, q.Tag, -1, quickly)
		var up, low []int
		ahead := false
		errs := make([]error, len(polled))
		for k, r := range polled {
			switch errs[k] = r.err; {
			case isMismatch(r.err):
				return segment.Range{}, r.err
			case r.err != nil || r.isNew():
				errs[k] = cmp.Or(r.err, s.members[k].unknown(q.Tag))
				continue
			}
			up = append(up, k)
			ahead = ahead || r.epoch >= s.members[k].epochAbove(q.Floor-1)
			if r.next < q.Floor {
				low = append(low, k)
			}
		}
		if len(up) == 0 {
			if lacksRow(errs[0]) && s.restore {
				if err := s.join(ctx, q.Tag, -1, 0); err == nil {
					continue
				}
			}
			return segment.Range{}, s.allFailed(q.Tag, errs)
		}
		all := len(up) == len(polled)
		if len(low) == 0 && (all || ahead || len(up) == 1) {
			return segment.Range{Start: q.Floor, End: q.Floor, Step: polled[up[0]].step, Top: max(q.Floor, s.top(q.Tag))}, nil
		}
		if all && len(low) == 1 {
			k := low[0]
			if row := polled[k].state; !row.sealed() && row.start < q.Floor && q.Floor <= row.end-q.N {
				if r, err := s.take(ctx, k, row, q.Floor-1, q); r.End > 0 || err != nil {
					r.Top = max(q.Floor, r.Top)
					return r, err
				}
				continue
			}
		}
		if err := s.advance(ctx, q.Tag, up[0], s.members[0].epochAbove(q.Floor-1)); err != nil {
			return segment.Range{}, err
		}
	}
}
