package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// sequenceStore is a Store on a table of sequences. It implements control.Rows.
type sequenceStore struct{ counter }

// NewSequenceStore returns a store on a plain table of sequences, with one row for each sequence. table is a name or
// db.name, unquoted; the usual name is t_sequence. For the requirements on the pool see [NewAllocStore]. The table
// has the layout of most schemas with such a table:
//
//	name           name of the sequence
//	current_value  the last id that was issued, so that the next one is current_value + 1
//	increment      number of ids of a fetch, all of which are used
//	min_value      the lowest id       (this column and those below may be missing)
//	max_value      the highest id
//	cycle          must be 0: a sequence that restarts at its end is refused
//
// A function nextval that sets current_value = current_value + increment and returns current_value may use the same
// rows. MyCAT must not use them, because it issues ids above current_value. If the columns have other names, a view can
// give them these names.
//
// Sequences that descend are refused.
func NewSequenceStore(db *sqlx.DB, table string) Store {
	s := &sequenceStore{counter{rows: tagtable.Rows{DB: db, Table: quote.Table(table), Columns: tagtable.Columns{Tag: "`name`", Next: "`current_value`", Step: "`increment`", Last: 1}}}}
	s.loadRow, s.log = s.readSequence, slog.Default
	return s
}

func (s *sequenceStore) readSequence(ctx context.Context, c *sql.Conn, name string) (r row, autocommit bool, err error) {
	all, err := s.rows.Read(ctx, c, name, "*")
	if err != nil {
		return r, false, err
	}
	badColumn := func(column, reason, fix string) error {
		return &tagtable.Error{Reason: column + " is " + all[column].Text() + ", " + reason, Fix: fmt.Sprintf("UPDATE %s SET `%s` = %s WHERE %s = %s", s.rows.Table, column, fix, s.rows.Tag, quote.String(name))}
	}
	// A missing column and NULL both mean the column's default.
	number := func(column string, byDefault int64) int64 {
		c, ok := all[column]
		switch {
		case !ok:
			return byDefault
		case !c.Valid:
			r.conditions += " AND `" + column + "` IS NULL"
			return byDefault
		case c.Type == "BIT":
			c.String = strconv.Itoa(int(c.String[len(c.String)-1]))
			all[column] = c
		}
		v, perr := strconv.ParseInt(c.String, 10, 64)
		if perr != nil && !errors.Is(perr, strconv.ErrRange) && err == nil {
			err = badColumn(column, "which is not a whole number", strconv.FormatInt(byDefault, 10))
		}
		r.conditions += fmt.Sprintf(" AND `%s` = %s", column, c.String)
		return v
	}
	least, most := number("min_value", 0), number("max_value", maxEnd-1)
	if number("cycle", 0) != 0 && err == nil {
		err = badColumn("cycle", "and ids that restart may be in use", "0")
	}
	r.lowest, r.end = max(least, 0), min(most, maxEnd-1)+1
	if err == nil && r.lowest >= r.end {
		err = badColumn("max_value", fmt.Sprintf("which is not above min_value, %d", least), strconv.FormatInt(maxEnd-1, 10))
	}
	if v, perr := strconv.ParseInt(all["increment"].String, 10, 64); err == nil && perr == nil && v < 0 {
		err = badColumn("increment", "and a descending sequence cannot number the rows of a statement in order", "1000")
	}
	if err == nil {
		r.step, err = s.readStep(name, "increment", all["increment"])
	}
	if err == nil {
		r.next, err = s.rows.ReadNext(name, all["current_value"])
	}
	return r, all.Autocommit(), err
}

func (s *sequenceStore) Create(ctx context.Context) error {
	return s.rows.Create(ctx, schema.Sequences(s.rows.Table))
}

// EnsureWithin adds a row if there is none. It ignores the highest id, which only a table with marks needs.
func (s *sequenceStore) EnsureWithin(ctx context.Context, name string, next, increment, _ int64) error {
	return s.ensure(ctx, name, next, increment, maxEnd-1)
}

// Row returns current_value + 1 as MaxID, or min_value if that is higher.
func (s *sequenceStore) Row(ctx context.Context, name string) (r control.Row, err error) {
	err = s.retry(ctx, name, func(c *sql.Conn) error {
		found, autocommit, err := s.readSequence(ctx, c, name)
		r = control.Row{Tag: name, MaxID: max(found.next, found.lowest), Step: found.step}
		return s.rows.Unlock(ctx, c, autocommit, err)
	})
	return r, err
}
