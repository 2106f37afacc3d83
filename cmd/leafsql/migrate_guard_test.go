//go:build unix

package main

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/migrate"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func guards(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	return number(t, db, "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND trigger_name LIKE '%needs\\_id'")
}

// TestMigrateOneAtATime: while a step runs, another run changes nothing.
func TestMigrateOneAtATime(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE users (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.Exec("INSERT INTO orders VALUES ()"); err != nil {
			t.Fatal(err)
		}
		type result struct {
			status    int
			out, errs string
		}
		done := make(chan result, 1)
		go func() {
			var r result
			r.status, r.out, r.errs = leafsql(t.Context(), "migrate", "-dsn", dsn, "-do", "switch", "orders")
			done <- r
		}()
		for number(t, db, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata lock%'") == 0 {
			select {
			case r := <-done:
				t.Fatalf("it does not wait: %+v", r)
			case <-time.After(5 * time.Millisecond):
			}
		}
		for _, more := range []string{"-do=switch", "-back"} {
			status, out, errs := leafsql(t.Context(), "migrate", "-dsn", dsn, more, "orders")
			if status != unclear || !strings.Contains(errs, "another leafsql migrate changes ") || strings.Contains(out, "TRIGGER `") && more == "-do=switch" {
				t.Errorf("%s: %d %s%s", more, status, errs, out)
			}
		}
		mustRun(t, fine, "migrate", "-dsn", dsn, "-do", "switch", "users")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.status != fine {
			t.Fatalf("%+v", r)
		}
		if n := guards(t, db); n != 2 {
			t.Errorf("%d guards stand", n)
		}
	})
}

// TestMigrateLeavesGuards: a switch that fails drops the guards that it created, and no other one.
func TestMigrateLeavesGuards(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		const table = "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)"
		first, other := open(t, dsn, table), open(t, second, table)
		set, err := databases.Open(t.Context(), dsn, []string{second})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		m := &migrate.Migration{Set: set, Tables: []string{"orders"}}
		if err := m.Configure(); err != nil {
			t.Fatal(err)
		}
		tags, err := m.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Do(t.Context(), tags[0], migrate.Switch, func(s migrate.Statement) {
			if strings.HasPrefix(s.SQL[0], "CREATE TRIGGER") && s.Server == set.Shards[1].Label {
				exec(t, other, s.SQL...) // another run comes first, which no lock keeps away
			}
		})
		if err == nil || !strings.Contains(err.Error(), "1359") {
			t.Errorf("over another run's guard: %v", err)
		}
		if here, there := guards(t, first), guards(t, other); here != 0 || there != 1 {
			t.Errorf("guards that stand: %d of its own, %d of the other run", here, there)
		}
	})
}
