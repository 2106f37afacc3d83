package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen"
)

// SequenceStore is a plain table of sequences, t_sequence, a row each, in the layout
// that schemas with such a table mostly have:
//
//	name           the sequence's
//	current_value  the last id that was given out, so that the next one is current_value + 1
//	increment      how many ids a fetch takes; the ids in between are used too
//	min_value      the lowest id       (this column and those below may be missing)
//	max_value      the highest id
//	cycle          1: after max_value comes min_value again, see [Cycle]; 0: never
//
// A function nextval that sets current_value = current_value + increment and returns it
// may draw from the same rows. MyCAT may not: it uses ids above current_value. Where the
// columns are called something else, a view can give them these names.
//
// Sequences that descend are refused.
type SequenceStore struct{ counter }

// NewSequenceStore returns the store on table, which is t_sequence's name or db.name,
// unquoted. The pool is as for [NewAllocStore].
func NewSequenceStore(db *sqlx.DB, table string) *SequenceStore {
	s := &SequenceStore{counter{db: db, table: quoteTable(table), columns: columns{tag: "`name`", next: "`current_value`", step: "`increment`", last: 1}}}
	s.read = func(ctx context.Context, c *sql.Conn, name string) (row, bool, error) {
		r, cycle, autocommit, err := s.readSequence(ctx, c, name)
		if err == nil && cycle {
			err = &RowError{name, s.table, "cycle is 1, and ids that are kept in memory could be given out again before they are used", "set cycle = 0, or draw from it through segment.Cycle"}
		}
		return r, autocommit, err
	}
	return s
}

func (s *SequenceStore) readSequence(ctx context.Context, c *sql.Conn, name string) (r row, cycle, autocommit bool, err error) {
	all, err := s.cells(ctx, c, name, "*")
	if err != nil {
		return r, false, false, err
	}
	odd := func(column, reason, fix string) error {
		return &RowError{name, s.table, column + " is " + null(all[column]) + ", " + reason, fmt.Sprintf("UPDATE %s SET `%s` = %s WHERE %s = %s", s.table, column, fix, s.tag, quote(name))}
	}
	// A column that is not there, or NULL, is as good as its default.
	number := func(column string, byDefault int64) int64 {
		c, ok := all[column]
		switch {
		case !ok:
			return byDefault
		case !c.Valid:
			r.as += " AND `" + column + "` IS NULL"
			return byDefault
		case c.typ == "BIT":
			c.String = strconv.Itoa(int(c.String[len(c.String)-1]))
		}
		v, perr := strconv.ParseInt(c.String, 10, 64)
		if perr != nil && !errors.Is(perr, strconv.ErrRange) && err == nil {
			err = odd(column, "not a whole number", strconv.FormatInt(byDefault, 10))
		}
		r.as += fmt.Sprintf(" AND `%s` = %s", column, c.String)
		return v
	}
	least, most := number("min_value", 0), number("max_value", maxEnd-1)
	cycle = number("cycle", 0) != 0
	r.least, r.end = max(least, 0), min(most, maxEnd-1)+1
	if err == nil && r.least >= r.end {
		err = odd("max_value", fmt.Sprintf("not above min_value, %d", least), strconv.FormatInt(maxEnd-1, 10))
	}
	if v, perr := strconv.ParseInt(all["increment"].String, 10, 64); err == nil && perr == nil && v < 0 {
		err = odd("increment", "and a sequence that descends cannot number the rows of a statement in their order", "1000")
	}
	if err == nil {
		r.step, err = s.readStep(name, "increment", all["increment"])
	}
	if err == nil {
		r.next, err = s.readNext(name, all["current_value"])
	}
	return r, cycle, all.autocommit(), err
}

// Create creates the table where it does not exist, looking first as
// [AllocStore.Create] does.
func (s *SequenceStore) Create(ctx context.Context) error {
	return s.create(ctx, `
  name varchar(128) NOT NULL,
  current_value bigint NOT NULL DEFAULT 0,
  increment int NOT NULL DEFAULT 1000,
  min_value bigint NOT NULL DEFAULT 1,
  max_value bigint NOT NULL DEFAULT 9223372036854775806,
  cycle tinyint NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
`)
}

// Ensure adds a row for the sequence where it has none; a row that is there stays as it
// is. next is the first id to be issued: highest id in use + 1.
func (s *SequenceStore) Ensure(ctx context.Context, name string, next, increment int64) error {
	return s.ensure(ctx, name, next, increment)
}

// Row returns the sequence's row without moving it, or *UnknownTagError: MaxID is
// current_value + 1, or min_value if that is higher.
func (s *SequenceStore) Row(ctx context.Context, name string) (r Row, err error) {
	err = s.retry(ctx, func(c *sql.Conn) error {
		return transaction(ctx, c, func() error {
			found, cycle, _, err := s.readSequence(ctx, c, name)
			r = Row{Tag: name, MaxID: max(found.next, found.least), Step: found.step, Cycle: cycle}
			return err
		})
	})
	return r, err
}

// Cycle issues the ids of a sequence that begins again at its end: after max_value comes
// min_value, where the row says cycle = 1.
//
// Ids are issued again then, so that two things have to be seen to. No process may keep
// ids of the last round in memory: each call takes from the table what it gives, and no
// more. And no row may have such an id already: vacant is asked before the table is
// moved, and its error is Next's. It has to look at every table that the sequence feeds.
//
// What remains is a statement that drew its ids and reaches its table later than a whole
// round.
type Cycle struct {
	store  *SequenceStore
	name   string
	vacant func(ctx context.Context, first, last int64) error
	turn   chan struct{} // holds a token while ids are drawn: others would only be refused
}

// NewCycle returns a generator for the sequence. vacant says whether none of the ids
// first … last is in use.
func NewCycle(store *SequenceStore, name string, vacant func(ctx context.Context, first, last int64) error) *Cycle {
	return &Cycle{store, name, vacant, make(chan struct{}, 1)}
}

// errMoved asks for another attempt: somebody else has moved the row.
var errMoved = errors.New("leafsql: the sequence was moved by others all the time")

// Next implements idgen.Generator. It fails with *idgen.CountError where a round has
// fewer than n ids, with idgen.ErrExhausted at the end of a sequence that does not cycle,
// with what vacant says, or with what Store.Fetch names.
func (g *Cycle) Next(ctx context.Context, n int) (first int64, err error) {
	if n < 1 || n > MaxRowStep {
		return 0, &idgen.CountError{N: n, Max: MaxRowStep}
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
		if err := g.vacant(ctx, first, first+int64(n)-1); err != nil {
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
		return transaction(ctx, c, func() error {
			var autocommit bool
			r.row, r.cycle, autocommit, err = g.store.readSequence(ctx, c, g.name)
			if err == nil && !autocommit {
				g.store.transactions.Store(true)
			}
			return err
		})
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
