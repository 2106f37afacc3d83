//go:build vitess

package main

import (
	"database/sql"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The test of this file needs Vitess, and is run by make versions SERVERS=vitess.

// TestVitessCommandsWork: init adds a table's row, check finds the table, and proxy fills the INSERTs of a client.
func TestVitessCommandsWork(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, allocTable, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	rules := dsn + "?leafTables=t"
	mustRun(t, exitOK, "init", "-dsn", rules)
	if report := runJSON[check.Report](t, exitOK, "check", "-dsn", rules); len(report.Tables) != 1 {
		t.Errorf("check found tables %+v, want one", report.Tables)
	}
	proxy := startProxy(t, 1, "-dsn", rules, "-listen", "127.0.0.1:0")
	defer proxy.end(t)
	client, err := sql.Open("mysql", withAddress(dsn, "tcp", proxy.addresses[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	res, err := client.Exec("INSERT INTO t (a) VALUES (1), (2)")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := res.LastInsertId(); err != nil || id < 1 {
		t.Errorf("LastInsertId() = %d, error %v; want an id", id, err)
	}
}
