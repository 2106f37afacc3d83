//go:build unix

package main

import (
	"database/sql"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestWorkersShowsHolder: the holder of a worker id is shown until it releases the id.
func TestWorkersShowsHolder(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	source := "redis(" + s.Addr + ")"
	open, err := worker.Lookup(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"workers", "-dsn", "app@tcp(127.0.0.1:3306)/shop?leafWorker=" + source + "&leafSnowflake=41-5-12"}
	if status, out, errs := runLeafsql(t.Context(), args...); status != exitFailure || out != "" || !strings.Contains(errs, "there is no registry of worker ids") {
		t.Errorf("workers without a registry: status %d, output %q, error %q, want %d and an error", status, out, errs, exitFailure)
	}
	keeper, err := worker.Keep(open, worker.Config{Workers: 32, NewRegistry: true, Owner: "shop-3:4711"})
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	status, err := keeper.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := runJSON[[]holder](t, exitOK, args...)
	if len(got) != 1 || got[0].Worker != status.Worker || got[0].Owner != "shop-3:4711" || got[0].Expired || time.Until(got[0].Until) > 2*time.Minute {
		t.Errorf("holders = %+v, want shop-3:4711 with the worker id %d", got, status.Worker)
	}
	if out := mustRun(t, exitOK, args...); !strings.Contains(out, "shop-3:4711") || !strings.Contains(out, "31 of 32 worker ids are free") {
		t.Errorf("output = %s\nwant %q", out, "shop-3:4711")
	}
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	if got := runJSON[[]holder](t, exitOK, args...); len(got) != 0 {
		t.Errorf("holders after the release = %+v, want none", got)
	}
	s.Kill9()
	if status, _, errs := runLeafsql(t.Context(), args...); status != exitFailure || !strings.Contains(errs, "cannot be listed") && !strings.HasPrefix(errs, "leafsql: ") {
		t.Errorf("workers without the registry: status %d, error %q, want %d and an error of leafsql", status, errs, exitFailure)
	}
}

// TestLeafWorkerIsHandledLikeLeafAlloc: leaf_worker, the default source of worker ids, is handled like leaf_alloc: check reports
// it missing, init creates it, workers reads it, and the SQL of a finding fixes it.
func TestLeafWorkerIsHandledLikeLeafAlloc(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE events (id BIGINT PRIMARY KEY, a INT)")
		leaf := dsn + "?leafTables=events:id:snowflake"
		if status, _, errs := runLeafsql(t.Context(), "workers", "-dsn", leaf); status != exitFailure || !strings.Contains(errs, "create it with leafsql init") {
			t.Errorf("workers without the table: status %d, error %q, want %d and leafsql init", status, errs, exitFailure)
		}
		if got := listFindings(runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)); !slices.Equal(got, []string{"leases-missing leaf_worker"}) {
			t.Errorf("findings without the table = %v, want leases-missing leaf_worker", got)
		}
		if got := listFindings(runJSON[check.Report](t, exitOK, "check", "-dsn", leaf+"&leafCreate=true")); !slices.Equal(got, []string{"leases-missing leaf_worker"}) {
			t.Errorf("findings with leafCreate = %v, want leases-missing leaf_worker", got)
		}
		planned := mustRun(t, exitProblems, "init", "-dsn", leaf, "-dry-run")
		if strings.Count(planned, "CREATE TABLE") != 1 || !strings.Contains(planned, "`leaf_worker`") {
			t.Errorf("plan = %s\nwant one CREATE TABLE of leaf_worker", planned)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"); n != 1 {
			t.Fatalf("tables after a dry run = %d, want 1", n)
		}
		if done := mustRun(t, exitOK, "init", "-dsn", leaf); !strings.HasPrefix(done, planned) {
			t.Errorf("output = %s\nwant it to begin with the plan:\n%s", done, planned)
		}
		if out := mustRun(t, exitOK, "init", "-dsn", leaf); !strings.Contains(out, "nothing to do") {
			t.Errorf("output = %s\nwant %q", out, "nothing to do")
		}
		if got := listFindings(runJSON[check.Report](t, exitOK, "check", "-dsn", leaf)); len(got) > 0 {
			t.Errorf("findings after init = %v, want none", got)
		}
		if got := runJSON[[]holder](t, exitOK, "workers", "-dsn", leaf); len(got) != 0 {
			t.Errorf("holders in an empty table = %+v, want none", got)
		}

		exec(t, db, "UPDATE leaf_worker SET hw = 1 WHERE worker_id >= 0") // as if the wait after init were over
		filled, err := sql.Open("mysql-leaf", leaf)
		if err != nil {
			t.Fatal(err)
		}
		defer filled.Close()
		exec(t, filled, "INSERT INTO events (a) VALUES (1)")
		id := queryNumber(t, db, "SELECT id FROM events")
		for _, dsn := range []string{leaf, dsn, dsn + "?leafWorker=mysql()", dsn + "?leafStore=" + url.QueryEscape(dsn)} {
			got := runJSON[[]holder](t, exitOK, "workers", "-dsn", dsn)
			if len(got) != 1 || int64(got[0].Worker) != id>>12&1023 || got[0].Expired || !strings.Contains(got[0].Owner, strconv.Itoa(os.Getpid())) || time.Until(got[0].Until) > 2*time.Minute {
				t.Errorf("%s: holders = %+v, want this process with the worker id %d", dsn, got, id>>12&1023)
			}
		}
		if out := mustRun(t, exitOK, "workers", "-dsn", leaf); !strings.Contains(out, "1,023 of 1,024 worker ids are free") || !strings.Contains(out, "leaf_worker") {
			t.Errorf("output = %s\nwant %q", out, "1,023 of 1,024 worker ids are free")
		}
		filled.Close()
		if got := runJSON[[]holder](t, exitOK, "workers", "-dsn", leaf); len(got) != 0 {
			t.Errorf("holders after the release = %+v, want none", got)
		}
	})
}

// TestCheckFindsMissingRightsOnLeafWorker: missing rights on leaf_worker are found, whether the table exists or not, and the
// SQL of the finding grants them.
func TestCheckFindsMissingRightsOnLeafWorker(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		name := databaseName(dsn)
		db := open(t, dsn, "CREATE TABLE events (id BIGINT PRIMARY KEY, a INT)",
			"CREATE USER "+name+"@'%' IDENTIFIED BY 'Secret-9.word'",
			"GRANT SELECT, INSERT, TRIGGER ON "+name+".events TO "+name+"@'%'", "GRANT CREATE TEMPORARY TABLES ON "+name+".* TO "+name+"@'%'")
		t.Cleanup(func() { db.Exec("DROP USER " + name + "@'%'") })
		leaf := withUser(dsn, name, "Secret-9.word") + "?leafTables=events:id:snowflake"
		mended := func(want string) {
			t.Helper()
			report := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
			f := report.Findings[0]
			if f.Code != "rights" || !strings.Contains(f.Message, want) {
				t.Fatalf("findings = %+v, want rights with %q", report.Findings, want)
			}
			exec(t, db, f.SQL...)
			if got := listFindings(runJSON[check.Report](t, exitFailure, "check", "-dsn", leaf)); !slices.Equal(got, []string{"hidden"}) {
				t.Errorf("findings with the rights = %v, want hidden", got)
			}
		}
		mended("SELECT and INSERT and UPDATE on leaf_worker")
		exec(t, db, "REVOKE UPDATE ON "+name+".leaf_worker FROM "+name+"@'%'")
		mended("lacks UPDATE on leaf_worker")
		filled, err := sql.Open("mysql-leaf", leaf+"&leafNewRegistry=true")
		if err != nil {
			t.Fatal(err)
		}
		defer filled.Close()
		exec(t, filled, "INSERT INTO events (a) VALUES (1)")
	})
}

// TestCheckReadsTheRegistry: check finds that a registry of worker ids is missing or unreachable, and still writes its report.
func TestCheckReadsTheRegistry(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	target := mysqltest.Targets(t)[0]
	dsn := target.Database(t)
	open(t, dsn, allocTable, "CREATE TABLE events (id BIGINT PRIMARY KEY)")
	leaf := dsn + "?leafTables=events::snowflake&leafWorker=redis(" + s.Addr + ")"
	codes := func(report check.Report) (found []string) {
		for _, f := range report.Findings {
			if strings.HasPrefix(f.Code, "registry-") {
				found = append(found, f.Code+" "+string(f.Severity))
			}
		}
		return found
	}
	for range 2 { // the first check writes nothing
		if got := codes(runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)); !slices.Equal(got, []string{"registry-missing warning"}) {
			t.Errorf("findings without a registry = %v, want registry-missing", got)
		}
	}
	mustRun(t, exitOK, "init", "-dsn", leaf, "-new-registry")
	status, out, errs := runLeafsql(t.Context(), "check", "-dsn", leaf, "-json")
	if strings.Contains(out, "registry-") || errs != "" {
		t.Errorf("check after init: status %d, %s%s\nwant no finding about the registry", status, out, errs)
	}
	s.Kill9()
	report := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
	if got := codes(report); !slices.Equal(got, []string{"registry-unreachable error"}) || len(report.Tables) != 1 {
		t.Errorf("findings while the registry is away = %v, tables %v; want registry-unreachable in a whole report", got, report.Tables)
	}
	if status, out, _ := runLeafsql(t.Context(), "check", "-dsn", leaf); status != exitProblems || !strings.Contains(out, "error: registry-unreachable") || !strings.Contains(out, s.Addr) {
		t.Errorf("check while the registry is away: status %d, want %d and the address of the registry\n%s", status, exitProblems, out)
	}
	if got := codes(runJSON[check.Report](t, exitOK, "check", "-dsn", strings.Replace(leaf, "redis("+s.Addr, "static(7", 1))); len(got) != 0 {
		t.Errorf("findings with a fixed worker id = %v, want none about a registry", got)
	}
}

func TestWorkersRefuses(t *testing.T) {
	for parameters, want := range map[string]string{
		"leafWorker=mysql(":                    "name(address)",
		"leafWorker=static(7)":                 "no registry",
		"leafWorker=nosuch(x)":                 "registered are",
		"leafWorker=static(7)&leafSnowflake=1": "layout",
	} {
		status, out, errs := runLeafsql(t.Context(), "workers", "-dsn", "app@tcp(127.0.0.1:3306)/shop?"+parameters)
		if status != exitFailure || !strings.Contains(errs, want) {
			t.Errorf("workers with %q: status %d, want %d and the error %q\n%s%s", parameters, status, exitFailure, want, errs, out)
		}
	}
}
