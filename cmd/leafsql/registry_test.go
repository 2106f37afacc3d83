//go:build unix

package main

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestInitRegistry: the wait for worker ids begins with init, or there is none where
// the registry is declared new, which nobody can do twice.
func TestInitRegistry(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE events (id BIGINT PRIMARY KEY)")
		leaf := dsn + "?leafTables=events::snowflake"
		insert := func() error {
			filled, err := sql.Open("mysql-leaf", leaf)
			if err != nil {
				t.Fatal(err)
			}
			defer filled.Close()
			soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err = filled.ExecContext(soon, "INSERT INTO events VALUES ()")
			return err
		}
		out := mustRun(t, fine, "init", "-dsn", leaf)
		if !strings.Contains(out, "made the documents of 1024 worker ids, whose ids are safe from") {
			t.Error(out)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM leaf_worker"); n != 1025 {
			t.Errorf("%d rows", n)
		}
		if n := number(t, db, "SELECT MIN(hw) DIV 1000 - UNIX_TIMESTAMP() FROM leaf_worker WHERE worker_id >= 0"); n < 90 || n > 120 {
			t.Errorf("the wait is %d s", n)
		}
		if err := insert(); err == nil || !strings.Contains(err.Error(), "its ids are safe from") {
			t.Errorf("right after init: %v", err)
		}
		if out := mustRun(t, fine, "init", "-dsn", leaf); strings.Contains(out, "worker ids") {
			t.Error(out)
		}
		for range 2 {
			status, out, errs := leafsql(t.Context(), "init", "-dsn", leaf, "-new-registry")
			if status != mend || !strings.Contains(errs, "leave -new-registry out") {
				t.Errorf("in use: %d, %s%s", status, out, errs)
			}
		}
		exec(t, db, "DROP TABLE leaf_worker")
		out = mustRun(t, fine, "init", "-dsn", leaf, "-new-registry")
		if !strings.Contains(out, "made the documents of 1024 worker ids\n") {
			t.Error(out)
		}
		if err := insert(); err != nil {
			t.Errorf("after it was declared new: %v", err)
		}
	})
}
