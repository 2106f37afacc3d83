//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/server"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// onStores is a DSN whose ids come from several databases.
func onStores(dsn string, stores ...string) string {
	return dsn + "&leafStore=" + url.QueryEscape(strings.Join(stores, "|"))
}

// TestSeveralStores: with leafStore=A|B|C the subcommands prepare, check, show and use all of
// the stores.
func TestSeveralStores(t *testing.T) {
	dsn, a, b, c := mysqltest.Database(t), mysqltest.Database(t), mysqltest.Database(t), mysqltest.Database(t)
	db := open(t, dsn, durable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO orders VALUES (150000000, 1)", "CREATE TABLE events (id BIGINT PRIMARY KEY)")
	leaf := onStores(dsn+"?leafTables=orders,events:id:snowflake", a, b, c)
	tables := func() (n int64) {
		for _, store := range []string{a, b, c} {
			n += number(t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '"+database(store)+"'")
		}
		return n
	}
	report := jsonOf[check.Report](t, mend, "check", "-dsn", leaf)
	if got := found(report); !slices.Equal(got, []string{"alloc-missing leaf_alloc", "alloc-missing leaf_alloc", "alloc-missing leaf_alloc", "leases-missing leaf_worker"}) || len(report.Stores) != 3 {
		t.Errorf("of nothing check finds %v", got)
	}
	planned := mustRun(t, mend, "init", "-dsn", leaf, "-dry-run")
	if strings.Count(planned, "CREATE TABLE") != 4 || !strings.Contains(planned, "-- in all 3 stores: add the row of 'orders'; its ids begin at 150000001 or above") {
		t.Errorf("planned is\n%s", planned)
	}
	for _, store := range []string{a, b, c} {
		if !strings.Contains(planned, "`"+database(store)+"`.`leaf_alloc`") {
			t.Errorf("%s is not in\n%s", store, planned)
		}
	}
	if n := tables(); n != 0 {
		t.Fatalf("a dry run left %d tables", n)
	}
	if done := mustRun(t, fine, "init", "-dsn", leaf); !strings.HasPrefix(done, planned) {
		t.Errorf("planned\n%sdone\n%s", planned, done)
	}
	if n := tables(); n != 4 {
		t.Errorf("init made %d tables", n)
	}
	if out := mustRun(t, fine, "init", "-dsn", leaf); !strings.Contains(out, "nothing to do") {
		t.Error(out)
	}
	if got := found(jsonOf[check.Report](t, fine, "check", "-dsn", leaf)); len(got) > 0 {
		t.Errorf("after init check finds %v", got)
	}
	filled, err := sql.Open("mysql-leaf", leaf)
	if err != nil {
		t.Fatal(err)
	}
	defer filled.Close()
	exec(t, filled, "INSERT INTO orders (a) VALUES (2)")
	if id := number(t, db, "SELECT MAX(id) FROM orders"); id < 300_000_000 || id > 600_000_000 {
		t.Errorf("the first id is %d", id)
	}
	filled.Close()

	// Keys that came past all stores.
	exec(t, db, "INSERT INTO orders VALUES (5000000000, 1)")
	report = jsonOf[check.Report](t, mend, "check", "-dsn", leaf)
	if got := found(report); !slices.Equal(got, []string{"row-too-low orders"}) || !strings.Contains(report.Findings[0].Fix, "leafsql init") || len(report.Findings[0].SQL) > 0 {
		t.Errorf("check finds %+v", report.Findings)
	}
	mustRun(t, fine, "init", "-dsn", leaf)
	if got := found(jsonOf[check.Report](t, fine, "check", "-dsn", leaf)); len(got) > 0 {
		t.Errorf("raised, check finds %v", got)
	}
	type row struct {
		Store, Tag string
		MaxID      int64 `json:"max_id,string"`
	}
	got := jsonOf[[]row](t, fine, "tags", "-dsn", leaf)
	if len(got) != 3 || got[0].Tag != "orders" || got[0].Store == got[1].Store || max(got[0].MaxID, got[1].MaxID, got[2].MaxID) <= 5_000_000_000 {
		t.Errorf("tags are %+v", got)
	}
	if out := mustRun(t, fine, "tags", "-dsn", leaf); !strings.Contains(out, "STORE") || strings.Count(out, "orders") != 3 {
		t.Error(out)
	}
	if got := jsonOf[[]holder](t, fine, "workers", "-dsn", leaf); len(got) != 0 {
		t.Errorf("workers are %+v", got)
	}

	s, err := server.New(server.Config{DSN: leaf})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest("GET", "/api/segment/get/orders", nil))
	if body, _ := io.ReadAll(answer.Body); answer.Code != 200 || len(body) < 10 {
		t.Errorf("serve answers %d %s", answer.Code, body)
	}

	// Another order is another registry of blocks.
	swapped := onStores(dsn+"?leafTables=orders", b, a, c)
	if status, out, errs := leafsql(t.Context(), "check", "-dsn", swapped); status == fine || !strings.Contains(out+errs, "same order") {
		t.Errorf("in another order: %d\n%s%s", status, out, errs)
	}
}

// TestStoreAway: one of several stores that does not answer is said by name, what can be
// told of the others is told, and nothing is written to a part of them.
func TestStoreAway(t *testing.T) {
	dsn, a, b := mysqltest.Database(t), mysqltest.Database(t), mysqltest.Database(t)
	open(t, dsn, durable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)")
	tables := dsn + "?leafTables=orders"
	mustRun(t, fine, "init", "-dsn", onStores(tables, a, b))
	cut := "root:secret@tcp(127.0.0.1:1)/" + database(b)
	leaf := onStores(tables, a, cut)
	if got := found(jsonOf[check.Report](t, mend, "check", "-dsn", leaf)); !slices.Equal(got, []string{"store-away"}) {
		t.Errorf("check finds %v", got)
	}
	status, out, errs := leafsql(t.Context(), "tags", "-dsn", leaf)
	if status != unclear || strings.Count(out, "orders") != 1 || !strings.Contains(errs, "127.0.0.1:1/") || strings.Contains(errs, "secret") {
		t.Errorf("tags: %d\n%s%s", status, out, errs)
	}
	for _, args := range []string{"init -dsn %s", "migrate -dsn %s -do switch counted"} {
		args = fmt.Sprintf(args, leaf)
		if strings.HasPrefix(args, "migrate") {
			open(t, dsn, "CREATE TABLE counted (id BIGINT PRIMARY KEY AUTO_INCREMENT)")
			args = strings.Replace(args, "leafTables=orders", "leafTables=counted", 1)
		}
		status, out, errs := leafsql(t.Context(), strings.Fields(args)...)
		if status != unclear || !strings.Contains(errs, "all stores of leafStore have to answer") || strings.Contains(out, "TRIGGER") {
			t.Errorf("%s: %d\n%s%s", args, status, out, errs)
		}
	}
	if status, _, errs := leafsql(t.Context(), "check", "-dsn", onStores(tables, cut, cut+"2")); status != unclear || !strings.Contains(errs, "cannot connect") {
		t.Errorf("without any store: %d %s", status, errs)
	}
}

// TestMigrateSeveralStores: the steps are the same where several stores give the ids.
func TestMigrateSeveralStores(t *testing.T) {
	dsn, a, b := mysqltest.Database(t), mysqltest.Database(t), mysqltest.Database(t)
	db := open(t, dsn, "CREATE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT)", "INSERT INTO orders VALUES (7, 1)")
	leaf := onStores(dsn+"?leafTables=orders", a, b)
	if out := mustRun(t, mend, "migrate", "-dsn", leaf, "orders"); !strings.Contains(out, "-- in all 2 stores: add the row of 'orders'") {
		t.Error(out)
	}
	for _, step := range []string{"switch", "drop", "unguard"} {
		mustRun(t, fine, "migrate", "-dsn", leaf, "-do", step, "orders")
	}
	filled, err := sql.Open("mysql-leaf", leaf)
	if err != nil {
		t.Fatal(err)
	}
	defer filled.Close()
	exec(t, filled, "INSERT INTO orders (a) VALUES (2)")
	if id := number(t, db, "SELECT MAX(id) FROM orders"); id <= 7 {
		t.Errorf("the first id is %d", id)
	}
}
