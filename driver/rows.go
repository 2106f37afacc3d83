package driver

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"
	"slices"
)

var (
	_ driver.RowsColumnTypeDatabaseTypeName = (*readRows)(nil)
	_ driver.RowsColumnTypeNullable         = (*readRows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*readRows)(nil)
	_ driver.RowsColumnTypeScanType         = (*readRows)(nil)
)

// readRows are rows that were read already, with what go-sql-driver's rows tell
// of their columns.
type readRows struct {
	columns []string
	types   []columnType
	rows    [][]driver.Value
}

type columnType struct {
	name             string
	nullable, known  bool
	precision, scale int64
	decimal          bool
	scan             reflect.Type
}

// describe takes over what the server's rows tell of their columns.
func (r *readRows) describe(rows driver.Rows) {
	r.types = make([]columnType, len(r.columns))
	for i := range r.types {
		t := &r.types[i]
		t.scan = reflect.TypeFor[any]()
		if x, ok := rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
			t.name = x.ColumnTypeDatabaseTypeName(i)
		}
		if x, ok := rows.(driver.RowsColumnTypeNullable); ok {
			t.nullable, t.known = x.ColumnTypeNullable(i)
		}
		if x, ok := rows.(driver.RowsColumnTypePrecisionScale); ok {
			t.precision, t.scale, t.decimal = x.ColumnTypePrecisionScale(i)
		}
		if x, ok := rows.(driver.RowsColumnTypeScanType); ok {
			t.scan = x.ColumnTypeScanType(i)
		}
	}
}

func (r *readRows) Columns() []string { return r.columns }

func (r *readRows) Close() error {
	r.rows = nil
	return nil
}

func (r *readRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

func (r *readRows) ColumnTypeDatabaseTypeName(i int) string { return r.types[i].name }

func (r *readRows) ColumnTypeNullable(i int) (nullable, ok bool) {
	return r.types[i].nullable, r.types[i].known
}

func (r *readRows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return r.types[i].precision, r.types[i].scale, r.types[i].decimal
}

func (r *readRows) ColumnTypeScanType(i int) reflect.Type { return r.types[i].scan }

// readAll runs a query and reads all its rows.
func (c *conn) readAll(ctx context.Context, text string, args []driver.NamedValue, prepared bool) (*readRows, error) {
	query := func() (driver.Rows, error) { return c.innerConn.QueryContext(ctx, text, args) }
	if prepared || len(args) > 0 && !c.connector.interpolates() {
		s, err := c.innerConn.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		query = func() (driver.Rows, error) { return queryStmt(ctx, s, args) }
	}
	rows, err := query()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return read(rows)
}

// read reads all rows.
func read(rows driver.Rows) (*readRows, error) {
	r := &readRows{columns: rows.Columns()}
	r.describe(rows)
	for {
		row := make([]driver.Value, len(r.columns))
		switch err := rows.Next(row); err {
		case nil:
		case io.EOF:
			return r, nil
		default:
			return nil, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = slices.Clone(b)
			}
		}
		r.rows = append(r.rows, row)
	}
}
