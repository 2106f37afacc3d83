package segment_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
)

var errDown = errors.New("the database is down")

// Every way a fetch can fail, and that it ends without a commit.
func TestAllocStoreFaults(t *testing.T) {
	const (
		update = "UPDATE `shop`.`leaf_alloc` SET max_id = LAST_INSERT_ID(max_id + GREATEST(step, ?)) WHERE biz_tag = ?"
		read   = "SELECT biz_tag, max_id, step FROM `shop`.`leaf_alloc` WHERE biz_tag = ? FOR UPDATE"
		limits = "SELECT max_id < -GREATEST(step, ?) AS below, max_id > 9223372036854775807 - GREATEST(step, ?) AS above FROM `shop`.`leaf_alloc` WHERE biz_tag = ?"
	)
	updated := func(m sqlmock.Sqlmock, id, rows int64) {
		m.ExpectBegin()
		m.ExpectExec(update).WithArgs(20, "a").WillReturnResult(sqlmock.NewResult(id, rows))
	}
	row := func(maxID, step any) *sqlmock.Rows {
		return sqlmock.NewRows([]string{"biz_tag", "max_id", "step"}).AddRow("a", maxID, step)
	}
	out := func(below, above bool) *sqlmock.Rows {
		return sqlmock.NewRows([]string{"below", "above"}).AddRow(below, above)
	}
	down := func(t *testing.T, err error) {
		if !errors.Is(err, errDown) || errors.Is(err, idgen.ErrExhausted) {
			t.Error(err)
		}
	}
	says := func(text string) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			if !strings.Contains(err.Error(), text) {
				t.Error(err)
			}
		}
	}
	below := func(t *testing.T, err error) {
		if !is[*segment.RangeError](err) {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		script func(sqlmock.Sqlmock)
		check  func(*testing.T, error) // nil: a range
	}{
		"well": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WithArgs("a").WillReturnRows(row(120, 10))
			m.ExpectCommit()
		}, nil},
		"well, a proxy hides the id": {func(m sqlmock.Sqlmock) {
			updated(m, 0, 1)
			m.ExpectQuery(read).WithArgs("a").WillReturnRows(row(120, 10))
			m.ExpectCommit()
		}, nil},
		"begin": {func(m sqlmock.Sqlmock) { m.ExpectBegin().WillReturnError(errDown) }, down},
		"update": {func(m sqlmock.Sqlmock) {
			m.ExpectBegin()
			m.ExpectExec(update).WillReturnError(errDown)
			m.ExpectQuery(limits).WithArgs(20, 20, "a").WillReturnRows(out(false, false))
			m.ExpectRollback()
		}, down},
		"update, and the look at its cause": {func(m sqlmock.Sqlmock) {
			m.ExpectBegin()
			m.ExpectExec(update).WillReturnError(errDown)
			m.ExpectQuery(limits).WillReturnError(errors.New("as well"))
			m.ExpectRollback().WillReturnError(errors.New("as well"))
		}, down},
		"out of range": {func(m sqlmock.Sqlmock) {
			m.ExpectBegin()
			m.ExpectExec(update).WillReturnError(errDown)
			m.ExpectQuery(limits).WillReturnRows(out(false, true))
			m.ExpectRollback()
		}, func(t *testing.T, err error) {
			if !errors.Is(err, idgen.ErrExhausted) || !errors.Is(err, errDown) {
				t.Error(err)
			}
		}},
		"far below 1": {func(m sqlmock.Sqlmock) {
			m.ExpectBegin()
			m.ExpectExec(update).WillReturnError(errDown)
			m.ExpectQuery(limits).WillReturnRows(out(true, false))
			m.ExpectRollback()
		}, below},
		"far below 1, and the server took what it could": {func(m sqlmock.Sqlmock) {
			updated(m, -40, 1)
			m.ExpectQuery(read).WillReturnRows(row(math.MaxInt64, 10))
			m.ExpectRollback()
		}, below},
		"still below 1": {func(m sqlmock.Sqlmock) {
			updated(m, 0, 1)
			m.ExpectQuery(read).WillReturnRows(row(0, 10))
			m.ExpectRollback()
		}, below},
		"no count of rows": {func(m sqlmock.Sqlmock) {
			m.ExpectBegin()
			m.ExpectExec(update).WillReturnResult(sqlmock.NewErrorResult(errDown))
			m.ExpectRollback()
		}, down},
		"0 rows": {func(m sqlmock.Sqlmock) {
			updated(m, 0, 0)
			m.ExpectRollback()
		}, func(t *testing.T, err error) {
			e, ok := errors.AsType[*segment.UnknownTagError](err)
			if !ok || *e != (segment.UnknownTagError{Tag: "a", Table: "`shop`.`leaf_alloc`"}) {
				t.Error(err)
			}
		}},
		"2 rows": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 2)
			m.ExpectRollback()
		}, says("2 rows")},
		"select": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WillReturnError(errDown)
			m.ExpectQuery(limits).WillReturnError(errDown)
			m.ExpectRollback()
		}, down},
		"select without a row": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WillReturnRows(sqlmock.NewRows([]string{"biz_tag", "max_id", "step"}))
			m.ExpectQuery(limits).WillReturnRows(sqlmock.NewRows([]string{"below", "above"}))
			m.ExpectRollback()
		}, says("no rows")},
		"scan": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WillReturnRows(row("x", 10))
			m.ExpectQuery(limits).WillReturnRows(out(false, false))
			m.ExpectRollback()
		}, says("max_id")},
		"read back differs": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WillReturnRows(row(140, 10))
			m.ExpectRollback()
		}, says("set to 120 and reads 140")},
		"step 0": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WillReturnRows(row(120, 0))
			m.ExpectRollback()
		}, says("step 0")},
		"step too large": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WillReturnRows(row(120, math.MaxInt32+1))
			m.ExpectRollback()
		}, says("step 2147483648")},
		"below seen": {func(m sqlmock.Sqlmock) {
			updated(m, 119, 1)
			m.ExpectQuery(read).WillReturnRows(row(119, 10))
			m.ExpectRollback()
		}, func(t *testing.T, err error) {
			e, ok := errors.AsType[*segment.RolledBackError](err)
			if !ok || *e != (segment.RolledBackError{Tag: "a", Table: "`shop`.`leaf_alloc`", Start: 99, Seen: 100}) {
				t.Error(err)
			}
		}},
		"commit": {func(m sqlmock.Sqlmock) {
			updated(m, 120, 1)
			m.ExpectQuery(read).WillReturnRows(row(120, 10))
			m.ExpectCommit().WillReturnError(errDown)
		}, func(t *testing.T, err error) { down(t, err); says("commit")(t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			c.script(mock)
			mock.ExpectClose()
			r, err := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "shop.leaf_alloc").Fetch(t.Context(), "a", 20, 100)
			switch {
			case c.check == nil && (err != nil || r != (segment.Range{Start: 100, End: 120, Step: 10})):
				t.Error(r, err)
			case c.check != nil && (err == nil || r != (segment.Range{})):
				t.Error("a range came out of a fetch that failed:", r, err)
			case c.check != nil:
				c.check(t, err)
			}
			db.Close()
			if err := mock.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A context that ends inside the transaction gives no range.
func TestAllocStoreCancelled(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	mock.MatchExpectationsInOrder(false) // database/sql rolls back on its own
	mock.ExpectBegin()
	mock.ExpectRollback()
	mock.ExpectExec("UPDATE").WillReturnResult(cancelling(cancel))
	mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows([]string{"biz_tag", "max_id", "step"}).AddRow("a", 120, 10))
	mock.ExpectCommit()
	if r, err := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "leaf_alloc").Fetch(ctx, "a", 1, 0); !errors.Is(err, context.Canceled) {
		t.Error(r, err)
	}
}

// cancelling is an UPDATE's result that ends the context when it is read.
type cancelling context.CancelFunc

func (c cancelling) LastInsertId() (int64, error) { return 120, nil }
func (c cancelling) RowsAffected() (int64, error) { c(); return 1, nil }
