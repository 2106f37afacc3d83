//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCommandsReadTablesWithColumnsWithAlias: the commands read their tables even with go-sql-driver's columnsWithAlias=true.
func TestCommandsReadTablesWithColumnsWithAlias(t *testing.T) {
	runOnServers(t, func(t *testing.T, _ mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "INSERT INTO orders VALUES (7, 1)")
		leaf := dsn + "?columnsWithAlias=true&leafTables=orders"
		mustRun(t, exitOK, "init", "-dsn", leaf)
		if out := mustRun(t, exitOK, "tags", "-dsn", leaf); !strings.Contains(out, "orders") {
			t.Errorf("output of tags = %s\nwant orders", out)
		}
		if out := mustRun(t, exitProblems, "check", "-dsn", leaf); strings.Contains(out, "check that the server runs") {
			t.Errorf("output of check = %s\nwant no finding on the server or leaf_alloc", out)
		}
		mustRun(t, exitOK, "migrate", "-dsn", leaf, "-do", "switch", "orders")
		mustRun(t, exitOK, "migrate", "-dsn", leaf, "-do", "drop", "orders")
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND extra LIKE '%auto_increment%'"); n != 0 {
			t.Errorf("columns with AUTO_INCREMENT = %d, want 0", n)
		}
		mustRun(t, exitOK, "bench", "-dsn", leaf, "-for", "100ms")
	})
}

// TestCommandsWorkInDatabaseWithDots: the commands work in a database that is named after a domain, and do not change the
// database with the name up to the first dot.
func TestCommandsWorkInDatabaseWithDots(t *testing.T) {
	runOnServers(t, func(t *testing.T, _ mysqltest.Target, other string) {
		name := databaseName(other) + ".example.org"
		root := open(t, other, "CREATE DATABASE `"+name+"`")
		t.Cleanup(func() { root.Exec("DROP DATABASE `" + name + "`") })
		dsn := strings.Replace(other, "/"+databaseName(other), "/"+name, 1)
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "INSERT INTO orders VALUES (7, 1)")
		for _, leaf := range []string{dsn + "?leafTables=orders", other + "?leafTables=" + name + ".orders&leafAllocTable=" + name + ".leaf_alloc"} {
			mustRun(t, exitOK, "init", "-dsn", leaf)
			if out := mustRun(t, exitProblems, "check", "-dsn", leaf); strings.Contains(out, "leafsql init") {
				t.Errorf("output of check = %s\nwant no finding on the server or leaf_alloc", out)
			}
			mustRun(t, exitOK, "tags", "-dsn", leaf)
		}
		leaf := dsn + "?leafTables=orders"
		mustRun(t, exitOK, "migrate", "-dsn", leaf, "-do", "switch", "orders")
		mustRun(t, exitOK, "migrate", "-dsn", leaf, "-do", "drop", "orders")
		if n := queryNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'"); n < 8 {
			t.Errorf("max_id = %d, want at least 8", n)
		}
		if n := queryNumber(t, root, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"); n != 0 {
			t.Errorf("tables in the other database = %d, want 0", n)
		}
	})
}
