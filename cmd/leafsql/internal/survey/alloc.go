package survey

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/servererr"
)

// Alloc describes the definition of leaf_alloc.
type Alloc struct {
	Exists bool
	Denied bool // the server denies reading the table; some servers also do this for a missing table
	Layout
	Persistence
}

// Persistence describes whether a table keeps the rows that are written into it.
type Persistence struct {
	Engine   string // ViewEngine for a view, "" if the user may not see it
	Triggers []string
}

// ViewEngine is the Engine of a table that is a view.
const ViewEngine = "VIEW"

// A Row is a row of leaf_alloc.
type Row struct {
	Tag     string
	MaxID   int64  // the next id that is not allocated; 2^63-1 if the column has a greater value
	Step    int64  // ids of one fetch; 0 if it is not a number
	Written string // max_id as it is stored, "" for NULL
	Updated time.Time
}

// readAccess reports whether a table exists, and whether the user may not read it. A server may also deny access
// to a table that does not exist.
func readAccess(ctx context.Context, table *databases.Store) (exists, denied bool, err error) {
	_, err = table.DB.ExecContext(ctx, "SELECT 1 FROM "+table.QuotedName()+" LIMIT 0")
	switch {
	case servererr.Is(err, servererr.NoSuchTable):
		return false, false, nil
	case databases.IsDenied(err):
		return true, true, nil
	case err != nil:
		return false, false, readError(table, err)
	}
	return true, false, nil
}

func readError(table *databases.Store, err error) error {
	way := databases.Hint(err)
	switch {
	case servererr.Is(err, servererr.NoSuchTable):
		way = "create it with leafsql init"
	case servererr.Is(err, servererr.UnknownColumn):
		way = "leafsql check lists the missing columns"
	}
	return fmt.Errorf("leafsql: read %s on %s: %w; %s", table.QuotedName(), table.Label, err, way)
}

// readAlloc queries the catalog for leaf_alloc.
func readAlloc(ctx context.Context, store *databases.Store) (a Alloc, err error) {
	if a.Exists, a.Denied, err = readAccess(ctx, store); err != nil || !a.Exists || a.Denied {
		return a, err
	}
	if a.Persistence, err = readPersistence(ctx, store); err == nil {
		a.Layout, err = readLayout(ctx, store, "biz_tag")
	}
	return a, err
}

func readPersistence(ctx context.Context, table *databases.Store) (k Persistence, err error) {
	err = table.DB.QueryRowContext(ctx, "SELECT COALESCE(engine, table_type) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", table.Database, table.Table).Scan(&k.Engine)
	if err == nil || err == sql.ErrNoRows {
		k.Triggers, err = table.List(ctx, "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = ? AND event_object_table = ? ORDER BY 1", table.Database, table.Table)
	}
	if err != nil {
		return k, readError(table, err)
	}
	return k, nil
}

// readRows reads leaf_alloc's rows, unless required columns are missing.
func (s *Survey) readRows(ctx context.Context) error {
	s.Rows = nil
	if !s.CanReadAlloc() {
		return nil
	}
	columns := s.Alloc.Columns
	updated := "NULL"
	if c := columns["update_time"]; strings.HasPrefix(c.Type, "timestamp") || strings.HasPrefix(c.Type, "datetime") {
		updated = "update_time"
	}
	for _, name := range []string{"biz_tag", "max_id", "step"} {
		if _, ok := columns[name]; !ok {
			return nil // check reports missing columns
		}
	}
	rows, err := ReadRows(ctx, s.Set.Store, updated)
	s.Rows = rows
	return err
}

// ReadRows reads leaf_alloc's rows in the order of their tags. updated is the column with the time of the last
// change, or NULL.
func ReadRows(ctx context.Context, store *databases.Store, updated string) ([]Row, error) {
	var rows []Row
	err := store.Each(ctx, func(scan func(...any) error) error {
		var r Row
		var maxID, step sql.NullString
		var at sql.NullTime
		if err := scan(&r.Tag, &maxID, &step, &at); err != nil {
			return err
		}
		r.Written, r.Updated = maxID.String, at.Time
		r.MaxID, _ = strconv.ParseInt(maxID.String, 10, 64) // 2^63-1 if it is greater
		r.Step, _ = strconv.ParseInt(step.String, 10, 64)
		rows = append(rows, r)
		return nil
	}, "SELECT biz_tag, max_id, step, "+updated+" FROM "+store.QuotedName()+" ORDER BY biz_tag")
	if err != nil {
		return nil, readError(store, err)
	}
	return rows, nil
}

// AllocRows returns the rows of a leaf_alloc. They share the connections of store.
func AllocRows(store *databases.Store) control.AllocRows {
	return control.AllocRowsOf(segment.NewAllocStore(sqlx.NewDb(store.DB, "mysql"), store.PlainName()))
}

// ReadMarks reads the marks in the column description of leaf_alloc's rows; a mark names the server on which ids were last
// fetched from the row. It returns the rows without a mark, and the rows that cannot be used because of their
// description. If leaf_alloc has no column description, ReadMarks returns no rows and no error.
func ReadMarks(ctx context.Context, store *databases.Store) (control.Marks, error) {
	marks, err := AllocRows(store).Marks(ctx)
	if err != nil && !servererr.Is(err, servererr.UnknownColumn) { // a missing column is reported by check
		return marks, readError(store, err)
	}
	return marks, nil
}

// charsetErrors contains the server's errors for a tag with characters that the table's character set lacks.
var charsetErrors = []uint16{1267, 3854, 3988}

// readRow returns a tag's row, or nil. It compares tags as the server does.
func (s *Survey) readRow(ctx context.Context, tag string) (*Row, error) {
	for i := range s.Rows {
		if s.Rows[i].Tag == tag {
			return &s.Rows[i], nil
		}
	}
	if len(s.Rows) == 0 {
		return nil, nil
	}
	store := s.Set.Store
	var written string
	err := store.DB.QueryRowContext(ctx, "SELECT biz_tag FROM "+store.QuotedName()+" WHERE biz_tag = ? LIMIT 1", tag).Scan(&written)
	switch {
	case err == sql.ErrNoRows, servererr.Is(err, charsetErrors...):
		return nil, nil
	case err != nil:
		return nil, readError(store, err)
	}
	for i := range s.Rows {
		if s.Rows[i].Tag == written {
			return &s.Rows[i], nil
		}
	}
	return nil, nil
}
