package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func open(t *testing.T, spec string, cfg Config) (*Lease, error) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	l, err := Open(t.Context(), spec, cfg)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

func TestStaticWithoutState(t *testing.T) {
	var log strings.Builder
	l, err := open(t, "static(7)", Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if l.Worker() != 7 || l.Start() > l.Now() || l.Limit() > l.Now() || l.Ahead() != 0 {
		t.Errorf("worker %d, start %d, limit %d at %d", l.Worker(), l.Start(), l.Limit(), l.Now())
	}
	if !strings.Contains(log.String(), "guarded by nothing but the clock") {
		t.Errorf("no warning: %s", &log)
	}
	// Wherever its state is, or without any.
	for _, dir := range []string{"", t.TempDir()} {
		if _, err := open(t, "static(7)", Config{State: dir}); !errors.Is(err, ErrInUse) {
			t.Errorf("the same worker id again: %v", err)
		}
	}
	last := l.Limit()
	if err := l.Bind(func() int64 { return last }); err != nil {
		t.Fatal(err)
	}
	if l.Bind(func() int64 { return 0 }) == nil {
		t.Error("bound twice")
	}
	l.Close()
	if !errors.Is(l.Err(), ErrClosed) || l.Limit() > 0 {
		t.Errorf("after Close: limit %d, err %v", l.Limit(), l.Err())
	}
	again, err := open(t, "static(7)", Config{})
	if err != nil || again.Start() <= last {
		t.Fatalf("after Close: %v, start %d, issued up to %d", err, again.Start(), last)
	}
}

func TestFileGuardsClockAndProcess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l, err := open(t, "static(3)", Config{State: dir})
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 3*time.Second || waited > 4*time.Second {
			t.Errorf("waited %v for an unknown history of 3 s", waited)
		}
		if _, err := open(t, "static(3)", Config{State: dir}); !errors.Is(err, ErrInUse) {
			t.Errorf("a second process: %v", err)
		}
		time.Sleep(10 * time.Second)
		if l.Err() != nil || l.Limit() < l.Now()+1900 || l.Limit() > l.Now()+3000 {
			t.Errorf("limit %d at %d, err %v", l.Limit(), l.Now(), l.Err())
		}
		l.Bind(l.Now)
		l.Close()
		began = time.Now()
		again, err := open(t, "static(3)", Config{State: dir})
		if err != nil || time.Since(began) > time.Second {
			t.Fatalf("after a clean end: %v after %v", err, time.Since(began))
		}
		again.Close()
	})
	// The clock was set back: the bubble above began in the year 2000, as this one.
	synctest.Test(t, func(t *testing.T) {
		var clock *ClockError
		if _, err := open(t, "static(3)", Config{State: dir}); !errors.As(err, &clock) || clock.Behind < 10*time.Second {
			t.Errorf("with the clock set back: %v", err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "worker-3.json"), []byte(`{"nonce":"`), 0o644); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := open(t, "static(3)", Config{State: dir}); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("a corrupt file: %v", err)
		}
	})
}

func TestFixedSources(t *testing.T) {
	t.Setenv("LEAF_TEST_WORKER", " 12 ")
	t.Setenv("LEAF_TEST_NONSENSE", "twelve")
	l, err := open(t, "env(LEAF_TEST_WORKER)", Config{})
	if err != nil || l.Worker() != 12 {
		t.Errorf("env: %v", err)
	}
	for host, want := range map[string]int{"shop-3": 3, "shop-12.shop.default.svc": 12, "node007": 7} {
		if n, err := ordinal(host); err != nil || n != want {
			t.Errorf("%s: %d, %v", host, n, err)
		}
	}
	if _, err := ordinal("shop"); err == nil {
		t.Error("a host name without a number")
	}
	for spec, want := range map[string]string{
		"static(x)":               "not a worker id",
		"static(-1)":              "not a worker id",
		"static(1024)":            "does not fit the layout",
		"env(LEAF_TEST_NONE)":     "not set",
		"env(LEAF_TEST_NONSENSE)": "not a worker id",
		"ordinal(3)":              "takes nothing",
		"static":                  "name(address)",
		"nacso(h:1)":              "forgotten import?",
	} {
		if _, err := open(t, spec, Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", spec, err, want)
		}
	}
	if _, err := Open(context.Background(), "static(1)", Config{Options: Options{"Namespace": "x"}}); err == nil || !strings.Contains(err.Error(), "unknown option") {
		t.Errorf("an unknown option: %v", err)
	}
}
