//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCheckShowsYearsLeft: the remaining ids are shown in years, from two readings.
func TestCheckShowsYearsLeft(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, allocTable, "CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)")
	earlier := filepath.Join(t.TempDir(), "earlier.json")
	report := mustRun(t, exitOK, "check", "-json", "-dsn", dsn+"?leafTables=orders")
	if err := os.WriteFile(earlier, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "UPDATE leaf_alloc SET max_id = 1000001")
	r := runJSON[check.Report](t, exitProblems, "check", "-since", earlier, "-dsn", dsn+"?leafTables=orders")
	if got := listFindings(r); !slices.Equal(got, []string{"key-filling orders"}) || r.Tables[0].Years == nil || *r.Tables[0].Years > 1 {
		t.Errorf("findings = %v with %v years, want key-filling orders with at most 1 year", got, r.Tables[0].Years)
	}
	report = strings.Replace(report, `"max_id": "1"`, `"max_id": 1`, 1) // the format of 0.1
	if err := os.WriteFile(earlier, []byte(report), 0o600); err != nil || strings.Contains(report, `"max_id": "`) {
		t.Fatalf("report in the format of 0.1: %v\n%s", err, report)
	}
	if r := runJSON[check.Report](t, exitProblems, "check", "-since", earlier, "-dsn", dsn+"?leafTables=orders"); r.Tables[0].Years == nil {
		t.Error("years since a report of 0.1 = nil, want a number")
	}
	r = runJSON[check.Report](t, exitOK, "check", "-measure", "1ms", "-dsn", dsn+"?leafTables=orders")
	if r.Tables[0].Years != nil {
		t.Errorf("years of a tag that does not move = %v, want nil", *r.Tables[0].Years)
	}
}

// TestCheckReportsStepTooLarge: a step that is too large for a small column is reported.
func TestCheckReportsStepTooLarge(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, allocTable, "CREATE TABLE small (id TINYINT UNSIGNED PRIMARY KEY)", "CREATE TABLE large (id BIGINT PRIMARY KEY)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('small', 1, 16), ('large', 1, 2147483647)")
	leaf := dsn + "?leafTables=small,large"
	r := runJSON[check.Report](t, exitOK, "check", "-dsn", leaf)
	if got := listFindings(r); !slices.Equal(got, []string{"step-large small"}) || r.Findings[0].Severity != check.Note || !strings.Contains(r.Findings[0].Message, "fetch 16 ids at a time") {
		t.Fatalf("findings = %+v, want a note step-large small that proposes 16", r.Findings)
	}
	exec(t, db, r.Findings[0].SQL...)
	exec(t, db, "UPDATE leaf_alloc SET max_id = 9223372036854775000 WHERE biz_tag = 'large'", "INSERT INTO small VALUES (254)", "UPDATE leaf_alloc SET max_id = 255 WHERE biz_tag = 'small'")
	r = runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
	if got := listFindings(r); !slices.Equal(got, []string{"key-filling large", "key-filling small", "step-large small"}) {
		t.Errorf("near the ends of the columns: %v, want no note on the step of large", got)
	}
	exec(t, db, "INSERT INTO small VALUES (255)")
	if r := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf); r.Tables[1].HighestKey == nil || *r.Tables[1].HighestKey != 255 {
		t.Errorf("of a full column: %+v, want the highest key 255", r.Tables[1])
	}
	exec(t, db, "DELETE FROM small", "UPDATE leaf_alloc SET max_id = 1")
	if got := listFindings(runJSON[check.Report](t, exitOK, "check", "-dsn", leaf)); len(got) > 0 {
		t.Errorf("findings = %v, want none", got)
	}
}
