package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper/zktest"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/netfault"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // the tests mostly wait
	// A request whose connection breaks while it is written gets two answers. If no caller waits any more, because the
	// client was closed, the client's loop waits forever to deliver the second one.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/go-zookeeper/zk.(*Conn).flushRequests"))
}

var (
	launchShared = sync.OnceValues(func() (*zktest.Server, error) {
		return zktest.Launch(zktest.Config{Lines: []string{"maxClientCnxns=0"}})
	})
	registries atomic.Int64
)

// onSharedServer returns the configuration of a new registry, on a server that other tests use at the same time. Tests that renew
// leases for a while have their own servers.
func onSharedServer(t *testing.T) Config {
	t.Helper()
	s, err := launchShared()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server's last output:\n%s", s.Tail())
		}
	})
	return Config{Servers: []string{s.Addr}, Name: fmt.Sprintf("shop%d", registries.Add(1))}
}

// startProxy starts a proxy in front of the configuration's server, which is then used through the proxy.
func startProxy(t *testing.T, cfg *Config) *netfault.Proxy {
	t.Helper()
	p := netfault.Start(t, cfg.Servers[0])
	cfg.Servers = []string{p.Addr()}
	return p
}

// client returns a plain client for reading and changing nodes.
func client(tb testing.TB, cfg Config) *zk.Conn {
	tb.Helper()
	c, _, err := zk.Connect(cfg.Servers, sessionTimeout, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// opening returns the function with which a Keeper opens cfg's registry.
func opening(cfg Config) leasetest.Open {
	return func(context.Context) (worker.Source, error) { return Open(cfg) }
}

// TestRequestsAreFew counts the requests of a worker id in a registry in use: at the take, and while it is held.
func TestRequestsAreFew(t *testing.T) {
	t.Parallel()
	cfg := Config{Servers: []string{zktest.Start(t, zktest.Config{}).Addr}}
	p := startProxy(t, &cfg)
	lease := worker.Config{Workers: 16, Lease: 42 * time.Second} // renewed every 5.25 … 7 s; the timeout of a call is 3.5 s
	leasetest.InUse(t, opening(cfg), lease)
	var (
		mu    sync.Mutex
		asked = make(map[uint32]int) // counts by ZooKeeper's number of the request
	)
	p.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
		mu.Lock()
		defer mu.Unlock()
		for dir == netfault.ToServer && len(chunk) >= 12 {
			asked[binary.BigEndian.Uint32(chunk[8:])]++
			chunk = chunk[min(len(chunk), 4+int(binary.BigEndian.Uint32(chunk))):]
		}
		return netfault.Pass
	})
	const connect, create, exists, get, set, children, ping = 0, 1, 3, 4, 5, 12, 11
	soFar := func() map[uint32]int { mu.Lock(); defer mu.Unlock(); return maps.Clone(asked) }
	k := leasetest.Keep(t, opening(cfg), lease)
	// The gets are for the epoch, the registry's document before and after, and the slot's. The children were listed before
	// and after reading the slot, to see that there is no Java Leaf. One of the sets reads the clock.
	if n := soFar(); n[get] != 4 || n[set] != 2 || n[create] != 0 || n[children] != 2 || n[exists] != 0 {
		t.Errorf("a worker id took %v, want n[get] = 4, n[set] = 2, n[create] = 0, n[children] = 2 and n[exists] = 0", n)
	}
	for again := true; again; {
		// From the second second of a connection on there is a watch.
		leasetest.Eventually(t, "a watch", func() bool { return soFar()[exists] == soFar()[connect] })
		taken, began := soFar(), time.Now()
		leasetest.Eventually(t, "two renewals", func() bool { return soFar()[set] >= taken[set]+2 })
		later, held := soFar(), time.Since(began)
		if again = later[connect] > taken[connect]; again { // it reconnected, as on a machine that was paused
			continue
		}
		if n := later[set] - taken[set]; n > int(held/(7*time.Second))+2 {
			t.Errorf("%d writes in %v, want n at most %v", n, held, int(held/(7*time.Second))+2)
		}
		delete(later, set)
		delete(later, ping)
		delete(taken, set)
		delete(taken, ping)
		if !maps.Equal(later, taken) {
			t.Errorf("while it was held: %v, before: %v, want %v", later, taken, taken)
		}
	}
	k.Close()
}

// TestClockIsTheServers: the server's clock equals this machine's, on which it runs, each time it is read.
func TestClockIsTheServers(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	src, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if at, err := src.Time(t.Context()); err == nil {
		t.Errorf("%v where there is no registry, want an error", at)
	}
	leasetest.InUse(t, opening(cfg), worker.Config{Workers: 1})
	for range 3 {
		before := time.Now().Truncate(time.Millisecond)
		if at, err := src.Time(t.Context()); err != nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("Time() = %v, %v, want a time from %v to now", at, err, before)
		}
	}
}

// TestDisconnectedHolderStopsAtItsBound cuts a holder off: the next renewal uses a new connection. If it can't connect, the holder stops at its
// bound, and continues when it can.
func TestDisconnectedHolderStopsAtItsBound(t *testing.T) {
	t.Parallel()
	cfg := Config{Servers: []string{zktest.Start(t, zktest.Config{}).Addr}}
	p := startProxy(t, &cfg)
	k := leasetest.Keep(t, opening(cfg), worker.Config{Workers: 4, Lease: 20 * time.Second, NewRegistry: true})
	held := k.Status()
	for range 3 {
		limit := k.Status().Limit
		p.Cut()
		leasetest.Eventually(t, "a renewal on a new connection", func() bool { return k.Status().Limit.After(limit) })
	}
	if now := k.Status(); !now.Since.Equal(held.Since) || now.Worker != held.Worker {
		t.Errorf("Status() = %+v, want the same lease as %+v", now, held)
	}
	p.Down()
	var late func() time.Duration
	leasetest.Eventually(t, "the end of its bound", func() bool {
		s := k.Status()
		if late == nil && time.Now().After(s.Limit) {
			late = stopwatch.Start(t)
		}
		return s.Phase != "holding"
	})
	if late != nil && late() > 5*time.Second { // two calls of 1.7 s may be in progress
		t.Errorf("the holder stopped %v after its bound, want at most 5s", late())
	}
	if err := p.Up(); err != nil {
		t.Fatal(err)
	}
	leasetest.Eventually(t, "its worker id again", func() bool { return k.Status().Phase == "holding" && k.Status().Worker == held.Worker })
}

// TestMissingServersAreSkipped: servers that do not exist are skipped, in any order.
func TestMissingServersAreSkipped(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	cfg.Servers = append([]string{"nosuch.invalid:2181", "127.0.0.1:1"}, cfg.Servers...)
	for range 3 {
		k := leasetest.Keep(t, opening(cfg), worker.Config{Workers: 8, NewRegistry: true})
		k.Close()
	}
}

// TestSilentServerDelaysNoLease uses a server that accepts connections but does not answer on the first ones, as a starting server may.
func TestSilentServerDelaysNoLease(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	p := startProxy(t, &cfg)
	p.Silence(3)
	leasetest.Keep(t, opening(cfg), worker.Config{Workers: 4, NewRegistry: true})
}

// TestLostReplyWritesOnce loses the reply of a write that was executed.
func TestLostReplyWritesOnce(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	p := startProxy(t, &cfg)
	workertest.Registry(func(testing.TB) workertest.Fixture {
		return workertest.Fixture{Open: func(context.Context) (worker.Source, error) { return Open(cfg) }}
	}).LostReply(t, func() { p.Drop(netfault.ToClient) }, p.Heal)
}

// TestOnlyTheCreatorHasAccess: only the creator of the nodes may read or change them.
func TestOnlyTheCreatorHasAccess(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	cfg.Username, cfg.Password = "ids", "s3cret"
	leasetest.InUse(t, opening(cfg), worker.Config{Workers: 4, Lease: 6 * time.Second})
	for name, other := range map[string]Config{
		"nobody": {Servers: cfg.Servers, Name: cfg.Name},
		"wrong":  {Servers: cfg.Servers, Name: cfg.Name, Username: "ids", Password: "wr0ng"},
	} {
		k, err := worker.Keep(opening(other), worker.Config{Workers: 4, Lease: 6 * time.Second, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = leasetest.Wait(t, k)
		if _, ok := errors.AsType[*worker.UnusableError](err); !ok || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("name = %s, err = %v, want ok = true and an error without \"wr0ng\"", name, err)
		}
		k.Close()
	}
	open, err := worker.Lookup("zookeeper("+cfg.Servers[0]+")", worker.Options{"Name": cfg.Name, "Username": "ids", "Password": "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	k := leasetest.Keep(t, open, worker.Config{Workers: 4, Lease: 6 * time.Second})
	want := "ZooKeeper " + cfg.Servers[0] + ", /snowflake/" + cfg.Name + "/leafsql"
	if st := k.Status(); st.Registry != want {
		t.Errorf("Status() = %+v, want Registry = %v", st, want)
	}
}

// TestOldVersionsWriteNothing removes a registry and creates it again: a put at a version that was read before writes nothing.
func TestOldVersionsWriteNothing(t *testing.T) {
	t.Parallel()
	s := zktest.Start(t, zktest.Config{})
	cfg := Config{Servers: []string{s.Addr}}
	open := func() worker.Slots {
		src, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { src.Close() })
		return src.Slots
	}
	put := func(r worker.Slots, at worker.Version) (worker.Version, bool) {
		v, ok, err := r.Put(t.Context(), 3, worker.Doc{Nonce: "n", HighWater: time.UnixMilli(1)}, at)
		if err != nil {
			t.Fatal(err)
		}
		return v, ok
	}
	r := open()
	v, ok := put(r, "")
	if !ok {
		t.Fatal("Put() = false, want true")
	}
	for _, wipe := range []func() error{
		fixture(t, cfg).Wipe,
		func() error { return errors.Join(s.Kill9(), s.Wipe(), s.Start()) },
		func() error {
			dir := filepath.Join(t.TempDir(), "empty")
			return errors.Join(s.Kill9(), s.Wipe(), s.Snapshot(dir), s.Restore(dir), s.Start())
		},
	} {
		if err := wipe(); err != nil {
			t.Fatal(err)
		}
		now, ok := put(open(), "")
		if !ok || now == v {
			t.Fatalf("%v at %q, %q before, want ok = true and now other than %v", ok, now, v, v)
		}
		leasetest.Eventually(t, "an answer to who was connected", func() bool {
			_, got, err := r.Get(t.Context(), 3)
			return err == nil && got == now
		})
		for _, r := range []worker.Slots{r, open()} {
			if _, ok := put(r, v); ok {
				t.Errorf("at %q in a registry of %q: %v, want ok = false", v, now, ok)
			}
		}
		v = now
	}
}
