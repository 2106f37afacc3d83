package segment

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// AllocStore is a Store on Leaf's table, leaf_alloc, which Java Leaf can use too. max_id is the next unused id of a
// row, and a fetch raises it.
//
// The column description of a row ends with a mark, which names the server on which ids were last fetched from the
// row. Another server may lack the last fetches, so the first fetch there raises max_id by a random margin.
type AllocStore struct {
	Logger *slog.Logger // logs such margins, and the reason if the column description cannot be written; nil means slog.Default()
	counter
}

// NewAllocStore returns a store on table, a name or db.name, unquoted; Leaf's name is leaf_alloc. Transactions
// that wait for ids must not hold connections of the pool. If the column description has fewer than 256 characters,
// the pool needs a strict sql_mode: otherwise the server may cut off the text at its end.
func NewAllocStore(db *sqlx.DB, table string) *AllocStore {
	s := &AllocStore{counter: counter{rows: tagtable.Rows{DB: db, Table: quote.Table(table), Columns: tagtable.LeafAlloc}}}
	s.loadRow, s.log = s.readRow, func() *slog.Logger { return cmp.Or(s.Logger, slog.Default()) }
	return s
}

func (s *AllocStore) readRow(ctx context.Context, c *sql.Conn, tag string) (row, bool, error) {
	columns, fresh, err := s.identityColumns(ctx, c)
	if err != nil {
		return row{}, false, err
	}
	cells, err := s.rows.Read(ctx, c, tag, "*"+columns) // includes description, if the column exists
	if n, _ := tagtable.ServerError(err); lacksDescription(n) {
		cells, err = s.rows.Read(ctx, c, tag, "max_id, step")
	}
	if err != nil {
		return row{}, false, err
	}
	if place, stores, several := tagtable.ParseStore(cells["description"].String); several {
		return row{}, cells.Autocommit(), severalStoresError(place, stores)
	}
	r := row{end: maxEnd}
	r.rowMark, err = s.readMark(tag, cells)
	if r.fresh = fresh; err != nil {
		return row{}, cells.Autocommit(), err
	}
	if r.step, err = s.readStep(tag, "step", cells["step"]); err == nil {
		r.next, err = s.rows.ReadNext(tag, cells["max_id"])
	}
	return r, cells.Autocommit(), err
}

// lacksDescription reports whether the number of a server's error means that there is no column description, or
// that this user may not read all columns.
func lacksDescription(number uint16) bool { return number == 1054 || number == 1142 || number == 1143 }

// severalStoresError returns the error of a row that belonged to one of several stores. Ids that are fetched from this
// row alone may also be ids of the other stores. The error does not depend on the row's step.
func severalStoresError(place, stores int64) *tagtable.Error {
	return &tagtable.Error{
		Reason: fmt.Sprintf("its row belongs to store %d of %d, which issued the tag's ids together in older versions", place, stores),
		Fix:    fmt.Sprintf("stop all writers, run leafsql init -from-stores with all %d stores, and name one store in leafStore", stores),
	}
}

// eachRow calls f for each row of the table, ordered by tag. f scans columns by position, since their names include
// the table's name if the pool uses columnsWithAlias.
func (s *AllocStore) eachRow(ctx context.Context, columns string, f func(scan func(...any) error) error) error {
	rows, err := s.rows.DB.QueryContext(ctx, "SELECT "+columns+" FROM "+s.rows.Table+" ORDER BY biz_tag")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Create creates the table if it does not exist. It queries the table first, so that the right to create is
// needed only once. Like Fetch, it retries after transient errors. The error wraps the database's.
func (s *AllocStore) Create(ctx context.Context) error {
	return s.rows.Create(ctx, schema.LeafAlloc(s.rows.Table))
}

// Ensure adds a row for the tag unless it has one; an existing row is not changed. maxID is the first id to be
// issued: highest id in use + 1. step is the number of ids per fetch, 1 … 2^31-1; for other steps Ensure returns a
// *RowError. Like Fetch, it retries after transient errors. Other errors wrap the database's.
func (s *AllocStore) Ensure(ctx context.Context, tag string, maxID, step int64) error {
	return s.ensure(ctx, tag, maxID, step, maxEnd-1)
}

func (s allocRows) EnsureWithin(ctx context.Context, tag string, maxID, step, highest int64) error {
	return s.ensure(ctx, tag, maxID, step, highest)
}

func (s allocRows) Tags(ctx context.Context) ([]control.Row, error) {
	var rows []control.Row
	err := s.eachRow(ctx, "biz_tag, max_id, step", func(scan func(...any) error) error {
		rows = append(rows, control.Row{})
		r := &rows[len(rows)-1]
		return scan(&r.Tag, &r.MaxID, &r.Step)
	})
	return rows, s.rows.WrapError("read", err)
}

func (s allocRows) Row(ctx context.Context, tag string) (row control.Row, err error) {
	err = s.retry(ctx, tag, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT biz_tag, max_id, step FROM "+s.rows.Table+" WHERE biz_tag = "+quote.Literal(tag)).Scan(&row.Tag, &row.MaxID, &row.Step)
		if errors.Is(err, sql.ErrNoRows) {
			return tagtable.ErrNoRow
		}
		return err
	})
	if _, unknown := errors.AsType[*UnknownTagError](err); unknown {
		return row, err
	}
	return row, s.rows.WrapError("read", err)
}
