package segment_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// script lists the queries that a database expects, in order, and its answers.
type script struct{ sqlmock.Sqlmock }

const (
	readText     = "SELECT *, @@autocommit FROM `shop`.`leaf_alloc` WHERE biz_tag = _utf8mb4 X'61' FOR UPDATE"
	updateText   = "UPDATE `shop`.`leaf_alloc` SET max_id = LAST_INSERT_ID(GREATEST(max_id, 90) + 20) WHERE biz_tag = _utf8mb4 X'61' AND step BETWEEN 1 AND 15 AND max_id >= 100 AND max_id <= 9223372036854775787"
	readBackText = "SELECT LAST_INSERT_ID(), max_id FROM `shop`.`leaf_alloc` WHERE biz_tag = _utf8mb4 X'61' FOR UPDATE"

	serversText = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'server_uuid', 'server_id', 'hostname', 'port', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', " +
		"'binlog_format', 'group_replication_group_name', 'wsrep_on', 'wsrep_provider')"

	commitText   = "COMMIT AND NO CHAIN NO RELEASE"
	rollbackText = "ROLLBACK AND NO CHAIN NO RELEASE"
)

func (s script) expectExec(text string) { s.ExpectExec(text).WillReturnResult(sqlmock.NewResult(0, 0)) }

func (s script) expectError(text string, err error) { s.ExpectExec(text).WillReturnError(err) }

// expectRead answers a read of a row with rows of three values each.
func (s script) expectRead(values ...driver.Value) {
	s.ExpectQuery(readText).WillReturnRows(s.newRows(values...))
}

// expectReadAndRollback answers a read that may leave a lock: it found no usable row, or the connection is not
// in autocommit mode.
func (s script) expectReadAndRollback(values ...driver.Value) {
	s.expectRead(values...)
	s.expectExec(rollbackText)
}

func (s script) newRows(values ...driver.Value) *sqlmock.Rows {
	r := s.NewRowsWithColumnDefinition(sqlmock.NewColumn("max_id").OfType("BIGINT", int64(0)), sqlmock.NewColumn("step"), sqlmock.NewColumn("description"), sqlmock.NewColumn("@@autocommit"))
	for ; len(values) > 0; values = values[3:] {
		r.AddRow(values[0], values[1], nil, values[2])
	}
	return r
}

func (s script) expectFittingRow() { s.expectRead(100, 15, 1) }

func (s script) expectUpdate(id, rows int64) {
	s.ExpectExec(updateText).WillReturnResult(sqlmock.NewResult(id, rows))
}

func (s script) expectReadBack(id, maxID any) {
	s.ExpectQuery(readBackText).WillReturnRows(sqlmock.NewRows([]string{"LAST_INSERT_ID()", "max_id"}).AddRow(id, maxID))
}

// Every outcome of a fetch: it fails immediately with an error that is not transient, a transient error is
// retried, and each range that is returned is proven.
func TestAllocStoreRetriesTransientFaults(t *testing.T) {
	bug := errors.New("Error 1064 (42000): a syntax error")
	for name, c := range map[string]struct {
		script func(s script)
		want   string // text in the error; "" if the range is [100, 120)
		is     func(error) bool
	}{
		"well": {script: func(s script) { s.expectFittingRow(); s.expectUpdate(120, 1) }},
		"look: select": {script: func(s script) {
			s.ExpectQuery(readText).WillReturnError(bug)
			s.expectExec(rollbackText)
		}, want: "syntax"},
		"look: rollback": {script: func(s script) {
			s.expectRead(100, 15, 0)
			s.expectError(rollbackText, bug)
		}, want: "syntax"},
		"look: no row":         {script: func(s script) { s.expectReadAndRollback() }, want: "no row", is: isError[*segment.UnknownTagError]},
		"look: two rows":       {script: func(s script) { s.expectReadAndRollback(100, 15, 1, 100, 15, 1) }, want: "more than one row", is: isError[*segment.RowError]},
		"look: no number":      {script: func(s script) { s.expectRead("x", 15, 1) }, want: "max_id is x", is: isError[*segment.RowError]},
		"look: step 0":         {script: func(s script) { s.expectRead(100, 0, 1) }, want: "step is 0", is: isError[*segment.RowError]},
		"look: step too large": {script: func(s script) { s.expectRead(100, 1<<31, 1) }, want: "step is 2147483648", is: isError[*segment.RowError]},
		"look: end":            {script: func(s script) { s.expectRead("9223372036854775800", 15, 1) }, want: "used up", is: isExhausted},
		"look: row broken off": {script: func(s script) {
			s.ExpectQuery(readText).WillReturnRows(s.newRows(100, 15, 1).RowError(0, bug))
			s.expectExec(rollbackText)
		}, want: "syntax"},
		"look: the connection broke": {script: func(s script) {
			s.ExpectQuery(readText).WillReturnError(errDown)
			s.expectExec(rollbackText)
			s.expectFittingRow()
			s.expectUpdate(120, 1)
		}},
		"update": {script: func(s script) { s.expectFittingRow(); s.expectError(updateText, bug) }, want: "syntax"},
		"update: out of range": {script: func(s script) {
			s.expectFittingRow()
			s.expectError(updateText, errors.New("Error 1264 (22003): Out of range value"))
		}, want: "1264"},
		"update: the connection broke": {script: func(s script) {
			s.expectFittingRow()
			s.expectError(updateText, errDown)
			s.expectError(updateText, errDown)
			s.expectUpdate(120, 1)
		}},
		"update: conflicts": {script: func(s script) {
			s.expectFittingRow()
			for _, text := range []string{
				"Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction",
				"Error 1020 (HY000): Record has changed since last read in table 'leaf_alloc'; try restarting transaction",
				"Error 1205 (HY000): Lock wait timeout exceeded; try restarting transaction",
				"Error 1180 (HY000): Got error 149 during COMMIT",
				"Error 3101 (40000): Plugin instructed the server to rollback the current transaction.",
				"Error 9999 (40002): something that a proxy made up",
				"Error 1213: Deadlock found when trying to get lock",
			} {
				s.expectError(updateText, errors.New(text))
			}
			s.expectUpdate(120, 1)
		}},
		"update: no count of rows": {script: func(s script) {
			s.expectFittingRow()
			s.ExpectExec(updateText).WillReturnResult(sqlmock.NewErrorResult(bug))
		}, want: "syntax"},
		"update: two rows":   {script: func(s script) { s.expectFittingRow(); s.expectUpdate(120, 2) }, want: "more than one row", is: isError[*segment.RowError]},
		"update: below seen": {script: func(s script) { s.expectFittingRow(); s.expectUpdate(119, 1) }, want: "returned 119", is: isError[*segment.RowError]},
		"update: below n":    {script: func(s script) { s.expectFittingRow(); s.expectUpdate(19, 1) }, want: "returned 19", is: isError[*segment.RowError]},
		"update: negative":   {script: func(s script) { s.expectFittingRow(); s.expectUpdate(-1<<63, 1) }, want: "returned -9223372036854775808", is: isError[*segment.RowError]},
		"0 rows: gone":       {script: func(s script) { s.expectFittingRow(); s.expectUpdate(0, 0); s.expectReadAndRollback() }, want: "no row", is: isError[*segment.UnknownTagError]},
		"0 rows: by now it fits": {script: func(s script) {
			s.expectFittingRow()
			s.expectUpdate(0, 0)
			s.expectFittingRow()
			s.expectUpdate(120, 1)
		}},
		"0 rows, an older insert id": {script: func(s script) {
			s.expectFittingRow()
			s.expectUpdate(120, 0)
			s.expectFittingRow()
			s.expectUpdate(0, 0)
			s.expectFittingRow()
			s.expectUpdate(120, 1)
		}},
		"0 rows: behind, then not": {script: func(s script) {
			s.expectFittingRow()
			s.expectUpdate(0, 0)
			s.expectRead(90, 15, 1)
			s.expectUpdate(120, 1)
		}},
		"conflicts for long, then behind, then not": {script: func(s script) {
			s.expectFittingRow()
			for range 20 {
				s.expectError(updateText, errors.New("Error 1213 (40001): Deadlock found"))
			}
			s.expectUpdate(0, 0)
			s.expectRead(90, 15, 1)
			s.expectUpdate(120, 1)
		}},
		"no insert id": {script: func(s script) {
			s.expectFittingRow()
			s.expectUpdate(0, 1)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(0, 1)
			s.expectReadBack(120, 120)
			s.expectExec(commitText)
		}},
		"no autocommit": {script: func(s script) {
			s.expectReadAndRollback(100, 15, 0)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(120, 1)
			s.expectReadBack(120, 120)
			s.expectExec(commitText)
		}},
		"transaction: conflict, the next one is whole": {script: func(s script) {
			s.expectReadAndRollback(100, 15, 0)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(120, 1)
			s.ExpectQuery(readBackText).WillReturnError(errors.New("Error 1213 (40001): Deadlock found"))
			s.expectExec(rollbackText)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(120, 1)
			s.expectReadBack(120, 120)
			s.expectExec(commitText)
		}},
		"transaction: 0 rows": {script: func(s script) {
			s.expectReadAndRollback(100, 15, 0)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(120, 0)
			s.expectExec(commitText)
			s.expectReadAndRollback()
		}, want: "no row"},
		"transaction: reads something else": {script: func(s script) {
			s.expectReadAndRollback(100, 15, 0)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(120, 1)
			s.expectReadBack(120, 140)
			s.expectExec(rollbackText)
		}, want: "set to 120, but a read in the same transaction returned 140", is: isError[*segment.RowError]},
		"transaction: the row is gone": {script: func(s script) {
			s.expectReadAndRollback(100, 15, 0)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(120, 1)
			s.ExpectQuery(readBackText).WillReturnError(bug)
			s.expectExec(rollbackText)
		}, want: "syntax"},
		"transaction: below seen": {script: func(s script) {
			s.expectReadAndRollback(100, 15, 0)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(119, 1)
			s.expectReadBack(119, 119)
			s.expectExec(commitText)
		}, want: "returned 119"},
		"transaction: commit": {script: func(s script) {
			s.expectReadAndRollback(100, 15, 0)
			s.expectExec("START TRANSACTION")
			s.expectUpdate(120, 1)
			s.expectReadBack(120, 120)
			s.expectError(commitText, bug)
		}, want: "syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				mock.ExpectQuery(serversText).WillReturnRows(sqlmock.NewRows([]string{"Variable_name", "Value"})) // no variable that identifies a server
				c.script(script{mock})
				r, err := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "shop.leaf_alloc").
					Fetch(t.Context(), segment.Request{Tag: "a", N: 20, Step: 15, Floor: 90, Seen: 100})
				switch {
				case c.want == "" && (err != nil || r != segment.Range{Start: 100, End: 120, Step: 15}):
					t.Error(r, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || r != segment.Range{}):
					t.Error(r, err)
				case c.is != nil && !c.is(err):
					t.Errorf("err has the type %T, want the case's type", err)
				}
				if err := mock.ExpectationsWereMet(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Reading a row is retried after a conflict, as fetching is, and not after an error that is not transient.
func TestAllocStoreRetriesReadingARow(t *testing.T) {
	const text = "SELECT biz_tag, max_id, step FROM `shop`.`leaf_alloc` WHERE biz_tag = _utf8mb4 X'61'"
	conflict := errors.New("Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction")
	denied := errors.New("Error 1142 (42000): SELECT command denied")
	columns := []string{"biz_tag", "max_id", "step"}
	for name, c := range map[string]struct {
		script func(sqlmock.Sqlmock)
		want   string // text in the error; "" for none
	}{
		"conflict": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(text).WillReturnError(conflict)
			m.ExpectQuery(text).WillReturnRows(sqlmock.NewRows(columns).AddRow("a", 100, 15))
		}, ""},
		"no row": {func(m sqlmock.Sqlmock) { m.ExpectQuery(text).WillReturnRows(sqlmock.NewRows(columns)) }, "a"},
		"denied": {func(m sqlmock.Sqlmock) { m.ExpectQuery(text).WillReturnError(denied) }, "leafsql: read `shop`.`leaf_alloc`: Error 1142"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				c.script(mock)
				r, err := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), "shop.leaf_alloc").Row(t.Context(), "a")
				switch _, unknown := errors.AsType[*segment.UnknownTagError](err); {
				case c.want == "" && (err != nil || r != segmenttest.Row{Tag: "a", MaxID: 100, Step: 15}):
					t.Error(r, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || unknown != (name == "no row")):
					t.Error(err)
				}
				if err := mock.ExpectationsWereMet(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func isExhausted(err error) bool { return errors.Is(err, idgen.ErrExhausted) }
