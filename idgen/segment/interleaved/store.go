package interleaved

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
	"github.com/leafsql/leafsql/internal/quote"
)

// Store is several leaf_alloc tables, its members, that share the ids of each tag. Ids come
// from the member that they came from before, and from the next one where that fails, or is
// slow: a process draws from one member at a time, and its ids ascend while it stays there.
//
// All processes name the same tables in the same order, from the first one to the last:
// each row says which member of how many it is, and members that do not fit are refused
// with *segment.RowError. Neither Java Leaf nor an AllocStore can draw from such rows; the
// rows of theirs are refused here.
//
// A member that has lost its rows gets new ones, if New is told so and all others answer,
// within half a minute: they tell up to where its ids can have been given out. What the
// others cannot tell is that a member stands at an older copy of its own rows. Who fetched
// from beyond refuses it, but a process that starts afterwards may not notice: delete the
// tag's row there instead, or bring the member back empty. Two members that lost their rows
// at once are refused: see Ensure.
//
// A member needs a second one for a few moments when its block is used up; until then it
// can be the only one that answers.
type Store struct {
	members []*member
	restore bool
	log     *slog.Logger
	ctx     context.Context // of what runs in the background
	cancel  context.CancelFunc
	tasks   sync.WaitGroup

	mu      sync.Mutex
	tags    map[string][]lastSeen // by member
	probing bool
}

// A Table is a leaf_alloc. Its pool's connections are never held by a transaction that
// waits for ids.
type Table struct {
	DB   *sqlx.DB
	Name string // leaf_alloc's or db.name, unquoted
}

// New returns the store that tables, two or more, are together. Each of them is on another
// server. restore has it create again what a member has lost. The logger is told of members
// that fail and come back; nil means slog.Default().
func New(tables []Table, restore bool, logger *slog.Logger) *Store {
	s := &Store{restore: restore, log: cmp.Or(logger, slog.Default()), tags: make(map[string][]lastSeen)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for k, t := range tables {
		s.members = append(s.members, &member{
			rows:  tagrow.Rows{DB: t.DB, Table: quote.Table(t.Name), Columns: tagrow.LeafAlloc},
			alloc: segment.NewAllocStore(t.DB, t.Name),
			index: int64(k), count: int64(len(tables)), blockSize: blockSize,
		})
	}
	return s
}

// Create creates the tables, as [segment.AllocStore.Create] does.
func (s *Store) Create(ctx context.Context) error {
	for _, m := range s.members {
		if err := m.alloc.Create(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Ensure has the tag's ids begin at next or above, step of them a fetch, where no member
// has the tag: at 1, or else at the first block of all members that is above. Members that
// lack it get it from the others. All members have to answer.
func (s *Store) Ensure(ctx context.Context, tag string, next, step int64) error {
	if most := s.members[0].blockSize / 10; step < 1 || step > most {
		return &segment.RowError{Tag: tag, Table: s.members[0].rows.Table, Reason: fmt.Sprintf("rows with step %d cannot be added", step), Fix: fmt.Sprintf("take one in 1 … %d", most)}
	}
	return s.join(ctx, tag, max(next, 0), step)
}

// RowAt returns how the tag stands at a key: MaxID is the next id of the member that the
// key belongs to, or above the key where that one does not answer. A tag that no member
// has is *segment.UnknownTagError.
func (s *Store) RowAt(ctx context.Context, tag string, key int64) (segment.Row, error) {
	polled := s.poll(ctx, tag, -1, quickly)
	row, errs, there := segment.Row{Tag: tag, MaxID: key + 1}, make([]error, len(polled)), false
	for k, r := range polled {
		if errs[k] = r.err; r.err != nil {
			continue
		}
		there, row.Step = true, r.step
		if key/s.members[k].blockSize%s.members[k].count == int64(k) {
			row.MaxID = r.next
		}
	}
	if there {
		return row, nil
	}
	return row, s.allFailed(tag, errs)
}

// Fits is a *segment.RowError where a member that answers has a row of the tag that belongs
// to other members, or to another order of them. It changes nothing.
func (s *Store) Fits(ctx context.Context, tag string) error {
	for _, r := range s.poll(ctx, tag, -1, quickly) {
		if isMismatch(r.err) {
			return r.err
		}
	}
	return nil
}

// RowErrors returns the *segment.RowError of each row of member k, counted from 0, that gives
// no ids since its step is not 0, ordered by tag.
func (s *Store) RowErrors(ctx context.Context, k int) (errs []*segment.RowError, err error) {
	rows, err := s.members[k].alloc.Tags(ctx)
	for _, r := range rows {
		if r.Step == 0 {
			continue
		}
		found, err := s.members[k].read(ctx, r.Tag)
		if odd, ok := errors.AsType[*segment.RowError](err); ok && found.members > 0 { // else it is not several stores'
			errs = append(errs, odd)
		}
	}
	return errs, err
}

// Tags returns the rows of all members that answer, ordered by tag. Where none does, the
// error is one of theirs.
func (s *Store) Tags(ctx context.Context) ([]segment.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	lists, errs := make([][]segment.Row, len(s.members)), make([]error, len(s.members))
	var wg sync.WaitGroup
	for k, m := range s.members {
		wg.Go(func() { lists[k], errs[k] = m.alloc.Tags(ctx) })
	}
	wg.Wait()
	if !slices.Contains(errs, nil) {
		return nil, errs[0]
	}
	tags := make(map[string]segment.Row)
	for k, rows := range lists {
		for _, r := range rows {
			if errs[k] == nil {
				tags[r.Tag] = segment.Row{Tag: r.Tag, MaxID: max(r.MaxID, tags[r.Tag].MaxID)}
			}
		}
	}
	return slices.SortedFunc(maps.Values(tags), func(a, b segment.Row) int { return cmp.Compare(a.Tag, b.Tag) }), nil
}

// Close ends what runs in the background. It does not close the tables' pools.
func (s *Store) Close() error {
	s.mu.Lock() // who holds it may just begin a task
	s.cancel()
	s.mu.Unlock()
	s.tasks.Wait()
	return nil
}
