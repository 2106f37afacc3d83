package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// Row is a tag's row.
type Row struct {
	Tag   string `db:"biz_tag"`
	MaxID int64  `db:"max_id"` // the next id that nobody has
	Step  int64  `db:"step"`   // ids per fetch
}

// Create creates the table where it does not exist. It looks first: the right to create
// is needed once, and on a cluster every CREATE, even of a table that is there, aborts
// what runs on all nodes.
func (s *AllocStore) Create(ctx context.Context) error {
	return s.create(ctx, schema.LeafAlloc(s.table))
}

func (t *counter) create(ctx context.Context, text string) error {
	err := t.retry(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "SELECT 1 FROM "+t.table+" LIMIT 0")
		if n, _ := serverError(err); n != errNoTable {
			return err
		}
		_, err = c.ExecContext(ctx, text)
		return err
	})
	return t.failed("create", err)
}

const errNoTable = 1146

// Ensure adds a row for the tag where it has none; a row that is there stays as it
// is. maxID is the first id to be issued: highest id in use + 1.
func (s *AllocStore) Ensure(ctx context.Context, tag string, maxID, step int64) error {
	return s.ensure(ctx, tag, maxID, step)
}

func (t *counter) ensure(ctx context.Context, tag string, next, step int64) error {
	if step < 1 || step > maxRowStep {
		return &RowError{tag, t.table, fmt.Sprintf("a row with step %d cannot be added", step), fmt.Sprintf("take one in 1 … %d", int64(maxRowStep))}
	}
	text := fmt.Sprintf("INSERT INTO %s (%s, %s, %s) VALUES (%s, %d, %d) ON DUPLICATE KEY UPDATE %[2]s = %[2]s", t.table, t.tag, t.next, t.step, quote.Literal(tag), next-t.last, step)
	return t.failed("add a row to", t.retry(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return err
		}
		// Reading it tells whether the INSERT was in autocommit, and spares the first look.
		row, autocommit, err := t.read(ctx, c, tag)
		if !autocommit {
			if _, err := c.ExecContext(ctx, "COMMIT"); err != nil {
				discard(c)
				return err
			}
		}
		if err == nil {
			t.transactions.Store(t.transactions.Load() || !autocommit)
			row.added = true
			t.known.Store(tag, row)
		} else if _, odd := errors.AsType[*RowError](err); odd { // for who draws from it
			err = nil
		}
		return err
	}))
}

func (t *counter) insert(ctx context.Context, text string) error {
	return t.retry(ctx, func(c *sql.Conn) error {
		return transaction(ctx, c, func() error { // committed, also without autocommit
			_, err := c.ExecContext(ctx, text)
			return err
		})
	})
}

// Tags returns all rows, ordered by tag.
func (s *AllocStore) Tags(ctx context.Context) ([]Row, error) {
	var rows []Row
	err := s.db.SelectContext(ctx, &rows, "SELECT biz_tag, max_id, step FROM "+s.table+" ORDER BY biz_tag")
	return rows, s.failed("read", err)
}

// Row returns the tag's row without moving it, or *UnknownTagError. What passes by itself
// is tried again, as by Fetch: on Galera a CREATE TABLE of another node ends what reads
// the table meanwhile.
func (s *AllocStore) Row(ctx context.Context, tag string) (row Row, err error) {
	err = s.retry(ctx, func(c *sql.Conn) error {
		err := c.QueryRowContext(ctx, "SELECT biz_tag, max_id, step FROM "+s.table+" WHERE biz_tag = "+quote.Literal(tag)).Scan(&row.Tag, &row.MaxID, &row.Step)
		if errors.Is(err, sql.ErrNoRows) {
			return &UnknownTagError{Tag: tag, Table: s.table}
		}
		return err
	})
	if _, unknown := errors.AsType[*UnknownTagError](err); unknown {
		return row, err
	}
	return row, s.failed("read", err)
}

// failed says which statement of ours err comes from.
func (t *counter) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("leafsql: %s %s: %w", what, t.table, err)
}
