package worker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStaticWithoutStateWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		k, err := opened(t, "static(7)", Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Issued: nowMilli}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s := k.Status(); s.Worker != 7 || s.Start.After(nowMilli()) || s.Ahead != 0 {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(log.String(), "only the clock protects") {
			t.Errorf("no warning: %s, want text with \"only the clock protects\"", &log)
		}
		// With any directory for its state, or without state.
		for _, dir := range []string{"", t.TempDir()} {
			if _, err := opened(t, "static(7)", Config{State: dir}, nil); !errors.Is(err, errInUse) {
				t.Errorf("the same worker id again: %v, want errInUse", err)
			}
		}
		time.Sleep(time.Hour)
		if s := k.Status(); s.Phase != phaseHolding {
			t.Errorf("Status() = %+v, want Phase = %v", s, phaseHolding)
		}
		k.Close()
		last := nowMilli()
		again, err := opened(t, "static(7)", Config{}, nil)
		if err != nil || !again.Status().Start.After(last) {
			t.Fatalf("after Close: err = %v, Status() = %+v, want a start after %v", err, again.Status(), last)
		}
	})
}

func TestFileGuardsClockAndProcess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		k, err := opened(t, "static(3)", Config{State: dir, Issued: nowMilli}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 3*time.Second || waited > 4*time.Second {
			t.Errorf("waited %v for an unknown history of 3 s, want waited at least 3s and waited at most 4s", waited)
		}
		if _, err := opened(t, "static(3)", Config{State: dir}, nil); !errors.Is(err, errInUse) {
			t.Errorf("a second process: %v, want errInUse", err)
		}
		time.Sleep(10 * time.Second)
		if left := k.Status().Limit.Sub(nowMilli()); left < 1900*time.Millisecond || left > 3*time.Second {
			t.Errorf("the limit is %v ahead, want left at least 1900ms and left at most 3s", left)
		}
		k.Close()
		began = time.Now()
		again, err := opened(t, "static(3)", Config{State: dir}, nil)
		if err != nil || time.Since(began) > time.Second {
			t.Fatalf("after a clean end: %v after %v, want time.Since(began) at most 1s and no error", err, time.Since(began))
		}
		again.Close()
	})
	// The clock was set back: both this bubble and the one above begin in the year 2000.
	synctest.Test(t, func(t *testing.T) {
		_, err := opened(t, "static(3)", Config{State: dir}, nil)
		if e, ok := errors.AsType[*UnavailableError](err); !ok || e.Reason != "ahead" || time.Until(e.Until) < 10*time.Second {
			t.Errorf("with the clock set back: %v, want ok = true, e.Reason = \"ahead\" and time.Until(e.Until) at least 10s", err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "worker-3.json"), []byte(`{"nonce":"`), 0o644); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := opened(t, "static(3)", Config{State: dir}, nil); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("a corrupt file: %v, want an error with \"remove the file\"", err)
		}
	})
}

func TestFixedSourcesReadTheirWorkerID(t *testing.T) {
	t.Setenv("LEAF_TEST_WORKER", " 12 ")
	t.Setenv("LEAF_TEST_NONSENSE", "twelve")
	k, err := opened(t, "env(LEAF_TEST_WORKER)", Config{}, nil)
	if err != nil || k.Status().Worker != 12 {
		t.Errorf("env: %v, want k.Status().Worker = 12 and no error", err)
	}
	for host, want := range map[string]int{"shop-3": 3, "shop-12.shop.default.svc": 12, "node007": 7} {
		if n, err := trailingNumber(host); err != nil || n != want {
			t.Errorf("%s: trailingNumber(host) = %d, %v, want %v and no error", host, n, err, want)
		}
	}
	if _, err := trailingNumber("shop"); err == nil || !strings.Contains(err.Error(), "; use ") {
		t.Errorf("a host name without a number: %v, want an error with \"; use \"", err)
	}
	for spec, want := range map[string]string{
		"static(x)":               "not a worker id",
		"static(-1)":              "not a worker id",
		"static(1024)":            "does not fit the layout",
		"env(LEAF_TEST_NONE)":     "not set",
		"env(LEAF_TEST_NONSENSE)": "not a worker id",
		"ordinal(3)":              "takes no address",
	} {
		if _, err := opened(t, spec, Config{}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", spec, err, want)
		}
	}
}

// Only fixed worker ids use State. Other sources refuse it.
func TestNetworkRegistryRefusesState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j logRecorder
		dir := t.TempDir()
		mustHold(t, newFake(1).source(), Config{Workers: 1, State: dir, Logger: j.logger()})
		if n := len(readFiles(t, dir)); n != 0 || j.count("leafState has no effect") != 1 {
			t.Errorf("%d files, %s, want n = 0 and j.count(\"leafState has no effect\") = 1", n, j.String())
		}
	})
}
