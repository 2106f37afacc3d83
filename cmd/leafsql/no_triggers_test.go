//go:build tidb || vitess

package main

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The test of this file needs TiDB or Vitess, and is run by make versions.

// TestMigrateIsRefusedWithoutTriggers: migrate names the reason why it cannot run, and its hint works: init adds a row above the keys and the numbers of
// AUTO_INCREMENT, and the table with AUTO_INCREMENT is filled. check and init do not recommend migrate.
func TestMigrateIsRefusedWithoutTriggers(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1), (2)", "DELETE FROM t WHERE a = 2")
	for _, args := range [][]string{{"t"}, {"-do", "switch", "t"}, {"-back", "t"}} {
		status, out, errs := runLeafsql(t.Context(), append([]string{"migrate", "-dsn", dsn}, args...)...)
		if status != exitFailure || !strings.Contains(errs, " has no triggers, ") || !strings.Contains(errs, "leafsql init") {
			t.Errorf("migrate %q: %d, %s%s, want the reason and a hint", args, status, out, errs)
		}
	}
	for _, command := range []string{"check", "init", "check"} {
		_, out, errs := runLeafsql(t.Context(), command, "-dsn", dsn+"?leafTables=t")
		if errs != "" || !strings.Contains(out, "mysql-leaf") || strings.Contains(out, "leafsql migrate") {
			t.Errorf("%s: %s%s, want no error, and a hint without leafsql migrate", command, out, errs)
		}
	}
	filled, err := sql.Open("mysql-leaf", dsn+"?leafTables=t")
	if err != nil {
		t.Fatal(err)
	}
	defer filled.Close()
	exec(t, filled, "INSERT INTO t (a) VALUES (3)")
	if id := queryNumber(t, db, "SELECT id FROM t WHERE a = 3"); id < 3 {
		t.Errorf("id = %d, want one above the deleted row's", id)
	}
}
