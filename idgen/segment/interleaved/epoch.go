package interleaved

import (
	"context"
	"fmt"
	"sync"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
	"github.com/leafsql/leafsql/internal/part"
)

// advance takes member k to an epoch, or to the latest that another member is in, and all
// others that answer with it.
func (s *Store) advance(ctx context.Context, tag string, k int, epoch int64) error {
	polled := s.poll(ctx, tag, -1, quickly)
	if !polled[k].usable() || lo.CountBy(polled, reply.usable) < 2 {
		polled = s.poll(ctx, tag, -1, again) // it takes two
	}
	for j, r := range polled {
		switch {
		case isMismatch(r.err):
			return r.err
		case r.err == nil && r.isNew():
			polled[j].err = s.members[j].unknown(tag)
		case r.err == nil:
			epoch = max(epoch, r.epoch)
		}
	}
	if polled[k].err != nil {
		return polled[k].err
	}
	return s.startEpoch(ctx, tag, k, epoch, polled, "")
}

// startEpoch seals the rows of the members that replied in an epoch, and unseals them: that
// of member k, and those of the others. New rows join the cluster in between.
func (s *Store) startEpoch(ctx context.Context, tag string, k int, epoch int64, polled []reply, cluster string) error {
	answered := func(r reply) bool { return r.err == nil }
	if lo.CountBy(polled, answered) < 2 {
		return fmt.Errorf("leafsql: tag %q in %v: its block is used up, and no other store answers, which has to note the next one; bring one of them back", tag, s.members[k])
	}
	// Sealed and unsealed are confirmed by what the member says now. Each block needs another
	// member that says so after this one was sealed, and before this one is unsealed.
	if err := s.seal(ctx, tag, k, epoch, &polled[k], cluster); err != nil {
		return err
	}
	eachOther(k, polled, func(j int) { polled[j].err = s.seal(ctx, tag, j, epoch, &polled[j], cluster) })
	if lo.CountBy(polled, answered) < 2 {
		return fmt.Errorf("leafsql: tag %q in %v: no other store notes that a block begins: %w; bring one of them back", tag, s.members[k], part.Of(polled[(k+1)%len(polled)].err))
	}
	if err := s.unseal(ctx, tag, k, epoch, &polled[k]); err != nil {
		return err
	}
	eachOther(k, polled, func(j int) { s.unseal(ctx, tag, j, epoch, &polled[j]) })
	return nil
}

// eachOther does something for each member but k that replied, at the same time.
func eachOther(k int, polled []reply, do func(j int)) {
	var wg sync.WaitGroup
	for j := range polled {
		if j != k && polled[j].err == nil {
			wg.Go(func() { do(j) })
		}
	}
	wg.Wait()
}

// seal takes a row to the block of an epoch, and a new one into the cluster. It fails unless
// the member has said that the row stands at that block's first id or above.
func (s *Store) seal(ctx context.Context, tag string, k int, epoch int64, r *reply, cluster string) error {
	m := s.members[k]
	start, ok := m.blockStart(epoch)
	if !ok {
		return fmt.Errorf("%w: tag %q in %v: no block is left below 2^63", idgen.ErrExhausted, tag, m)
	}
	err := s.confirm(ctx, tag, k, r, start, func(row state) (int64, error) { return m.move(ctx, tag, row, tagrow.Move{To: start - 1, Floor: start}) })
	if err != nil || !r.isNew() {
		return err
	}
	if r.err = m.joinCluster(ctx, tag, r.state, cluster); r.err == nil {
		incarnation := r.incarnation
		if *r = s.look(ctx, tag, k); r.err == nil && (r.incarnation != incarnation || r.cluster != cluster) {
			r.err = m.changed(tag)
		}
	}
	return r.err
}

// unseal unseals a row's block, and fails unless the member has said that the row stands
// above its first id.
func (s *Store) unseal(ctx context.Context, tag string, k int, epoch int64, r *reply) error {
	m := s.members[k]
	start, _ := m.blockStart(epoch)
	return s.confirm(ctx, tag, k, r, start+1, func(row state) (int64, error) {
		return m.move(ctx, tag, row, tagrow.Move{From: start, To: start, N: 1})
	})
}

// confirm has a row moved to least, unless it is there already, and looks where it stands
// if it was not: the same row, that is, in the same incarnation.
func (s *Store) confirm(ctx context.Context, tag string, k int, r *reply, least int64, move func(state) (int64, error)) error {
	m := s.members[k]
	next, err := move(r.state)
	if err != nil {
		s.record(tag, k, nil, err)
		return err
	}
	if next > 0 {
		r.next = next
		m.locate(&r.state)
		return nil
	}
	incarnation := r.incarnation
	if *r = s.look(ctx, tag, k); r.err == nil && (r.incarnation != incarnation || r.next < least) {
		r.err = m.changed(tag)
	}
	return r.err
}
