package segment

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// AllocStore is Leaf's table, leaf_alloc, shared with Java Leaf: max_id is the next
// id that nobody has, and a fetch moves it up.
type AllocStore struct{ counter }

// NewAllocStore returns the store on table, which is leaf_alloc's name or db.name,
// unquoted. Give it a pool whose connections are never held by a transaction that
// waits for ids.
func NewAllocStore(db *sqlx.DB, table string) *AllocStore {
	s := &AllocStore{counter{rows: tagrow.Rows{DB: db, Table: quote.Table(table), Columns: tagrow.LeafAlloc}}}
	s.read = s.readRow
	return s
}

func (s *AllocStore) readRow(ctx context.Context, c *sql.Conn, tag string) (row, bool, error) {
	cells, err := s.rows.Read(ctx, c, tag, "max_id, step")
	if err != nil {
		return row{}, false, err
	}
	r := row{end: maxEnd}
	if r.step, err = s.readStep(tag, "step", cells["step"]); err == nil {
		r.next, err = s.rows.ReadNext(tag, cells["max_id"])
	}
	return r, cells.Autocommit(), err
}

// Create creates the table where it does not exist. It looks first: the right to create
// is needed once.
func (s *AllocStore) Create(ctx context.Context) error {
	return s.rows.Create(ctx, schema.LeafAlloc(s.rows.Table))
}

// Ensure adds a row for the tag where it has none; a row that is there stays as it
// is. maxID is the first id to be issued: highest id in use + 1.
func (s *AllocStore) Ensure(ctx context.Context, tag string, maxID, step int64) error {
	return s.ensure(ctx, tag, maxID, step)
}

// Tags returns all rows, ordered by tag.
func (s *AllocStore) Tags(ctx context.Context) ([]Row, error) {
	var rows []Row
	err := s.rows.DB.SelectContext(ctx, &rows, "SELECT biz_tag, max_id, step FROM "+s.rows.Table+" ORDER BY biz_tag")
	return rows, s.rows.Failed("read", err)
}

// Row returns the tag's row without moving it, or *UnknownTagError. What passes by itself
// is tried again, as by Fetch: on Galera a CREATE TABLE of another node ends what reads
// the table meanwhile.
func (s *AllocStore) Row(ctx context.Context, tag string) (row Row, err error) {
	err = s.retry(ctx, tag, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT biz_tag, max_id, step FROM "+s.rows.Table+" WHERE biz_tag = "+quote.Literal(tag)).Scan(&row.Tag, &row.MaxID, &row.Step)
		if errors.Is(err, sql.ErrNoRows) {
			return tagrow.ErrNone
		}
		return err
	})
	if _, unknown := errors.AsType[*UnknownTagError](err); unknown {
		return row, err
	}
	return row, s.rows.Failed("read", err)
}
