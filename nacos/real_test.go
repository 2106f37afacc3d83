package nacos

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/nacostest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// modernServers are the versions whose compare-and-set is good.
var modernServers = []nacostest.Version{nacostest.V2, nacostest.V3}

func spec(s *nacostest.Server) string { return "nacos(" + s.Addr() + ")" }

// within30s is a context for what should be there in a moment.
func within30s(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// lease takes a worker id of what spec names; errors of the first search are
// given.
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

// mustLease takes a worker id of a registry that the test has for itself, of 16
// if nothing is said: its holder makes all their documents. A server that has
// just started refuses a request now and then.
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

// look gives the services of a server, to look at them from outside.
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

// eventually waits for what servers show with a delay.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// patience is for a machine on which several servers boot meanwhile.
const patience = time.Minute

// TestServers has everything of one version be done on one server: first what
// leaves the others alone, at the same time, then what disturbs them.
func TestServers(t *testing.T) {
	t.Parallel()
	for _, v := range modernServers {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			s := nacostest.Start(t, v, nacostest.Options{})
			t.Run("AtOnce", func(t *testing.T) { testAtOnce(t, s) })
			t.Run("Undisturbed", func(t *testing.T) {
				for name, test := range map[string]func(*testing.T, *nacostest.Server){
					"Lease": testLease, "LeavesNothing": testLeavesNothing, "OwnClients": testOwnClients,
					"Apart": testApart, "Paused": testPaused,
				} {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						test(t, s)
					})
				}
			})
			t.Run("Frozen", func(t *testing.T) { testFrozen(t, s) })
			t.Run("Kit", func(t *testing.T) { testKit(t, s) })
		})
	}
}

// testLease looks at one lease as people see it in the console.
func testLease(t *testing.T, s *nacostest.Server) {
	began := time.Now()
	k := mustLease(t, spec(s), worker.Options{"Service": "console", "Port": "7001"}, worker.Config{})
	t.Logf("worker id acquired in %v", time.Since(began).Round(time.Millisecond))
	held := k.Status()
	if held.ClockOffset.Abs() > 2*time.Second || !strings.Contains(held.Registry, s.Addr()+", namespace public, group DEFAULT_GROUP, service console") {
		t.Errorf("%+v", held)
	}
	c := look(t, s, worker.Options{"Service": "console"})
	eventually(t, "the instance with the worker id", func() bool {
		list, err := c.list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1 && list[0].Port == 7001 && !list[0].Ephemeral &&
			list[0].InstanceID == strconv.Itoa(held.Worker) &&
			list[0].Metadata[metaWorker] == strconv.Itoa(held.Worker) &&
			list[0].Metadata[metaGenerator] == "snowflake"
	})
	eventually(t, "the slot's document", func() bool {
		text, _, err := c.query(t.Context(), "console.worker."+strconv.Itoa(held.Worker))
		if err != nil {
			t.Fatal(err)
		}
		d, err := worker.ParseDoc(text)
		return err == nil && !d.Free && !d.HighWater.Before(held.Limit)
	})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no instance after Close", func() bool {
		list, err := c.list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 0
	})
	eventually(t, "a free document", func() bool {
		text, _, err := c.query(t.Context(), "console.worker."+strconv.Itoa(held.Worker))
		if err != nil {
			t.Fatal(err)
		}
		d, err := worker.ParseDoc(text)
		return err == nil && d.Free
	})
}

// testAtOnce starts many processes' leases at the same time, on a registry in
// use: some of it free, none of it unknown.
func testAtOnce(t *testing.T, s *nacostest.Server) {
	const n, workers = 64, 256
	opts := worker.Options{"Service": "crowd"}
	began := time.Now()
	open, err := worker.Lookup(spec(s), opts)
	if err != nil {
		t.Fatal(err)
	}
	leasetest.InUse(t, open, worker.Config{Workers: workers})
	t.Logf("%d worker ids made in %v", workers, time.Since(began).Round(time.Millisecond))
	var wg sync.WaitGroup
	for _, wave := range []string{"cold", "warm"} { // servers compile what they run
		began := time.Now()
		var leases [n]*worker.Keeper
		for i := range leases {
			wg.Go(func() { leases[i] = leasetest.Keep(t, open, worker.Config{Workers: workers}) })
		}
		wg.Wait()
		t.Logf("%d leases at once, server %s: all after %v", n, wave, time.Since(began).Round(time.Millisecond))
		seen := make(map[int]bool)
		for _, k := range leases {
			id := k.Status().Worker
			if seen[id] {
				t.Errorf("worker id %d given twice", id)
			}
			seen[id] = true
			wg.Go(func() { k.Close() })
		}
		wg.Wait()
	}
}

// testLeavesNothing looks for goroutines and files after a lease.
func testLeavesNothing(t *testing.T, s *nacostest.Server) {
	h := startHolder(t, spec(s), "tidy")
	if _, err := h.worker(); err != nil {
		t.Fatal(err)
	}
	if err := h.leave(); err != nil {
		t.Error(err)
	}
}

// testApart has two registries on one server that share no worker id.
func testApart(t *testing.T, s *nacostest.Server) {
	for _, opts := range []worker.Options{
		{"Service": "apart"},
		{"Service": "apart2"},
		{"Service": "apart", "Group": "g2"},
		{"Service": "apart", "Namespace": "n2"},
	} {
		if k := mustLease(t, spec(s), opts, worker.Config{Workers: 1}); k.Status().Worker != 0 {
			t.Errorf("%v: worker id %d", opts, k.Status().Worker)
		}
	}
	eventually(t, "the default namespace by its other name, where it is taken", func() bool {
		k, err := lease(t, spec(s), worker.Options{"Service": "apart", "Namespace": "public"}, worker.Config{Workers: 1})
		if err == nil {
			k.Close()
			t.Fatal("the default namespace by its other name is another one")
		}
		t.Log(err)
		e, ok := errors.AsType[*worker.UnavailableError](err)
		return ok && e.Reason == "taken"
	})
}

// testFrozen stops the server for 1.7 leases under many holders: all have their
// own worker ids again soon after its coming back.
func testFrozen(t *testing.T, s *nacostest.Server) {
	const holders, slots, lease = 12, 16, 12 * time.Second
	opts := worker.Options{"Service": "frozen"}
	var keepers [holders]*worker.Keeper
	for i := range keepers {
		keepers[i] = mustLease(t, spec(s), opts, worker.Config{Workers: slots, Lease: lease, Issued: time.Now})
	}
	time.Sleep(lease / 4)
	var own [holders]worker.Status
	for i, k := range keepers {
		own[i] = *k.Status()
	}
	s.Freeze(t)
	time.Sleep(lease * 17 / 10)
	for _, k := range keepers {
		if s := k.Status(); s.Phase == "holding" || s.Err == nil {
			t.Errorf("while the server is frozen: %+v", s)
		}
	}
	s.Thaw(t)
	back := time.Now()
	for i, k := range keepers {
		eventually(t, "a worker id again", func() bool { return k.Status().Phase == "holding" })
		st := k.Status()
		if took := st.Since.Sub(back); st.Worker != own[i].Worker || took > lease { // 2 s on an idle machine
			t.Errorf("holder %d has worker id %d %v after, its own is %d", i, st.Worker, took, own[i].Worker)
		}
	}
	t.Logf("all %d back within %v", holders, time.Since(back).Round(time.Millisecond))
}

// testPaused cuts a holder off until another has its worker id, and then lets
// it go on.
func testPaused(t *testing.T, s *nacostest.Server) {
	proxy := netfault.Start(t, s.GRPCAddr())
	_, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	cfg := worker.Config{Workers: 1, Lease: 6 * time.Second}
	first := mustLease(t, spec(s), worker.Options{"Service": "paused", "GRPCPort": port}, cfg)
	proxy.Drop(netfault.Both)
	limit := first.Status().Limit // no renewal is confirmed from here on
	eventually(t, "the end of a holder that reaches nobody", func() bool { return first.Status().Phase == "searching" })
	var second *worker.Keeper
	eventually(t, "the worker id taken over", func() bool {
		second, err = lease(t, spec(s), worker.Options{"Service": "paused"}, cfg)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	defer second.Close()
	if start := second.Status().Start; !start.After(limit) {
		t.Errorf("the second starts at %v, the first may have used %v", start, limit)
	}
	proxy.Heal()
	eventually(t, "what the first finds", func() bool {
		e, ok := errors.AsType[*worker.UnavailableError](first.Status().Err)
		return ok && e.Reason == "taken"
	})
	if s := first.Status(); s.Phase != "searching" || !s.Limit.IsZero() {
		t.Errorf("the first: %+v", s)
	}
}

func TestLyingServerIsRefused(t *testing.T) {
	t.Parallel()
	s := nacostest.Start(t, nacostest.V2Lie, nacostest.Options{})
	eventually(t, "that 2.0.4 can't be used, for its compare-and-set", func() bool {
		k, err := lease(t, spec(s), nil, worker.Config{NewRegistry: true})
		if err == nil {
			k.Close()
			t.Fatal("a worker id of 2.0.4")
		}
		t.Log(err)
		e, ok := errors.AsType[*worker.UnusableError](err)
		return ok && strings.Contains(e.Error(), "compare-and-set")
	})
}
