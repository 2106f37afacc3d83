//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestInit: after init the rows are above the keys of all shards, what the command says
// is what it does, and INSERTs work.
func TestInit(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (10)", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
			"CREATE TABLE loose (id BIGINT, n INT)", "INSERT INTO loose VALUES (77, 1)")
		open(t, second, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (500)", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
			"INSERT INTO counted VALUES (900)", "CREATE TABLE loose (id BIGINT, n INT)")
		leaf := dsn + "?leafTables=orders,counted,loose:id"
		args := []string{"init", "-dsn", leaf, "-shard", second}

		status, planned, errs := leafsql(t.Context(), append(args, "-dry-run")...)
		if status != unclear || !strings.Contains(errs, "loose") || strings.Count(planned, ";\n") != 3 {
			t.Fatalf("a dry run ends with %d, %s\n%s", status, errs, planned)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"); n != 3 {
			t.Fatalf("a dry run left %d tables", n)
		}
		planned = mustRun(t, mend, append(args, "-scan", "-dry-run")...)
		if done := mustRun(t, fine, append(args, "-scan")...); !strings.HasPrefix(done, planned) {
			t.Errorf("planned\n%sdone\n%s", planned, done)
		}
		for tag, want := range map[string]int64{"orders": 501, "counted": 1000901, "loose": 78} {
			if got := number(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'"); got != want {
				t.Errorf("%s starts at %d, want %d", tag, got, want)
			}
		}
		if out := mustRun(t, fine, append(args, "-scan")...); !strings.Contains(out, "nothing to do") {
			t.Error(out)
		}

		filled, err := sql.Open("mysql-leaf", leaf)
		if err != nil {
			t.Fatal(err)
		}
		defer filled.Close()
		if _, err := filled.Exec("INSERT INTO orders VALUES ()"); err != nil {
			t.Error(err)
		}
		if n := number(t, db, "SELECT MAX(id) FROM orders"); n != 501 {
			t.Errorf("the first id is %d", n)
		}
		filled.Close()

		exec(t, db, "INSERT INTO orders VALUES (5000)", "UPDATE leaf_alloc SET max_id = 600 WHERE biz_tag = 'orders'")
		mustRun(t, fine, append(args, "-scan")...)
		if n := number(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'"); n != 1005001 {
			t.Errorf("a row in use was raised to %d", n)
		}
	})
}

// TestInitWithoutTables: leafsql init makes leaf_alloc for leafsql serve, whose DSN names no tables. It fails all the same
// where tables are meant, as none of them gets a row.
func TestInitWithoutTables(t *testing.T) {
	for tables, want := range map[string]struct {
		status int
		errs   string
	}{"": {unclear, "or write leafTables=none"}, "?leafTables=none": {fine, ""}} {
		dsn := mysqltest.Database(t)
		db := open(t, dsn)
		for range 2 {
			if status, out, errs := leafsql(t.Context(), "init", "-dsn", dsn+tables); status != want.status || !strings.Contains(errs, want.errs) {
				t.Errorf("%s: %d\n%s%s", tables, status, out, errs)
			}
			if n := number(t, db, "SELECT COUNT(*) FROM leaf_alloc"); n != 0 {
				t.Errorf("%s: %d rows", tables, n)
			}
		}
	}
}

func TestInitRefuses(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, "CREATE TABLE small (id TINYINT PRIMARY KEY)", "INSERT INTO small VALUES (126)", "CREATE TABLE pairs (x INT, y INT, PRIMARY KEY (x, y))",
		"CREATE TABLE counted (id TINYINT AUTO_INCREMENT PRIMARY KEY)")
	for tables, want := range map[string]string{"auto": "name the tables", "small": "make it BIGINT", "counted": "1000000 above it, since AUTO_INCREMENT gives keys as well", "pairs": "pairs", "nosuch": "nosuch"} {
		status, out, errs := leafsql(t.Context(), "init", "-dsn", fmt.Sprintf("%s?leafTables=%s", dsn, tables))
		if status != unclear || !strings.Contains(errs, want) || strings.Contains(out, "INSERT") {
			t.Errorf("%s: %d\n%s%s", tables, status, errs, out)
		}
	}
}
