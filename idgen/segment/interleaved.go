package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/part"
)

const (
	hedgeAfter = 150 * time.Millisecond // a store that has not answered by then has another one asked as well
	lookTime   = 500 * time.Millisecond // what a look at a store may take that is only asked beside another one
	tendAgain  = time.Second            // how long a store that failed is left alone
	tendEvery  = 20 * time.Second       // how often one that works is looked at
)

// Interleaved is several leaf_alloc tables, on servers of their own, that share the ids of
// each tag: the ids are cut into blocks of 100,000,000, and of m stores the k-th hands out
// those of the blocks k, k+m, k+2m, … alone. So any store will do, and ids come as long as
// one of them answers. They come from the store that they came from before, and from the
// next one where that fails, or is slow: a process draws from one store at a time, and
// its ids ascend while it stays there. A range never crosses a block.
//
// All processes name the same stores in the same order, from the first one to the last:
// each row says which store of how many it is, and stores that do not fit are refused
// with *RowError. Neither Java Leaf nor an AllocStore can draw from such rows; the rows
// of theirs are refused here.
//
// A store that has lost its rows gets new ones, if NewInterleaved is told so and all
// others answer, within half a minute: they tell up to where its ids can have been given out. What the others
// cannot tell is that a store stands at an older copy of its own rows. Who fetched from
// beyond refuses it, but a process that starts afterwards may not notice: delete the
// tag's row there instead, or bring the store back empty. Two stores that lost their rows
// at once are refused: see Ensure.
//
// A store needs a second one for a few moments when its block is used up; until then it
// can be the only one that answers.
type Interleaved struct {
	shares  []*share
	restore bool
	log     *slog.Logger
	ctx     context.Context // of what runs in the background
	cancel  context.CancelFunc
	tasks   sync.WaitGroup

	mu      sync.Mutex
	tags    map[string]*standing
	tending bool
}

// NewInterleaved returns the store that stores, two or more, are together. Each of them is
// a leaf_alloc on another server. restore has it create again what a store has lost. The
// logger is told of stores that fail and come back; nil means slog.Default().
func NewInterleaved(stores []*AllocStore, restore bool, logger *slog.Logger) *Interleaved {
	s := &Interleaved{restore: restore, log: cmp.Or(logger, slog.Default()), tags: make(map[string]*standing)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for k, a := range stores {
		s.shares = append(s.shares, &share{
			counter: counter{db: a.db, table: a.table, columns: shared},
			k:       int64(k), m: int64(len(stores)), size: blockSize,
		})
	}
	return s
}

// Create creates the tables, as [AllocStore.Create] does.
func (s *Interleaved) Create(ctx context.Context) error {
	for _, a := range s.shares {
		if err := a.alloc().Create(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Ensure has the tag's ids begin at next or above, step of them a fetch, where no store
// has the tag: at 1, or else at the first block of all stores that is above. Stores that
// lack it get it from the others. All stores have to answer.
func (s *Interleaved) Ensure(ctx context.Context, tag string, next, step int64) error {
	if most := s.shares[0].size / 10; step < 1 || step > most {
		return &RowError{tag, s.shares[0].table, fmt.Sprintf("rows with step %d cannot be added", step), fmt.Sprintf("take one in 1 … %d", most)}
	}
	return s.admit(ctx, tag, max(next, 0), step)
}

// RowAt returns how the tag stands at a key: MaxID is the next id of the store that the
// key belongs to, or above the key where that one does not answer. A tag that no store
// has is *UnknownTagError.
func (s *Interleaved) RowAt(ctx context.Context, tag string, key int64) (Row, error) {
	found := s.look(ctx, tag, -1, quickly)
	row, errs, there := Row{Tag: tag, MaxID: key + 1}, make([]error, len(found)), false
	for k, l := range found {
		if errs[k] = l.err; l.err != nil {
			continue
		}
		there, row.Step = true, l.step
		if key/s.shares[k].size%s.shares[k].m == int64(k) {
			row.MaxID = l.next
		}
	}
	if there {
		return row, nil
	}
	return row, s.noStore(tag, errs)
}

// Fits is a *RowError where a store that answers has a row of the tag that belongs to
// other stores, or to another order of them. It changes nothing.
func (s *Interleaved) Fits(ctx context.Context, tag string) error {
	for _, l := range s.look(ctx, tag, -1, quickly) {
		if isStores(l.err) {
			return l.err
		}
	}
	return nil
}

// Tags returns the rows of all stores that answer, ordered by tag. Where none does, the
// error is one of theirs.
func (s *Interleaved) Tags(ctx context.Context) ([]Row, error) {
	tags := make(map[string]Row)
	var answered bool
	var failed error
	for _, a := range s.shares {
		one, cancel := context.WithTimeout(ctx, lookTime)
		rows, err := a.alloc().Tags(one)
		cancel()
		if err != nil {
			failed = err
			continue
		}
		answered = true
		for _, r := range rows {
			tags[r.Tag] = Row{Tag: r.Tag, MaxID: max(r.MaxID, tags[r.Tag].MaxID)}
		}
	}
	if !answered {
		return nil, failed
	}
	return slices.SortedFunc(maps.Values(tags), func(a, b Row) int { return cmp.Compare(a.Tag, b.Tag) }), nil
}

// Close ends what runs in the background. It does not close the stores' pools.
func (s *Interleaved) Close() error {
	s.mu.Lock() // who holds it may just begin a task
	s.cancel()
	s.mu.Unlock()
	s.tasks.Wait()
	return nil
}

// Fetch implements Store. More ids than a block has are refused with *idgen.CountError.
func (s *Interleaved) Fetch(ctx context.Context, q Request) (Range, error) {
	if most := s.shares[0].size - 1; q.N > most {
		return Range{}, &idgen.CountError{N: int(q.N), Max: int(most)}
	}
	for pause := minRetry; ; pause *= 4 {
		r, err := s.try(ctx, q)
		if err == nil || isAnswer(err) || ctx.Err() != nil || pause > maxRetry {
			return r, err
		}
		time.Sleep(pause) // stores may have failed one after the other, and others work again
	}
}

func (s *Interleaved) try(ctx context.Context, q Request) (Range, error) {
	if q.Raise { // by all stores: after a while without the one that does not answer
		ctx, cancel := context.WithTimeout(ctx, retryTime)
		defer cancel()
		return s.raise(ctx, q)
	}
	return s.any(ctx, q.Tag, func(ctx context.Context, k int) (Range, error) { return s.from(ctx, k, q) })
}

// any has one store after the other try until one succeeds. Where one fails the next is
// asked at once, and where one is slow the next is asked beside it; what the slower one
// brings is lost.
func (s *Interleaved) any(ctx context.Context, tag string, try func(ctx context.Context, k int) (Range, error)) (Range, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		k   int
		r   Range
		err error
	}
	m, first := len(s.shares), s.last(tag)
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
				s.turn(tag, a.k)
				return a.r, nil
			}
			if ctx.Err() != nil {
				return Range{}, a.err
			}
			s.note(tag, a.k, nil, a.err)
			if errs[a.k] = a.err; isStores(a.err) {
				return Range{}, a.err // whatever the others say
			}
			if failed++; failed == m {
				return Range{}, s.noStore(tag, errs)
			}
		case <-hedge.C:
		}
		if asked < m {
			ask()
		}
	}
}

// noStore is the error where no store gives ids. It is an answer only if all of them are.
func (s *Interleaved) noStore(tag string, errs []error) error {
	if !slices.ContainsFunc(errs, func(err error) bool { return !gone(err) }) {
		return &UnknownTagError{tag, s.shares[0].table, shared}
	}
	text := ""
	for k, err := range errs {
		if !isAnswer(err) {
			return fmt.Errorf("store %d of %d: %w%s", k+1, len(errs), part.Of(err), text)
		}
		text += fmt.Sprintf("; store %d: %v", k+1, part.Of(err))
	}
	return errs[0]
}

// gone reports whether a store has no row for the tag, though it answers.
func gone(err error) bool {
	var unknown *UnknownTagError
	n, _ := serverError(err)
	return errors.As(err, &unknown) || n == errNoTable
}

// from takes a range from one store.
func (s *Interleaved) from(ctx context.Context, k int, q Request) (Range, error) {
	share := s.shares[k]
	for {
		p, err := s.ready(ctx, q.Tag, k, q.N == 0)
		if err != nil {
			return Range{}, err
		}
		if q.N == 0 || q.Step > 0 && p.step > q.Step {
			return Range{Start: p.next, End: p.next, Step: p.step, Top: s.top(q.Tag)}, nil
		}
		round := p.round
		if q.Floor > p.end-q.N {
			round = max(round, share.roundAbove(q.Floor-1))
		}
		if p.next > p.end-q.N {
			round = max(round, p.round+1)
		}
		if round > p.round || p.atDoor() {
			if err := s.enter(ctx, q.Tag, k, round); err != nil {
				return Range{}, err
			}
			continue
		}
		end, err := share.move(ctx, q.Tag, p, move{from: max(p.start+1, s.seen(q.Tag, k)), to: p.end - q.N, floor: q.Floor, n: q.N})
		if err != nil {
			return Range{}, err
		}
		if end == 0 { // not as it was known
			s.forget(q.Tag, k)
			continue
		}
		s.took(q.Tag, k, p, end)
		return Range{Start: end - q.N, End: end, Step: p.step, Top: s.top(q.Tag)}, nil
	}
}

// ready returns where a store's row stands, after it has made sure that it may give ids:
// it is there and part of the set, and no other store that answers is a round further.
// Such a store was away when the others went on, and perhaps when keys from elsewhere were
// passed, which came with a new round.
func (s *Interleaved) ready(ctx context.Context, tag string, k int, afresh bool) (place, error) {
	for {
		p, turned := s.place(tag, k)
		if p == nil || afresh {
			l := s.lookAt(ctx, tag, k)
			if l.err == nil && l.isNew() || gone(l.err) && s.restore {
				if l.err = s.admit(ctx, tag, -1, 0); l.err == nil {
					continue
				}
			}
			if l.err != nil {
				return place{}, l.err
			}
			p = &l.place
		}
		if turned {
			return *p, nil
		}
		highest := int64(-1)
		for _, o := range s.look(ctx, tag, k, quickly) {
			if o.err == nil && !o.isNew() {
				highest = max(highest, o.round)
			} else if isStores(o.err) {
				return place{}, o.err
			}
		}
		if highest <= p.round {
			return *p, nil
		}
		if err := s.enter(ctx, tag, k, highest); err != nil {
			return place{}, err
		}
		afresh = false
	}
}

// raise moves every store that answers above the keys below q.Floor. Where only the
// store that they belong to is below, the range that moves it is the answer. Otherwise
// all go to a new round, above the keys' round: those that are away are behind then, which
// ready sees to.
func (s *Interleaved) raise(ctx context.Context, q Request) (Range, error) {
	for {
		looks := s.look(ctx, q.Tag, -1, quickly)
		var up, low []int
		ahead := false
		errs := make([]error, len(looks))
		for k, l := range looks {
			switch errs[k] = l.err; {
			case isStores(l.err):
				return Range{}, l.err
			case l.err != nil || l.isNew():
				errs[k] = cmp.Or(l.err, error(&UnknownTagError{q.Tag, s.shares[k].table, shared}))
				continue
			}
			up = append(up, k)
			ahead = ahead || l.round >= s.shares[k].roundAbove(q.Floor-1)
			if l.next < q.Floor {
				low = append(low, k)
			}
		}
		if len(up) == 0 {
			if gone(errs[0]) && s.restore {
				if err := s.admit(ctx, q.Tag, -1, 0); err == nil {
					continue
				}
			}
			return Range{}, s.noStore(q.Tag, errs)
		}
		all := len(up) == len(looks)
		if len(low) == 0 && (all || ahead || len(up) == 1) {
			return Range{Start: q.Floor, End: q.Floor, Step: looks[up[0]].step, Top: max(q.Floor, s.top(q.Tag))}, nil
		}
		if all && len(low) == 1 {
			k := low[0]
			if p := looks[k].place; !p.atDoor() && p.start < q.Floor && q.Floor <= p.end-q.N {
				end, err := s.shares[k].move(ctx, q.Tag, p, move{from: max(p.start+1, s.seen(q.Tag, k)), to: q.Floor - 1, floor: q.Floor, n: q.N})
				if err != nil {
					return Range{}, err
				}
				if end > 0 {
					s.took(q.Tag, k, p, end)
					return Range{Start: end - q.N, End: end, Step: p.step, Top: max(q.Floor, s.top(q.Tag))}, nil
				}
				continue
			}
		}
		if err := s.enter(ctx, q.Tag, up[0], s.shares[0].roundAbove(q.Floor-1)); err != nil {
			return Range{}, err
		}
	}
}
