package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/internal/quote"
)

// AllocStore is Leaf's table, leaf_alloc, shared with Java Leaf: max_id is the next
// id that nobody has, and a fetch moves it up.
type AllocStore struct{ counter }

// NewAllocStore returns the store on table, which is leaf_alloc's name or db.name,
// unquoted. Give it a pool whose connections are never held by a transaction that
// waits for ids.
func NewAllocStore(db *sqlx.DB, table string) *AllocStore {
	s := &AllocStore{counter{db: db, table: quote.Table(table), columns: leafs}}
	s.read = s.readRow
	return s
}

func (s *AllocStore) readRow(ctx context.Context, c *sql.Conn, tag string) (row, bool, error) {
	cells, err := s.cells(ctx, c, tag, "max_id, step")
	if err != nil {
		return row{}, false, err
	}
	r := row{end: maxEnd}
	if r.step, err = s.readStep(tag, "step", cells["step"]); err == nil {
		r.next, err = s.readNext(tag, cells["max_id"])
	}
	return r, cells.autocommit(), err
}

// cells are a row's columns, by their names in small letters.
type cells map[string]cell

type cell struct {
	sql.NullString
	typ string // "" where the driver does not say
}

func (c cells) autocommit() bool { return c["@@autocommit"].String == "1" }

// cells reads columns of the tag's row. FOR UPDATE keeps proxies that split reads from
// writes off their replicas.
func (t *counter) cells(ctx context.Context, c *sql.Conn, tag, columns string) (cells, error) {
	rows, err := c.QueryContext(ctx, "SELECT "+columns+", @@autocommit FROM "+t.table+" WHERE "+t.tag+" = "+quote.Literal(tag)+" FOR UPDATE")
	if err != nil {
		if n, _ := serverError(err); n == 1267 || n == 3854 || n == 3988 {
			return nil, &RowError{tag, t.table, "its character set has not all letters of the tag (" + err.Error() + ")", "ALTER TABLE " + t.table + " CONVERT TO CHARACTER SET utf8mb4"}
		}
		return nil, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	values, places := make([]sql.NullString, len(types)), make([]any, len(types))
	for i := range values {
		places[i] = &values[i]
	}
	found := 0
	for ; rows.Next(); found++ {
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	all := make(cells, len(types))
	for i, t := range types {
		all[strings.ToLower(t.Name())] = cell{values[i], t.DatabaseTypeName()}
	}
	// Columns that round or clip would give ids twice.
	if typ := all[t.name()].typ; typ != "" && typ != "BIGINT" && typ != "UNSIGNED BIGINT" {
		return nil, &RowError{tag, t.table, t.name() + " is of type " + typ, fmt.Sprintf("ALTER TABLE %s MODIFY %s BIGINT NOT NULL DEFAULT %d", t.table, t.next, 1-t.last)}
	}
	switch found {
	case 0:
		return nil, &UnknownTagError{tag, t.table, t.columns}
	case 1:
		return all, nil
	}
	return nil, t.twoRows(tag)
}

// readNext reads the next id that nobody has out of its column.
func (t *counter) readNext(tag string, c cell) (int64, error) {
	v, err := strconv.ParseInt(c.String, 10, 64)
	// Beyond 2^63-1 ParseInt gives that.
	if err != nil && !errors.Is(err, strconv.ErrRange) || v < -t.last {
		return 0, &RowError{tag, t.table, t.name() + " is " + null(c), fmt.Sprintf("raise it above every id in use: UPDATE %s SET %s = <highest id%s> WHERE %s = %s", t.table, t.next, t.after(), t.tag, quote.String(tag))}
	}
	return min(v, maxEnd-t.last) + t.last, nil
}

// readStep reads how many ids a fetch takes out of its column.
func (t *counter) readStep(tag, column string, c cell) (int64, error) {
	v, err := strconv.ParseInt(c.String, 10, 64)
	if err != nil || v < 1 || v > maxRowStep {
		return 0, &RowError{tag, t.table, fmt.Sprintf("%s is %s, not in 1 … %d", column, null(c), int64(maxRowStep)), fmt.Sprintf("UPDATE %s SET %s = 1000 WHERE %s = %s", t.table, t.step, t.tag, quote.String(tag))}
	}
	return v, nil
}

func null(c cell) string {
	if !c.Valid {
		return "NULL"
	}
	return c.String
}
