package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/leafsql/leafsql/idgen"
)

// Cycle issues the ids of a sequence that begins again at its end: after max_value comes
// min_value, where the row says cycle = 1.
//
// Ids are issued again then, so that two things have to be seen to. No process may keep
// ids of the last round in memory: each call takes from the table what it gives, and no
// more. And no row may have such an id already: vacant is asked before the sequence is
// moved, and its error is Next's. A new round begins only where all its ids are free. It
// has to look at every table that the sequence feeds.
//
// What remains is a statement that drew its ids and reaches its table later than a whole
// round.
type Cycle struct {
	store  *SequenceStore
	name   string
	vacant func(ctx context.Context, first, last int64) error
	turn   chan struct{} // holds a token while ids are drawn: others would only be refused
}

// Cycle returns a generator for a sequence. vacant says whether none of the ids first …
// last is in use.
func (s *SequenceStore) Cycle(name string, vacant func(ctx context.Context, first, last int64) error) *Cycle {
	return &Cycle{s, name, vacant, make(chan struct{}, 1)}
}

// errMoved asks for another attempt: somebody else has moved the row.
var errMoved = errors.New("leafsql: the sequence was moved by others all the time")

// Next implements idgen.Generator. It fails with *idgen.CountError where a round has
// fewer than n ids, with idgen.ErrExhausted at the end of a sequence that does not cycle,
// with what vacant says, or with what Store.Fetch names.
func (g *Cycle) Next(ctx context.Context, n int) (first int64, err error) {
	if n < 1 || n > maxRowStep {
		return 0, &idgen.CountError{N: n, Max: maxRowStep}
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, retryTime)
		defer cancel()
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for {
		r, err := g.look(ctx)
		if err != nil {
			return 0, err
		}
		first, err := r.draw(g, int64(n))
		if err != nil {
			return 0, err
		}
		last := first + int64(n) - 1
		if first < r.next { // a new round
			last = r.end - 1
		}
		if err := g.vacant(ctx, first, last); err != nil {
			return 0, err
		}
		where := fmt.Sprintf(" AND %s = %d%s", g.store.next, r.next-1, r.as)
		moved, err := g.move(ctx, strconv.FormatInt(first+int64(n), 10), where)
		if err != nil {
			return 0, err
		}
		if moved == first+int64(n) {
			return first, nil
		}
		if ctx.Err() != nil {
			return 0, errors.Join(errMoved, ctx.Err())
		}
	}
}

// round is a sequence's row, and whether it begins again at its end.
type round struct {
	row
	cycle bool
}

// draw says where the next n ids begin.
func (r round) draw(g *Cycle, n int64) (int64, error) {
	least := max(r.least, 1) // 0 is no id
	switch first := max(r.next, least); {
	case first <= r.end-n:
		return first, nil
	case !r.cycle:
		return 0, g.store.exhausted(Request{Tag: g.name, N: n}, r.row, first)
	case least > r.end-n:
		return 0, &idgen.CountError{N: int(n), Max: int(r.end - least)}
	}
	return least, nil
}

func (g *Cycle) look(ctx context.Context) (r round, err error) {
	err = g.store.retry(ctx, func(c *sql.Conn) error {
		var autocommit bool
		r.row, r.cycle, autocommit, err = g.store.readSequence(ctx, c, g.name)
		return g.store.unlock(ctx, c, autocommit, err)
	})
	return r, err
}

// move makes next, an expression, the sequence's next id, and says what it was made; 0
// where the row does not fit where.
func (g *Cycle) move(ctx context.Context, next, where string) (moved int64, err error) {
	err = g.store.retry(ctx, func(c *sql.Conn) error {
		rows, id, err := g.store.take(ctx, c, g.name, g.store.text(g.name, next, where))
		switch moved = 0; {
		case err != nil || rows == 0:
			return err
		case rows > 1:
			return g.store.twoRows(g.name)
		}
		moved = id
		return nil
	})
	return moved, err
}

// Skip moves the sequence past k, a key that comes from elsewhere, in the round that it
// is in. Keys that are not between min_value and max_value are nothing to do.
func (g *Cycle) Skip(ctx context.Context, k int64) error {
	r, err := g.look(ctx)
	if err != nil || k < max(r.next, r.least, 1) || k >= r.end {
		return err
	}
	_, err = g.move(ctx, fmt.Sprintf("GREATEST(%s, %d)", g.store.nextID(), k+1), r.as)
	return err
}
