package nacos

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/worker"
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

// lease takes a worker id of a registry that the test has for itself.
func lease(t *testing.T, spec string, opts worker.Options) *worker.Lease {
	t.Helper()
	l, err := worker.Open(within30s(t), spec, worker.Config{NewRegistry: true, Options: opts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
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
	w := newWeb(cfg)
	c := newCluster(cfg, w)
	t.Cleanup(func() { c.close(); w.close() })
	return c
}

// eventually waits for what servers show with a delay.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not seen within 20 s: %s", what)
		}
	}
}

func TestServers(t *testing.T) {
	for _, v := range modernServers {
		t.Run(string(v), func(t *testing.T) {
			s := nacostest.Start(t, v, nacostest.Options{})
			t.Run("Lease", func(t *testing.T) { testLease(t, s) })
			t.Run("AtOnce", func(t *testing.T) { testAtOnce(t, s) })
			t.Run("LeavesNothing", func(t *testing.T) { testLeavesNothing(t, s) })
			t.Run("OwnClients", func(t *testing.T) { testOwnClients(t, s) })
			t.Run("Apart", func(t *testing.T) { testApart(t, s) })
			t.Run("Restart", func(t *testing.T) { testRestart(t, s) })
			t.Run("Paused", func(t *testing.T) { testPaused(t, s) })
			t.Run("Wipe", func(t *testing.T) { testWipe(t, s) })
		})
	}
}

// testLease looks at one lease as people see it in the console.
func testLease(t *testing.T, s *nacostest.Server) {
	began := time.Now()
	l := lease(t, spec(s), worker.Options{"Service": "console", "Port": "7001"})
	t.Logf("worker id acquired in %v", time.Since(began).Round(time.Millisecond))
	c := look(t, s, worker.Options{"Service": "console"})
	eventually(t, "the instance with the worker id", func() bool {
		list, err := c.list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list) == 1 && list[0].Port == 7001 && !list[0].Ephemeral &&
			list[0].InstanceID == strconv.Itoa(l.Worker()) &&
			list[0].Metadata[metaWorker] == strconv.Itoa(l.Worker()) &&
			list[0].Metadata[metaGenerator] == "snowflake"
	})
	eventually(t, "the slot's document", func() bool {
		text, _, err := c.query(t.Context(), "console.worker."+strconv.Itoa(l.Worker()))
		if err != nil {
			t.Fatal(err)
		}
		d, err := worker.ParseDoc(text)
		return err == nil && !d.Free && d.HW >= l.Limit()
	})
	id := l.Worker()
	if err := l.Close(); err != nil {
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
		text, _, err := c.query(t.Context(), "console.worker."+strconv.Itoa(id))
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
	const n = 64
	opts := worker.Options{"Service": "crowd"}
	r := openReal(t, s, opts)
	var wg sync.WaitGroup
	for slot := range 1024 {
		wg.Go(func() {
			d := worker.Doc{Nonce: "before" + strconv.Itoa(slot), HW: time.Now().UnixMilli() - 1000, Free: true}
			if _, res, err := r.Put(t.Context(), slot, d, ""); res != worker.OK {
				t.Error(slot, res, err)
			}
		})
		if slot%32 == 31 {
			wg.Wait()
		}
	}
	wg.Wait()
	for _, wave := range []string{"cold", "warm"} { // servers compile what they run
		began := time.Now()
		var leases [n]*worker.Lease
		for i := range leases {
			wg.Go(func() {
				l, err := worker.Open(within30s(t), spec(s), worker.Config{Options: opts})
				if err != nil {
					t.Error(err)
				}
				leases[i] = l
			})
		}
		wg.Wait()
		t.Logf("%d leases at once, server %s: all after %v", n, wave, time.Since(began).Round(time.Millisecond))
		seen := make(map[int]bool)
		for _, l := range leases {
			if l == nil {
				t.FailNow()
			}
			if seen[l.Worker()] {
				t.Errorf("worker id %d given twice", l.Worker())
			}
			seen[l.Worker()] = true
			wg.Go(func() { l.Close() })
		}
		wg.Wait()
	}
}

// openReal opens the source alone.
func openReal(t *testing.T, s *nacostest.Server, opts worker.Options) *registry {
	t.Helper()
	src, err := openDSN(within30s(t), s.Addr(), opts)
	if err != nil {
		t.Fatal(err)
	}
	r := src.Slots.(*registry)
	t.Cleanup(func() { r.Close() })
	return r
}

// testLeavesNothing looks for goroutines and files after a lease.
func testLeavesNothing(t *testing.T, s *nacostest.Server) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	before := goleak.IgnoreCurrent()
	l, err := worker.Open(within30s(t), spec(s), worker.Config{NewRegistry: true, Options: worker.Options{"Service": "tidy"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
	for _, dir := range []string{".", os.Getenv("HOME")} {
		files, err := os.ReadDir(dir)
		if err != nil || len(files) > 0 {
			t.Errorf("written into %s: %v, %v", dir, files, err)
		}
	}
}

// testApart has two registries on one server that share no worker id.
func testApart(t *testing.T, s *nacostest.Server) {
	only := func(opts worker.Options) *worker.Lease {
		l, err := worker.Open(within30s(t), spec(s), worker.Config{NewRegistry: true, Workers: 1, Options: opts})
		if err != nil {
			t.Fatalf("%v: %v", opts, err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	for _, opts := range []worker.Options{
		{"Service": "apart"},
		{"Service": "apart2"},
		{"Service": "apart", "Group": "g2"},
		{"Service": "apart", "Namespace": "n2"},
	} {
		if l := only(opts); l.Worker() != 0 {
			t.Errorf("%v: worker id %d", opts, l.Worker())
		}
	}
	_, err := worker.Open(within30s(t), spec(s), worker.Config{Workers: 1, Options: worker.Options{"Service": "apart", "Namespace": "public"}})
	if _, taken := errors.AsType[*worker.TakenError](err); !taken {
		t.Errorf("the default namespace by its other name: %v, want that it is taken", err)
	}
}

// testRestart kills the server under a lease and brings it back.
func testRestart(t *testing.T, s *nacostest.Server) {
	l, err := worker.Open(within30s(t), spec(s), worker.Config{NewRegistry: true, Options: worker.Options{"Service": "restart"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Kill9()
	away := time.Now()
	s.Restart(t)
	back, limit := time.Now(), l.Limit()
	eventually(t, "a higher limit after the restart", func() bool { return l.Limit() > limit })
	t.Logf("away for %v, renewed %v after", back.Sub(away).Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
	if l.Err() != nil {
		t.Error(l.Err())
	}
	began := time.Now()
	second := lease(t, spec(s), worker.Options{"Service": "restart"})
	t.Logf("a worker id beside one that was not given back: in %v", time.Since(began).Round(time.Millisecond))
	if second.Worker() == l.Worker() {
		t.Errorf("worker id %d given twice", l.Worker())
	}
}

// testPaused cuts a holder off until another has its worker id, and then lets
// it go on.
func testPaused(t *testing.T, s *nacostest.Server) {
	proxy := netfault.Start(t, s.GRPCAddr())
	_, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	conf := worker.Config{
		NewRegistry: true, Workers: 1, Bound: 6 * time.Second,
		Options: worker.Options{"Service": "paused", "GRPCPort": port},
	}
	first, err := worker.Open(within30s(t), spec(s), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	proxy.Drop(netfault.Both)
	limit := first.Limit() // no renewal is confirmed from here on
	select {
	case <-first.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("a holder that reaches nobody goes on")
	}
	conf.Options = worker.Options{"Service": "paused"}
	var second *worker.Lease
	eventually(t, "the worker id taken over", func() bool {
		second, err = worker.Open(within30s(t), spec(s), conf)
		if _, taken := errors.AsType[*worker.TakenError](err); err != nil && !taken {
			t.Fatal(err)
		}
		return err == nil
	})
	defer second.Close()
	if second.Start() <= limit {
		t.Errorf("the second starts at %d, the first may have used %d", second.Start(), limit)
	}
	proxy.Heal()
	if _, err := first.Successor(within30s(t)); err == nil {
		t.Error("the first has the only worker id again")
	}
	if lost, ok := errors.AsType[*worker.LostError](first.Err()); !ok || first.Limit() > 0 {
		t.Errorf("the first: limit %d, %v, %v", first.Limit(), first.Err(), lost)
	}
}

// testWipe takes the server's data away: the anchor tells.
func testWipe(t *testing.T, s *nacostest.Server) {
	r := openReal(t, s, worker.Options{"Service": "wipe"})
	before, err := r.Anchor(within30s(t))
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Anchor(within30s(t))
	if err != nil || again != before {
		t.Fatalf("the anchor was %q, then %q, %v", before, again, err)
	}
	s.Kill9()
	s.Wipe(t)
	s.Restart(t)
	after, err := r.Anchor(within30s(t))
	if err != nil {
		t.Fatal(err)
	}
	if after == before {
		t.Error("the anchor did not change when the registry was wiped")
	}
}

func TestLyingServerIsRefused(t *testing.T) {
	s := nacostest.Start(t, nacostest.V2Lie, nacostest.Options{})
	before := goleak.IgnoreCurrent()
	_, err := worker.Open(within30s(t), spec(s), worker.Config{NewRegistry: true})
	e, ok := errors.AsType[*UnusableError](err)
	if !ok || !strings.Contains(e.Reason, "compare-and-set") {
		t.Errorf("2.0.4: %v, want an UnusableError about its compare-and-set", err)
	}
	t.Log(err)
	goleak.VerifyNone(t, before)
}
