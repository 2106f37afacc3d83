//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCheckFindsProblemsOfServers: problems with a server, with leaf_alloc's columns, and between two shards' DSNs are found.
func TestCheckFindsProblemsOfServers(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Args: []string{"--read-only=1", "--sql-mode=NO_ENGINE_SUBSTITUTION", "--innodb-flush-log-at-trx-commit=2"}})
	second := mysqltest.Database(t)
	const events = "CREATE TABLE events (id BIGINT PRIMARY KEY)"
	db := open(t, server.DSN(""), "CREATE DATABASE shop", "USE shop", events)
	db.Close()
	dsn := server.DSN("shop")
	db = open(t, dsn, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(3), max_id INT, step INT NOT NULL)", "INSERT INTO leaf_alloc VALUES ('orders', 1, 10), ('two', 5, 10), ('two', 9, 10), ('nil', NULL, 10)",
		"CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE two (id BIGINT PRIMARY KEY)", "CREATE TABLE nil (id BIGINT PRIMARY KEY)")
	open(t, second, events, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE two (id BIGINT PRIMARY KEY)", "CREATE TABLE nil (id BIGINT PRIMARY KEY)")
	const tables = "?leafTables=orders,two,nil,events:id:snowflake&leafWorker=static(1)"
	args := []string{"check", "-dsn", dsn + tables + "&leafNewRegistry=true",
		"-shard", second + strings.Replace(tables, "(1)", "(2)", 1) + "&leafStore=" + strings.ReplaceAll(dsn, "/", "%2F")}
	report := runJSON[check.Report](t, exitProblems, args...)
	want := []string{"read-only", "workers-differ", "row-broken nil", "row-broken two", "alloc-key leaf_alloc",
		"alloc-column leaf_alloc", "alloc-column leaf_alloc", "alloc-column leaf_alloc", "alloc-column leaf_alloc", "alloc-durability leaf_alloc",
		"row-missing orders", "sql-mode", "new-registry", "tag-without-table ord"} // the server truncated the tag
	if got := listFindings(report); !slices.Equal(got, want) {
		t.Fatalf("found\n %v\nwant\n %v", got, want)
	}
	for _, f := range report.Findings {
		if strings.HasSuffix(f.Server, "/shop") {
			exec(t, db, f.SQL...)
		}
	}
	want = []string{"workers-differ", "new-registry", "tag-without-table ord"} // the findings about the DSNs
	if got := listFindings(runJSON[check.Report](t, exitProblems, args...)); !slices.Equal(got, want) {
		t.Errorf("findings after the fixes =\n %v\nwant\n %v", got, want)
	}
}

// TestCheckFindsDifferencesOfShards: differences between shards are found, and the highest key is the highest of all shards.
func TestCheckFindsDifferencesOfShards(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 100, 10), ('users', 100, 10), ('items', 100, 10)",
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE users (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE items (id BIGINT PRIMARY KEY)")
		db := open(t, second, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO orders VALUES (100, 1)", "CREATE TABLE users (id BIGINT PRIMARY KEY, a BIGINT, c INT)")
		args := []string{"check", "-dsn", dsn + "?leafTables=orders,users,items", "-shard", second}
		report := runJSON[check.Report](t, exitProblems, args...)
		want := []string{"row-too-low orders", "shards-differ items", "shards-differ users"}
		if got := listFindings(report); !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
		admin := open(t, dsn)
		exec(t, admin, report.Findings[0].SQL...)
		exec(t, db, report.Findings[1].SQL...)
		exec(t, db, append(report.Findings[2].SQL, "ALTER TABLE users DROP COLUMN c")...)
		if got := listFindings(runJSON[check.Report](t, exitOK, args...)); len(got) > 0 {
			t.Errorf("findings after the fixes = %v, want none", got)
		}

		third := target.Database(t)
		open(t, third, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)")
		report = runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=orders", "-shard", third+"?leafTables=orders")
		if got := listFindings(report); !slices.Contains(got, "stores-differ") {
			t.Errorf("findings for a shard with its own leaf_alloc = %v, want stores-differ", got)
		}
	})
}

// TestCheckNotesUnusedStores: a leaf_alloc in a shard's database is a note if the tables take their ids from another one, and
// the leaf_alloc that they use is none.
func TestCheckNotesUnusedStores(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		const table, row = "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('orders', 100, 10, 'leafsql@off')"
		second, empty := target.Database(t), target.Database(t)
		for _, dsn := range []string{dsn, second} {
			open(t, dsn, allocTable, row, table)
		}
		open(t, empty, table)
		const leaf = "?leafTables=orders"
		for _, tt := range []struct {
			name string
			args []string
			want []string
		}{
			{"one database", []string{"-dsn", dsn + leaf}, nil},
			{"a shard with a copy", []string{"-dsn", dsn + leaf, "-shard", second}, []string{"alloc-unused leaf_alloc"}},
			{"a shard without", []string{"-dsn", dsn + leaf, "-shard", empty}, nil},
			{"leafStore", []string{"-dsn", withStore(second+leaf, dsn)}, []string{"alloc-unused leaf_alloc"}},
			{"leafStore names the same database", []string{"-dsn", withStore(dsn+leaf, dsn)}, nil},
		} {
			if got := listFindings(runJSON[check.Report](t, exitOK, append([]string{"check"}, tt.args...)...)); !slices.Equal(got, tt.want) {
				t.Errorf("%s: findings = %v, want %v", tt.name, got, tt.want)
			}
		}
	})
}
