package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen"
)

// AllocStore is Leaf's table, leaf_alloc, shared with Java Leaf: max_id is the next
// id that nobody has, and a fetch moves it up.
type AllocStore struct {
	db    *sqlx.DB
	table string // quoted

	update, read, limits, ensure string
}

// Row is a tag's row.
type Row struct {
	Tag   string `db:"biz_tag"`
	MaxID int64  `db:"max_id"` // the next id that nobody has
	Step  int64  `db:"step"`   // ids per fetch
}

// NewAllocStore returns the store on table, which is leaf_alloc's name or db.name,
// unquoted. A fetch is a transaction of its own: give it a pool whose connections are
// never held by a transaction that waits for ids.
func NewAllocStore(db *sqlx.DB, table string) *AllocStore {
	t := quoteTable(table)
	return &AllocStore{
		db:    db,
		table: t,
		// LAST_INSERT_ID(…) tells what this UPDATE wrote, to be held against what the
		// SELECT reads.
		update: "UPDATE " + t + " SET max_id = LAST_INSERT_ID(max_id + GREATEST(step, ?)) WHERE biz_tag = ?",
		// FOR UPDATE keeps proxies that split reads from writes off their replicas.
		read:   "SELECT biz_tag, max_id, step FROM " + t + " WHERE biz_tag = ? FOR UPDATE",
		limits: "SELECT max_id < -GREATEST(step, ?) AS below, max_id > 9223372036854775807 - GREATEST(step, ?) AS above FROM " + t + " WHERE biz_tag = ?",
		ensure: "INSERT INTO " + t + " (biz_tag, max_id, step) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE biz_tag = biz_tag",
	}
}

// Fetch implements Store.
func (s *AllocStore) Fetch(ctx context.Context, tag string, n, seen int64) (Range, error) {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return Range{}, err
	}
	defer tx.Rollback()

	// The UPDATE comes first: it takes the row's lock, and the SELECT reads under it.
	res, err := tx.ExecContext(ctx, s.update, n, tag)
	if err != nil {
		return Range{}, s.explain(ctx, tx, tag, n, err)
	}
	rows, err := res.RowsAffected()
	if err != nil {
		return Range{}, err
	}
	if rows != 1 {
		return Range{}, &UnknownTagError{Tag: tag, Table: s.table, Rows: rows}
	}
	wrote, err := res.LastInsertId()
	if err != nil {
		return Range{}, err
	}
	var row Row
	if err := tx.GetContext(ctx, &row, s.read, tag); err != nil {
		return Range{}, s.explain(ctx, tx, tag, n, err)
	}
	if row.Step < 1 || row.Step > MaxRowStep {
		return Range{}, &StepError{Tag: tag, Table: s.table, Step: row.Step}
	}
	r := Range{Start: row.MaxID - max(n, row.Step), End: row.MaxID, Step: row.Step}
	switch {
	case wrote < 0 || row.MaxID <= 0:
		return Range{}, &RangeError{Tag: tag, Table: s.table, Range: r}
	// A proxy in between may swallow the id of an UPDATE: 0 says nothing.
	case wrote != 0 && wrote != row.MaxID:
		return Range{}, fmt.Errorf("leafsql: tag %q: max_id was set to %d and reads %d in the same transaction; %s must be an InnoDB table, read where it is written",
			tag, wrote, row.MaxID, s.table)
	case max(r.Start, 0) < seen:
		return Range{}, &RolledBackError{Tag: tag, Table: s.table, Start: r.Start, Seen: seen}
	}
	// Whether a failed commit took effect is unknown: the range is nobody's then.
	if err := tx.Commit(); err != nil {
		return Range{}, fmt.Errorf("leafsql: tag %q: commit of a range: %w", tag, err)
	}
	return r, nil
}

// explain looks whether the statement failed because max_id is out of bounds.
func (s *AllocStore) explain(ctx context.Context, tx *sqlx.Tx, tag string, n int64, cause error) error {
	var out struct{ Below, Above bool }
	err := tx.GetContext(ctx, &out, s.limits, n, n, tag)
	switch {
	case err == nil && out.Below:
		// LAST_INSERT_ID is unsigned: such a sum does not get into the column.
		return &RangeError{Tag: tag, Table: s.table, Range: Range{Start: math.MinInt64, End: 0}}
	case err == nil && out.Above:
		return fmt.Errorf("%w: tag %q in %s: %w", idgen.ErrExhausted, tag, s.table, cause)
	}
	return cause
}

// Create creates the table where it does not exist, as Leaf defines it.
func (s *AllocStore) Create(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+s.table+` (
  biz_tag varchar(128) NOT NULL DEFAULT '',
  max_id bigint NOT NULL DEFAULT 1,
  step int NOT NULL,
  description varchar(256) DEFAULT NULL,
  update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (biz_tag)
) ENGINE=InnoDB`)
	return err
}

// Ensure adds a row for the tag where it has none; a row that is there stays as it
// is. maxID is the first id to be issued: highest id in use + 1.
func (s *AllocStore) Ensure(ctx context.Context, tag string, maxID, step int64) error {
	if step < 1 || step > MaxRowStep {
		return &StepError{Tag: tag, Table: s.table, Step: step}
	}
	_, err := s.db.ExecContext(ctx, s.ensure, tag, maxID, step)
	return err
}

// Tags returns all rows, ordered by tag.
func (s *AllocStore) Tags(ctx context.Context) ([]Row, error) {
	var rows []Row
	err := s.db.SelectContext(ctx, &rows, "SELECT biz_tag, max_id, step FROM "+s.table+" ORDER BY biz_tag")
	return rows, err
}

// Row returns the tag's row without moving it, or *UnknownTagError.
func (s *AllocStore) Row(ctx context.Context, tag string) (Row, error) {
	var row Row
	err := s.db.GetContext(ctx, &row, "SELECT biz_tag, max_id, step FROM "+s.table+" WHERE biz_tag = ?", tag)
	if errors.Is(err, sql.ErrNoRows) {
		return row, &UnknownTagError{Tag: tag, Table: s.table}
	}
	return row, err
}

// quoteTable quotes [db.]table.
func quoteTable(name string) string {
	parts := strings.SplitN(name, ".", 2)
	for i, p := range parts {
		parts[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	return strings.Join(parts, ".")
}
