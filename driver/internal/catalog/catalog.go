// Package catalog reads facts about named tables from a server's catalog: columns, triggers
// and indexes, and the highest key. It also reads the texts of stored
// routines and views that the caller names.
//
//	c := catalog.New(pool)
//	tables, err := c.Tables(ctx, []catalog.Name{{DB: "shop", Table: "orders"}})
//
// The package does not use rules or cache tables. Temporary tables are not in a catalog:
// only the connection that created such a table sees it.
package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Name is the name of a table and of its database, in the server's spelling.
type Name = insert.TableName

// A Table describes one table as the server's catalog shows it.
type Table struct {
	Columns  []Column // in the table's order
	Triggers []Trigger
	Indexes  []Index
	Created  string // creation time on the server's clock; a later table of the same name has another time

	TriggersHidden bool // there may be triggers that this user does not see; set by the caller of FindTriggerRights
}

// A Column is one column of a table.
type Column struct {
	Name           string
	Type           string // such as "int(10) unsigned"
	Primary        bool   // part of the primary key, and not generated from other columns
	AutoIncrement  bool
	Invisible      bool
	Updatable      bool // this user may update it
	DefaultReadsID bool // its default reads LAST_INSERT_ID(), as @@identity or @@last_insert_id
}

// A Trigger is a trigger of a table that this user may see.
type Trigger struct {
	Event   string // INSERT, UPDATE or DELETE
	Before  bool
	Text    string
	SQLMode string // sql_mode when the trigger was created

	Effects insert.Effects // effects of Text and of the routines that it calls; set by the caller of Tables
}

// An Index is an index of a table.
type Index struct {
	Name    string
	Unique  bool
	Columns []string // "" for an expression
}

// RowTriggers reports whether a trigger runs before rows are inserted or updated.
func (t *Table) RowTriggers() insert.RowTriggers {
	switch {
	case slices.ContainsFunc(t.Triggers, func(tr Trigger) bool { return tr.Before && tr.Event != "DELETE" }):
		return insert.SomeTriggers
	case t.TriggersHidden:
		return insert.HiddenTriggers
	}
	return insert.NoTriggers
}

// HasIndexOn reports whether an index begins with a column.
func (t *Table) HasIndexOn(column string) bool {
	return slices.ContainsFunc(t.Indexes, func(x Index) bool { return x.Columns[0] == column })
}

// IsUnique reports whether a column is unique, alone or together with others.
func (t *Table) IsUnique(column string) (alone, together bool) {
	for _, x := range t.Indexes {
		if x.Unique && slices.Contains(x.Columns, column) {
			alone, together = alone || len(x.Columns) == 1, together || len(x.Columns) > 1
		}
	}
	return alone, together
}

// HasOtherUnique reports whether a unique index has any column other than the given one.
func (t *Table) HasOtherUnique(column string) bool {
	return slices.ContainsFunc(t.Indexes, func(x Index) bool { return x.Unique && (len(x.Columns) > 1 || x.Columns[0] != column) })
}

// setAttributes sets the fields that depend on column_key, column_default and extra.
func (c *Column) setAttributes(key, byDefault, extra string) {
	extra, byDefault = strings.ToLower(extra), strings.ToLower(byDefault)
	generated := strings.Contains(extra, "generated") && !strings.Contains(extra, "default_generated")
	c.Primary = key == "PRI" && !generated
	c.AutoIncrement = strings.Contains(extra, "auto_increment")
	c.Invisible = strings.Contains(extra, "invisible")
	c.DefaultReadsID = strings.Contains(byDefault, "@@") && (strings.Contains(byDefault, "identity") || strings.Contains(byDefault, "last_insert_id"))
}

// IsGenerated reports whether the column is a key that MySQL has generated for a table without a primary
// key (sql_generate_invisible_primary_key). MySQL itself recognises the column in the same way.
func (c *Column) IsGenerated() bool {
	return c.Name == "my_row_id" && c.Type == "bigint unsigned" && c.Primary && c.AutoIncrement && c.Invisible
}

// highestOfType maps the signed integer types to their highest values.
var highestOfType = map[string]int64{
	"tinyint": math.MaxInt8, "smallint": math.MaxInt16, "mediumint": 1<<23 - 1,
	"int": math.MaxInt32, "integer": math.MaxInt32, "bigint": math.MaxInt64,
}

// Highest returns the highest id that the column can hold, 0 if it cannot hold ids,
// and reports whether its type is an integer type.
func (c *Column) Highest() (highest int64, integer bool) {
	name, length, scale := c.ParseType()
	if top, ok := highestOfType[name]; ok {
		if c.IsUnsigned() && top != math.MaxInt64 {
			top = top*2 + 1
		}
		return top, true
	}
	digits := length - scale
	switch {
	case name != "decimal" && name != "char" && name != "varchar":
		return 0, false
	case digits >= 19:
		return math.MaxInt64, false
	}
	return int64(math.Pow10(digits)) - 1, false
}

// ParseType returns the name of the column's type, and its length and scale, 0 if the type has none.
func (c *Column) ParseType() (name string, length, scale int) {
	name, more, _ := strings.Cut(strings.ToLower(c.Type), "(")
	name, _, _ = strings.Cut(name, " ")        // "bigint unsigned"
	fmt.Sscanf(more, "%d,%d", &length, &scale) // 0: no length, no scale
	return name, length, scale
}

// IsUnsigned reports whether the column's type has no negative values.
func (c *Column) IsUnsigned() bool {
	return strings.Contains(strings.ToLower(c.Type), "unsigned")
}

// Timeout is the time limit for the queries of one lookup. A slow server needs seconds for each reply.
const Timeout = time.Minute

// A Catalog sends its queries through an internal pool. A query on an application's connection
// would change ROW_COUNT() there, and would wait forever if the application's pool has only one
// connection. A Catalog is safe for concurrent use after FoldsCase is set, and the caller has to close
// it. Its methods return the errors of the server, the connection or ctx; callers that show these errors
// wrap them in a [Failure].
type Catalog struct {
	FoldsCase bool // the server ignores the case of tables' names

	db                *sqlx.DB
	showsTransactions atomic.Bool
}

// New returns a catalog that sends its queries through db. Close closes db.
func New(db *sql.DB) *Catalog { return &Catalog{db: sqlx.NewDb(db, "mysql")} }

// Close closes the pool. The error is only for logs.
func (c *Catalog) Close() error { return c.db.Close() }

// FailsInTransaction is an assignment that changes nothing. MySQL has no variable that shows
// whether a transaction is open, but it refuses this assignment in a transaction.
const FailsInTransaction = "session_track_gtids = @@session_track_gtids"

// ShowsTransactions reports whether the server refuses FailsInTransaction in an open
// transaction. A server that is not Oracle's, or a proxy, may accept and ignore it. The result true
// is cached. The error is a *Failure.
func (c *Catalog) ShowsTransactions(ctx context.Context) (bool, error) {
	if c.showsTransactions.Load() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	tx, err := c.db.BeginTx(ctx, nil)
	if err == nil {
		_, err = tx.ExecContext(ctx, "SET "+FailsInTransaction)
		tx.Rollback()
	}
	switch {
	case servererr.Is(err, servererr.InTransaction):
		c.showsTransactions.Store(true)
		return true, nil
	case err != nil:
		return false, &Failure{What: "whether the server shows that a transaction is open", Err: err}
	}
	return false, nil
}

// maxTablesPerQuery is the largest number of tables in one query.
const maxTablesPerQuery = 100

// Tables reads tables with as few queries as possible. If a name has no entry in the result, there is
// no such table, or this user may not see it.
func (c *Catalog) Tables(ctx context.Context, names []Name) (map[Name]*Table, error) {
	tables := make(map[Name]*Table, len(names))
	for part := range slices.Chunk(names, maxTablesPerQuery) {
		if err := c.readTables(ctx, part, tables); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// readTables reads columns, triggers and indexes. Each subquery compares the table's name with a
// constant: without such a comparison, MariaDB opens all tables. Unused columns are '-',
// since an empty string would be NULL under EMPTY_STRING_IS_NULL.
func (c *Catalog) readTables(ctx context.Context, names []Name, tables map[Name]*Table) error {
	var selects []string
	var args []any
	for i, n := range names {
		at := "SELECT " + strconv.Itoa(i) + " n, "
		selects = append(selects,
			at+"0 k, table_schema s, table_name t, ordinal_position o, column_name x, column_type y, column_key z, column_default d, extra e, privileges p FROM information_schema.columns WHERE table_schema = ? AND table_name = ?",
			at+"1, event_object_schema, event_object_table, 0, event_manipulation, action_timing, sql_mode, action_statement, '-', '-' FROM information_schema.triggers WHERE event_object_schema = ? AND event_object_table = ?",
			at+"2, table_schema, table_name, seq_in_index, index_name, IF(non_unique, '-', 'unique'), '-', column_name, '-', '-' FROM information_schema.statistics WHERE table_schema = ? AND table_name = ?",
			at+"3, table_schema, table_name, 0, IFNULL(create_time, '-'), '-', '-', '-', '-', '-' FROM information_schema.tables WHERE table_schema = ? AND table_name = ?")
		args = append(args, n.DB, n.Table, n.DB, n.Table, n.DB, n.Table, n.DB, n.Table)
	}
	rows, err := c.db.QueryContext(ctx, strings.Join(selects, " UNION ALL ")+" ORDER BY n, k, o", args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n, kind, o int
		var schema, table, x, y, z, extra, privileges string
		var text sql.NullString
		if err := rows.Scan(&n, &kind, &schema, &table, &o, &x, &y, &z, &text, &extra, &privileges); err != nil {
			return err
		}
		// The query's comparison ignores case, and some servers have both Orders and orders. Vitess returns another
		// name of the database: the one of a shard.
		name := names[n]
		if !c.FoldsCase && (table != name.Table || schema != name.DB && strings.EqualFold(schema, name.DB)) {
			continue
		}
		known := tables[name]
		if known == nil {
			known = new(Table)
			tables[name] = known
		}
		switch kind {
		case 0: // a column
			col := Column{Name: x, Type: y, Updatable: strings.Contains(strings.ToLower(privileges), "update")}
			col.setAttributes(z, text.String, extra)
			known.Columns = append(known.Columns, col)
		case 1: // a trigger
			known.Triggers = append(known.Triggers, Trigger{Event: x, Before: y == "BEFORE", SQLMode: z, Text: text.String})
		case 2: // a column of an index
			i := slices.IndexFunc(known.Indexes, func(known Index) bool { return known.Name == x }) // rows are ordered by seq_in_index
			if i < 0 {
				i = len(known.Indexes)
				known.Indexes = append(known.Indexes, Index{Name: x, Unique: y == "unique"})
			}
			known.Indexes[i].Columns = append(known.Indexes[i].Columns, text.String)
		default: // the table itself
			known.Created = x
		}
	}
	return rows.Err()
}

// A Program is the text of a stored routine.
type Program struct {
	Text    string // "" if this user may not see it
	SQLMode string // sql_mode when it was created
}

// Routines reads the functions, procedures and, on MariaDB, packages with a name. It returns no routines
// and no error if there is no routine of that name, or if the server refuses to show it.
func (c *Catalog) Routines(ctx context.Context, name Name, mariaDB bool) (found []Program, err error) {
	kinds := []string{"FUNCTION", "PROCEDURE"}
	if mariaDB {
		kinds = append(kinds, "PACKAGE BODY")
	}
	for _, kind := range kinds {
		var p Program
		var text sql.NullString
		var none any
		// SHOW finds a routine by its name; a query of information_schema reads all routines.
		err := c.db.QueryRowContext(ctx, "SHOW CREATE "+kind+" "+name.Quoted()).Scan(&none, &p.SQLMode, &text, &none, &none, &none)
		if err == nil {
			p.Text = text.String
			found = append(found, p)
		} else if _, answer := errors.AsType[*mysql.MySQLError](err); !answer && err != sql.ErrNoRows { // TiDB returns no row
			return nil, err
		}
	}
	return found, nil
}

// Views returns the selects of the views among the given names of tables and views of a database. A select that this user
// may not see is blank.
func (c *Catalog) Views(ctx context.Context, db string, tables []string) (selects []string, err error) {
	query, args, err := sqlx.In("SELECT IFNULL(view_definition, ' ') FROM information_schema.views WHERE table_schema = ? AND table_name IN (?)", db, tables)
	if err == nil {
		err = c.db.SelectContext(ctx, &selects, query, args...)
	}
	return selects, err
}

// Databases returns the names of the databases that this user sees. Vitess has the databases of its shards in
// information_schema, so SHOW DATABASES is used there. Other servers may refuse it (skip-show-database).
func (c *Catalog) Databases(ctx context.Context, vitess bool) (names []string, err error) {
	query := "SELECT schema_name FROM information_schema.schemata"
	if vitess {
		query = "SHOW DATABASES"
	}
	err = c.db.SelectContext(ctx, &names, query)
	return names, err
}

// TableNames returns the names of the base tables of a database, including system-versioned ones.
func (c *Catalog) TableNames(ctx context.Context, db string) (names []string, err error) {
	err = c.db.SelectContext(ctx, &names, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')", db)
	return names, err
}

// HighestKey returns the highest values of an integer column below a limit, 0 if there is none. stored is the result of query, for
// example a query that HighestKeyQuery returned. given is the highest value that AUTO_INCREMENT has generated,
// including values of rows that are deleted or locked. It is read only if counted is set. A next value of AUTO_INCREMENT at or above
// the limit is ignored, since a single row with the column's highest value can cause it. The next value is not read by SHOW CREATE
// TABLE, which would need another round trip and a right on the whole table, and omits the value under some sql_modes of MariaDB.
func (c *Catalog) HighestKey(ctx context.Context, table Name, query string, below int64, counted bool) (stored, given int64, err error) {
	next, args := "NULL", []any(nil)
	if counted {
		next, args = "(SELECT auto_increment - 1 FROM information_schema.tables WHERE table_schema = ? AND table_name = ? AND auto_increment BETWEEN 1 AND ?)", []any{table.DB, table.Table, below - 1}
	}
	var s, g sql.NullInt64
	err = c.db.QueryRowContext(ctx, "SELECT ("+query+"), "+next, args...).Scan(&s, &g)
	return max(s.Int64, 0), g.Int64, err
}

// HighestKeyQuery returns the query for the highest value of an integer column below a
// limit. Without an index that begins with the column, the server reads the whole table for it.
func HighestKeyQuery(table Name, column string, below int64) string {
	return "SELECT MAX(" + quote.Name(column) + ") FROM " + table.Quoted() + " WHERE " + quote.Name(column) + " < " + strconv.FormatInt(below, 10)
}

// IsEmpty reports whether a table has no rows. It needs the right to read the column.
func (c *Catalog) IsEmpty(ctx context.Context, table Name, column string) (empty bool, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT COUNT(*) = 0 FROM (SELECT "+quote.Name(column)+" FROM "+table.Quoted()+" LIMIT 1) q").Scan(&empty)
	return empty, err
}
