package nacos

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/spec"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// modernServers are the versions with a working compare-and-set.
var modernServers = []nacostest.Version{nacostest.V2, nacostest.V3}

func specOf(s *nacostest.Server) string { return "nacos(" + s.Addr() + ")" }

// within30s returns a context for conditions that are expected soon.
func within30s(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// lease takes a worker id of the registry that spec names, and returns the
// errors of the first search.
func lease(tb testing.TB, spec string, opts worker.Options, cfg worker.Config) (*worker.Keeper, error) {
	open, err := worker.Lookup(spec, opts)
	if err != nil {
		return nil, err
	}
	return keep(tb, open, cfg)
}

func keep(tb testing.TB, open func(context.Context) (worker.Source, error), cfg worker.Config) (*worker.Keeper, error) {
	k, err := worker.Keep(open, cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	if _, err := k.Wait(ctx); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// mustLease takes a worker id of a registry that only this test uses, by
// default with 16 worker ids: its holder creates all their documents. A server
// that has just started refuses a request now and then.
func mustLease(tb testing.TB, spec string, opts worker.Options, cfg worker.Config) *worker.Keeper {
	tb.Helper()
	cfg.NewRegistry, cfg.Workers = true, cmp.Or(cfg.Workers, 16)
	var k *worker.Keeper
	eventually(tb, "a worker id", func() (ok bool) {
		var err error
		if k, err = lease(tb, spec, opts, cfg); err != nil {
			tb.Log(err)
		}
		return err == nil
	})
	tb.Cleanup(func() { k.Close() })
	return k
}

// look returns a client of the services of a server, to check them from outside.
func look(t *testing.T, s *nacostest.Server, opts worker.Options) *cluster {
	t.Helper()
	cfg, err := parse(s.Addr(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	h := httpOf(cfg)
	c := newCluster(cfg, h)
	t.Cleanup(func() { c.close(); h.Close() })
	return c
}

// eventually waits for a condition that servers fulfil with a delay.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// patience is long enough for a machine on which several servers are starting.
const patience = time.Minute

// TestServers has the tests for one server of each version. Tests that disturb
// the server have the tag storm.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, v := range modernServers {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			s := nacostest.Start(t, v, nacostest.Options{})
			for name, test := range map[string]func(*testing.T, *nacostest.Server){
				"Lease": testLease, "LeavesNothing": testLeavesNothing, "Apart": testApart, "Kit": testRules,
				"ClientsOfTheDefaultNamespace": testClientsOfTheDefaultNamespace, "NewRegistry": testNewRegistry,
				"FreshGroups": testFreshGroups,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, s)
				})
			}
		})
	}
}

// testLease checks one lease as people see it in the console.
func testLease(t *testing.T, s *nacostest.Server) {
	began := time.Now()
	k := mustLease(t, specOf(s), worker.Options{"Service": "console", "Port": "7001"}, worker.Config{})
	t.Logf("worker id acquired in %v", time.Since(began).Round(time.Millisecond))
	held := k.Status()
	if held.ClockOffset.Abs() > 2*time.Second || !strings.Contains(held.Registry, s.Addr()+", default namespace, group DEFAULT_GROUP, service console") {
		t.Errorf("Status() = %+v, want held.ClockOffset.Abs() at most 2s and text with s.Addr()+\", default namespace, group DEFAULT_GROUP, service console\"", held)
	}
	c := look(t, s, worker.Options{"Service": "console"})
	eventually(t, "the instance with the worker id", func() bool {
		list, err := c.list(t.Context())
		if err != nil {
			t.Log(err) // a busy server answers late
			return false
		}
		return len(list) == 1 && list[0].Port == 7001 && !list[0].Ephemeral &&
			list[0].InstanceID == strconv.Itoa(held.Worker) &&
			list[0].Metadata[metaWorker] == strconv.Itoa(held.Worker) &&
			list[0].Metadata[metaGenerator] == "snowflake"
	})
	eventually(t, "the slot's document", func() bool {
		text, _, err := c.query(t.Context(), "console.worker."+strconv.Itoa(held.Worker))
		if err != nil {
			t.Log(err) // a busy server answers late
			return false
		}
		var d worker.Doc
		return d.Decode(text) == nil && !d.Free && !d.HighWater.Before(held.Limit)
	})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no instance after Close", func() bool {
		list, err := c.list(t.Context())
		if err != nil {
			t.Log(err) // a busy server answers late
			return false
		}
		return len(list) == 0
	})
	eventually(t, "a free document", func() bool {
		text, _, err := c.query(t.Context(), "console.worker."+strconv.Itoa(held.Worker))
		if err != nil {
			t.Log(err) // a busy server answers late
			return false
		}
		var d worker.Doc
		return d.Decode(text) == nil && d.Free
	})
}

// testNewRegistry checks that reading a registry that does not exist writes nothing, and that the first process learns why it
// waits.
func testNewRegistry(t *testing.T, s *nacostest.Server) {
	open, err := worker.Lookup(specOf(s), worker.Options{"Service": "fresh"})
	if err != nil {
		t.Fatal(err)
	}
	c := look(t, s, worker.Options{"Service": "console"})
	eventually(t, "an empty registry", func() bool {
		src, err := open(spec.WithReadOnly(t.Context()))
		if err != nil {
			t.Log(err)
			return false
		}
		defer src.Close()
		if _, v, err := src.Slots.Get(t.Context(), worker.RegistrySlot); err != nil || v != "" {
			t.Logf("Get() = %q, %v", v, err)
			return false
		}
		_, _, err = src.Slots.Put(t.Context(), 0, worker.Doc{Nonce: "n"}, "")
		if _, refused := errors.AsType[*worker.NotWrittenError](err); !refused {
			t.Errorf("Put() of a source for reading = %v, want a NotWrittenError", err)
		}
		_, found, err := c.query(t.Context(), "fresh.probe")
		if found {
			t.Error("reading has written fresh.probe, want nothing written")
		}
		return err == nil
	})
	k, err := worker.Keep(open, worker.Config{Workers: 4, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	want := "(Nacos " + s.Addr() + ", default namespace, group DEFAULT_GROUP, service fresh) is new or has lost documents"
	eventually(t, "the reason for the wait", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := k.Wait(ctx)
		t.Log(err)
		return err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "leafsql init -new-registry")
	})
	if s := k.Status(); time.Until(s.Start) < 90*time.Second || time.Until(s.Start) > 3*time.Minute {
		t.Errorf("Status() = %+v, want a Start about 135 s after the start", s)
	}
}

// testLeavesNothing checks that a lease leaves no goroutines and files.
func testLeavesNothing(t *testing.T, s *nacostest.Server) {
	h := startHolder(t, specOf(s), "tidy")
	if _, err := h.worker(); err != nil {
		t.Fatal(err)
	}
	if err := h.leave(); err != nil {
		t.Error(err)
	}
}

// testApart: two registries on one server share no worker id.
func testApart(t *testing.T, s *nacostest.Server) {
	for _, opts := range []worker.Options{
		{"Service": "apart"},
		{"Service": "apart2"},
		{"Service": "apart", "Group": "g2"},
		{"Service": "apart", "Namespace": "n2"},
	} {
		if k := mustLease(t, specOf(s), opts, worker.Config{Workers: 1}); k.Status().Worker != 0 {
			t.Errorf("%v: worker id %d, want 0", opts, k.Status().Worker)
		}
	}
	eventually(t, "the default namespace by its other name, where it is taken", func() bool {
		k, err := lease(t, specOf(s), worker.Options{"Service": "apart", "Namespace": "public"}, worker.Config{Workers: 1})
		if err == nil {
			k.Close()
			t.Fatal("public and the empty namespace are different registries, want one")
		}
		t.Log(err)
		e, ok := errors.AsType[*worker.UnavailableError](err)
		return ok && e.Reason == "taken"
	})
}
