package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// catalog reads what the server knows of tables: columns, keys, the highest
// key. It has a small pool of its own, because a query of ours on an
// application's connection would change its ROW_COUNT() and, with a pool of
// one inside a transaction, would wait for itself.
type catalog struct {
	db *sql.DB
}

func newCatalog(inner driver.Connector) *catalog {
	return &catalog{db: ownPool(inner, 2)}
}

// foldsCase reports whether the server compares table names without case
// (lower_case_table_names is not 0).
func (c *catalog) foldsCase(ctx context.Context) (bool, error) {
	var v int
	err := c.db.QueryRowContext(ctx, "SELECT @@lower_case_table_names").Scan(&v)
	return v != 0, err
}

// column is one column of a table, as information_schema describes it.
type column struct {
	name      string
	typ       string // column_type, such as "int(10) unsigned"
	primary   bool
	autoInc   bool
	invisible bool
	updatable bool // this user may update it
}

// columns lists a table's columns in their order; none: no such table, or no
// right to see it.
func (c *catalog) columns(ctx context.Context, database, table string) ([]column, error) {
	rows, err := c.db.QueryContext(ctx,
		"SELECT table_schema, table_name, column_name, column_type, column_key, extra, privileges"+
			" FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
		database, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cols []column
	for rows.Next() {
		var schema, name, key, extra, privileges string
		var col column
		if err := rows.Scan(&schema, &name, &col.name, &col.typ, &key, &extra, &privileges); err != nil {
			return nil, err
		}
		// The comparison above ignores case; a server that does not would
		// otherwise mix the columns of Orders and orders.
		if (schema != database || name != table) && !(strings.EqualFold(schema, database) && strings.EqualFold(name, table) && len(cols) == 0) {
			continue
		}
		col.describe(key, extra)
		col.updatable = strings.Contains(strings.ToLower(privileges), "update")
		cols = append(cols, col)
	}
	return cols, rows.Err()
}

func (col *column) describe(key, extra string) {
	extra = strings.ToLower(extra)
	col.primary = key == "PRI"
	col.autoInc = strings.Contains(extra, "auto_increment")
	col.invisible = strings.Contains(extra, "invisible")
}

// temporaryColumns asks on the application's own connection, the only one
// that sees its temporary tables. The error is the server's own, 1146 where
// there is no such table.
func temporaryColumns(ctx context.Context, conn innerConn, database, table string) ([]column, error) {
	rows, err := conn.QueryContext(ctx, "SHOW COLUMNS FROM "+quoteName(database)+"."+quoteName(table), nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var cols []column
	dest := make([]driver.Value, len(rows.Columns()))
	for rows.Next(dest) == nil { // Field, Type, Null, Key, Default, Extra
		col := column{name: text(dest[0]), typ: text(dest[1]), updatable: true}
		col.describe(text(dest[3]), text(dest[5]))
		cols = append(cols, col)
	}
	return cols, nil
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

// engine names a table's storage engine, "" for a view or a temporary table.
func (c *catalog) engine(ctx context.Context, database, table string) (string, error) {
	var engine sql.NullString
	err := c.db.QueryRowContext(ctx, "SELECT engine FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", database, table).Scan(&engine)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return engine.String, err
}

// highest gives the highest key that an id could meet, 0 for an empty table.
// Where the application has locked the table only conn can read it.
func (c *catalog) highest(ctx context.Context, conn innerConn, name tableName, column string, integer bool) (int64, error) {
	query := "SELECT MAX(" + quoteName(column) + ") FROM " + quoteFull(name) + " WHERE " + quoteName(column) + " <= 9223372036854775807"
	if !integer { // the order of text is not that of numbers, and no index helps
		query = "SELECT MAX(k) FROM (SELECT CAST(" + quoteName(column) + " AS DECIMAL(65,0)) k FROM " + quoteFull(name) + ") x WHERE k <= 9223372036854775807"
	}
	var v sql.NullString
	err := c.db.QueryRowContext(ctx, query).Scan(&v)
	if isServerError(err, errLockWait) {
		v.String, err = scalar(ctx, conn, query)
	}
	if err != nil || v.String == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(v.String, 10, 64)
	return max(n, 0), err
}

// matching lists the base tables of a database whose names fit a pattern.
func (c *catalog) matching(ctx context.Context, database, pattern string) ([]string, error) {
	rows, err := c.db.QueryContext(ctx,
		"SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'BASE TABLE'", database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if wildcard(pattern, name) {
			names = append(names, name)
		}
	}
	return names, rows.Err()
}

// keyType matches the column types that can hold a generated key.
var keyType = regexp.MustCompile(`^(tinyint|smallint|mediumint|int|integer|bigint|decimal|char|varchar)(?:\((\d+)(?:,(\d+))?\))?( unsigned)?`)

// integerLimit is the highest value of each signed integer type.
var integerLimit = map[string]int64{
	"tinyint": math.MaxInt8, "smallint": math.MaxInt16, "mediumint": 1<<23 - 1,
	"int": math.MaxInt32, "integer": math.MaxInt32, "bigint": math.MaxInt64,
}

// limit is the highest id that a column type can hold and whether it is an
// integer type; ok is false where it can hold none.
func limit(columnType string) (highest int64, integer, ok bool) {
	m := keyType.FindStringSubmatch(strings.ToLower(columnType))
	if m == nil {
		return 0, false, false
	}
	if top, isInt := integerLimit[m[1]]; isInt {
		if m[4] != "" && top != math.MaxInt64 {
			top = top*2 + 1
		}
		return top, true, true
	}
	digits := 0
	for _, c := range m[2] {
		digits = digits*10 + int(c-'0')
	}
	if m[1] == "decimal" && m[3] != "" {
		scale := 0
		for _, c := range m[3] {
			scale = scale*10 + int(c-'0')
		}
		digits -= scale
	}
	if digits >= 19 {
		return math.MaxInt64, false, true
	}
	top := int64(1)
	for range digits {
		top *= 10
	}
	return top - 1, false, digits > 0
}

// quoteName quotes an identifier.
func quoteName(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}
