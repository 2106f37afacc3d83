//go:build unix

package main

import (
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/server"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestOneOfSeveralStores: who names one store of several is told to name all, by each
// subcommand in the same words, and nothing is proposed, or done, that changes its row. Where
// somebody has done it, the other stores' ids go on, and the way out mends that one.
func TestOneOfSeveralStores(t *testing.T) {
	const all = "name all 3 of them in leafStore, in their order"
	dsn, a, b, c := mysqltest.Database(t), mysqltest.Database(t), mysqltest.Database(t), mysqltest.Database(t)
	db := open(t, dsn, durable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE counted (id BIGINT PRIMARY KEY)")
	right := onStores(dsn+"?leafTables=orders", a, b, c)
	mustRun(t, fine, "init", "-dsn", right)
	exec(t, db, "INSERT INTO orders VALUES (150000000, 1)") // the row of the first store is below
	alone := onStores(dsn+"?leafTables=orders", a)
	ids := func(leaf string) (int, string) {
		s, err := server.New(server.Config{DSN: leaf})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest("GET", "/api/segment/get/orders", nil))
		body, _ := io.ReadAll(answer.Body)
		return answer.Code, string(body)
	}
	said := func(who, text string) {
		t.Helper()
		if !strings.Contains(text, "its row is that of store 1 of 3") && !strings.Contains(text, "Its row is that of store 1 of 3") || !strings.Contains(text, all) || strings.Contains(text, "UPDATE") || strings.Contains(text, "INSERT INTO") {
			t.Errorf("%s says\n%s", who, text)
		}
	}
	for _, step := range []string{"0", "1000"} {
		exec(t, db, "UPDATE `"+database(a)+"`.leaf_alloc SET step = "+step)
		code, body := ids(onStores(dsn+"?", a))
		if said("serve", body); code != 500 {
			t.Error(code)
		}
		status, out, errs := leafsql(t.Context(), "tags", "-dsn", alone)
		if said("tags", errs); status != mend || strings.Count(out, "orders") != 1 {
			t.Errorf("tags: %d\n%s", status, out)
		}
		for _, args := range []string{"check -dsn " + alone, "init -dsn " + alone, "migrate -dsn " + alone + " orders"} {
			status, out, errs := leafsql(t.Context(), strings.Fields(args)...)
			if said(args, out+errs); status == fine {
				t.Errorf("%s: %d", args, status)
			}
		}
		report := jsonOf[check.Report](t, mend, "check", "-dsn", onStores(dsn+"?leafTables=counted:id:snowflake", a))
		if i := slices.IndexFunc(report.Findings, func(f check.Finding) bool { return f.Code == "row-broken" }); i < 0 {
			t.Errorf("where no table takes the ids, check finds %v", found(report))
		} else if f := report.Findings[i]; f.Tag != "orders" || f.Severity != check.Warning || len(f.SQL) > 0 {
			t.Errorf("%+v", f)
		} else {
			said("check", f.Message+" "+f.Fix)
		}
	}

	const way = "UPDATE `%s`.`leaf_alloc` SET step = 0 WHERE biz_tag = 'orders'"
	text := strings.ReplaceAll(way, "%s", database(a))
	if code, body := ids(right); code != 200 {
		t.Errorf("serve: %d %s", code, body)
	}
	status, out, errs := leafsql(t.Context(), "tags", "-dsn", right)
	if status != mend || strings.Count(out, "orders") != 3 || !strings.Contains(errs, " of store 1 of 3: its step is 1000") || !strings.Contains(errs, text) {
		t.Errorf("tags: %d\n%s%s", status, out, errs)
	}
	mustRun(t, fine, "init", "-dsn", right) // above the key, in the other stores
	report := jsonOf[check.Report](t, mend, "check", "-dsn", right)
	if got := found(report); !slices.Equal(got, []string{"row-broken orders"}) || report.Findings[0].Severity != check.Error || report.Findings[0].Server != report.Stores[0].Server || !strings.Contains(report.Findings[0].Fix, text) {
		t.Errorf("check finds %+v", report.Findings)
	}
	exec(t, db, text)
	if got := found(jsonOf[check.Report](t, fine, "check", "-dsn", right)); len(got) > 0 {
		t.Errorf("mended, check finds %v", got)
	}
	if out := mustRun(t, fine, "tags", "-dsn", right); strings.Count(out, "orders") != 3 {
		t.Error(out)
	}
}
