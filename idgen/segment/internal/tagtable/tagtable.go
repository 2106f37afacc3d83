// Package tagtable sends the statements that read and move the rows of a table with one row for each tag. A row
// records the next unused id of its tag. To move a row is to raise this id: the ids in between belong to the caller.
//
//	rows := tagtable.Rows{DB: db, Table: "`leaf_alloc`", Columns: tagtable.LeafAlloc}
//	err := rows.Retry(ctx, func(c *sql.Conn) error {
//		next, err = rows.Move(ctx, c, tag, tagtable.Move{To: math.MaxInt64 - 1000, N: 1000})
//		return err
//	})
//
// The last N ids below next then belong to the caller. This package's errors, [Error] and [ErrNoRow], describe only the
// fault: callers turn them into the errors that users see.
package tagtable

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/internal/quote"
)

// Rows is a table with one row for each tag. It is safe for concurrent use once its fields are set.
type Rows struct {
	DB    *sqlx.DB
	Table string // quoted
	Columns

	UseTransactions atomic.Bool // ids are taken in transactions, since a single UPDATE does not work on this table: see take
}

// Columns has the names of the table's columns, in SQL's spelling.
type Columns struct {
	Tag  string
	Next string // column with the first unused id, or the last used one: see Last
	Step string
	Last int64 // 1 if Next holds the last id that was taken; 0 if it holds the first unused id

	HasMarks bool // the table may have a column description, which can contain a Mark
}

// LeafAlloc has the columns of leaf_alloc.
var LeafAlloc = Columns{Tag: "biz_tag", Next: "max_id", Step: "step", HasMarks: true}

// ParseStore parses the description of a row of one of several stores, a feature of versions before 0.2. It
// returns the store's position, from 1, and the number of stores. several is false for other rows.
func ParseStore(description string) (place, stores int64, several bool) {
	n, _ := fmt.Sscanf(description, "leafsql: store %d of %d", &place, &stores)
	return place, stores, n == 2
}

// NextSuffix returns the SQL text that turns the highest id in use into the value for the column Next.
func (c Columns) NextSuffix() string {
	if c.Last > 0 {
		return ""
	}
	return " + 1"
}

// NextName returns the name of the column Next, unquoted, for messages.
func (c Columns) NextName() string { return strings.Trim(c.Next, "`") }

// Cells are the columns of a row, by their names in lower case.
type Cells map[string]Cell

// Cell is the value of one column.
type Cell struct {
	sql.NullString
	Type string // database type of the column; "" if the driver does not return it
}

// Autocommit reports whether the connection on which the cells were read is in autocommit mode.
func (c Cells) Autocommit() bool { return c["@@autocommit"].String == "1" }

// Read reads columns of the tag's row. FOR UPDATE makes proxies that split reads from writes send the query to
// the primary. It returns ErrNoRow, an *Error for a row or table that cannot be used, or the driver's error.
func (r *Rows) Read(ctx context.Context, c *sql.Conn, tag, columns string) (Cells, error) {
	rows, err := c.QueryContext(ctx, "SELECT "+columns+", @@autocommit FROM "+r.Table+" WHERE "+r.Tag+" = "+quote.Literal(tag)+" FOR UPDATE")
	if err != nil {
		if n, _ := ServerError(err); n == 1267 || n == 3854 || n == 3988 {
			return nil, &Error{"its character set cannot store the tag (" + err.Error() + ")", "ALTER TABLE " + r.Table + " CONVERT TO CHARACTER SET utf8mb4"}
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
	all := make(Cells, len(types))
	for i, t := range types {
		_, name := quote.Split(t.Name()) // without the table's name, which columnsWithAlias puts before it
		all[strings.ToLower(name)] = Cell{values[i], t.DatabaseTypeName()}
	}
	// Columns that round or truncate would issue ids twice.
	if typ := all[r.NextName()].Type; typ != "" && typ != "BIGINT" && typ != "UNSIGNED BIGINT" {
		return nil, &Error{r.NextName() + " is of type " + typ, fmt.Sprintf("ALTER TABLE %s MODIFY %s BIGINT NOT NULL DEFAULT %d", r.Table, r.Next, 1-r.Last)}
	}
	switch found {
	case 0:
		return nil, ErrNoRow
	case 1:
		return all, nil
	}
	return nil, r.duplicateRowsError()
}

// ReadNext parses the next unused id from its column. The error is an *Error.
func (r *Rows) ReadNext(tag string, c Cell) (int64, error) {
	v, err := strconv.ParseInt(c.String, 10, 64)
	// For larger numbers ParseInt returns 2^63-1.
	if err != nil && !errors.Is(err, strconv.ErrRange) || v < -r.Last {
		return 0, &Error{r.NextName() + " is " + c.Text(), fmt.Sprintf("raise it above every id in use: UPDATE %s SET %s = <highest id%s> WHERE %s = %s", r.Table, r.Next, r.NextSuffix(), r.Tag, quote.String(tag))}
	}
	return min(v, math.MaxInt64-r.Last) + r.Last, nil
}

// Unlock rolls back the transaction that a read may have begun on a connection without autocommit, so that no
// lock remains. autocommit is false if the mode is unknown. err is the read's error, which Unlock returns.
func (r *Rows) Unlock(ctx context.Context, c *sql.Conn, autocommit bool, err error) error {
	if autocommit {
		return err
	}
	if _, rerr := c.ExecContext(ctx, Rollback); rerr != nil {
		Discard(c)
		err = cmp.Or(err, rerr)
	}
	if err == nil {
		r.UseTransactions.Store(true)
	}
	return err
}

// Text returns the cell's text for messages.
func (c Cell) Text() string {
	if !c.Valid {
		return "NULL"
	}
	return c.String
}

// A Move changes a row if its next unused id is in From … To. It raises this id to Floor if it is lower, and then by
// N. Where is empty or has further conditions, each after " AND". Set is empty or has further assignments, each
// after a comma.
type Move struct {
	From, To, Floor, N int64
	Set, Where         string
}

// Move moves the tag's row, and returns its new next unused id, or 0 if the row does not satisfy m's conditions. It sends
// one UPDATE as text, so it needs one round trip. The server returns the written number as the insert id, which proves
// the move. An *Error means that the move cannot be proved. After other errors, the driver's, the row may have moved.
func (r *Rows) Move(ctx context.Context, c *sql.Conn, tag string, m Move) (next int64, err error) {
	now, back := r.Next, ""
	if r.Last > 0 {
		now, back = r.Next+" + 1", " - 1"
	}
	rows, next, err := r.take(ctx, c, tag, "UPDATE "+r.Table+" SET "+r.Next+" = LAST_INSERT_ID(GREATEST("+now+", "+decimal(m.Floor)+") + "+decimal(m.N)+")"+back+m.Set+
		" WHERE "+r.Tag+" = "+quote.Literal(tag)+m.Where+" AND "+r.Next+" >= "+decimal(m.From-r.Last)+" AND "+r.Next+" <= "+decimal(m.To-r.Last))
	switch {
	case err != nil || rows == 0:
		return 0, err
	case rows > 1:
		return 0, r.duplicateRowsError()
	case next < m.N || next-m.N < max(m.From, m.Floor) || next-m.N > max(m.To, m.Floor):
		return 0, &Error{fmt.Sprintf("%s should have grown by %d from at least %d, but the server returned %d", r.NextName(), m.N, max(m.From, m.Floor)-r.Last, next-r.Last),
			"check for triggers on the table, and for a proxy that changes insert ids"}
	}
	return next, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// take executes text, an UPDATE that moves a row. Its insert id is the row's new next unused id.
func (r *Rows) take(ctx context.Context, c *sql.Conn, tag, text string) (rows, id int64, err error) {
	if r.UseTransactions.Load() {
		return r.takeInTransaction(ctx, c, tag, text)
	}
	rows, id, err = update(ctx, c, text)
	if err == nil && rows == 1 && id == 0 {
		// A proxy does not pass the insert id on, or a trigger on the table replaces it. The range is lost.
		// From now on ranges are taken in transactions.
		r.UseTransactions.Store(true)
		err = errNoInsertID
	}
	return rows, id, err
}

// takeInTransaction does the same as take if the UPDATE returns no insert id, or without autocommit mode. It
// reads the written number in the same transaction. The query is sent as text: a prepared statement would run
// outside the transaction after a Galera cluster has aborted the transaction.
func (r *Rows) takeInTransaction(ctx context.Context, c *sql.Conn, tag, text string) (rows, id int64, err error) {
	err = runInTransaction(ctx, c, func() error {
		if rows, id, err = update(ctx, c, text); err != nil || rows != 1 {
			return err
		}
		var reads int64
		if err := c.QueryRowContext(ctx, "SELECT LAST_INSERT_ID(), "+r.Next+" FROM "+r.Table+" WHERE "+r.Tag+" = "+quote.Literal(tag)+" FOR UPDATE").Scan(&id, &reads); err != nil {
			return err
		}
		if id-r.Last != reads {
			return &Error{fmt.Sprintf("%s was set to %d, but a read in the same transaction returned %d", r.NextName(), id-r.Last, reads),
				"check for triggers on the table, and for a proxy that reads from another server than it writes to"}
		}
		return nil
	})
	return rows, id, err
}

func update(ctx context.Context, c *sql.Conn, text string) (rows, id int64, err error) {
	res, err := c.ExecContext(ctx, text)
	if err != nil {
		return 0, 0, err
	}
	if rows, err = res.RowsAffected(); err != nil {
		return 0, 0, err
	}
	id, err = res.LastInsertId()
	return rows, id, err
}

// Create creates the table with text if it does not exist. It queries the table first, so that the right to create is
// needed only once. On a cluster, a CREATE even of an existing table aborts the statements that run on all
// nodes. The error wraps the driver's.
func (r *Rows) Create(ctx context.Context, text string) error {
	err := r.Retry(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "SELECT 1 FROM "+r.Table+" LIMIT 0")
		if n, _ := ServerError(err); n != NoSuchTableNumber {
			return err
		}
		_, err = c.ExecContext(ctx, text)
		return err
	})
	return r.WrapError("create", err)
}

// Exec executes a statement in its own transaction, with retries after transient errors. The error is the driver's.
func (r *Rows) Exec(ctx context.Context, text string) error {
	return r.Retry(ctx, func(c *sql.Conn) error {
		return runInTransaction(ctx, c, func() error { // commits even without autocommit
			_, err := c.ExecContext(ctx, text)
			return err
		})
	})
}

// WrapError wraps err with the name of the operation and the table. It returns nil if err is nil.
func (r *Rows) WrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("leafsql: %s %s: %w", what, r.Table, err)
}
