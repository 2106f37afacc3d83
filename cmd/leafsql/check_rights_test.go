//go:build unix

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCheckFindsMissingRights: missing rights are found, and objects that the user cannot see are never assumed to be
// right. With the proposed rights nothing is found. MariaDB gets its own server: triggers of tables that other
// tests lock would be omitted.
func TestCheckFindsMissingRights(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		if target.Name == string(mysqltest.MariaDB) {
			target = mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--skip-show-database"}}).Target()
			dsn = target.Database(t)
		}
		name, elsewhere := databaseName(dsn), databaseName(target.Database(t))
		db := open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)",
			"CREATE USER "+name+"@'%' IDENTIFIED BY 'Secret-9.word'",
			"GRANT SELECT, INSERT, TRIGGER, EVENT ON "+name+".* TO "+name+"@'%'",
			"CREATE TABLE "+elsewhere+".sales (id BIGINT PRIMARY KEY)",
			"CREATE TRIGGER "+elsewhere+".copied AFTER INSERT ON "+elsewhere+".sales FOR EACH ROW INSERT INTO "+name+".orders (a) VALUES (1)")
		t.Cleanup(func() { db.Exec("DROP USER " + name + "@'%'") })
		args := []string{"check", "-dsn", withUser(dsn, name, "Secret-9.word") + "?leafTables=orders"}
		report := runJSON[check.Report](t, exitProblems, args...)
		want := []string{"rights *", "rights leaf_alloc", "hidden"}
		if got := listFindings(report); !slices.Equal(got, want) {
			t.Fatalf("found %v, want %v", got, want)
		}
		exec(t, db, report.Findings[0].SQL...)
		exec(t, db, report.Findings[1].SQL...)
		if got := listFindings(runJSON[check.Report](t, exitFailure, args...)); !slices.Equal(got, want[2:]) {
			t.Errorf("findings with the second finding's rights = %v, want %v", got, want[2:])
		}
		exec(t, db, report.Findings[2].SQL...)
		if got := listFindings(runJSON[check.Report](t, exitProblems, args...)); !slices.Equal(got, []string{"trigger-inserts orders"}) {
			t.Errorf("findings with all rights = %v, want none but the trigger while it exists", got)
		}
		exec(t, db, "DROP TRIGGER "+elsewhere+".copied")
		if got := listFindings(runJSON[check.Report](t, exitOK, args...)); len(got) > 0 {
			t.Errorf("findings with all rights = %v, want none but the trigger while it exists", got)
		}
	})
}

// TestCheckReportsLockedTables: MariaDB omits the triggers of a locked table.
func TestCheckReportsLockedTables(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB}) // so that the lock affects no other test's check
	open(t, server.DSN(""), "CREATE DATABASE shop", "CREATE DATABASE other").Close()
	dsn := server.DSN("shop")
	db := open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)")
	holder := open(t, server.DSN("other"))
	ctx, free := context.WithCancel(t.Context())
	held := make(chan struct{})
	go func() {
		defer close(held)
		holder.ExecContext(ctx, "CREATE TABLE locked AS SELECT SLEEP(600) AS x")
	}()
	defer func() { free(); <-held }()
	for queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'other' AND state = 'User sleep'") == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	report := runJSON[check.Report](t, exitFailure, "check", "-dsn", dsn+"?leafTables=orders")
	if got := listFindings(report); !slices.Equal(got, []string{"hidden"}) || !strings.Contains(report.Findings[0].Message, "locked") {
		t.Errorf("findings = %+v, want hidden with \"locked\"", report.Findings)
	}
}

// TestCheckNotesARegistryOfAnApplication: an application can register a source of worker ids that the command does not have.
func TestCheckNotesARegistryOfAnApplication(t *testing.T) {
	runOnServers(t, func(t *testing.T, _ mysqltest.Target, dsn string) {
		open(t, dsn, "CREATE TABLE events (id BIGINT PRIMARY KEY)")
		report := runJSON[check.Report](t, exitOK, "check", "-dsn", dsn+"?leafTables=events:id:snowflake&leafWorker=consul(127.0.0.1)")
		if got, want := listFindings(report), []string{"registry-unreachable"}; !slices.Equal(got, want) || report.Findings[0].Severity != check.Note {
			t.Errorf("findings = %+v, want the note %v", report.Findings, want)
		}
	})
}
