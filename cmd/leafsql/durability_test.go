//go:build unix

package main

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCheckReportsServersThatLoseCommits: a server that may lose its last commits is reported if ids or worker ids come from it,
// unless it is a node of a cluster.
func TestCheckReportsServersThatLoseCommits(t *testing.T) {
	start := func(kind mysqltest.Kind, args ...string) (db *sql.DB, leaf string) {
		server := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: append(args, "--innodb-flush-log-at-trx-commit=2", "--log-bin=binlog", "--server-id=1", "--binlog-format=ROW")})
		open(t, server.DSN(""), "CREATE DATABASE shop")
		db = open(t, server.DSN("shop"), allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)", schema.LeafWorker("leaf_worker"),
			"CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE events (id BIGINT PRIMARY KEY)")
		return db, server.DSN("shop") + "?leafTables="
	}
	const both = "orders,events:id:snowflake"
	db, leaf := start(mysqltest.MariaDB)
	report := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf+both)
	if got := listFindings(report); !slices.Equal(got, []string{"alloc-durability leaf_alloc", "alloc-durability leaf_alloc", "leases-durability leaf_worker", "leases-durability leaf_worker"}) {
		t.Fatalf("findings = %v, want two of leaf_alloc and two of leaf_worker", got)
	}
	for i, message := range []string{"innodb_flush_log_at_trx_commit is 2: when the machine loses power, the range", "sync_binlog is 0: when the machine loses power, the range",
		"innodb_flush_log_at_trx_commit is 2: a crash", "sync_binlog is 0: a crash"} {
		if f := report.Findings[i]; f.Severity != check.Warning || !strings.HasPrefix(f.Message, message) {
			t.Errorf("finding = %+v, want the warning for this setting or view", f)
		}
	}
	const group = "--loose-group-replication-group-name=6c656166-7371-11ef-8000-000000000000"
	_, replicated := start(mysqltest.MySQL, "--plugin-load-add=group_replication.so", "--loose-group-replication-start-on-boot=OFF", group)
	for dsn, want := range map[string][]string{
		leaf + both + "&leafWorker=static(1)": {"alloc-durability leaf_alloc", "alloc-durability leaf_alloc"},
		leaf + "events:id:snowflake":          {"leases-durability leaf_worker", "leases-durability leaf_worker", "tag-without-table orders"},
	} {
		if got := listFindings(runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn)); !slices.Equal(got, want) {
			t.Errorf("%s: findings = %v, want %v", dsn, got, want)
		}
	}
	if got := listFindings(runJSON[check.Report](t, exitOK, "check", "-dsn", replicated+both)); len(got) > 0 {
		t.Errorf("findings in a group = %v, want none", got)
	}
	exec(t, db, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	if f := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf+both).Findings[0]; !strings.Contains(f.Message, " is 0: when the server crashes, the range") {
		t.Errorf("finding = %+v, want the warning for this setting or view", f)
	}
	for _, f := range report.Findings {
		exec(t, db, f.SQL...)
	}
	if got := listFindings(runJSON[check.Report](t, exitOK, "check", "-dsn", leaf+both)); len(got) > 0 {
		t.Errorf("findings after the fix = %v, want none", got)
	}
}

// TestCheckReportsTablesThatLoseRows: a table that may lose rows, or that triggers change, is reported. So is a view, because
// its table cannot be checked.
func TestCheckReportsTablesThatLoseRows(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)",
			"CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE events (id BIGINT PRIMARY KEY)",
			strings.Replace(schema.LeafWorker("leaf_worker"), "InnoDB", "MyISAM", 1), "CREATE TRIGGER noted BEFORE UPDATE ON leaf_worker FOR EACH ROW SET @leaf = 1")
		args := []string{"check", "-dsn", dsn + "?leafTables=orders,events:id:snowflake"}
		report := runJSON[check.Report](t, exitProblems, args...)
		if got := listFindings(report); !slices.Equal(got, []string{"leases-engine leaf_worker", "leases-trigger leaf_worker"}) || report.Findings[0].Severity != check.Error {
			t.Fatalf("findings = %+v, want the engines and triggers of both tables as planted", report.Findings)
		}
		for _, f := range report.Findings {
			exec(t, db, f.SQL...)
		}
		mustRun(t, exitOK, args...)
		for _, table := range []string{"leaf_alloc", "leaf_worker"} {
			exec(t, db, "RENAME TABLE "+table+" TO behind_"+table, "CREATE VIEW "+table+" AS SELECT * FROM behind_"+table)
		}
		report = runJSON[check.Report](t, exitProblems, args...)
		if got := listFindings(report); !slices.Equal(got, []string{"alloc-engine leaf_alloc", "leases-engine leaf_worker"}) {
			t.Fatalf("findings = %+v, want the engines and triggers of both tables as planted", report.Findings)
		}
		for _, f := range report.Findings {
			if f.Severity != check.Warning || !strings.HasPrefix(f.Message, "It is a view: ") || len(f.SQL) > 0 {
				t.Errorf("finding = %+v, want the warning for this setting or view", f)
			}
		}
	})
}
