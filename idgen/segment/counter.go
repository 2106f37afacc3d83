package segment

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
	"github.com/leafsql/leafsql/internal/quote"
)

// A counter is a table with one row for each tag. The row records the next unused id.
//
// A fetch takes the ids of one request. It is one UPDATE in autocommit mode. The UPDATE changes nothing if the row has
// changed and no longer allows the fetch. A transaction with an UPDATE and a SELECT is less safe: a cluster can abort
// it between the two statements and then accept the COMMIT.
type counter struct {
	rows tagtable.Rows

	// loadRow reads and checks the tag's row. autocommit reports whether the connection is in autocommit mode.
	loadRow func(ctx context.Context, c *sql.Conn, tag string) (r row, autocommit bool, err error)

	guards

	knownRows sync.Map // tag -> row, as last read
	fetchedAt sync.Map // tag -> time of the last fetched range
}

// row is a tag's row.
type row struct {
	next       int64 // the next unused id
	step       int64
	lowest     int64  // the lowest id that may be issued
	end        int64  // the highest id that may be issued, + 1
	conditions string // SQL conditions under which all fields except next are still valid
	rowMark
}

// Fetch implements Store. After transient errors it retries until ctx ends, or for 5 s if ctx has no deadline.
// Transient errors are deadlocks and other conflicts, read-only servers, and broken connections.
func (t *counter) Fetch(ctx context.Context, q Request) (r Range, err error) {
	err = t.retry(ctx, q.Tag, func(c *sql.Conn) error {
		r, err = t.fetch(ctx, c, q)
		return t.forgetServer(err)
	})
	if err != nil {
		return Range{}, err
	}
	return r, nil
}

// fetch makes one attempt of Fetch. It uses its own copy of the row, since a concurrent fetch of the tag may replace
// or remove the cached one.
func (t *counter) fetch(ctx context.Context, c *sql.Conn, q Request) (r Range, err error) {
	v, known := t.knownRows.Load(q.Tag)
	row, _ := v.(row)
	var fit bool
	if q.N == 0 || !known || t.retryMark(row) {
		if row, r, fit, err = t.readRowFor(ctx, c, q); !fit {
			return r, err
		}
	}
	for tried := (tagtable.Move{}); ; {
		floor := max(q.Floor, row.lowest)
		if floor > row.end-q.N {
			return Range{}, t.exhaustedError(q, row, floor)
		}
		if q.MaxStart > 0 && floor > q.MaxStart {
			return Range{Start: floor, End: floor, Step: row.step}, nil
		}
		m, mark, err := t.buildMove(q, row, floor)
		if err != nil {
			t.knownRows.Delete(q.Tag) // the next attempt reads the row again
			return Range{}, err
		}
		if m.Where == tried.Where { // the row can give the ids, but the UPDATE does not change it
			return Range{}, tagtable.Answer{Err: &tagtable.Error{Reason: "the UPDATE that takes ids changes no row", Fix: "look for triggers on the table"}, RetryBriefly: true}
		}
		end, err := t.rows.Move(ctx, c, q.Tag, m)
		if t.giveUpMark(q.Tag, &row, m, err) {
			continue
		}
		if err != nil {
			return Range{}, err
		}
		if end > 0 {
			t.fetchedAt.Store(q.Tag, time.Now())
			t.recordMove(q, row, mark, end-q.N, m.N-q.N)
			return Range{Start: end - q.N, End: end, Step: row.step, Jumped: m.N - q.N}, nil
		}
		if row, r, fit, err = t.readRowFor(ctx, c, q); !fit {
			return r, err
		}
		tried = m
	}
}

// buildMove returns the UPDATE that takes q's ids from a row, and the mark that the row has afterwards. A mark names the
// server on which ids were last fetched from the row.
func (t *counter) buildMove(q Request, row row, floor int64) (tagtable.Move, tagtable.Mark, error) {
	m := tagtable.Move{From: q.Seen, To: row.end - q.N, Floor: floor, N: q.N}
	if q.MaxStart > 0 {
		m.To = min(m.To, q.MaxStart)
	}
	m.Where = " AND " + t.rows.Step + " BETWEEN 1 AND " + strconv.FormatInt(cmp.Or(q.Step, maxRowStep), 10) + row.conditions
	if q.Raise {
		m.Where += " AND " + t.rows.Next + " < " + strconv.FormatInt(q.Floor-t.rows.Last, 10)
	}
	mark, err := t.guardMove(q, row, &m)
	return m, mark, err
}

// readRowFor reads the row. fit reports whether q can get ids from the row. If fit is false, r and err are the result
// of Fetch.
func (t *counter) readRowFor(ctx context.Context, c *sql.Conn, q Request) (row row, r Range, fit bool, err error) {
	row, autocommit, err := t.loadRow(ctx, c, q.Tag)
	if err == nil && t.actionFor(q.Tag, row) == jump && !row.fresh { // the way to identify the server may have changed
		err = t.rows.Unlock(ctx, c, autocommit, err)
		t.identity.Store(nil)
		if err == nil {
			row, autocommit, err = t.loadRow(ctx, c, q.Tag)
		}
	}
	if err = t.rows.Unlock(ctx, c, autocommit, err); err != nil {
		t.knownRows.Delete(q.Tag) // the stored row may be outdated
		return row, Range{}, false, err
	}
	action := t.actionFor(q.Tag, row)
	t.recordMark(q.Tag, row.mark)
	if row.next < q.Seen && action != jump {
		at, ok := t.fetchedAt.Load(q.Tag)
		late := ok && time.Since(at.(time.Time)) > tagtable.BriefRetryTime*3/4 // every node has had enough time to apply the last fetch
		moves := action == compareMark || !t.rows.HasMarks
		if row.behind = moves && late; !row.behind && (!moves || q.N > 0) {
			t.knownRows.Store(q.Tag, row)
			back := &RolledBackError{Tag: q.Tag, Table: t.rows.Table, Start: row.next, Seen: q.Seen, columns: t.rows.Columns, highest: q.Highest}
			return row, Range{}, false, tagtable.Answer{Err: back, RetryBriefly: !late}
		}
	}
	t.knownRows.Store(q.Tag, row)
	r = Range{Start: row.next, End: row.next, Step: row.step}
	switch {
	case q.N == 0, q.Step > 0 && row.step > q.Step, q.Raise && row.next >= q.Floor, q.MaxStart > 0 && row.next > q.MaxStart:
		return row, r, false, nil
	case row.next > row.end-q.N:
		return row, Range{}, false, t.exhaustedError(q, row, row.next)
	}
	return row, r, true, nil
}

func (t *counter) exhaustedError(q Request, r row, at int64) error {
	return tagtable.Answer{Err: fmt.Errorf("%w: tag %q in %s: fewer than %d ids remain in %d … %d", idgen.ErrExhausted, q.Tag, t.rows.Table, q.N, at, r.end-1)}
}

// maxEnd is higher than all ids.
const maxEnd = math.MaxInt64

// readStep parses the row's step from its column.
func (t *counter) readStep(tag, column string, c tagtable.Cell) (int64, error) {
	v, err := strconv.ParseInt(c.String, 10, 64)
	if err != nil || v < 1 || v > maxRowStep {
		return 0, &tagtable.Error{Reason: fmt.Sprintf("%s is %s, it must be in 1 … %d", column, c.Text(), int64(maxRowStep)), Fix: fmt.Sprintf("UPDATE %s SET %s = 1000 WHERE %s = %s", t.rows.Table, t.rows.Step, t.rows.Tag, quote.String(tag))}
	}
	return v, nil
}

// retry runs do, and repeats it after transient errors. It converts the last error to an error for users.
func (t *counter) retry(ctx context.Context, tag string, do func(*sql.Conn) error) error {
	err := t.rows.Retry(ctx, do)
	if answer, ok := errors.AsType[tagtable.Answer](err); ok {
		err = answer.Err
	}
	if row, ok := errors.AsType[*tagtable.Error](err); ok {
		return &RowError{tag, t.rows.Table, row.Reason, row.Fix}
	}
	if errors.Is(err, tagtable.ErrNoRow) {
		return &UnknownTagError{Tag: tag, Table: t.rows.Table, columns: t.rows.Columns}
	}
	return err
}

// ensure adds a row for a tag that has none. The row gets a mark. Without it, a server that lacks the first fetches
// of the row would issue the same ids again. highest is the highest id of the tag's smallest key column.
func (t *counter) ensure(ctx context.Context, tag string, next, step, highest int64) error {
	if step < 1 || step > maxRowStep {
		return &RowError{tag, t.rows.Table, fmt.Sprintf("a row with step %d cannot be added", step), fmt.Sprintf("choose a step in 1 … %d", int64(maxRowStep))}
	}
	return t.rows.WrapError("add a row to", t.retry(ctx, tag, func(c *sql.Conn) error {
		mark, lossy, err := t.newMark(ctx, c)
		if err != nil {
			return err
		}
		gap := int64(0)
		if lossy {
			gap = t.margin(highest - next + 1)
		}
		insert := func(columns, values string) error {
			_, err := c.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (%s, %s, %s%s) VALUES (%s, %d, %d%s) ON DUPLICATE KEY UPDATE %[2]s = %[2]s",
				t.rows.Table, t.rows.Tag, t.rows.Next, t.rows.Step, columns, quote.Literal(tag), next+gap-t.rows.Last, step, values))
			return err
		}
		if mark == "" {
			err = insert("", "")
		} else if err = insert(", description", ", "+quote.String(mark)); isMarkDenied(err) {
			t.warnUnmarked("the column description cannot be written: "+err.Error(), "GRANT INSERT, UPDATE on the table")
			err = insert("", "")
		}
		if err != nil {
			return err
		}
		// This read shows whether the INSERT was in autocommit mode, and the first fetch need not read the row again.
		row, autocommit, err := t.loadRow(ctx, c, tag)
		if !autocommit {
			if _, err := c.ExecContext(ctx, tagtable.Commit); err != nil {
				tagtable.Discard(c)
				return err
			}
		}
		if err == nil {
			t.rows.UseTransactions.Store(t.rows.UseTransactions.Load() || !autocommit)
			t.recordMark(tag, row.mark)
			t.knownRows.Store(tag, row)
		} else if _, odd := errors.AsType[*tagtable.Error](err); odd { // the first fetch returns this error
			err = nil
		}
		return err
	}))
}
