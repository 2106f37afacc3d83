//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCommandsKeepHistoryOfVersionedTables: check, init and migrate work with tables WITH SYSTEM VERSIONING, and do not change their
// history.
func TestCommandsKeepHistoryOfVersionedTables(t *testing.T) {
	target := mysqltest.TargetOf(t, mysqltest.MariaDB)
	target.SkipUnless(t, "tables with a history", 100304, 0)
	dsn := target.Database(t)
	const versioned = " WITH SYSTEM VERSIONING"
	db := open(t, dsn, "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, n INT)"+versioned, "INSERT INTO orders (n) VALUES (1), (2)", "UPDATE orders SET n = 3",
		"CREATE TABLE users (id BIGINT PRIMARY KEY)"+versioned, "INSERT INTO users VALUES (7)", "CREATE TABLE small (id TINYINT PRIMARY KEY)"+versioned)
	report := runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=*")
	if len(report.Tables) != 3 {
		t.Errorf("check finds %+v, want three tables", report.Tables)
	}
	mustRun(t, exitOK, "init", "-dsn", dsn+"?leafTables=users,small")
	if next := queryNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'users'"); next != 8 {
		t.Errorf("init puts users at %d, want 8", next)
	}
	exec(t, db, "UPDATE leaf_alloc SET max_id = 120 WHERE biz_tag = 'small'")
	for _, f := range runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=orders,small").Findings {
		if f.Code == "key-filling" || f.Code == "auto-increment" {
			exec(t, db, f.SQL...)
		}
	}
	exec(t, db, "SET STATEMENT system_versioning_alter_history = KEEP FOR ALTER TABLE orders MODIFY id INT NOT NULL AUTO_INCREMENT")
	for _, step := range []string{"-do=widen", "-do=switch", "-do=drop", "-back", "-do=drop"} {
		mustRun(t, exitOK, "migrate", "-dsn", dsn, step, "orders")
	}
	out := mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do=unguard", "orders")
	exec(t, openLeaf(t, dsn+"?leafTables=orders"), "INSERT INTO orders (n) VALUES (9)")
	if n := queryNumber(t, db, "SELECT COUNT(*) FROM orders FOR SYSTEM_TIME ALL"); n != 5 {
		t.Errorf("%d rows with their history, want 5", n)
	}
	_, back, _ := strings.Cut(out, "SET STATEMENT ")
	back, _, _ = strings.Cut(back, ";")
	exec(t, db, "SET STATEMENT "+back)
}
