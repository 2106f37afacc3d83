package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// What is asked on the application's own connection, because only its session
// knows the answer, and rows that were read whole.

// ask completes settings by what is missing: what is the session's on the
// application's own connection, the rest elsewhere.
func (c *conn) ask(ctx context.Context, settings insert.Settings, missing insert.Missing) (insert.Settings, error) {
	if missing&insert.MissingSQLMode != 0 && !settings.SQLModeKnown {
		v, err := value(ctx, c.innerConn, "@@sql_mode")
		if err != nil {
			return settings, err
		}
		settings.SetSQLMode(v)
	}
	if missing&insert.MissingViews != 0 && !settings.ViewsKnown {
		reads, err := c.connector.viewsReadID(ctx, c.schema)
		if err != nil {
			return settings, err
		}
		settings.ViewsReadID, settings.ViewsKnown = reads, true
	}
	if missing&insert.MissingCharset != 0 && !settings.CharsetKnown {
		v, err := value(ctx, c.innerConn, "@@character_set_client")
		if err != nil {
			return settings, err
		}
		settings.Charset, settings.CharsetKnown = v, true
		c.settings.Charset, c.settings.CharsetKnown = v, true // until a text sets it
		c.replan()
	}
	return settings, nil
}

// parseVersion reads VERSION() as version comments write it: "10.11.19-MariaDB"
// is 101119, "8.4.3" is 80403. MariaDB may put "5.5.5-" before its own.
func parseVersion(s string) (mariaDB bool, version int) {
	mariaDB = strings.Contains(strings.ToLower(s), "mariadb")
	if mariaDB {
		s = strings.TrimPrefix(s, "5.5.5-")
	}
	s, _, _ = strings.Cut(s, "-")
	parts := strings.SplitN(s, ".", 4)
	for i := range 3 {
		version *= 100
		if i < len(parts) {
			n, _ := strconv.Atoi(parts[i]) // a part that is no number counts 0
			version += min(n, 99)
		}
	}
	return mariaDB, version
}

// text reads a value of a text result, whatever the inner driver made of it.
func text(v driver.Value) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	case nil:
		return ""
	}
	return fmt.Sprint(v)
}

// legibly asks a question whose answer holds names, and reads it. For that question
// character_set_results and sql_select_limit are set, and put back behind it, so that
// names come in UTF-8 and no row is cut off.
func (c *conn) legibly(ctx context.Context, question string) (*readRows, error) {
	if _, err := c.innerConn.ExecContext(ctx, "SET @leafsql_r = @@character_set_results, @leafsql_o = @@sql_select_limit,"+
		" character_set_results = utf8mb4, sql_select_limit = 18446744073709551615", nil); err != nil {
		return nil, err
	}
	rows, err := c.readAll(ctx, question, nil, false)
	if c.always(ctx, "SET character_set_results = @leafsql_r, sql_select_limit = @leafsql_o") != nil {
		c.giveUp()
		return nil, driver.ErrBadConn // nothing was written
	}
	return rows, err
}

// visibleColumns asks for the columns of a table as this connection sees it. It
// reads nothing, so that no snapshot of a transaction begins with it.
func (c *conn) visibleColumns(ctx context.Context, name catalog.Name) ([]string, error) {
	rows, err := c.legibly(ctx, "SELECT * FROM "+name.Quoted()+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	return rows.columns, nil
}

// temporaryColumns asks on the application's own connection, the only one
// that sees its temporary tables. The error is the server's own, 1146 where
// there is no such table.
func (c *conn) temporaryColumns(ctx context.Context, name catalog.Name) ([]catalog.Column, error) {
	rows, err := c.legibly(ctx, "SHOW COLUMNS FROM "+name.Quoted())
	if err != nil {
		return nil, err
	}
	columns := make([]catalog.Column, len(rows.rows))
	for i, row := range rows.rows { // Field, Type, Null, Key, Default, Extra
		columns[i] = catalog.Column{Name: text(row[0]), Type: text(row[1]), Updatable: true}
		columns[i].Describe(text(row[3]), text(row[4]), text(row[5]))
	}
	return columns, nil
}

func currentDatabase(ctx context.Context, conn innerConn) (string, error) {
	return value(ctx, conn, "DATABASE()")
}

// value asks what an expression is, "" for NULL. As bytes, and with a limit of
// its own, the answer is the same whatever the session's character_set_results
// and sql_select_limit are.
func value(ctx context.Context, conn innerConn, expression string) (string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT CAST("+expression+" AS BINARY) LIMIT 1", nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	return text(dest[0]), nil
}

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
