//go:build storm

package nacos

import (
	"errors"
	"net"
	"os"
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

// TestStormServers has the tests on one server of each version that take long
// or disturb it.
func TestStormServers(t *testing.T) {
	t.Parallel()
	for _, v := range modernServers {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			s := nacostest.Start(t, v, nacostest.Options{})
			t.Run("OwnClients", func(t *testing.T) { testOwnClients(t, s) })
			t.Run("AtOnce", func(t *testing.T) { testAtOnce(t, s) })
			t.Run("Paused", func(t *testing.T) { testPaused(t, s) })
			t.Run("Frozen", func(t *testing.T) { testFrozen(t, s) })
			t.Run("Kit", func(t *testing.T) { testKit(t, s) })
		})
	}
}

func TestStormAccess(t *testing.T) { testAccess(t, nacostest.V2) }

func TestStormLegacy(t *testing.T) {
	t.Parallel()
	testLegacyAtOnce(t, nacostest.Start(t, nacostest.V1, nacostest.Options{}))
}

// testAtOnce starts many processes' leases at the same time, on a registry in
// use: some worker ids are free, none has an unknown history.
func testAtOnce(t *testing.T, s *nacostest.Server) {
	const n, workers = 64, 256
	opts := worker.Options{"Service": "crowd"}
	began := time.Now()
	open, err := worker.Lookup(specOf(s), opts)
	if err != nil {
		t.Fatal(err)
	}
	leasetest.InUse(t, open, worker.Config{Workers: workers})
	t.Logf("%d worker ids made in %v", workers, time.Since(began).Round(time.Millisecond))
	var wg sync.WaitGroup
	for _, wave := range []string{"cold", "warm"} { // servers compile code when they first run it
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

// testFrozen stops the server for 1.7 leases: many holders have their worker
// ids again soon after it continues.
func testFrozen(t *testing.T, s *nacostest.Server) {
	const holders, slots, lease = 12, 16, 12 * time.Second
	opts := worker.Options{"Service": "frozen"}
	var keepers [holders]*worker.Keeper
	for i := range keepers {
		keepers[i] = mustLease(t, specOf(s), opts, worker.Config{Workers: slots, Lease: lease, Issued: time.Now})
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
			t.Errorf("while the server is frozen: %+v, want s.Phase other than \"holding\" and s.Err set", s)
		}
	}
	s.Thaw(t)
	back := time.Now()
	for i, k := range keepers {
		eventually(t, "a worker id again", func() bool { return k.Status().Phase == "holding" })
		st := k.Status()
		if took := st.Since.Sub(back); st.Worker != own[i].Worker || took > lease { // 2 s on an idle machine
			t.Errorf("holder %d has worker id %d %v after, its own is %d, want st.Worker = %v and took at most %v", i, st.Worker, took, own[i].Worker, own[i].Worker, lease)
		}
	}
	t.Logf("all %d back within %v", holders, time.Since(back).Round(time.Millisecond))
}

// testPaused disconnects a holder until another has its worker id, and then
// reconnects it.
func testPaused(t *testing.T, s *nacostest.Server) {
	proxy := netfault.Start(t, s.GRPCAddr())
	_, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	cfg := worker.Config{Workers: 1, Lease: 6 * time.Second}
	first := mustLease(t, specOf(s), worker.Options{"Service": "paused", "GRPCPort": port}, cfg)
	proxy.Drop(netfault.Both)
	limit := first.Status().Limit // no renewal is confirmed after this
	eventually(t, "the end of a holder that reaches nobody", func() bool { return first.Status().Phase == "searching" })
	var second *worker.Keeper
	eventually(t, "the worker id taken over", func() bool {
		second, err = lease(t, specOf(s), worker.Options{"Service": "paused"}, cfg)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	defer second.Close()
	if start := second.Status().Start; !start.After(limit) {
		t.Errorf("the second process starts at %v, want a time after %v, the first one's limit", start, limit)
	}
	proxy.Heal()
	eventually(t, "what the first finds", func() bool {
		e, ok := errors.AsType[*worker.UnavailableError](first.Status().Err)
		return ok && e.Reason == "taken"
	})
	if s := first.Status(); s.Phase != "searching" || !s.Limit.IsZero() {
		t.Errorf("the first process: Status() = %+v, want it searching without a limit", s)
	}
}

func TestStormLyingServerIsRefused(t *testing.T) {
	t.Parallel()
	s := nacostest.Start(t, nacostest.V2Unsafe, nacostest.Options{})
	eventually(t, "that 2.0.4 can't be used, for its compare-and-set", func() bool {
		k, err := lease(t, specOf(s), nil, worker.Config{NewRegistry: true})
		if err == nil {
			k.Close()
			t.Fatal("Nacos 2.0.4 gave a worker id, want an error")
		}
		t.Log(err)
		e, ok := errors.AsType[*worker.UnusableError](err)
		return ok && strings.Contains(e.Error(), "compare-and-set")
	})
}

// rounds returns how often the simultaneous start is repeated: NACOS_ROUNDS, or
// 1.
func rounds() int {
	n, err := strconv.Atoi(os.Getenv("NACOS_ROUNDS"))
	if err != nil {
		return 1
	}
	return n
}

func testLegacyAtOnce(t *testing.T, s *nacostest.Server) {
	for round := range rounds() {
		service := "round" + strconv.Itoa(round)
		began := time.Now()
		var holders [16]*holder
		for i := range holders {
			holders[i] = startHolder(t, specOf(s), service)
		}
		var mu sync.Mutex
		seen := make(map[int]bool)
		var wg sync.WaitGroup
		for _, h := range holders {
			wg.Go(func() {
				id, err := h.worker()
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[id] {
					t.Errorf("round %d: worker id %d, given twice: %v, error: %v", round, id, seen[id], err)
				}
				seen[id] = true
			})
		}
		wg.Wait()
		t.Logf("round %d: %d worker ids after %v", round, len(seen), time.Since(began).Round(100*time.Millisecond))
		for _, h := range holders {
			wg.Go(func() {
				if err := h.leave(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// TestStormCluster disconnects a node, and kills the leader and the next node.
func TestStormCluster(t *testing.T) {
	t.Parallel()
	c, f, proxies := onCluster(t)
	for range 6 {
		f.more("all there")
	}
	f.shown("all there")

	proxies[0].Drop(netfault.Both)
	f.renewed("one node cut off")
	f.more("one node cut off")
	proxies[0].Heal()

	leader := c.Leader(t)
	c.Nodes[leader].Kill9()
	f.more("right after the leader was killed")
	f.renewed("the leader killed")
	f.shown("the leader killed")

	second := (leader + 1) % 3
	c.Nodes[second].Kill9()
	f.more("one node left")
	f.renewed("one node left")
	c.Nodes[leader].Restart(t)
	c.Nodes[second].Restart(t)
	f.renewed("all back")
	f.shown("all back")
}

// renewed waits until every lease was renewed.
func (f *flock) renewed(when string) {
	f.t.Helper()
	began := time.Now()
	var before []*worker.Status
	for _, k := range f.leases {
		before = append(before, k.Status())
	}
	for i, k := range f.leases {
		lost := func() bool { return !k.Status().Since.Equal(before[i].Since) || k.Status().Phase != "holding" }
		eventually(f.t, when+": a renewal", func() bool { return k.Status().Limit.After(before[i].Limit) || lost() })
		if lost() {
			f.t.Errorf("%s: %+v", when, k.Status())
		}
	}
	f.t.Logf("%s: %d leases renewed within %v", when, len(f.leases), time.Since(began).Round(time.Millisecond))
}
