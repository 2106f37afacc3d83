//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/internal/versions"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const allocTable = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256)," +
	" update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag)) ENGINE=InnoDB"

// runOnServers runs a test on MariaDB and on MySQL, each with an empty database.
func runOnServers(t *testing.T, test func(t *testing.T, target mysqltest.Target, dsn string)) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			t.Parallel()
			test(t, target, target.Database(t))
		})
	}
}

// open connects with go-sql-driver and executes statements.
func open(t *testing.T, dsn string, stmts ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	exec(t, db, stmts...)
	return db
}

func exec(t *testing.T, db *sql.DB, stmts ...string) {
	t.Helper()
	for _, stmt := range stmts {
		if _, err := db.Exec(stmt); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
}

func queryNumber(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// databaseName returns the name of a DSN's database.
func databaseName(dsn string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(err)
	}
	return cfg.DBName
}

// runLeafsql runs the command and returns its exit code and output.
func runLeafsql(ctx context.Context, args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(ctx, &screen.Screen{Out: &o, Err: &e}, args)
	return status, o.String(), e.String()
}

// mustRun runs the command. It fails the test if the exit code is not want, or if there is an error.
func mustRun(t *testing.T, want int, args ...string) (out string) {
	t.Helper()
	status, out, errs := runLeafsql(t.Context(), args...)
	if status != want || errs != "" {
		t.Fatalf("leafsql %s: status %d, want %d without an error\n%s%s", strings.Join(args, " "), status, want, errs, out)
	}
	return out
}

// runJSON runs the command with -json and parses its output.
func runJSON[T any](t *testing.T, want int, args ...string) (v T) {
	t.Helper()
	out := mustRun(t, want, append(args[:1:1], append([]string{"-json"}, args[1:]...)...)...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	return v
}

// withUser returns a DSN for another user.
func withUser(dsn, user, password string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(err)
	}
	cfg.User, cfg.Passwd = user, password
	return cfg.FormatDSN()
}

// hasSelectedKeysBug reports whether the server has the bug MDEV-36026.
func hasSelectedKeysBug(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	number, _, _ := strings.Cut(version, "-")
	var major, minor, patch int
	if _, err := fmt.Sscanf(number, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatalf("version %q: %v", version, err)
	}
	_, has := versions.HasNullColumnsBug(strings.Contains(version, "MariaDB"), major*10000+minor*100+patch)
	return has
}
