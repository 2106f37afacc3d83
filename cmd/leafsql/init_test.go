//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	_ "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestInitStartsAboveTheKeys: after init the rows are above the keys of all shards, its output matches its changes, and INSERTs
// work.
func TestInitStartsAboveTheKeys(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (10)", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
			"CREATE TABLE loose (id BIGINT, n INT)", "INSERT INTO loose VALUES (77, 1)")
		open(t, second, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (500)", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
			"INSERT INTO counted VALUES (900)", "CREATE TABLE loose (id BIGINT, n INT)")
		leaf := dsn + "?leafTables=orders,counted,loose:id"
		args := []string{"init", "-dsn", leaf, "-shard", second}

		status, planned, errs := runLeafsql(t.Context(), append(args, "-dry-run")...)
		if status != exitFailure || !strings.Contains(errs, "loose") || strings.Count(planned, ";\n") != 3 {
			t.Fatalf("dry run: status %d, error %q, want %d, the table loose and three statements\n%s", status, errs, exitFailure, planned)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"); n != 3 {
			t.Fatalf("tables after a dry run = %d, want 3", n)
		}
		planned = marginNumber.ReplaceAllString(mustRun(t, exitProblems, append(args, "-scan", "-dry-run")...), "MARGIN")
		if done := marginNumber.ReplaceAllString(mustRun(t, exitOK, append(args, "-scan")...), "MARGIN"); !strings.HasPrefix(done, planned) {
			t.Errorf("output = %s\nwant it to begin with the plan:\n%s", done, planned)
		}
		for tag, want := range map[string]int64{"orders": 501, "loose": 78} {
			if got := queryNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'"); got != want {
				t.Errorf("max_id of %s = %d, want %d", tag, got, want)
			}
		}
		checkMargin(t, db, "counted", 901)
		if out := mustRun(t, exitOK, append(args, "-scan")...); !strings.Contains(out, "nothing to do") {
			t.Errorf("output = %s\nwant \"nothing to do\"", out)
		}

		filled := openLeaf(t, leaf)
		exec(t, filled, "INSERT INTO orders VALUES ()")
		if n := queryNumber(t, db, "SELECT MAX(id) FROM orders"); n != 501 {
			t.Errorf("first id = %d, want 501", n)
		}
		filled.Close()

		exec(t, db, "INSERT INTO orders VALUES (5000)", "UPDATE leaf_alloc SET max_id = 600 WHERE biz_tag = 'orders'")
		mustRun(t, exitOK, append(args, "-scan")...)
		checkMargin(t, db, "orders", 5001)
	})
}

// marginNumber matches numbers with at least 11 digits, which are a random margin above others.
var marginNumber = regexp.MustCompile(`\d{11,}`)

// checkMargin checks that the row of a BIGINT key is a margin above from.
func checkMargin(t *testing.T, db *sql.DB, tag string, from int64) {
	t.Helper()
	if got := queryNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'") - from; got < 1<<36 || got >= 1<<37 {
		t.Errorf("%s starts %d above %d, want a margin of %d to %d", tag, got, from, int64(1)<<36, int64(1)<<37)
	}
}

// TestInitWritesMarks: rows have the mark of their server before the first fetch, so a fail-over that loses it
// is detected. The text of a description is kept. A row that the server may have lost starts a margin higher.
func TestInitWritesMarks(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (10)", "CREATE TABLE users (id BIGINT PRIMARY KEY)", "CREATE TABLE items (id BIGINT PRIMARY KEY)")
		mustRun(t, exitOK, "init", "-dsn", dsn+"?leafTables=orders")
		exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('users', 7, 10, '用户'), ('java', 1, 10, NULL)")
		args := []string{"init", "-dsn", dsn + "?leafTables=orders,users,items"}
		planned := mustRun(t, exitProblems, append(args, "-dry-run")...)
		if out := mustRun(t, exitOK, args...); !strings.HasPrefix(out, planned) {
			t.Errorf("output = %s\nwant it to begin with the plan:\n%s", out, planned)
		}
		var mark string
		if err := db.QueryRow("SELECT description FROM leaf_alloc WHERE biz_tag = 'orders'").Scan(&mark); err != nil || !regexp.MustCompile(`^leafsql@[0-9a-f]{16} 0 0$`).MatchString(mark) {
			t.Fatalf("description = %q, %v, want a mark", mark, err)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc WHERE description IN ('"+mark+"', '用户 "+mark+"')"); n != 4 {
			t.Errorf("rows with the mark %s = %d, want 4 after\n%s", mark, n, planned)
		}
		if out := mustRun(t, exitOK, args...); !strings.Contains(out, "nothing to do") {
			t.Errorf("output = %s\nwant \"nothing to do\"", out)
		}
		leaf := openLeaf(t, dsn+"?leafTables=orders")
		exec(t, leaf, "INSERT INTO orders VALUES ()")
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc WHERE biz_tag = 'orders' AND description = '"+mark+"'"); n != 1 || queryNumber(t, db, "SELECT MAX(id) FROM orders") != 11 {
			t.Errorf("rows of orders with the mark = %d, want 1, and the first id 11", n)
		}

		exec(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 'items'", "UPDATE leaf_alloc SET description = 'leafsql@00112233445566ff 0 0' WHERE biz_tag = 'java'", "UPDATE leaf_alloc SET description = '' WHERE biz_tag = 'users'")
		mustRun(t, exitOK, args...)
		checkMargin(t, db, "items", 1)
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc WHERE description = ''"); n != 1 {
			t.Errorf("rows without a mark = %d, want 1", n)
		}
	})
}

// TestInitCreatesLeafAllocWithoutTables: leafsql init creates leaf_alloc for leafsql serve, with a DSN without tables. It fails
// if the DSN names tables and none of them gets a row.
func TestInitCreatesLeafAllocWithoutTables(t *testing.T) {
	for tables, want := range map[string]struct {
		status int
		errs   string
	}{"": {exitFailure, "or write leafTables=none"}, "?leafTables=none": {exitOK, ""}} {
		dsn := mysqltest.Database(t)
		db := open(t, dsn)
		for range 2 {
			if status, out, errs := runLeafsql(t.Context(), "init", "-dsn", dsn+tables); status != want.status || !strings.Contains(errs, want.errs) {
				t.Errorf("init with %s: status %d, want %d and the error %q\n%s%s", tables, status, want.status, want.errs, out, errs)
			}
			if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc"); n != 0 {
				t.Errorf("rows after init with %s = %d, want 0", tables, n)
			}
		}
	}
}

func TestInitRefuses(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, "CREATE TABLE small (id TINYINT PRIMARY KEY)", "INSERT INTO small VALUES (126)", "CREATE TABLE pairs (x INT, y INT, PRIMARY KEY (x, y))")
	for tables, want := range map[string]string{"auto": "name the tables", "small": "make it BIGINT", "pairs": "pairs", "nosuch": "create only leaf_alloc and the records of worker ids with leafTables=none"} {
		status, out, errs := runLeafsql(t.Context(), "init", "-dsn", fmt.Sprintf("%s?leafTables=%s", dsn, tables))
		if status != exitFailure || !strings.Contains(errs, want) || strings.Contains(out, "INSERT") {
			t.Errorf("init with %s: status %d, want %d and the error %q\n%s%s", tables, status, exitFailure, want, errs, out)
		}
	}
}
