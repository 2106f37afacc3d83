//go:build tidb

package main

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The tests of this file need TiDB, and are run by make versions SERVERS=tidb.

// TestTiDBCheckReportsAutoRandom: an AUTO_RANDOM key is an error, and AUTO_INCREMENT, which cannot be put back, is left on the column.
func TestTiDBCheckReportsAutoRandom(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, allocTable, "CREATE TABLE r (id BIGINT AUTO_RANDOM PRIMARY KEY, a INT)", "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('r', 100, 1000), ('t', 100, 1000)")
	report := runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=r,t")
	if got, want := listFindings(report), []string{"key-auto-random r", "auto-increment t"}; !slices.Equal(got, want) {
		t.Fatalf("found %q, want %q", got, want)
	}
	if f := findFinding(t, report, "auto-increment", "t"); len(f.SQL) > 0 || !strings.Contains(f.Fix, "never puts it back") {
		t.Errorf("SQL %q and hint %q, want no SQL and a hint to leave AUTO_INCREMENT", f.SQL, f.Fix)
	}
}

// TestTiDBMigrateIsRefused: migrate names the reason why it cannot run, and its hint works: init adds a row above the keys and the numbers of
// AUTO_INCREMENT, and the table with AUTO_INCREMENT is filled.
func TestTiDBMigrateIsRefused(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1), (2)", "DELETE FROM t WHERE a = 2")
	for _, args := range [][]string{{"t"}, {"-do", "switch", "t"}, {"-back", "t"}} {
		status, out, errs := runLeafsql(t.Context(), append([]string{"migrate", "-dsn", dsn}, args...)...)
		if status != exitFailure || !strings.Contains(errs, "TiDB has no triggers") || !strings.Contains(errs, "leafsql init") {
			t.Errorf("migrate %q: %d, %s%s, want the reason and a hint", args, status, out, errs)
		}
	}
	mustRun(t, exitOK, "init", "-dsn", dsn+"?leafTables=t")
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
