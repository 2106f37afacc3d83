//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// TestWorkers: who holds a worker id is shown until it is given back.
func TestWorkers(t *testing.T) {
	s := nacostest.Start(t, nacostest.V3, nacostest.Options{})
	source := "nacos(" + s.Addr() + ")"
	open, err := worker.Lookup(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"workers", "-dsn", "app@tcp(127.0.0.1:3306)/shop?leafWorker=" + source + "&leafSnowflake=41-5-12"}
	if got := jsonOf[[]holder](t, fine, args...); len(got) != 0 {
		t.Errorf("of an empty registry %+v", got)
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
	got := jsonOf[[]holder](t, fine, args...)
	if len(got) != 1 || got[0].Worker != status.Worker || got[0].Owner != "shop-3:4711" || got[0].Over || time.Until(got[0].Until) > 2*time.Minute {
		t.Errorf("%+v, and worker id %d is held", got, status.Worker)
	}
	if out := mustRun(t, fine, args...); !strings.Contains(out, "shop-3:4711") || !strings.Contains(out, "31 of 32 worker ids are free") {
		t.Error(out)
	}
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	if got := jsonOf[[]holder](t, fine, args...); len(got) != 0 {
		t.Errorf("given back, it is still of %+v", got)
	}
	s.Kill9()
	if status, _, errs := leafsql(t.Context(), args...); status != unclear || !strings.Contains(errs, "cannot be said") && !strings.HasPrefix(errs, "leafsql: ") {
		t.Errorf("without the registry: %d %s", status, errs)
	}
}

func TestWorkersRefuses(t *testing.T) {
	for parameters, want := range map[string]string{
		"":                                     "no leafWorker",
		"leafWorker=static(7)":                 "no registry",
		"leafWorker=nosuch(x)":                 "registered are",
		"leafWorker=static(7)&leafSnowflake=1": "layout",
	} {
		status, out, errs := leafsql(t.Context(), "workers", "-dsn", "app@tcp(127.0.0.1:3306)/shop?"+parameters)
		if status != unclear || !strings.Contains(errs, want) {
			t.Errorf("%q: %d\n%s%s", parameters, status, errs, out)
		}
	}
}
