//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// withStore adds a leafStore to a DSN.
func withStore(dsn, store string) string { return dsn + "&leafStore=" + url.QueryEscape(store) }

// TestInitConvertsStores: init -from-stores converts the stores of leafStore=A|B|C to one store, above all of their
// blocks. Afterwards a writer of the old version gets no ids from any store, and a writer of this version gets
// none from the old rows.
func TestInitConvertsStores(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		const block = 100_000_000
		description := func(place int) string {
			return fmt.Sprintf("leafsql: store %d of 3, blocks of 100000000, step 50, life 0123456789abcdef, set fedcba9876543210", place)
		}
		for _, c := range []struct {
			name  string
			named int // number of the three stores that are named: one may be lost
			to    int // the store that is kept; 3 is another database
		}{{"the first", 3, 0}, {"the second", 3, 1}, {"another one", 3, 3}, {"one is lost", 2, 0}} {
			t.Run(c.name, func(t *testing.T) {
				app := target.Database(t)
				db := open(t, app, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO orders VALUES (150000000, 1)")
				var stores []string
				for place := 1; place <= 4; place++ {
					stores = append(stores, target.Database(t))
					if place == 4 {
						break
					}
					open(t, stores[place-1], allocTable, // the second store uses its block of the second epoch, which the third store missed
						fmt.Sprintf("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('orders', %d, 0, '%s')", []int{3*block + 1, 4*block + 700, 2*block + 9}[place-1], description(place)))
				}
				old, leaf := strings.Join(stores[:c.named], "|"), withStore(app+"?leafTables=orders", stores[c.to])
				args := []string{"init", "-dsn", leaf, "-from-stores", old}

				planned := mustRun(t, exitProblems, append(args, "-dry-run")...)
				first := open(t, stores[0])
				if n := queryNumber(t, first, "SELECT COUNT(*) FROM leaf_alloc WHERE description LIKE '%given up'"); n != 0 || !strings.Contains(planned, "VALUES ('orders', 600000000, 50, 'leafsql@") {
					t.Fatalf("rows that a dry run gave up = %d, want 0 and a plan with orders:\n%s", n, planned)
				}
				for range 2 {
					if out := mustRun(t, exitOK, args...); !strings.HasPrefix(out, planned) {
						t.Errorf("output = %s\nwant it to begin with the plan:\n%s", out, planned)
					}
					if c.named < 3 {
						break
					}
				}
				if got := listFindings(runJSON[check.Report](t, exitOK, "check", "-dsn", leaf)); len(got) > 0 {
					t.Errorf("findings of check = %v, want none", got)
				}
				filled, err := sql.Open("mysql-leaf", leaf)
				if err != nil {
					t.Fatal(err)
				}
				defer filled.Close()
				exec(t, filled, "INSERT INTO orders (a) VALUES (2)")
				if id := queryNumber(t, db, "SELECT MAX(id) FROM orders"); id != 6*block {
					t.Errorf("first id = %d, want %d", id, 6*block)
				}

				for k := range c.named {
					store := open(t, stores[k])
					res, err := store.Exec("UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(GREATEST(max_id, 0) + 50) WHERE biz_tag = 'orders' AND step = 0 AND description = '" + description(k+1) + "'")
					if err != nil {
						t.Fatal(err)
					}
					if n, _ := res.RowsAffected(); n > 0 {
						t.Errorf("rows that an old writer updated in store %d = %d, want 0", k+1, n)
					}
					if k == c.to {
						continue
					}
					status, out, errs := runLeafsql(t.Context(), "tags", "-dsn", withStore(app+"?", stores[k]))
					if status != exitProblems || !strings.Contains(errs, "-from-stores with all 3") {
						t.Errorf("tags on store %d: status %d, want %d and -from-stores in the error\n%s%s", k+1, status, exitProblems, out, errs)
					}
					status, out, errs = runLeafsql(t.Context(), "init", "-dsn", withStore(app+"?leafTables=orders", stores[k]))
					if status != exitFailure || !strings.Contains(errs, "-from-stores with all 3") || strings.Contains(out+errs, "UPDATE") {
						t.Errorf("init on store %d: status %d, want %d and -from-stores in the error\n%s%s", k+1, status, exitFailure, out, errs)
					}
					report := runJSON[check.Report](t, exitProblems, "check", "-dsn", withStore(app+"?leafTables=none", stores[k]))
					if i := slices.IndexFunc(report.Findings, func(f check.Finding) bool { return f.Code == "row-broken" }); i < 0 || report.Findings[i].Severity != check.Warning {
						t.Errorf("findings of check = %+v, want the warning row-broken", report.Findings)
					}
				}
			})
		}
	})
}

// TestInitFromStoresCanRunAgain: an error at the second tag leaves the first tag unchanged, so init can be run
// again, even if one store is lost and the store that is kept is one of the old stores.
func TestInitFromStoresCanRunAgain(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		stores := []string{target.Database(t), target.Database(t)}
		var dbs []*sql.DB
		for place, store := range stores {
			db := open(t, store, allocTable)
			for _, tag := range []string{"a", "b"} {
				exec(t, db, fmt.Sprintf("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('%s', %d, 0, 'leafsql: store %d of 3, blocks of 100, step 10, life ab, set cd')", tag, 300+place*100+1, place+1))
			}
			dbs = append(dbs, db)
		}
		args := []string{"init", "-dsn", withStore(dsn+"?leafTables=none", stores[0]), "-from-stores", strings.Join(stores, "|")}
		exec(t, dbs[0], "CREATE TRIGGER fails BEFORE UPDATE ON leaf_alloc FOR EACH ROW IF NEW.biz_tag = 'b' AND NEW.step > 0 THEN SIGNAL SQLSTATE '45000'; END IF")
		if status, _, errs := runLeafsql(t.Context(), args...); status != exitFailure || !strings.Contains(errs, "run init again") {
			t.Fatalf("init: status %d, error %q, want %d and \"run init again\"", status, errs, exitFailure)
		}
		exec(t, dbs[0], "DROP TRIGGER fails")
		mustRun(t, exitOK, args...)
		if n := queryNumber(t, dbs[0], "SELECT COUNT(*) FROM leaf_alloc WHERE max_id = 600 AND step = 10 AND description LIKE 'leafsql@%'"); n != 2 {
			t.Errorf("rows above all blocks = %d, want 2", n)
		}
	})
}

// TestInitFromStoresRefuses: init changes no rows that do not show which ids are taken.
func TestInitFromStoresRefuses(t *testing.T) {
	a, b := mysqltest.Database(t), mysqltest.Database(t)
	db := open(t, a, allocTable)
	open(t, b)
	leaf := withStore(a+"?leafTables=none", a)
	for row, want := range map[string]string{
		"": "no row of several stores",
		"5, 0, 'leafsql: store 1 of 3, blocks of 100000000, step 10, life a, set b'":    "name the other stores in -from-stores as well",
		"5, 0, 'leafsql: store 1 of 2, blocks of many'":                                 "cannot be read",
		"NULL, 0, 'leafsql: store 1 of 2, blocks of 100000000, step 10, life a, set b'": "cannot be read",
	} {
		exec(t, db, "ALTER TABLE leaf_alloc MODIFY max_id BIGINT", "DELETE FROM leaf_alloc")
		if row != "" {
			exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('a', "+row+")")
		}
		if status, out, errs := runLeafsql(t.Context(), "init", "-dsn", leaf, "-from-stores", a); status != exitFailure || !strings.Contains(errs, want) || strings.Contains(out, "INSERT") {
			t.Errorf("%s: init: status %d, want %d and the error %q\n%s%s", row, status, exitFailure, want, out, errs)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc WHERE step > 0"); n != 0 {
			t.Errorf("%s: changed rows = %d, want 0", row, n)
		}
	}
	if status, _, errs := runLeafsql(t.Context(), "init", "-dsn", leaf, "-from-stores", a+"|"+b); status != exitFailure || !strings.Contains(errs, "leaf_alloc") {
		t.Errorf("database without leaf_alloc: status %d, error %q, want %d and the table", status, errs, exitFailure)
	}
	for _, args := range []string{"check", "init", "tags", "workers"} {
		if status, _, errs := runLeafsql(t.Context(), args, "-dsn", withStore(a+"?leafTables=none", a+"|"+b)); status != exitFailure || !strings.Contains(errs, "run leafsql init -from-stores 'A|B|C'") {
			t.Errorf("%s of several stores: status %d, error %q, want %d and -from-stores", args, status, errs, exitFailure)
		}
	}
}
