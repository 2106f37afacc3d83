package segment

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/part"
)

// Two rules keep a store that lost its rows from giving ids again. A block is opened only
// once another store stands in the block's round as well, or beyond it: so the others
// know of each round that ids were given in. And a row that is created again gives
// nothing before it has been moved to a round above all others'.

// looked is what a look at a store's row found.
type looked struct {
	place
	err error
}

// lookAt looks at the row of one store.
func (s *Interleaved) lookAt(ctx context.Context, tag string, k int) looked {
	seen := s.seen(tag, k) // before the look: fetches go on meanwhile
	p, err := s.shares[k].look(ctx, tag)
	noted := err
	switch {
	case err != nil:
	case p.isNew():
		noted = &UnknownTagError{tag, s.shares[k].table, shared} // as long as it gives no ids
	case p.next < seen:
		err = &RolledBackError{Tag: tag, Table: s.shares[k].table, Start: p.next, Seen: seen, columns: shared}
		noted = err
	}
	s.note(tag, k, &p, noted)
	return looked{p, err}
}

// errLeftAlone stands for a store that failed a moment ago.
var errLeftAlone = errors.New("it failed a moment ago")

// How stores are looked at: those that failed a moment ago are left out, and those that
// take long; only those that take long; none.
const (
	quickly = iota
	again
	allOfThem
)

// look looks at all stores at the same time, but for one.
func (s *Interleaved) look(ctx context.Context, tag string, but int, how int) []looked {
	if how != allOfThem {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookTime)
		defer cancel()
	}
	found := make([]looked, len(s.shares))
	var wg sync.WaitGroup
	for k := range s.shares {
		if k == but || how == quickly && s.leftAlone(tag, k) {
			found[k].err = errLeftAlone
			continue
		}
		wg.Go(func() { found[k] = s.lookAt(ctx, tag, k) })
	}
	wg.Wait()
	return found
}

// enter takes store k to a round, or to the highest that another store is in, and all
// others that answer with it.
func (s *Interleaved) enter(ctx context.Context, tag string, k int, round int64) error {
	found := s.look(ctx, tag, -1, quickly)
	if usable := func(l looked) bool { return l.err == nil && !l.isNew() }; !usable(found[k]) || lo.CountBy(found, usable) < 2 {
		found = s.look(ctx, tag, -1, again) // it takes two
	}
	for j, l := range found {
		switch {
		case isStores(l.err):
			return l.err
		case l.err == nil && l.isNew():
			found[j].err = &UnknownTagError{tag, s.shares[j].table, shared}
		case l.err == nil:
			round = max(round, l.round)
		}
	}
	if found[k].err != nil {
		return found[k].err
	}
	return s.begin(ctx, tag, k, round, found, "")
}

// begin opens the blocks of a round: that of store k, and those of the others that were
// found. New rows become part of the set.
func (s *Interleaved) begin(ctx context.Context, tag string, k int, round int64, found []looked, set string) error {
	alone := true
	for j := range found {
		alone = alone && (j == k || found[j].err != nil)
	}
	if alone {
		return fmt.Errorf("leafsql: tag %q in %s of store %d of %d: its block is used up, and no other store answers, which has to note the next one; bring one of them back", tag, s.shares[k].table, k+1, len(found))
	}
	// Raised and opened are confirmed by what the store says now. Each block needs another
	// store that says so after this one was raised, and before this one is opened.
	if err := s.raiseTo(ctx, tag, k, round, &found[k], set); err != nil {
		return err
	}
	noted := false
	s.others(k, found, func(j int) { found[j].err = s.raiseTo(ctx, tag, j, round, &found[j], set) })
	for j := range found {
		noted = noted || j != k && found[j].err == nil
	}
	if !noted {
		return fmt.Errorf("leafsql: tag %q in %s of store %d of %d: no other store notes that a block begins: %w; bring one of them back", tag, s.shares[k].table, k+1, len(found), part.Of(found[(k+1)%len(found)].err))
	}
	if err := s.openAt(ctx, tag, k, round, &found[k]); err != nil {
		return err
	}
	s.others(k, found, func(j int) { s.openAt(ctx, tag, j, round, &found[j]) })
	return nil
}

// others does something for each other store that answered, at the same time.
func (s *Interleaved) others(k int, found []looked, do func(j int)) {
	var wg sync.WaitGroup
	for j := range found {
		if j != k && found[j].err == nil {
			wg.Go(func() { do(j) })
		}
	}
	wg.Wait()
}

// raiseTo takes a row to the door of a round, and a new one into the set. It fails unless
// the store has said that the row stands there or above.
func (s *Interleaved) raiseTo(ctx context.Context, tag string, k int, round int64, l *looked, set string) error {
	door, ok := s.shares[k].door(round)
	if !ok {
		return fmt.Errorf("%w: tag %q in %s of store %d of %d: no block is left below 2^63", idgen.ErrExhausted, tag, s.shares[k].table, k+1, len(s.shares))
	}
	err := s.confirm(ctx, tag, k, l, door, func(p place) (int64, error) { return s.shares[k].raise(ctx, tag, p, door) })
	if err != nil || !l.isNew() {
		return err
	}
	if l.err = s.shares[k].adopt(ctx, tag, l.place, set); l.err == nil {
		life := l.life
		if *l = s.lookAt(ctx, tag, k); l.err == nil && (l.life != life || l.set != set) {
			l.err = s.moved(tag, k)
		}
	}
	return l.err
}

// openAt opens the door that a row stands at, and fails unless the store has said that
// the row stands behind it.
func (s *Interleaved) openAt(ctx context.Context, tag string, k int, round int64, l *looked) error {
	door, _ := s.shares[k].door(round)
	return s.confirm(ctx, tag, k, l, door+1, func(p place) (int64, error) { return s.shares[k].open(ctx, tag, p, door) })
}

func (s *Interleaved) moved(tag string, k int) error {
	return fmt.Errorf("leafsql: tag %q in %s of store %d of %d: the row was changed by others; try again", tag, s.shares[k].table, k+1, len(s.shares))
}

// confirm has a row moved to least, unless it is there already, and looks where it stands
// if it was not: the same row, that is, in the same life.
func (s *Interleaved) confirm(ctx context.Context, tag string, k int, l *looked, least int64, move func(place) (int64, error)) error {
	next, err := move(l.place)
	if err != nil {
		s.note(tag, k, nil, err)
		return err
	}
	if next > 0 {
		l.next = next
		s.shares[k].at(&l.place)
		return nil
	}
	life := l.life
	if *l = s.lookAt(ctx, tag, k); l.err == nil && (l.life != life || l.next < least) {
		l.err = s.moved(tag, k)
	}
	return l.err
}

// admit creates the rows that stores lack, and makes new ones part of the set. All stores
// have to answer. first is the lowest id that may be given where no store has the tag; -1
// leaves such a tag alone.
func (s *Interleaved) admit(ctx context.Context, tag string, first, step int64) error {
	before, err := s.lookAll(ctx, tag)
	if err != nil {
		return err
	}
	round, there := s.shares[0].roundAbove(first-1), 0
	if first <= 1 {
		round = 0
	}
	for _, l := range before {
		if l.err == nil {
			round, step = max(round, l.round), l.step
			there++
		}
	}
	if there == 0 && first < 0 {
		return &UnknownTagError{tag, s.shares[0].table, shared}
	}
	for k, l := range before {
		if l.err == nil {
			continue
		}
		if n, _ := serverError(l.err); n == errNoTable {
			if err := s.shares[k].alloc().Create(ctx); err != nil {
				return err
			}
		}
		door, ok := s.shares[k].door(round)
		if !ok {
			return fmt.Errorf("%w: tag %q in %s", idgen.ErrExhausted, tag, s.shares[k].table)
		}
		if err := s.shares[k].add(ctx, tag, door, step); err != nil {
			return err
		}
	}
	// The new rows are there now. What the others know is asked after that.
	if there < len(before) {
		if before, err = s.lookAll(ctx, tag); err != nil {
			return err
		}
	}
	after, err := s.lookAll(ctx, tag)
	if err != nil {
		return err
	}
	var places []place
	var added []int
	set, highest := "", int64(-1)
	for k, l := range after {
		switch {
		case l.err != nil:
			return l.err
		case before[k].err != nil || l.life != before[k].life:
			return fmt.Errorf("leafsql: tag %q in %s of store %d of %d: the row was created again meanwhile; try again", tag, s.shares[k].table, k+1, len(after))
		case l.isNew():
			added = append(added, k)
		case set != "" && l.set != set:
			return s.refused(tag, k, "its rows belong to other stores than those of the ones before", "name the stores that were named first, or stop all processes, delete the tag's rows in all stores, and have them created again above every id in use")
		default:
			set = l.set
			highest = max(highest, l.round)
		}
		places = append(places, l.place)
		round = max(round, l.round)
	}
	switch {
	case len(added) == 0:
		return nil
	case set == "" || set == setOf(places): // nobody has drawn from the new ones' predecessors: there were none
		set = setOf(places)
	case len(added) == 1:
		round = highest + 1
	default:
		return s.refused(tag, added[1], fmt.Sprintf("it has lost its row, and so has store %d, so that nobody knows which ids they gave out", added[0]+1),
			"stop all processes that draw from it, delete the tag's rows in all stores, and have them created again above every id in use")
	}
	return s.begin(ctx, tag, added[0], round, after, set)
}

// lookAll looks at all stores. A store that has no row is no error, one that does not
// answer, or does not belong to the others, is.
func (s *Interleaved) lookAll(ctx context.Context, tag string) ([]looked, error) {
	found := s.look(ctx, tag, -1, allOfThem)
	for k, l := range found {
		switch {
		case isStores(l.err):
			return nil, l.err
		case l.err != nil && !gone(l.err):
			return nil, fmt.Errorf("leafsql: tag %q: rows are created only while all stores answer, and store %d of %d fails: %w; bring it back", tag, k+1, len(found), part.Of(l.err))
		}
	}
	return found, nil
}

func (s *Interleaved) refused(tag string, k int, reason, fix string) error {
	return refusedStore(tag, s.shares[k].table, k+1, len(s.shares), reason, fix)
}
