//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/migrate"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/testutil/leaftest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// writers insert rows until they are stopped, and record the ids that they get.
type writers struct {
	stop    chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	ids     []int64
	refused int
	err     error
}

const refusedByGuard = 1644

func startWriters(dbs ...*sql.DB) *writers {
	w := &writers{stop: make(chan struct{})}
	for i := range 4 {
		w.running.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
				}
				res, err := dbs[i%len(dbs)].Exec("INSERT INTO orders (n) VALUES (?)", i)
				w.mu.Lock()
				if servererr.Is(err, refusedByGuard) {
					w.refused++
				} else if err != nil {
					w.err = errors.Join(w.err, err)
				} else if id, err := res.LastInsertId(); err == nil {
					w.ids = append(w.ids, id)
				}
				w.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
	}
	return w
}

// waitUntil waits until at least this many rows were inserted and refused.
func (w *writers) waitUntil(t *testing.T, told, refused int) {
	t.Helper()
	for {
		w.mu.Lock()
		enough, failed := len(w.ids) >= told && w.refused >= refused, w.err
		w.mu.Unlock()
		if failed != nil {
			t.Fatalf("writer failed: %v", failed)
		}
		if enough {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *writers) stopAll(t *testing.T) []int64 {
	t.Helper()
	close(w.stop)
	w.running.Wait()
	if w.err != nil {
		t.Errorf("writers failed: %v", w.err)
	}
	return w.ids
}

func openLeaf(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql-leaf", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestMigrateLosesNoRowUnderLoad moves two shards from AUTO_INCREMENT to leaf_alloc, back, and there again while writers
// write: no inserted row is lost, no id of leaf_alloc is on two shards, and the guard's error is the only one.
func TestMigrateLosesNoRowUnderLoad(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		const table = "CREATE TABLE orders (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY COMMENT 'it''s', n INT)"
		first, other := open(t, dsn, table), open(t, second, table, "INSERT INTO orders (id) VALUES (5000)")
		args := func(more ...string) []string {
			return append([]string{"migrate", "-dsn", dsn, "-shard", second}, append(more, "orders")...)
		}
		next := func(want string, status int, args []string) {
			t.Helper()
			if out := mustRun(t, status, args...); !strings.Contains(out, want) {
				t.Fatalf("leafsql %v = %s\nwant %q", args, out, want)
			}
		}
		old := startWriters(first, other)
		old.waitUntil(t, 20, 0)
		next("next is -do widen", exitProblems, args())
		if status, _, errs := runLeafsql(t.Context(), args("-do", "drop")...); status != exitFailure || !strings.Contains(errs, `"widen"`) {
			t.Fatalf("drop before widen: status %d, error %q, want %d and \"widen\"", status, errs, exitFailure)
		}
		next("next is -do switch", exitOK, args("-do", "widen"))
		next("next is -do drop", exitOK, args("-do", "switch"))
		old.waitUntil(t, 20, 1)
		told := old.stopAll(t)
		leaf := dsn + "?leafTables=orders"
		leaf2 := second + "?leafTables=orders&leafStore=" + strings.NewReplacer("/", "%2F", "?", "%3F", "&", "%26").Replace(dsn)
		one, two := openLeaf(t, leaf), openLeaf(t, leaf2)
		filled := startWriters(one, two)
		filled.waitUntil(t, 20, 0)
		ids := filled.stopAll(t)

		next("next is -do switch", exitOK, args("-back")) // and the old writers start again
		old = startWriters(first, other)
		old.waitUntil(t, 20, 0)
		next("next is -do drop", exitOK, args("-do", "switch"))
		told = append(told, old.stopAll(t)...)

		one.Close()
		two.Close()
		filled = startWriters(openLeaf(t, leaf), openLeaf(t, leaf2))
		next("next is -do unguard", exitOK, args("-do", "drop"))
		next("next is -do drop", exitOK, args("-back"))
		next("next is -do unguard", exitOK, args("-do", "drop"))
		next("done", exitOK, args("-do", "unguard"))
		next("done", exitOK, args())
		filled.waitUntil(t, 20, 0)
		ids = append(ids, filled.stopAll(t)...)

		slices.Sort(ids)
		if n := len(ids); len(slices.Compact(ids)) != n || n == 0 {
			t.Errorf("ids of leaf_alloc = %d with duplicates or none at all, want some, each once", n)
		}
		rows := queryNumber(t, first, "SELECT COUNT(*) FROM orders") + queryNumber(t, other, "SELECT COUNT(*) FROM orders")
		if want := int64(len(told) + len(ids) + 1); rows != want {
			t.Errorf("rows = %d, want the %d acknowledged ones", rows, want)
		}
		if _, err := first.Exec("INSERT INTO orders (n) VALUES (1)"); !servererr.Is(err, 1364) {
			t.Errorf("INSERT without leafsql: error %v, want 1364", err)
		}
		var typ, extra, comment string
		if err := first.QueryRow("SELECT column_type, extra, column_comment FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'id'").Scan(&typ, &extra, &comment); err != nil ||
			!strings.HasPrefix(typ, "bigint") || !strings.Contains(typ, "unsigned") || extra != "" || comment != "it's" {
			t.Errorf("key column = %s %s %q, %v, want an unsigned bigint without AUTO_INCREMENT and with its comment", typ, extra, comment, err)
		}
		mustRun(t, exitOK, "check", "-dsn", leaf, "-shard", second)
		if status, _, errs := runLeafsql(t.Context(), args("-back")...); status != exitFailure || !strings.Contains(errs, "AUTO_INCREMENT") {
			t.Errorf("-back after the last step: status %d, error %q, want %d and AUTO_INCREMENT", status, errs, exitFailure)
		}
	})
}

// TestMigrateResumes: a migration that was interrupted before any of its statements resumes at that point, and
// an interrupted switch does not affect writers.
func TestMigrateResumes(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		const table = "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, n INT)"
		first, other := open(t, dsn, table, "INSERT INTO orders (n) VALUES (1), (2)"), open(t, second, table)
		set, err := databases.Open(t.Context(), dsn, []string{second})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		m := &migrate.Migration{Set: set, Tables: []string{"orders"}}
		if err := m.Configure(); err != nil {
			t.Fatal(err)
		}
		interruptions := 0
		for allowed := 0; ; {
			tags, err := m.ReadTags(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			step := tags[0].Next()
			if step == migrate.Done {
				break
			}
			ctx, cancel := context.WithCancel(t.Context())
			ran := 0
			_, err = m.RunStep(ctx, tags[0], step, func(migrate.Statement) {
				if ran++; ran > allowed {
					cancel()
				}
			})
			cancel()
			if err == nil {
				allowed = 0
				continue
			}
			interruptions++
			allowed++
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v", step, err)
			}
			if step != migrate.Switch {
				continue
			}
			for _, db := range []*sql.DB{first, other} {
				exec(t, db, "INSERT INTO orders (n) VALUES (3)")
			}
		}
		if interruptions < 8 {
			t.Errorf("interruptions = %d, want at least 8", interruptions)
		}
		highest := max(queryNumber(t, first, "SELECT MAX(id) FROM orders"), queryNumber(t, other, "SELECT MAX(id) FROM orders"))
		if next := queryNumber(t, first, "SELECT max_id FROM leaf_alloc"); next <= highest {
			t.Errorf("next id = %d, want one above the key %d", next, highest)
		}
		mustRun(t, exitOK, "check", "-dsn", dsn+"?leafTables=orders", "-shard", second)
	})
}

// TestMigrateKeepsJavaLeafsRow: Java Leaf and mysql-leaf use the same row.
func TestMigrateKeepsJavaLeafsRow(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('shop-order', 1, 10)", "CREATE TABLE orders (id BIGINT PRIMARY KEY, n INT)")
		java := &leaftest.Segments{DB: db}
		insert := func(n int) {
			for range n {
				id, err := java.Next(t.Context(), "shop-order")
				if err != nil {
					t.Fatal(err)
				}
				exec(t, db, fmt.Sprintf("INSERT INTO orders VALUES (%d, 0)", id))
			}
		}
		insert(15)
		if status, _, errs := runLeafsql(t.Context(), "migrate", "-dsn", dsn, "orders"); status != exitFailure || !strings.Contains(errs, "segment(TAG)") {
			t.Errorf("migrate without the tag: status %d, error %q, want %d and segment(TAG)", status, errs, exitFailure)
		}
		rule := "orders::segment(shop-order)"
		if out := mustRun(t, exitOK, "migrate", "-dsn", dsn, rule); !strings.Contains(out, "Java Leaf") {
			t.Errorf("output = %s\nwant %q", out, "Java Leaf")
		}
		leaf := openLeaf(t, dsn+"?leafTables="+rule)
		for range 20 {
			exec(t, leaf, "INSERT INTO orders (n) VALUES (1), (1)")
			insert(3)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM orders"); n != 115 {
			t.Errorf("rows = %d, want 115", n)
		}
	})
}

// TestMigrateWaitsForTransactions: a switch waits for a transaction that has taken an AUTO_INCREMENT number and is not
// committed yet.
func TestMigrateWaitsForTransactions(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)")
		goOn := startWaitingSwitch(t, db, dsn, "INSERT INTO orders (n) VALUES (1), (1), (1)")
		goOn()
		if n := queryNumber(t, db, "SELECT max_id FROM leaf_alloc"); n != 4 {
			t.Errorf("next id = %d, want 4", n)
		}
	})
}

// TestMigrateAllowsReferencedKeys: rows of other tables that refer to the key do not prevent a migration.
func TestMigrateAllowsReferencedKeys(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		target.SkipUnless(t, "taking AUTO_INCREMENT off a column that a foreign key uses", 100300, 0)
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)", "INSERT INTO orders (n) VALUES (1)",
			"CREATE TABLE parts (id BIGINT PRIMARY KEY, o BIGINT, FOREIGN KEY (o) REFERENCES orders (id))", "INSERT INTO parts VALUES (1, 1)")
		for _, step := range []string{"-do=switch", "-do=drop", "-back", "-do=drop"} {
			mustRun(t, exitOK, "migrate", "-dsn", dsn, step, "orders")
		}
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do=unguard", "orders")
		if _, err := db.Exec("INSERT INTO parts VALUES (2, 2)"); err == nil {
			t.Error("INSERT without its parent row succeeded, want the foreign key's error")
		}
	})
}

// TestMigrateRefuses: a step at the wrong time, or one that is impossible, is an error with a hint.
func TestMigrateRefuses(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE narrow (id INT AUTO_INCREMENT PRIMARY KEY)")
	for args, want := range map[string]string{
		"":                         "no table is named",
		"nosuch":                   "no table nosuch",
		"-do switch -back orders":  "set one of them",
		"-do nosuch orders":        "the steps are widen, switch, drop and unguard",
		"orders -do nosuch":        "the steps are widen, switch, drop and unguard",
		"-do switch narrow":        `but "widen"`,
		"orders:id:snowflake(x,y)": "leafTables",
	} {
		status, out, errs := runLeafsql(t.Context(), append([]string{"migrate", "-dsn", dsn}, strings.Fields(args)...)...)
		if status != exitFailure || !strings.Contains(errs, want) || !strings.HasPrefix(errs, "leafsql: ") {
			t.Errorf("migrate %q: status %d, want %d and the error %q\n%s%s", args, status, exitFailure, want, errs, out)
		}
	}
	if out := mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "widen", "orders"); strings.Contains(out, "ALTER") || !strings.Contains(out, "next is -do switch") {
		t.Errorf("widen that is not needed: output = %s\nwant no ALTER, and switch as the next step", out)
	}
	if out := mustRun(t, exitOK, "migrate", "-dsn", dsn, "-back", "orders"); strings.Contains(out, "TRIGGER ") && strings.Contains(out, "DROP") || !strings.Contains(out, "next is -do switch") {
		t.Errorf("-back of a migration that has not begun: output = %s\nwant no DROP TRIGGER, and switch as the next step", out)
	}
	if out := mustRun(t, exitProblems, "migrate", "-keep-type", "-dsn", dsn, "narrow"); !strings.Contains(out, "next is -do switch") {
		t.Errorf("output = %s\nwant %q", out, "next is -do switch")
	}
}

// TestMigrateBackResumes: a -back that was interrupted between two tables resumes.
func TestMigrateBackResumes(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, "CREATE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT)", "CREATE TABLE users (id BIGINT PRIMARY KEY AUTO_INCREMENT)")
	mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "switch", "orders", "users")
	mustRun(t, exitOK, "migrate", "-dsn", dsn, "-back", "orders") // until the interruption
	for range 2 {
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-back", "orders", "users")
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()"); n != 0 {
			t.Errorf("guards = %d, want 0", n)
		}
	}
}

// TestPlanNamesShardsOfInterruptedStep: a plan names the shards on which the next step was done before it was interrupted.
func TestPlanNamesShardsOfInterruptedStep(t *testing.T) {
	dsn, second := mysqltest.Database(t), mysqltest.Database(t)
	const table = "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY)"
	open(t, dsn, table)
	open(t, second, table)
	both := []string{"migrate", "-dsn", dsn, "-shard", second}
	for _, step := range []string{"-do=widen", "-do=switch", "-do=drop", "-back", "-back", "-do=switch", "-do=drop", "-do=unguard"} {
		if plan := mustRun(t, exitProblems, append(both, "orders")...); strings.Contains(plan, "is incomplete") {
			t.Errorf("plan before %s = %s\nwant it complete", step, plan)
		}
		if plan := mustRun(t, exitOK, append([]string{"migrate", "-dsn", second, step}, "orders")...); step != "-do=unguard" && !strings.Contains(plan, "next is") {
			t.Fatalf("output of %s = %s\nwant the next step", step, plan)
		}
		plan := mustRun(t, exitProblems, append(both, "orders")...)
		if back := step == "-back"; !strings.Contains(plan, "is incomplete") || strings.Contains(plan, databaseName(second)+": "+databaseName(second)+".orders.") == back || strings.Contains(plan, databaseName(dsn)+": "+databaseName(dsn)+".orders.") != back {
			t.Errorf("plan after %s on one shard = %s\nwant it incomplete, with that shard's name", step, plan)
		}
		mustRun(t, exitOK, append(both, step, "orders")...)
	}
	mustRun(t, exitOK, append(both, "orders")...)
}

// TestMigrateBackShowsFinishedTables: if the migration of one table is complete, -back continues with the other tables and
// shows every statement of the way back for it.
func TestMigrateBackShowsFinishedTables(t *testing.T) {
	dsn, second := mysqltest.Database(t), mysqltest.Database(t)
	for _, on := range []string{dsn, second} {
		open(t, on, "CREATE TABLE a (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE b (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE c (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	}
	args := func(more ...string) []string {
		return append([]string{"migrate", "-dsn", dsn, "-shard", second}, more...)
	}
	mustRun(t, exitOK, args("-do", "switch", "a", "b", "c")...)
	mustRun(t, exitOK, args("-do", "drop", "a", "c")...)
	out := mustRun(t, exitOK, args("-do", "unguard", "a", "c")...)
	if strings.Contains(out, "Java Leaf") || strings.Count(out, "The way back: ") != 1 {
		t.Errorf("output after AUTO_INCREMENT = %s\nwant the way back once, without Java Leaf", out)
	}
	out = mustRun(t, exitOK, args("a", "c")...)
	if strings.Count(out, "If Java Leaf") != 1 || strings.Count(out, "MODIFY COLUMN `id` bigint") != 4 {
		t.Errorf("output for an unknown origin = %s\nwant Java Leaf once, and the ALTERs of four tables", out)
	}
	status, out, errs := runLeafsql(t.Context(), args("-back", "a", "b", "c")...)
	if status != exitFailure || strings.Count(errs, "leafsql: ") != 2 || strings.Count(out, "NOT NULL AUTO_INCREMENT") != 4 || !strings.Contains(out, databaseName(second)+"\n    ALTER TABLE") {
		t.Errorf("-back: status %d, error %q, want %d, two errors and the statements of the way back", status, errs, exitFailure)
	}
	if strings.Count(out, "DROP TRIGGER") != 2 || !strings.Contains(out, "b: next is -do switch") {
		t.Errorf("output = %s\nwant %q", out, "b: next is -do switch")
	}
}
