//go:build tidb

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The test of this file needs TiDB, and is run by make versions SERVERS=tidb.

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
