// A table has one row for each tag, which says up to where the tag's ids are taken.
// Package tagrow sends the statements that read and move that row.
//
//	rows := tagrow.Rows{DB: db, Table: "`leaf_alloc`", Columns: tagrow.LeafAlloc}
//	err := rows.Retry(ctx, func(c *sql.Conn) error {
//		next, err = rows.Move(ctx, c, tag, tagrow.Move{To: math.MaxInt64 - 1000, N: 1000})
//		return err
//	})
//
// The ids up to next are the caller's then. What a row means is for the callers to say.
// This package's errors, [Error] and [ErrNone], say only what happened: callers turn them
// into the errors that users see.
package tagrow

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

// Rows are those of a table, one for each tag.
type Rows struct {
	DB    *sqlx.DB
	Table string // quoted
	Columns

	Transactions atomic.Bool // one statement is not enough here: see take
}

// Columns are the names of the table's columns, as SQL writes them.
type Columns struct {
	Tag  string
	Next string // up to where ids are taken
	Step string
	Last int64 // 1 where Next holds the last id that was taken; 0 where it holds the one after

	Marked bool // a column description can hold a Mark
}

// LeafAlloc are leaf_alloc's.
var LeafAlloc = Columns{Tag: "biz_tag", Next: "max_id", Step: "step", Marked: true}

// StoreOf reads the description of a row that was one store's of several, which versions before 0.2 drew from together: its
// place, from 1, and how many they were.
func StoreOf(description string) (place, stores int64, several bool) {
	n, _ := fmt.Sscanf(description, "leafsql: store %d of %d", &place, &stores)
	return place, stores, n == 2
}

// After is what comes behind the highest id in use, in an expression for Next.
func (c Columns) After() string {
	if c.Last > 0 {
		return ""
	}
	return " + 1"
}

// NextName is that of the column Next, for messages.
func (c Columns) NextName() string { return strings.Trim(c.Next, "`") }

// Cells are a row's columns, by their names in small letters.
type Cells map[string]Cell

// Cell is one of them.
type Cell struct {
	sql.NullString
	Type string // "" where the driver does not say
}

// Autocommit says whether the connection that they were read on is in autocommit.
func (c Cells) Autocommit() bool { return c["@@autocommit"].String == "1" }

// Read reads columns of the tag's row. FOR UPDATE keeps proxies that split reads from
// writes off their replicas.
func (r *Rows) Read(ctx context.Context, c *sql.Conn, tag, columns string) (Cells, error) {
	rows, err := c.QueryContext(ctx, "SELECT "+columns+", @@autocommit FROM "+r.Table+" WHERE "+r.Tag+" = "+quote.Literal(tag)+" FOR UPDATE")
	if err != nil {
		if n, _ := ServerError(err); n == 1267 || n == 3854 || n == 3988 {
			return nil, &Error{"its character set has not all letters of the tag (" + err.Error() + ")", "ALTER TABLE " + r.Table + " CONVERT TO CHARACTER SET utf8mb4"}
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
		_, name := quote.Split(t.Name()) // without its table, which columnsWithAlias writes before it
		all[strings.ToLower(name)] = Cell{values[i], t.DatabaseTypeName()}
	}
	// Columns that round or clip would give ids twice.
	if typ := all[r.NextName()].Type; typ != "" && typ != "BIGINT" && typ != "UNSIGNED BIGINT" {
		return nil, &Error{r.NextName() + " is of type " + typ, fmt.Sprintf("ALTER TABLE %s MODIFY %s BIGINT NOT NULL DEFAULT %d", r.Table, r.Next, 1-r.Last)}
	}
	switch found {
	case 0:
		return nil, ErrNone
	case 1:
		return all, nil
	}
	return nil, r.twoRows()
}

// ReadNext reads the next id that nobody has out of its column.
func (r *Rows) ReadNext(tag string, c Cell) (int64, error) {
	v, err := strconv.ParseInt(c.String, 10, 64)
	// Beyond 2^63-1 ParseInt gives that.
	if err != nil && !errors.Is(err, strconv.ErrRange) || v < -r.Last {
		return 0, &Error{r.NextName() + " is " + c.Text(), fmt.Sprintf("raise it above every id in use: UPDATE %s SET %s = <highest id%s> WHERE %s = %s", r.Table, r.Next, r.After(), r.Tag, quote.String(tag))}
	}
	return min(v, math.MaxInt64-r.Last) + r.Last, nil
}

// Unlock ends what a read may have begun on a connection that is not in autocommit, or
// not known to be, so that no lock stays behind. err is the read's.
func (r *Rows) Unlock(ctx context.Context, c *sql.Conn, autocommit bool, err error) error {
	if autocommit {
		return err
	}
	if _, rerr := c.ExecContext(ctx, Rollback); rerr != nil {
		Discard(c)
		err = cmp.Or(err, rerr)
	}
	if err == nil {
		r.Transactions.Store(true)
	}
	return err
}

// Text is the cell as messages show it.
func (c Cell) Text() string {
	if !c.Valid {
		return "NULL"
	}
	return c.String
}

// A Move takes a row to Floor or higher, and N further, if it stands in From … To and fits
// Where, which is empty or conditions behind an AND. Set is empty or further assignments behind a comma.
type Move struct {
	From, To, Floor, N int64
	Set, Where         string
}

// Move moves the tag's row, and returns the next id that nobody has then; 0 where the row
// does not fit. It is one UPDATE, sent as text, so one round trip, and carries its own proof:
// the server answers with the number that it wrote, as the insert id.
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
		return 0, r.twoRows()
	case next < m.N || next-m.N < max(m.From, m.Floor) || next-m.N > max(m.To, m.Floor):
		return 0, &Error{fmt.Sprintf("%s was to grow by %d from %d or more, and the server says it is %d", r.NextName(), m.N, max(m.From, m.Floor)-r.Last, next-r.Last),
			"look for triggers on the table and for a proxy that changes insert ids"}
	}
	return next, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// take moves a row by text, an UPDATE whose insert id is the next id that nobody has
// then.
func (r *Rows) take(ctx context.Context, c *sql.Conn, tag, text string) (rows, id int64, err error) {
	if r.Transactions.Load() {
		return r.takeInTransaction(ctx, c, tag, text)
	}
	rows, id, err = update(ctx, c, text)
	if err == nil && rows == 1 && id == 0 {
		// A proxy keeps the insert id to itself, or a trigger on the table does. The
		// range is lost; from now on it is asked for in a transaction.
		r.Transactions.Store(true)
		err = errNoInsertID
	}
	return rows, id, err
}

// takeInTransaction moves the row where the insert id of an UPDATE does not come back,
// or connections are not in autocommit. What was written is read in the transaction, in
// text: a statement that is prepared in there runs outside it where a Galera cluster
// has aborted it meanwhile.
func (r *Rows) takeInTransaction(ctx context.Context, c *sql.Conn, tag, text string) (rows, id int64, err error) {
	err = transaction(ctx, c, func() error {
		if rows, id, err = update(ctx, c, text); err != nil || rows != 1 {
			return err
		}
		var reads int64
		if err := c.QueryRowContext(ctx, "SELECT LAST_INSERT_ID(), "+r.Next+" FROM "+r.Table+" WHERE "+r.Tag+" = "+quote.Literal(tag)+" FOR UPDATE").Scan(&id, &reads); err != nil {
			return err
		}
		if id-r.Last != reads {
			return &Error{fmt.Sprintf("%s was set to %d and reads %d in the same transaction", r.NextName(), id-r.Last, reads),
				"look for triggers on the table and for a proxy that reads elsewhere than it writes"}
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

// Create creates the table by text where it does not exist. It looks first: the right to
// create is needed once, and on a cluster every CREATE, even of a table that is there,
// aborts what runs on all nodes.
func (r *Rows) Create(ctx context.Context, text string) error {
	err := r.Retry(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "SELECT 1 FROM "+r.Table+" LIMIT 0")
		if n, _ := ServerError(err); n != ErrNoTable {
			return err
		}
		_, err = c.ExecContext(ctx, text)
		return err
	})
	return r.Failed("create", err)
}

// Exec sends a statement, again after what passes by itself.
func (r *Rows) Exec(ctx context.Context, text string) error {
	return r.Retry(ctx, func(c *sql.Conn) error {
		return transaction(ctx, c, func() error { // committed, also without autocommit
			_, err := c.ExecContext(ctx, text)
			return err
		})
	})
}

// Failed says which statement of ours err comes from.
func (r *Rows) Failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("leafsql: %s %s: %w", what, r.Table, err)
}
