package segment

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/quote"
)

// A counter is a table with a row for each tag, which says up to where ids are taken.
//
// A fetch is one UPDATE in autocommit, sent as text, so one round trip. It carries its
// own proof: the server answers with the number that it wrote, as the insert id, and
// touches nothing where the row is not as the caller knows it. A transaction of an
// UPDATE and a SELECT is not as safe: a cluster can abort it in between and let the
// COMMIT succeed.
type counter struct {
	db    *sqlx.DB
	table string // quoted
	columns

	// read reads the tag's row and judges it, and whether the connection is in
	// autocommit.
	read func(ctx context.Context, c *sql.Conn, tag string) (r row, autocommit bool, err error)

	known        sync.Map    // tag -> row, as it was last read
	fetched      sync.Map    // tag -> when a range was last taken
	transactions atomic.Bool // one statement is not enough here: see takeInTransaction
}

// columns are the names of a counter's columns, as SQL writes them.
type columns struct {
	tag  string
	next string // up to where ids are taken
	step string // "" where the step is not in a column of its own
	last int64  // 1 where next holds the last id that was taken; 0 where it holds the one after

	several bool // stores share the rows, which no SQL adds
}

// leafs are leaf_alloc's.
var leafs = columns{tag: "biz_tag", next: "max_id", step: "step"}

// shared are those of a leaf_alloc that is one of several.
var shared = columns{tag: "biz_tag", next: "max_id", step: "step", several: true}

// orLeafs fills in for the zero value.
func (c columns) orLeafs() columns { return cmp.Or(c, leafs) }

// after is what comes behind the highest id in use, in an expression for next.
func (c columns) after() string {
	if c.last > 0 {
		return ""
	}
	return " + 1"
}

// row is a tag's row.
type row struct {
	next  int64 // the next id that nobody has
	step  int64
	least int64  // no id is below
	end   int64  // and none is here or above
	as    string // conditions under which all of this but next still holds
	added bool   // a moment ago: the first look is spared
}

// Fetch implements Store. What passes by itself is tried again until ctx ends, or for
// 5 s where it has no deadline: deadlocks and other conflicts, servers that only read,
// connections that break.
func (t *counter) Fetch(ctx context.Context, q Request) (r Range, err error) {
	err = t.retry(ctx, func(c *sql.Conn) error {
		r, err = t.fetch(ctx, c, q)
		return err
	})
	if err != nil {
		return Range{}, err
	}
	return r, nil
}

// fetch is one attempt.
func (t *counter) fetch(ctx context.Context, c *sql.Conn, q Request) (Range, error) {
	if v, known := t.known.Load(q.Tag); known && q.N == 0 && v.(row).added {
		row := v.(row)
		row.added = false
		t.known.Store(q.Tag, row)
		return Range{Start: row.next, End: row.next, Step: row.step}, nil
	} else if q.N == 0 || !known {
		if r, fit, err := t.look(ctx, c, q); !fit {
			return r, err
		}
	}
	v, _ := t.known.Load(q.Tag)
	row := v.(row)
	floor := max(q.Floor, row.least)
	if floor > row.end-q.N {
		return Range{}, t.exhausted(q, row, floor)
	}
	if q.MaxStart > 0 && floor > q.MaxStart {
		return Range{Start: floor, End: floor, Step: row.step}, nil
	}
	rows, id, err := t.take(ctx, c, q.Tag, t.updateText(q, row, floor))
	if err != nil {
		return Range{}, err
	}
	switch {
	case rows == 0:
		r, fit, err := t.look(ctx, c, q)
		if fit { // by now, or the table does not let itself be changed
			return Range{}, soonError{&RowError{q.Tag, t.table, "an UPDATE changes nothing", "look for triggers on the table"}}
		}
		return r, err
	case rows > 1:
		return Range{}, t.twoRows(q.Tag)
	case id < q.N || id-q.N < max(q.Seen, floor):
		return Range{}, &RowError{q.Tag, t.table, fmt.Sprintf("%s was to grow by %d from %d or more, and the server says it is %d", t.name(), q.N, max(q.Seen, floor)-t.last, id-t.last),
			"look for triggers on the table and for a proxy that changes insert ids"}
	}
	t.fetched.Store(q.Tag, time.Now())
	return Range{Start: id - q.N, End: id, Step: row.step}, nil
}

// updateText takes q's ids off a row.
func (t *counter) updateText(q Request, row row, floor int64) string {
	where := ""
	if t.step != "" {
		step := q.Step
		if step == 0 {
			step = maxRowStep
		}
		where = " AND " + t.step + " BETWEEN 1 AND " + decimal(step)
	}
	where += " AND " + t.next + " >= " + decimal(q.Seen-t.last) + " AND " + t.next + " <= " + decimal(latest(q, row)-t.last)
	if q.Raise {
		where += " AND " + t.next + " < " + decimal(q.Floor-t.last)
	}
	return t.text(q.Tag, "GREATEST("+t.nextID()+", "+decimal(floor)+") + "+decimal(q.N), where+row.as)
}

// latest is where a row may stand that gives q's ids.
func latest(q Request, row row) int64 {
	if q.MaxStart > 0 {
		return min(row.end-q.N, q.MaxStart)
	}
	return row.end - q.N
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// text makes next, an expression, the next id that nobody has, where the tag's row fits
// where.
func (t *counter) text(tag, next, where string) string {
	back := ""
	if t.last > 0 {
		back = " - 1"
	}
	return "UPDATE " + t.table + " SET " + t.next + " = LAST_INSERT_ID(" + next + ")" + back + " WHERE " + t.tag + " = " + quote.Literal(tag) + where
}

// nextID is the next id that nobody has, as SQL.
func (t *counter) nextID() string {
	if t.last > 0 {
		return t.next + " + 1"
	}
	return t.next
}

// take moves a row by text, an UPDATE whose insert id is the next id that nobody has
// then.
func (t *counter) take(ctx context.Context, c *sql.Conn, tag, text string) (rows, id int64, err error) {
	if t.transactions.Load() {
		return t.takeInTransaction(ctx, c, tag, text)
	}
	rows, id, err = update(ctx, c, text)
	if err == nil && rows == 1 && id == 0 {
		// A proxy keeps the insert id to itself, or a trigger on the table does. The
		// range is lost; from now on it is asked for in a transaction.
		t.transactions.Store(true)
		err = errNoInsertID
	}
	return rows, id, err
}

// takeInTransaction moves the row where the insert id of an UPDATE does not come back,
// or connections are not in autocommit. What was written is read in the transaction, in
// text: a statement that is prepared in there runs outside it where a Galera cluster
// has aborted it meanwhile.
func (t *counter) takeInTransaction(ctx context.Context, c *sql.Conn, tag, text string) (rows, id int64, err error) {
	err = transaction(ctx, c, func() error {
		if rows, id, err = update(ctx, c, text); err != nil || rows != 1 {
			return err
		}
		var reads int64
		if err := c.QueryRowContext(ctx, "SELECT LAST_INSERT_ID(), "+t.next+" FROM "+t.table+" WHERE "+t.tag+" = "+quote.Literal(tag)+" FOR UPDATE").Scan(&id, &reads); err != nil {
			return err
		}
		if id-t.last != reads {
			return &RowError{tag, t.table, fmt.Sprintf("%s was set to %d and reads %d in the same transaction", t.name(), id-t.last, reads),
				"look for triggers on the table and for a proxy that reads elsewhere than it writes"}
		}
		return nil
	})
	return rows, id, err
}

func update(ctx context.Context, c *sql.Conn, text string) (rows, id int64, err error) {
	res, err := c.ExecContext(ctx, text)
	if err != nil {
		return 0, 0, err
	}
	if rows, err = res.RowsAffected(); err != nil {
		return 0, 0, err
	}
	id, err = res.LastInsertId()
	return rows, id, err
}

// look reads the row and says whether q can have ids from it. Where it cannot, r and
// err are Fetch's answer.
func (t *counter) look(ctx context.Context, c *sql.Conn, q Request) (r Range, fit bool, err error) {
	row, autocommit, err := t.read(ctx, c, q.Tag)
	if err = t.unlock(ctx, c, autocommit, err); err != nil {
		return Range{}, false, err
	}
	t.known.Store(q.Tag, row)
	r = Range{Start: row.next, End: row.next, Step: row.step}
	switch {
	case row.next < q.Seen:
		back := &RolledBackError{Tag: q.Tag, Table: t.table, Start: row.next, Seen: q.Seen, columns: t.columns}
		if at, ok := t.fetched.Load(q.Tag); ok && time.Since(at.(time.Time)) > soonTime {
			return Range{}, false, back // every node had the time to apply what was fetched
		}
		return Range{}, false, soonError{back}
	case q.N == 0, q.Step > 0 && row.step > q.Step, q.Raise && row.next >= q.Floor, q.MaxStart > 0 && row.next > q.MaxStart:
		return r, false, nil
	case row.next > row.end-q.N:
		return Range{}, false, t.exhausted(q, row, row.next)
	}
	return r, true, nil
}

// unlock ends what a read may have begun on a connection that is not in autocommit, or
// not known to be, so that no lock stays behind. err is the read's.
func (t *counter) unlock(ctx context.Context, c *sql.Conn, autocommit bool, err error) error {
	if autocommit {
		return err
	}
	if _, rerr := c.ExecContext(ctx, "ROLLBACK"); rerr != nil {
		discard(c)
		err = cmp.Or(err, rerr)
	}
	if err == nil {
		t.transactions.Store(true)
	}
	return err
}

func (t *counter) exhausted(q Request, r row, at int64) error {
	return fmt.Errorf("%w: tag %q in %s: there are fewer than %d from %d up to %d", idgen.ErrExhausted, q.Tag, t.table, q.N, at, r.end-1)
}

func (t *counter) twoRows(tag string) error {
	return &RowError{tag, t.table, "the tag has more than one row", "delete all but the highest and make " + t.tag + " the primary key"}
}

// name is that of the column next, for messages.
func (t *counter) name() string { return strings.Trim(t.next, "`") }

// maxEnd is above every id.
const maxEnd = math.MaxInt64
