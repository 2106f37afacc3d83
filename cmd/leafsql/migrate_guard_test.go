//go:build unix

package main

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/migrate"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func countGuards(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	return queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND trigger_name LIKE '%needs\\_id'")
}

// startWaitingSwitch starts a switch of the table orders, and of more tables, while a transaction with an INSERT
// is open. It returns when the switch waits for the transaction. goOn commits the transaction, and the switch
// succeeds.
func startWaitingSwitch(t *testing.T, db *sql.DB, dsn, insert string, more ...string) (goOn func()) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	if _, err := tx.Exec(insert); err != nil {
		t.Fatal(err)
	}
	type result struct {
		status    int
		out, errs string
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.status, r.out, r.errs = runLeafsql(t.Context(), append([]string{"migrate", "-dsn", dsn, "-do", "switch", "orders"}, more...)...)
		done <- r
	}()
	isWaiting := func() bool { // MySQL returns an error while a statement of another test has bytes that are not UTF-8
		var n int
		err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata lock%' AND info LIKE '%orders%'").Scan(&n)
		return err == nil && n > 0
	}
	for !isWaiting() {
		select {
		case r := <-done:
			t.Fatalf("migrate ended with %+v, want it to wait", r)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return func() {
		t.Helper()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.status != exitOK {
			t.Fatalf("migrate ended with %+v, want status %d", r, exitOK)
		}
	}
}

// TestMigrateRunsOneAtATime: while a step runs, another run changes nothing.
func TestMigrateRunsOneAtATime(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE users (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
		goOn := startWaitingSwitch(t, db, dsn, "INSERT INTO orders VALUES ()")
		for _, more := range []string{"-do=switch", "-back"} {
			status, out, errs := runLeafsql(t.Context(), "migrate", "-dsn", dsn, more, "orders")
			if status != exitFailure || !strings.Contains(errs, "another leafsql migrate is changing ") || strings.Contains(out, "TRIGGER `") && more == "-do=switch" {
				t.Errorf("migrate %s: status %d, want %d and the reason in the error\n%s%s", more, status, exitFailure, errs, out)
			}
		}
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "switch", "users")
		goOn()
		if n := countGuards(t, db); n != 2 {
			t.Errorf("guards = %d, want those that the command did not change", n)
		}
	})
}

// TestSwitchBlocksOneTable: while the switch of several tables waits for a transaction on one of them,
// mysql-leaf fills the tables before it, and writers without leafsql fill the tables after it.
func TestSwitchBlocksOneTable(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		const key = " (id BIGINT AUTO_INCREMENT PRIMARY KEY)"
		db := open(t, dsn, "CREATE TABLE before_it"+key, "CREATE TABLE orders"+key, "CREATE TABLE then_it"+key)
		goOn := startWaitingSwitch(t, db, dsn, "INSERT INTO orders VALUES ()", "then_it", "before_it")
		exec(t, openLeaf(t, dsn+"?leafTables=before_it"), "INSERT INTO before_it VALUES ()")
		exec(t, db, "INSERT INTO then_it VALUES (), ()")
		goOn()
		if n := queryNumber(t, db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'then_it'"); n != 3 {
			t.Errorf("the next id of then_it is %d, want 3", n)
		}
	})
}

// TestMigrateLeavesGuards: a switch that fails drops the guards that it created, and no other guard.
func TestMigrateLeavesGuards(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
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
		tags, err := m.ReadTags(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.RunStep(t.Context(), tags[0], migrate.Switch, func(s migrate.Statement) {
			if strings.HasPrefix(s.SQL[0], "CREATE TRIGGER") && s.Server == set.Shards[1].Label {
				exec(t, other, s.SQL...) // another run creates it first, although a lock should prevent that
			}
		})
		if err == nil || !strings.Contains(err.Error(), "1359") {
			t.Errorf("switch with another run's guard: error %v, want 1359", err)
		}
		if here, there := countGuards(t, first), countGuards(t, other); here != 0 || there != 1 {
			t.Errorf("guards = %d of the failed run, %d of the other run, want 0 and 1", here, there)
		}
	})
}

// TestMigrateKnowsPrograms: from switch on, tables that a trigger, a routine or an event writes are refused,
// with the finding of leafsql check, before any table is changed.
func TestMigrateKnowsPrograms(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		elsewhere := databaseName(target.Database(t))
		const key = " (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)"
		here := databaseName(dsn)
		db := open(t, dsn, "CREATE TABLE orders"+key, "CREATE TABLE noted"+key, "CREATE TABLE filled"+key, "CREATE TABLE timed"+key,
			"CREATE TRIGGER note AFTER INSERT ON orders FOR EACH ROW INSERT INTO noted (n) VALUES (NEW.n)",
			"CREATE PROCEDURE "+elsewhere+".fill() INSERT INTO "+here+".filled (n) VALUES (1)",
			"CREATE EVENT time ON SCHEDULE EVERY 1 DAY DISABLE DO INSERT INTO timed (n) VALUES (1)")
		args := func(more ...string) []string { return append([]string{"migrate", "-dsn", dsn}, more...) }
		for table, want := range map[string]string{
			"noted": "trigger-inserts: ", "filled": "routine-inserts: ", "timed": "event-inserts: ",
		} {
			plan := mustRun(t, exitProblems, args("orders", table)...)
			refused := mustRun(t, exitProblems, args("-do", "switch", "orders", table)...)
			for _, out := range []string{plan, refused} {
				if !strings.Contains(out, "warning: "+want) || !strings.Contains(out, "Fix: ") || !strings.Contains(out, "-ignore-programs") {
					t.Errorf("%s: output = %s\nwant the warning %q with its fix", table, out, want)
				}
			}
			if n := countGuards(t, db); n != 0 {
				t.Fatalf("%s: guards = %d, want 0", table, n)
			}
			if all := runJSON[[]tagStatus](t, exitProblems, args("-do", "switch", table)...); len(all) != 1 || len(all[0].Findings) != 1 || all[0].Next != migrate.Switch {
				t.Errorf("%s: status = %+v, want one finding and the next step %s", table, all, migrate.Switch)
			}
		}
		mustRun(t, exitOK, args("-do", "switch", "orders")...)
		mustRun(t, exitOK, args("-ignore-programs", "-do", "switch", "noted")...)
		exec(t, db, "INSERT INTO noted VALUES (-100, 1)", "DELETE FROM noted") // rows with a key are allowed
		_, err := db.Exec("INSERT INTO orders VALUES (100, 1)")
		if !servererr.Is(err, refusedByGuard) || !strings.Contains(err.Error(), "leafsql: noted: ") || !strings.Contains(err.Error(), "a trigger") {
			t.Errorf("INSERT: error %v, want the guard's with the noted trigger", err)
		}
		mustRun(t, exitProblems, args("-do", "drop", "noted")...) // the trigger still exists
		exec(t, db, "DROP TRIGGER note")
		mustRun(t, exitOK, args("-do", "drop", "noted")...)
	})
}

// TestMigrateKnowsTheStore: a leaf_alloc that gives no ids has to be fixed before tables are switched to it.
func TestMigrateKnowsTheStore(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE users (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 0)")
	args := []string{"migrate", "-dsn", dsn, "-ignore-programs", "-do", "switch"}
	if out := mustRun(t, exitProblems, append(args, "orders", "users")...); !strings.Contains(out, "error: row-broken: ") {
		t.Errorf("output = %s\nwant %q", out, "error: row-broken: ")
	}
	mustRun(t, exitOK, append(args, "users")...)
	exec(t, db, "UPDATE leaf_alloc SET step = 10", "ALTER TABLE leaf_alloc ENGINE = MyISAM")
	if out := mustRun(t, exitProblems, append(args, "orders")...); !strings.Contains(out, "error: alloc-engine: ") {
		t.Errorf("output = %s\nwant %q", out, "error: alloc-engine: ")
	}
	exec(t, db, "ALTER TABLE leaf_alloc ENGINE = InnoDB")
	mustRun(t, exitOK, append(args, "orders")...)
	exec(t, db, "CREATE TABLE 订单 (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE items (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "ALTER TABLE leaf_alloc CONVERT TO CHARACTER SET latin1")
	out := mustRun(t, exitProblems, append(args, "订单", "items")...)
	if !strings.Contains(out, "error: alloc-column: ") || !strings.Contains(out, "cannot hold the tag 订单") || !strings.Contains(out, "switch is refused for 订单, and") {
		t.Errorf("output = %s\nwant %q", out, "error: alloc-column: ")
	}
	mustRun(t, exitOK, append(args, "items")...)
}

// TestMigrateSuspectsHiddenPrograms: programs that the user cannot see are not assumed to be absent.
func TestMigrateSuspectsHiddenPrograms(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		name := databaseName(dsn)
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE USER "+name+"@'%' IDENTIFIED BY 'Secret-9.word'", "GRANT SELECT, INSERT, UPDATE, CREATE, ALTER ON "+name+".* TO "+name+"@'%'")
		t.Cleanup(func() { db.Exec("DROP USER " + name + "@'%'") })
		if out := mustRun(t, exitProblems, "migrate", "-dsn", withUser(dsn, name, "Secret-9.word"), "-do", "switch", "orders"); !strings.Contains(out, "unknown: hidden: ") {
			t.Errorf("output = %s\nwant %q", out, "unknown: hidden: ")
		}
	})
}

// TestGuardMessageHasRoomForNames: the message has room for the longest names, with any letters.
func TestGuardMessageHasRoomForNames(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		for _, table := range []string{strings.Repeat("订", 40), strings.Repeat("t", 64), `of-%s`} {
			db := open(t, dsn, "CREATE TABLE "+quote.Name(table)+" (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
			mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "switch", table)
			_, err := db.Exec("INSERT INTO " + quote.Name(table) + " VALUES ()")
			name := []rune(table)
			if !servererr.Is(err, refusedByGuard) || !strings.Contains(err.Error(), "leafsql: "+string(name[:min(len(name), 25)])) || !strings.HasSuffix(err.Error(), "see leafsql check") {
				t.Errorf("%s: INSERT: error %v, want the guard's with the table's name", table, err)
			}
		}
	})
}

// TestMigrateSuspectsHiddenGuards: a guard that the user cannot see is not assumed to be absent, and another table's
// guard is not taken for the table's.
func TestMigrateSuspectsHiddenGuards(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		name := databaseName(dsn)
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE USER "+name+"@'%' IDENTIFIED BY 'Secret-9.word'", "GRANT SELECT, INSERT, UPDATE, CREATE, ALTER ON "+name+".* TO "+name+"@'%'")
		t.Cleanup(func() { db.Exec("DROP USER " + name + "@'%'") })
		refused := func(dsn, want string) {
			t.Helper()
			for _, more := range []string{"-json", "-do=unguard", "-back"} {
				status, out, errs := runLeafsql(t.Context(), "migrate", "-dsn", dsn, "-ignore-programs", more, "orders")
				if status != exitFailure || !strings.Contains(errs, want) || !strings.Contains(errs, ".orders") || out != "" {
					t.Errorf("migrate %s: status %d, want %d and the reason in the error\n%s%s", more, status, exitFailure, errs, out)
				}
			}
			if n := countGuards(t, db); n != 1 {
				t.Errorf("guards = %d, want those that the command did not change", n)
			}
		}
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "switch", "orders")
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "drop", "orders")
		refused(withUser(dsn, name, "Secret-9.word"), "has the trigger orders_needs_id: ")
		exec(t, db, "RENAME TABLE orders TO old_orders", "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
		refused(dsn, "the trigger orders_needs_id is not the one ")
	})
}

// TestGuardByHandIsRecognized: a guard is recognized in any spelling.
func TestGuardByHandIsRecognized(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn+"?sql_mode='ANSI_QUOTES'", "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE `of-a` (id BIGINT PRIMARY KEY)")
		for on, table := range map[string]string{
			"orders": "orders", "`orders`": "orders", `"orders"`: "orders", databaseName(dsn) + " .\n`orders`": "orders", `"of-a"`: "of-a", "`of-a`": "of-a",
		} {
			guard := quote.Name(table + "_needs_id")
			exec(t, db, "CREATE TRIGGER "+guard+" before  insert\nON "+on+" FOR EACH ROW\nIF COALESCE(NEW.id, 0) = 0 THEN SIGNAL SQLSTATE '45000'; END IF")
			if all := runJSON[[]tagStatus](t, exitProblems, "migrate", "-dsn", dsn, table); len(all) != 1 || all[0].Next != migrate.Unguard {
				t.Errorf("guard on %s: status = %+v, want the next step %s", on, all, migrate.Unguard)
			}
			exec(t, db, "DROP TRIGGER "+guard)
		}
	})
}

// TestPlanShowsEffectsOfGuard: on servers with the bug MDEV-36026 a plan shows the effects of the trigger, in the driver's
// words.
func TestPlanShowsEffectsOfGuard(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE source (n INT)")
		bug := hasSelectedKeysBug(t, db)
		for _, step := range []string{"-do=switch", "-do=drop", "-do=unguard"} {
			plan := mustRun(t, exitProblems, "migrate", "-dsn", dsn, "orders")
			mustRun(t, exitOK, "migrate", "-dsn", dsn, step, "orders")
			_, err := openLeaf(t, dsn+"?leafTables=orders").Exec("INSERT INTO orders (id) SELECT NULL FROM source")
			if refused := err != nil; strings.Contains(plan, "(MDEV-36026)") != bug || refused != (bug && step == "-do=drop") {
				t.Errorf("%s: INSERT: error %v, want one after the drop on servers with the bug alone (here: %t); plan:\n%s", step, err, bug, plan)
			}
		}
	})
}
