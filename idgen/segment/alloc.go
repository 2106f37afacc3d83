package segment

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen"
)

// AllocStore is Leaf's table, leaf_alloc, shared with Java Leaf: max_id is the next
// id that nobody has, and a fetch moves it up.
//
// A fetch is one UPDATE in autocommit, sent as text, so one round trip. It carries its
// own proof: the server answers with the number that it wrote, as the insert id, and
// touches nothing where the row is not as the caller knows it. A transaction of an
// UPDATE and a SELECT is not as safe: a cluster can abort it in between and let the
// COMMIT succeed.
type AllocStore struct {
	db    *sqlx.DB
	table string // quoted

	steps        sync.Map    // tag -> its row's step, once the row was looked at
	transactions atomic.Bool // one statement is not enough here: see takeInTransaction
}

// NewAllocStore returns the store on table, which is leaf_alloc's name or db.name,
// unquoted. Give it a pool whose connections are never held by a transaction that
// waits for ids.
func NewAllocStore(db *sqlx.DB, table string) *AllocStore {
	return &AllocStore{db: db, table: quoteTable(table)}
}

// Fetch implements Store. What passes by itself is tried again until ctx ends, or for
// 5 s where it has no deadline: deadlocks and other conflicts, servers that only read,
// connections that break.
func (s *AllocStore) Fetch(ctx context.Context, q Request) (r Range, err error) {
	err = s.retry(ctx, func(c *sql.Conn) error {
		r, err = s.fetch(ctx, c, q)
		return err
	})
	if err != nil {
		return Range{}, err
	}
	return r, nil
}

// fetch is one attempt.
func (s *AllocStore) fetch(ctx context.Context, c *sql.Conn, q Request) (Range, error) {
	if _, known := s.steps.Load(q.Tag); q.N == 0 || !known {
		if r, fit, err := s.look(ctx, c, q); !fit {
			return r, err
		}
	}
	take := s.take
	if s.transactions.Load() {
		take = s.takeInTransaction
	}
	rows, id, err := take(ctx, c, q)
	if err != nil {
		return Range{}, err
	}
	switch {
	case rows == 0:
		r, fit, err := s.look(ctx, c, q)
		if fit { // by now, or the table does not let itself be changed
			return Range{}, soonError{&RowError{q.Tag, s.table, "an UPDATE changes nothing", "look for triggers on the table"}}
		}
		return r, err
	case rows > 1:
		return Range{}, s.twoRows(q.Tag)
	case id < q.N || id-q.N < max(q.Seen, q.Floor):
		return Range{}, &RowError{q.Tag, s.table, fmt.Sprintf("max_id was to grow by %d from %d or more, and the server says it is %d", q.N, max(q.Seen, q.Floor), id),
			"look for triggers on the table and for a proxy that changes insert ids"}
	}
	step, _ := s.steps.Load(q.Tag)
	return Range{Start: id - q.N, End: id, Step: step.(int64)}, nil
}

// take moves the row in one statement.
func (s *AllocStore) take(ctx context.Context, c *sql.Conn, q Request) (rows, id int64, err error) {
	rows, id, err = s.update(ctx, c, q)
	if err == nil && rows == 1 && id == 0 {
		// A proxy keeps the insert id to itself, or a trigger on the table does. The
		// range is lost; from now on it is asked for in a transaction.
		s.transactions.Store(true)
		err = errNoInsertID
	}
	return rows, id, err
}

// takeInTransaction moves the row where the insert id of an UPDATE does not come back,
// or connections are not in autocommit. What was written is read in the transaction, in
// text: a statement that is prepared in there runs outside it where a Galera cluster
// has aborted it meanwhile.
func (s *AllocStore) takeInTransaction(ctx context.Context, c *sql.Conn, q Request) (rows, id int64, err error) {
	err = transaction(ctx, c, func() error {
		if rows, id, err = s.update(ctx, c, q); err != nil || rows != 1 {
			return err
		}
		var reads int64
		if err := c.QueryRowContext(ctx, "SELECT LAST_INSERT_ID(), max_id FROM "+s.table+" WHERE biz_tag = "+literal(q.Tag)+" FOR UPDATE").Scan(&id, &reads); err != nil {
			return err
		}
		if id != reads {
			return &RowError{q.Tag, s.table, fmt.Sprintf("max_id was set to %d and reads %d in the same transaction", id, reads),
				"look for triggers on the table and for a proxy that reads elsewhere than it writes"}
		}
		return nil
	})
	return rows, id, err
}

// update moves the row up by N, if it is as q says. It returns the rows that were
// moved, and max_id as it was written.
func (s *AllocStore) update(ctx context.Context, c *sql.Conn, q Request) (rows, id int64, err error) {
	if q.Floor > math.MaxInt64-q.N {
		return 0, 0, s.exhausted(q, q.Floor)
	}
	res, err := c.ExecContext(ctx, s.updateText(q))
	if err != nil {
		return 0, 0, err
	}
	if rows, err = res.RowsAffected(); err != nil {
		return 0, 0, err
	}
	id, err = res.LastInsertId()
	return rows, id, err
}

func (s *AllocStore) updateText(q Request) string {
	step := q.Step
	if step == 0 {
		step = MaxRowStep
	}
	text := fmt.Sprintf("UPDATE %s SET max_id = LAST_INSERT_ID(GREATEST(max_id, %d) + %d) WHERE biz_tag = %s AND step BETWEEN 1 AND %d AND max_id >= %d AND max_id <= %d",
		s.table, q.Floor, q.N, literal(q.Tag), step, q.Seen, math.MaxInt64-q.N)
	if q.Raise {
		text += fmt.Sprintf(" AND max_id < %d", q.Floor)
	}
	return text
}

// look reads the row and says whether q can have ids from it. Where it cannot, r and
// err are Fetch's answer.
func (s *AllocStore) look(ctx context.Context, c *sql.Conn, q Request) (r Range, fit bool, err error) {
	row, autocommit, err := s.read(ctx, c, q.Tag)
	if !autocommit { // or not known: no lock may stay behind
		if _, rerr := c.ExecContext(ctx, "ROLLBACK"); rerr != nil {
			discard(c)
			err = cmp.Or(err, rerr)
		}
	}
	if err != nil {
		return Range{}, false, err
	}
	if !autocommit {
		s.transactions.Store(true)
	}
	s.steps.Store(q.Tag, row.Step)
	r = Range{Start: row.MaxID, End: row.MaxID, Step: row.Step}
	switch {
	case row.MaxID < q.Seen:
		return Range{}, false, soonError{&RolledBackError{Tag: q.Tag, Table: s.table, Start: row.MaxID, Seen: q.Seen}}
	case q.N == 0, q.Step > 0 && row.Step > q.Step, q.Raise && row.MaxID >= q.Floor:
		return r, false, nil
	case row.MaxID > math.MaxInt64-q.N:
		return Range{}, false, s.exhausted(q, row.MaxID)
	}
	return r, true, nil
}

// read reads the tag's row and judges it, and whether the connection is in autocommit.
// FOR UPDATE keeps proxies that split reads from writes off their replicas.
func (s *AllocStore) read(ctx context.Context, c *sql.Conn, tag string) (row Row, autocommit bool, err error) {
	rows, err := c.QueryContext(ctx, "SELECT max_id, step, @@autocommit FROM "+s.table+" WHERE biz_tag = "+literal(tag)+" FOR UPDATE")
	if err != nil {
		if n, _ := serverError(err); n == 1267 || n == 3854 || n == 3988 {
			return row, false, &RowError{tag, s.table, "its character set has not all letters of the tag (" + err.Error() + ")", "ALTER TABLE " + s.table + " CONVERT TO CHARACTER SET utf8mb4"}
		}
		return row, false, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return row, false, err
	}
	// "" comes from drivers that do not say. Columns that round or clip would give ids twice.
	if t := types[0].DatabaseTypeName(); t != "" && t != "BIGINT" && t != "UNSIGNED BIGINT" {
		return row, false, &RowError{tag, s.table, "max_id is of type " + t, "ALTER TABLE " + s.table + " MODIFY max_id BIGINT NOT NULL DEFAULT 1"}
	}
	var maxID, step sql.NullString
	found := 0
	for ; rows.Next(); found++ {
		if err := rows.Scan(&maxID, &step, &autocommit); err != nil {
			return row, false, err
		}
	}
	if err := rows.Err(); err != nil {
		return row, false, err
	}
	switch found {
	case 0:
		return row, false, &UnknownTagError{Tag: tag, Table: s.table}
	case 1:
	default:
		return row, false, s.twoRows(tag)
	}
	row = Row{Tag: tag}
	where := " WHERE biz_tag = " + quote(tag)
	if row.Step, err = strconv.ParseInt(step.String, 10, 64); err != nil || row.Step < 1 || row.Step > MaxRowStep {
		return row, false, &RowError{tag, s.table, fmt.Sprintf("step is %s, not in 1 … %d", null(step), int64(MaxRowStep)), "UPDATE " + s.table + " SET step = 1000" + where}
	}
	// Beyond 2^63-1 ParseInt gives that.
	if row.MaxID, err = strconv.ParseInt(maxID.String, 10, 64); err != nil && !errors.Is(err, strconv.ErrRange) || row.MaxID < 0 {
		return row, false, &RowError{tag, s.table, "max_id is " + null(maxID), "raise it above every id in use: UPDATE " + s.table + " SET max_id = <highest id + 1>" + where}
	}
	return row, autocommit, nil
}

func (s *AllocStore) exhausted(q Request, at int64) error {
	return fmt.Errorf("%w: tag %q in %s: there are fewer than %d from %d up to 2^63-1", idgen.ErrExhausted, q.Tag, s.table, q.N, at)
}

func (s *AllocStore) twoRows(tag string) error {
	return &RowError{tag, s.table, "the tag has more than one row", "delete all but the highest and make biz_tag the primary key"}
}

func null(s sql.NullString) string {
	if !s.Valid {
		return "NULL"
	}
	return s.String
}

// literal writes a tag so that it means the same under every sql_mode and
// character_set_client.
func literal(tag string) string { return fmt.Sprintf("_utf8mb4 X'%X'", tag) }

// quoteTable quotes [db.]table.
func quoteTable(name string) string {
	parts := strings.SplitN(name, ".", 2)
	for i, p := range parts {
		parts[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	return strings.Join(parts, ".")
}
