//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCheckFindsMissingMarks: every reason for rows without marks is found, and the SQL of the finding fixes
// it.
func TestCheckFindsMissingMarks(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    string
		code     string
		severity check.Severity
		message  string
	}{
		"no mark yet":      {"UPDATE leaf_alloc SET description = NULL", "row-unmarked", check.Note, "Rows without a mark: 2."},
		"no room":          {"UPDATE leaf_alloc SET description = REPEAT('订', 201) WHERE biz_tag = 'b'", "row-unmarked", check.Warning, "too long to append"},
		"a broken mark":    {"UPDATE leaf_alloc SET description = 'orders leafsql@00' WHERE biz_tag = 'orders'", "row-broken", check.Error, "cannot be parsed"},
		"of another table": {"UPDATE leaf_alloc SET description = 'leafsql@00' WHERE biz_tag = 'b'", "row-broken", check.Warning, "cannot be parsed"},
		"no column":        {"ALTER TABLE leaf_alloc DROP COLUMN description", "alloc-column", check.Warning, "It has no column description"},
		"a short column":   {"ALTER TABLE leaf_alloc MODIFY description varchar(60)", "alloc-column", check.Warning, "varchar(60), which is too short"},
		"no right":         {"", "rights", check.Warning, "no right to write the column description"},
	} {
		t.Run(name, func(t *testing.T) {
			runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
				user := databaseName(dsn)
				db := open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10), ('b', 1, 10)")
				mustRun(t, exitOK, "init", "-dsn", dsn+"?leafTables=orders")
				args := []string{"check", "-dsn", dsn + "?leafTables=orders"}
				for _, f := range runJSON[check.Report](t, exitOK, args...).Findings {
					if f.Code != "tag-without-table" {
						t.Fatalf("finding before the fault = %+v, want tag-without-table alone", f)
					}
				}
				if c.spoil != "" {
					exec(t, db, c.spoil)
				} else {
					exec(t, db, "CREATE USER "+user+"@'%' IDENTIFIED BY 'Secret-9.word'", "GRANT ALL ON "+user+".orders TO "+user+"@'%'", "GRANT CREATE TEMPORARY TABLES, TRIGGER, EVENT ON *.* TO "+user+"@'%'",
						"GRANT SELECT, UPDATE (max_id) ON leaf_alloc TO "+user+"@'%'")
					t.Cleanup(func() { db.Exec("DROP USER " + user + "@'%'") })
					args[2] = withUser(dsn, user, "Secret-9.word") + "?leafTables=orders"
				}
				find := func() (check.Finding, bool) {
					status, _, _ := runLeafsql(t.Context(), args...)
					findings := runJSON[check.Report](t, status, args...).Findings
					i := slices.IndexFunc(findings, func(f check.Finding) bool { return f.Code == c.code })
					if i < 0 {
						return check.Finding{}, false
					}
					return findings[i], true
				}
				f, ok := find()
				if !ok || f.Severity != c.severity || !strings.Contains(f.Message, c.message) {
					t.Fatalf("finding = %+v, want %s %s with %q", f, c.severity, c.code, c.message)
				}
				if c.code == "rights" { // init succeeds without marks
					exec(t, db, "UPDATE leaf_alloc SET description = NULL")
					mustRun(t, exitOK, "init", "-dsn", args[2])
				}
				if _, update, ok := strings.Cut(f.Fix, ": UPDATE "); ok {
					f.SQL = append(f.SQL, "UPDATE "+update)
				}
				if exec(t, db, f.SQL...); len(f.SQL) == 0 {
					exec(t, db, "UPDATE leaf_alloc SET description = 'shorter' WHERE biz_tag = 'b'", "UPDATE leaf_alloc SET description = CONCAT(description, (SELECT d FROM (SELECT description AS d FROM leaf_alloc WHERE biz_tag = 'orders') o)) WHERE biz_tag = 'b'")
				}
				if f, ok := find(); ok && !(name == "a short column" && f.Code == "row-unmarked") {
					t.Errorf("finding after its SQL = %+v, want none", f)
				}
			})
		})
	}
}

// TestCheckReportsStatementBinlog: under statement-based replication, rows get no marks.
func TestCheckReportsStatementBinlog(t *testing.T) {
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		server := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--log-bin=binlog", "--sync-binlog=1", "--server-id=1", "--binlog-format=STATEMENT"}})
		open(t, server.DSN(""), "CREATE DATABASE shop")
		db := open(t, server.DSN("shop"), "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
		leaf := server.DSN("shop") + "?leafTables=orders"
		mustRun(t, exitOK, "init", "-dsn", leaf)
		report := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
		if got := listFindings(report); !slices.Equal(got, []string{"alloc-binlog leaf_alloc"}) {
			t.Fatalf("%s: findings = %+v, want alloc-binlog leaf_alloc", kind, report.Findings)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc WHERE description IS NULL"); n != 1 {
			t.Errorf("%s: rows without a mark = %d, want 1", kind, n)
		}
		exec(t, db, report.Findings[0].SQL...)
		mustRun(t, exitOK, "init", "-dsn", leaf)
		if report := runJSON[check.Report](t, exitOK, "check", "-dsn", leaf); len(report.Findings) > 0 {
			t.Errorf("%s: findings after the fix = %+v, want none", kind, report.Findings)
		}
	}
}
