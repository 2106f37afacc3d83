//go:build unix

package main

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestInitStartsTheWaitOfARegistry: the wait for worker ids starts with init. There is no wait if the registry is declared new,
// which only works once.
func TestInitStartsTheWaitOfARegistry(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE events (id BIGINT PRIMARY KEY)")
		leaf := dsn + "?leafTables=events::snowflake"
		insert := func() error {
			filled, err := sql.Open("mysql-leaf", leaf)
			if err != nil {
				t.Fatal(err)
			}
			defer filled.Close()
			for began := time.Now(); ; { // a search takes a while, on a busy machine several seconds
				soon, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
				_, err = filled.ExecContext(soon, "INSERT INTO events VALUES ()")
				if cancel(); err == nil || strings.Contains(err.Error(), "has lost documents") || time.Since(began) > 30*time.Second {
					break
				}
			}
			return err
		}
		const documents = ": make the documents of 1,024 worker ids"
		for _, stmt := range []string{"", schema.LeafWorker("leaf_worker")} { // without and with the table
			if stmt != "" {
				exec(t, db, stmt)
			}
			if out := mustRun(t, exitProblems, "init", "-dsn", leaf, "-dry-run"); !strings.HasSuffix(out, documents+"\n") {
				t.Errorf("output of a dry run = %s\nwant it to end with %q", out, documents)
			}
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_worker"); n != 0 {
			t.Errorf("rows after a dry run = %d, want 0", n)
		}
		out := mustRun(t, exitOK, "init", "-dsn", leaf)
		if !strings.Contains(out, documents+"\n-- ids are safe from ") || strings.Contains(out, "nothing to do") {
			t.Errorf("output = %s\nwant %q", out, documents+"\n-- ids are safe from ")
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_worker"); n != 1025 {
			t.Errorf("rows = %d, want 1025", n)
		}
		if n := queryNumber(t, db, "SELECT MIN(hw) DIV 1000 - UNIX_TIMESTAMP() FROM leaf_worker WHERE worker_id >= 0"); n < 90 || n > 120 {
			t.Errorf("the wait is %d s", n)
		}
		if err := insert(); err == nil || !strings.Contains(err.Error(), "has lost documents") {
			t.Errorf("INSERT right after init: error %v, want \"has lost documents\"", err)
		}
		for _, dry := range []string{"-dry-run=false", "-dry-run"} {
			if out := mustRun(t, exitOK, "init", "-dsn", leaf, dry); !strings.Contains(out, "nothing to do") || strings.Contains(out, "worker ids") {
				t.Errorf("output = %s\nwant %q", out, "nothing to do")
			}
			status, out, errs := runLeafsql(t.Context(), "init", "-dsn", leaf, "-new-registry", dry)
			if status != exitProblems || !strings.Contains(errs, "leave out -new-registry") || out != "" {
				t.Errorf("-new-registry for a registry in use: status %d, want %d and a hint to leave it out\n%s%s", status, exitProblems, out, errs)
			}
		}
		if status, _, errs := runLeafsql(t.Context(), "init", "-dsn", leaf+"&leafLease=30s"); status != exitFailure || strings.Count(errs, "leafsql: ") != 1 {
			t.Errorf("another lease: status %d, error %q, want %d and one error", status, errs, exitFailure)
		}

		// The registry's own document was deleted, as described on the page about changing the lease.
		exec(t, db, "DELETE FROM leaf_worker WHERE worker_id = -1", "UPDATE leaf_worker SET hw = 1, nonce = CONCAT(REPEAT('a', 28), 1000 + worker_id)")
		changed := leaf + "&leafLease=30s"
		if out := mustRun(t, exitProblems, "init", "-dsn", changed, "-dry-run"); !strings.HasSuffix(out, ": write the registry's own document\n") {
			t.Errorf("output = %s\nwant %q", out, ": write the registry's own document\n")
		}
		if out := mustRun(t, exitOK, "init", "-dsn", changed); !strings.Contains(out, ": write the registry's own document\n-- ids are safe from ") {
			t.Errorf("output = %s\nwant %q", out, ": write the registry's own document\n-- ids are safe from ")
		}
		if n := queryNumber(t, db, "SELECT MIN(hw) DIV 1000 - UNIX_TIMESTAMP() FROM leaf_worker WHERE worker_id >= 0"); n < 60 || n > 90 {
			t.Errorf("the wait is %d s", n)
		}

		// After a fail-over the new server has another identity.
		exec(t, db, "UPDATE leaf_worker SET registry = 'another'", "UPDATE leaf_worker SET free = 0 WHERE worker_id IN (3, 4)")
		const renewed = ": renew what is known of 1,022 worker ids\n"
		if out := mustRun(t, exitProblems, "init", "-dsn", changed, "-dry-run"); !strings.HasSuffix(out, renewed) {
			t.Errorf("output = %s\nwant %q", out, renewed)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_worker WHERE registry = 'another'"); n != 1025 {
			t.Errorf("rows that a dry run left unchanged = %d, want 1025", n)
		}
		if out := mustRun(t, exitOK, "init", "-dsn", changed); !strings.Contains(out, renewed+"-- ids are safe from ") {
			t.Errorf("output = %s\nwant %q", out, renewed+"-- ids are safe from ")
		}
		if out := mustRun(t, exitOK, "init", "-dsn", changed, "-dry-run"); !strings.Contains(out, "nothing to do") {
			t.Errorf("output = %s\nwant %q", out, "nothing to do")
		}
		exec(t, db, "DROP TABLE leaf_worker")
		out = mustRun(t, exitOK, "init", "-dsn", leaf, "-new-registry")
		if !strings.Contains(out, documents+"\n") {
			t.Errorf("output = %s\nwant %q", out, documents+"\n")
		}
		if err := insert(); err != nil {
			t.Errorf("INSERT after -new-registry: error %v, want nil", err)
		}
	})
}

// TestInitWritesToAnySource: for leafsql serve, which needs no tables, the documents are written to any source
// of leafWorker, but not if only segments are served.
func TestInitWritesToAnySource(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	target := mysqltest.Targets(t)[0]
	dsn := target.Database(t)
	open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE users (id BIGINT PRIMARY KEY)")
	const documents = ": make the documents of 1,024 worker ids\n"
	for tables, made := range map[string]bool{"none": true, "orders::snowflake": true, "orders": false} {
		out := mustRun(t, exitProblems, "init", "-dry-run", "-dsn", dsn+"?leafTables="+tables+"&leafWorker=redis("+s.Addr+")")
		if strings.HasSuffix(out, documents) != made {
			t.Errorf("output with leafTables=%s = %s\nends with the documents: %t, want %t", tables, out, !made, made)
		}
	}
	for _, fixed := range []string{"static(7)", "env(LEAFSQL_NOT_SET)", "ordinal()"} {
		if out := mustRun(t, exitProblems, "init", "-dry-run", "-dsn", dsn+"?leafTables=orders,users::snowflake&leafWorker="+fixed); strings.Contains(out, "worker ids") {
			t.Errorf("output with %s = %s\nwant nothing about worker ids", fixed, out)
		}
	}
}
