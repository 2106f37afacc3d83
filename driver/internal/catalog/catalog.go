// Package catalog reads what a server knows of tables: their columns, and the
// highest key where an index has it.
//
//	c := catalog.New(pool)
//	columns, err := c.Columns(ctx, []catalog.Name{{DB: "shop", Table: "orders"}})
//
// It knows no rules and keeps nothing. Temporary tables are not in a catalog:
// only the connection that made one sees it.
package catalog

import (
	"context"
	"database/sql"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A Name is a table's, with its database, as the server spells them.
type Name struct{ DB, Table string }

func (n Name) String() string { return n.DB + "." + n.Table }

// Quoted is the name as SQL writes it.
func (n Name) Quoted() string { return Quote(n.DB) + "." + Quote(n.Table) }

// Quote quotes an identifier.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// A Column is one column of a table.
type Column struct {
	Name          string
	Type          string // such as "int(10) unsigned"
	Primary       bool   // part of the primary key, and not generated from others
	AutoIncrement bool
	Invisible     bool
	Updatable     bool // this user may update it
	Now           bool // its default is the statement's time
	ID            bool // its default reads LAST_INSERT_ID(), under the name @@identity or @@last_insert_id

	// ReadsID says that a trigger of its table reads LAST_INSERT_ID(), or may
	// through a routine or another table's trigger that does, as far as this user
	// sees their texts, and UpdatesReadID that it is one of updates.
	// FunctionsReadID says that some function, in whatever database, does or may
	// through such a trigger, or has a text that this user does not see.
	ReadsID, UpdatesReadID, FunctionsReadID bool

	Triggered bool // its table has triggers

	// ProgramsCount says that a trigger of its table, or some routine, calls
	// ROW_COUNT() or the like, as far as this user sees their texts.
	ProgramsCount bool

	triggers int64 // what those of its table do, as bits
}

// Describe fills in what the texts Key, Default and Extra of SHOW COLUMNS, or
// of information_schema, say.
func (c *Column) Describe(key, byDefault, extra string) {
	extra, byDefault = strings.ToLower(extra), strings.ToLower(byDefault)
	generated := strings.Contains(extra, "generated") && !strings.Contains(extra, "default_generated")
	c.Primary = key == "PRI" && !generated
	c.AutoIncrement = strings.Contains(extra, "auto_increment")
	c.Invisible = strings.Contains(extra, "invisible")
	c.Now = now.MatchString(byDefault)
	c.ID = strings.Contains(byDefault, "@@") && (strings.Contains(byDefault, "identity") || strings.Contains(byDefault, "last_insert_id"))
}

// now matches defaults that call the clock: "current_timestamp(6)", "(now() + interval 1 day)".
var now = regexp.MustCompile(`current_timestamp|current_date|current_time|now\(|localtime|sysdate|utc_|cur(date|time)|unix_timestamp`)

// keyType matches the column types that can hold a number as a key: "bigint(20) unsigned",
// "decimal(20,0)", "varchar(32)". Its groups are the name, the two numbers and " unsigned".
var keyType = regexp.MustCompile(`^(tinyint|smallint|mediumint|int|integer|bigint|decimal|char|varchar)(?:\((\d+)(?:,(\d+))?\))?( unsigned)?`)

// integers are the highest values of the signed integer types.
var integers = map[string]int64{
	"tinyint": math.MaxInt8, "smallint": math.MaxInt16, "mediumint": 1<<23 - 1,
	"int": math.MaxInt32, "integer": math.MaxInt32, "bigint": math.MaxInt64,
}

// Highest is the highest id that the column can hold, 0 if it can hold none,
// and whether it is of an integer type.
func (c *Column) Highest() (highest int64, integer bool) {
	m := keyType.FindStringSubmatch(strings.ToLower(c.Type))
	if m == nil {
		return 0, false
	}
	if top, ok := integers[m[1]]; ok {
		if m[4] != "" && top != math.MaxInt64 {
			top = top*2 + 1
		}
		return top, true
	}
	digits, _ := strconv.Atoi(m[2]) // no digits: too long for an int, or missing
	if m[1] == "decimal" {
		scale, _ := strconv.Atoi(m[3])
		digits -= scale
	}
	if digits >= 19 || len(m[2]) > 9 {
		return math.MaxInt64, false
	}
	top := int64(1)
	for range digits {
		top *= 10
	}
	return top - 1, false
}

// Sized is the name of the column's type, and its length where it has one.
func (c *Column) Sized() (name string, length int) {
	name, rest, _ := strings.Cut(strings.ToLower(c.Type), "(")
	digits, _, _ := strings.Cut(rest, ")")
	length, _ = strconv.Atoi(digits) // 0: none, or several numbers
	return name, length
}

// Unsigned says whether the column's type has no negative values.
func (c *Column) Unsigned() bool {
	return strings.Contains(strings.ToLower(c.Type), "unsigned")
}

// A Catalog asks through a pool of its own: a query on an application's
// connection would change its ROW_COUNT(), and in a pool of one wait for it.
type Catalog struct{ db *sql.DB }

// New returns a catalog that asks through db.
func New(db *sql.DB) *Catalog { return &Catalog{db} }

// Close closes the pool.
func (c *Catalog) Close() error { return c.db.Close() }

// InTransaction runs a statement in a transaction that is rolled back.
func (c *Catalog) InTransaction(ctx context.Context, text string) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, text)
	return err
}

// perQuery is how many tables one query asks for.
const perQuery = 100

// Columns lists the columns of tables in their order, by as few queries as can
// be. A table without an entry does not exist, or may not be seen.
func (c *Catalog) Columns(ctx context.Context, names []Name) (map[Name][]Column, error) {
	columns := make(map[Name][]Column, len(names))
	for ; len(names) > perQuery; names = names[perQuery:] {
		if err := c.columns(ctx, names[:perQuery], columns); err != nil {
			return nil, err
		}
	}
	return columns, c.columns(ctx, names, columns)
}

func (c *Catalog) columns(ctx context.Context, names []Name, columns map[Name][]Column) error {
	if len(names) == 0 {
		return nil
	}
	// Only a comparison with a constant spares MariaDB from opening all tables.
	var query strings.Builder
	var args []any
	// The first row, -1, is of all stored routines, and only its r counts. '-' stands in
	// the rest, since '' would be NULL under EMPTY_STRING_IS_NULL.
	query.WriteString("SELECT -1 n, '-' s, '-' t, 0 o, '-' c, '-' y, '-' k, '-' d, '-' e, '-' p, " +
		"BIT_OR(" + programBits("routine_definition") + " | IF(routine_type <> 'PROCEDURE' AND routine_definition IS NULL, " + strconv.Itoa(hidden) + ", 0)) r FROM information_schema.routines WHERE routine_schema <> 'sys'")
	for i, n := range names {
		query.WriteString(" UNION ALL SELECT " + strconv.Itoa(i) + " n, table_schema s, table_name t, ordinal_position o, column_name c, column_type y, column_key k, column_default d, extra e, privileges p," +
			" (SELECT BIT_OR(" + programBits("action_statement") + " << IF(event_manipulation = 'UPDATE', " + strconv.Itoa(ofUpdates) + ", 0)) FROM information_schema.triggers WHERE event_object_schema = ? AND event_object_table = ?) r" +
			" FROM information_schema.columns WHERE table_schema = ? AND table_name = ?")
		args = append(args, n.DB, n.Table, n.DB, n.Table)
	}
	rows, err := c.db.QueryContext(ctx, query.String()+" ORDER BY n, o", args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var routines int64 // what some of them do, as bits
	triggers := false  // some table has one
	for rows.Next() {
		var n, o int
		var schema, table, key, extra, privileges string
		var byDefault sql.NullString
		var programs sql.NullInt64
		var col Column
		if err := rows.Scan(&n, &schema, &table, &o, &col.Name, &col.Type, &key, &byDefault, &extra, &privileges, &programs); err != nil {
			return err
		}
		if n < 0 { // the first row
			routines = programs.Int64
			continue
		}
		name := names[n]
		// The comparison above ignores case; a server that does not would
		// otherwise mix the columns of Orders and orders.
		exact := schema == name.DB && table == name.Table
		if !exact && !(strings.EqualFold(schema, name.DB) && strings.EqualFold(table, name.Table) && len(columns[name]) == 0) {
			continue
		}
		col.Describe(key, byDefault.String, extra)
		col.Updatable = strings.Contains(strings.ToLower(privileges), "update")
		col.triggers = programs.Int64
		col.Triggered = col.triggers > 0
		col.notePrograms(routines)
		triggers = triggers || col.triggers > 0
		columns[name] = append(columns[name], col)
	}
	if err := rows.Err(); err != nil || routines&(readsID|counts) == readsID|counts || !triggers && routines == 0 {
		return err
	}
	rows.Close()     // the pool may have one connection
	var others int64 // what some trigger does
	if err := c.db.QueryRowContext(ctx, "SELECT BIT_OR("+programBits("action_statement")+") FROM information_schema.triggers").Scan(&others); err != nil {
		return err
	}
	for _, n := range names {
		for i := range columns[n] {
			col := &columns[n][i]
			if col.triggers > 0 || routines > 0 {
				col.notePrograms(routines | others)
			}
		}
	}
	return nil
}

// What stored programs do, as bits. Those of a table's triggers stand there twice:
// those of its triggers of updates are shifted.
const (
	exists    = 1
	readsID   = 2 // LAST_INSERT_ID(), under whatever name
	counts    = 4 // it calls what leafsql's own statements change: see Counts
	hidden    = 8 // this user does not see the text of a function
	ofUpdates = 4 // bits
)

// notePrograms notes what the triggers of a table, and any function, may read or call
// where others are the bits of all programs that they may run.
func (c *Column) notePrograms(others int64) {
	bits := int64(readsID)
	if others&readsID != 0 {
		bits = exists
	}
	c.ReadsID = c.triggers&(bits|bits<<ofUpdates) != 0
	c.UpdatesReadID = c.triggers&(bits<<ofUpdates) != 0
	c.FunctionsReadID = others&(readsID|hidden) != 0
	c.ProgramsCount = (c.triggers|c.triggers>>ofUpdates|others)&counts != 0
}

// programBits is the SQL for the bits of a program whose text a column holds.
func programBits(text string) string {
	return "(" + strconv.Itoa(exists) + " | IF(" + readsIDIn(text) + ", " + strconv.Itoa(readsID) + ", 0) | IF(LOWER(" + text + ") REGEXP '" + countCall + "', " + strconv.Itoa(counts) + ", 0))"
}

// readsIDIn is the condition that a program's text reads LAST_INSERT_ID().
func readsIDIn(text string) string {
	return "(LOWER(" + text + ") LIKE '%last_insert_id%' OR LOWER(" + text + ") LIKE '%@@%identity%')"
}

// Databases lists the databases that this user sees, without the server's own.
func (c *Catalog) Databases(ctx context.Context) ([]string, error) {
	return c.names(ctx, "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')")
}

// Tables lists the base tables of a database.
func (c *Catalog) Tables(ctx context.Context, db string) ([]string, error) {
	return c.names(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'BASE TABLE'", db)
}

func (c *Catalog) names(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := c.db.QueryContext(ctx, query, args...)
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
		names = append(names, name)
	}
	return names, rows.Err()
}

// Indexed reports whether an index begins with a column.
func (c *Catalog) Indexed(ctx context.Context, table Name, column string) (bool, error) {
	var one int
	err := c.db.QueryRowContext(ctx, "SELECT 1 FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND column_name = ? AND seq_in_index = 1 LIMIT 1",
		table.DB, table.Table, column).Scan(&one)
	if err == sql.ErrNoRows {
		return false, nil
	}
	return err == nil, err
}

// Highest gives the highest value of an integer column below a limit, 0 for an
// empty table. Without an index that begins with the column it reads the whole
// table.
func (c *Catalog) Highest(ctx context.Context, table Name, column string, below int64) (int64, error) {
	var v sql.NullInt64
	err := c.db.QueryRowContext(ctx, MaxQuery(table, column, below)).Scan(&v)
	return max(v.Int64, 0), err
}

// MaxQuery is the query for the highest value of an integer column below a
// limit.
func MaxQuery(table Name, column string, below int64) string {
	return "SELECT MAX(" + Quote(column) + ") FROM " + table.Quoted() + " WHERE " + Quote(column) + " < " + strconv.FormatInt(below, 10)
}

// Empty reports whether a table has no row.
func (c *Catalog) Empty(ctx context.Context, table Name) (bool, error) {
	var one int
	err := c.db.QueryRowContext(ctx, "SELECT 1 FROM "+table.Quoted()+" LIMIT 1").Scan(&one)
	if err == sql.ErrNoRows {
		return true, nil
	}
	return false, err
}

// Definitions writes the types of columns as CREATE TABLE does, each of them
// nullable and without a default, for a user who may not read the table.
func (c *Catalog) Definitions(ctx context.Context, table Name, columns []string) (string, error) {
	rows, err := c.db.QueryContext(ctx, "SELECT * FROM information_schema.columns WHERE table_schema = ? AND table_name = ?", table.DB, table.Table)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, places := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		places[i] = &values[i]
	}
	types := make(map[string]string)
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return "", err
		}
		field := make(map[string]string)
		for i, n := range names {
			field[strings.ToUpper(n)] = values[i].String
		}
		typ := field["COLUMN_TYPE"]
		if cs := field["CHARACTER_SET_NAME"]; cs != "" {
			typ += " CHARACTER SET " + cs + " COLLATE " + field["COLLATION_NAME"]
		}
		if srid := field["SRS_ID"]; srid != "" {
			typ += " SRID " + srid
		}
		types[strings.ToLower(field["COLUMN_NAME"])] = typ
	}
	var b strings.Builder
	for _, col := range columns {
		typ, ok := types[strings.ToLower(col)]
		if !ok {
			return "", sql.ErrNoRows
		}
		b.WriteString(", " + Quote(col) + " " + typ + " NULL")
	}
	return b.String(), rows.Err()
}
