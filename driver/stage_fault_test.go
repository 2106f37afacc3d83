package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A fault is a way in which a call to the server fails.
type fault struct {
	name   string
	runs   bool // the call runs before it fails
	part   bool // only the first statement of a block runs
	lost   bool // the connection is closed
	always bool // the calls after it fail as well
}

var faults = []fault{
	{name: "killed"},
	{name: "killed behind", runs: true},
	{name: "killed within", runs: true, part: true},
	{name: "killed for ever", always: true},
	{name: "killed behind, for ever", runs: true, always: true},
	{name: "lost", lost: true},
	{name: "lost behind", runs: true, lost: true},
	{name: "lost within", runs: true, part: true, lost: true},
}

// failing makes connections on which calls may fail.
type failing struct{ driver.Connector }

type failingConn struct {
	innerConn
	fault  *fault // nil for no fault
	at     int    // number of the call that fails
	calls  int    // number of calls
	commit bool   // a call that failed had committed
}

func (f failing) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &failingConn{innerConn: dc.(innerConn)}, nil
}

func (c *failingConn) call(text string, run func(text string) error) error {
	c.calls++
	if c.fault == nil || c.calls != c.at && !(c.fault.always && c.calls > c.at) {
		return run(text)
	}
	if c.fault.runs && c.calls == c.at {
		if c.fault.part {
			text, _, _ = strings.Cut(strings.TrimPrefix(text, "BEGIN NOT ATOMIC "), "; ")
		}
		if err := run(text); err == nil && strings.Contains(text, "SET autocommit = 1") {
			c.commit = true
		}
	}
	if c.fault.lost {
		c.innerConn.Close()
		return mysql.ErrInvalidConn
	}
	return &mysql.MySQLError{Number: servererr.QueryKilled, Message: "Query execution was interrupted"}
}

func (c *failingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.call(text, func(text string) (err error) {
		res, err = c.innerConn.ExecContext(ctx, text, args)
		return err
	})
	return res, err
}

func (c *failingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.call(text, func(text string) (err error) {
		rows, err = c.innerConn.QueryContext(ctx, text, args)
		return err
	})
	if err != nil && rows != nil {
		rows.Close()
	}
	return rows, err
}

// openWrapped opens a new database through mysql-leaf with wrapped connections and table t configured, and executes texts.
func openWrapped(t *testing.T, target mysqltest.Target, wrap func(inner driver.Connector) driver.Connector, texts ...string) *sql.DB {
	t.Helper()
	cfg, err := ParseDSN(target.Database(t) + "?leafTables=t&leafCreate=true")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := mysql.NewConnector(cfg.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Wrap(wrap(inner), cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { db.Close() })
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// TestStagedFaultsReportTrueOutcome: each call to the server that a staged statement makes fails in
// each way. The reported outcome is true, and the session is unchanged or its
// connection is closed. Without a fault the number of calls is the documented one.
func TestStagedFaultsReportTrueOutcome(t *testing.T) {
	roundTrips := map[string]int{"mariadb": 4, "mysql": 6}
	for _, target := range mysqltest.Targets(t) {
		leaf := openWrapped(t, target, func(inner driver.Connector) driver.Connector { return failing{inner} },
			"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2), (3)")
		leaf.SetMaxOpenConns(1)
		for _, way := range [][2]string{{"DO 1", "DO 1"}, {"BEGIN", "COMMIT"}, {"SET autocommit = 0", "COMMIT"}} {
			for _, f := range faults {
				t.Run(fmt.Sprintf("%s/%s/%s", target.Name, way[0], f.name), func(t *testing.T) {
					calls := 1
					for at := 1; at <= calls; at++ {
						calls = failAt(t, leaf, way[0], way[1], &f, at)
					}
					if calls = failAt(t, leaf, way[0], way[1], nil, 0); calls != roundTrips[target.Name] {
						t.Errorf("%d round trips, want %d", calls, roundTrips[target.Name])
					}
				})
			}
		}
	}
}

// failAt inserts a row and stages three more, while one call fails, and returns
// the number of calls of the staging.
func failAt(t *testing.T, db *sql.DB, begin, end string, f *fault, at int) (calls int) {
	t.Helper()
	ctx := t.Context()
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exec := func(text string) {
		t.Helper()
		if _, err := c.ExecContext(ctx, text); err != nil {
			t.Fatalf("call %d: %s: error %v, want none", at, text, err)
		}
	}
	ask := func(expression string) (n int) {
		t.Helper()
		if err := c.QueryRowContext(ctx, "SELECT "+expression).Scan(&n); err != nil {
			t.Fatalf("call %d: %s: error %v, want none", at, expression, err)
		}
		return n
	}
	exec("DELETE FROM t")
	exec("INSERT INTO t (a) SELECT a FROM s WHERE FALSE") // the first statement looks the table up
	exec(begin)
	exec("INSERT INTO t (id, a) VALUES (1, 100)")
	exec("DO LAST_INSERT_ID(777)")
	auto := ask("@@autocommit")

	var spoiled *failingConn
	var valid func() bool
	c.Raw(func(dc any) error {
		spoiled, valid = dc.(*conn).Conn.(*failingConn), dc.(*conn).IsValid
		return nil
	})
	spoiled.fault, spoiled.at, spoiled.calls, spoiled.commit = f, at, 0, false
	_, told := c.ExecContext(ctx, "INSERT INTO t (a) SELECT a FROM s")
	spoiled.fault, calls = nil, spoiled.calls

	kept := valid()
	if !kept && (f == nil || !f.lost && !f.always) {
		t.Errorf("call %d: the connection was closed, want it open; the statement returned %v", at, told)
	}
	if kept {
		if n := ask("@@autocommit"); n != auto {
			t.Errorf("call %d: autocommit = %d, want %d; the statement returned %v", at, n, auto, told)
		}
		if n := ask("LAST_INSERT_ID()"); told != nil && n != 777 {
			t.Errorf("call %d: LAST_INSERT_ID() = %d, want 777; the statement returned %v", at, n, told)
		}
		exec(end)
		exec("SET autocommit = 1")
	}
	c.Close()
	if c, err = db.Conn(ctx); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stored, before := ask("COUNT(*) FROM t WHERE a < 100"), ask("COUNT(*) FROM t WHERE a = 100")
	unsure := told != nil && !errors.As(told, new(*mysql.MySQLError)) && spoiled.commit
	if (stored == 3) != (told == nil) && !unsure || stored != 0 && stored != 3 {
		t.Errorf("call %d: %d rows are stored and the statement returned %v; want 3 and nil, or 0 and an error", at, stored, told)
	}
	if want := kept || begin == "DO 1"; (before == 1) != want {
		t.Errorf("call %d: earlier row is stored = %v, want %v; the statement returned %v", at, before == 1, want, told)
	}
	if n := ask("@@autocommit"); n != 1 {
		t.Errorf("call %d: autocommit in the pool = %d, want 1; the statement returned %v", at, n, told)
	}
	if _, err := c.ExecContext(ctx, "ROLLBACK TO SAVEPOINT leafsql_savepoint"); !servererr.Is(err, servererr.NoSavepoint) {
		t.Errorf("call %d: ROLLBACK TO in the pool: error %v, want no open transaction; the statement returned %v", at, err, told)
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM leafsql_stage"); !servererr.Is(err, servererr.NoSuchTable) {
		t.Errorf("call %d: DELETE from the staging table in the pool: error %v, want no such table; the statement returned %v", at, err, told)
	}
	return calls
}

// yielding connects to a server that allows in a transaction a statement that MySQL does not.
type yielding struct{ driver.Connector }

type yieldingConn struct{ innerConn }

func (y yielding) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := y.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return yieldingConn{dc.(innerConn)}, nil
}

func (c yieldingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.innerConn.ExecContext(ctx, strings.ReplaceAll(text, catalog.FailsInTransaction, "@leafsql_x = 1"), args)
}

// TestNothingIsStagedIfTransactionsAreHidden: if an open transaction cannot be detected, nothing is staged, and the transaction stays open.
func TestNothingIsStagedIfTransactionsAreHidden(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		db := openWrapped(t, target, func(inner driver.Connector) driver.Connector { return yielding{inner} }, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO t (a) VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec("INSERT INTO t (a) SELECT a FROM t")
		if _, refused := errors.AsType[*RefusedError](err); refused != (target.Name == "mysql") {
			t.Errorf("%s: error %v, want a refusal on MySQL only", target.Name, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Errorf("Rollback() = %v, want nil", err)
		}
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d rows after the rollback, error %v; want 0", target.Name, n, err)
		}
	}
}
