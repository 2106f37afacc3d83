package nacos

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/nacostest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// flock is a number of leases that are to be kept through whatever happens.
type flock struct {
	t      *testing.T
	cfg    Config
	leases []*worker.Keeper
}

// more takes another lease and says how long it took.
func (f *flock) more(when string) {
	f.t.Helper()
	began := time.Now()
	k, err := worker.Keep(func(ctx context.Context) (worker.Source, error) { return Open(ctx, f.cfg) },
		worker.Config{NewRegistry: true, Workers: 64, Lease: 18 * time.Second})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { k.Close() })
	k.Start()
	eventually(f.t, when+": a worker id", func() bool { return k.Status().Phase == "holding" })
	id := k.Status().Worker
	f.t.Logf("%s: worker id %d in %v", when, id, time.Since(began).Round(time.Millisecond))
	for _, o := range f.leases {
		if o.Status().Worker == id {
			f.t.Errorf("%s: worker id %d given twice", when, id)
		}
	}
	f.leases = append(f.leases, k)
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

func TestCluster(t *testing.T) {
	t.Parallel()
	c := nacostest.StartCluster(t, mysqltest.Database(t))
	var proxies [3]*netfault.Proxy
	f := &flock{t: t, cfg: Config{Namespace: "leafsql"}}
	for i, n := range c.Nodes {
		proxies[i] = netfault.Start(t, n.GRPCAddr())
		_, http, err := net.SplitHostPort(n.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, rpc, err := net.SplitHostPort(proxies[i].Addr())
		if err != nil {
			t.Fatal(err)
		}
		s := Server{Host: "127.0.0.1"}
		s.Port, _ = strconv.Atoi(http)
		s.GRPCPort, _ = strconv.Atoi(rpc)
		f.cfg.Servers = append(f.cfg.Servers, s)
	}
	for range 6 {
		f.more("all there")
	}
	shown := func(when string) {
		t.Helper()
		cfg := f.cfg
		if err := cfg.complete(); err != nil {
			t.Fatal(err)
		}
		names := newCluster(cfg, httpOf(cfg))
		defer names.close()
		eventually(t, when+": all in the console", func() bool {
			list, err := names.list(t.Context())
			return err == nil && len(list) == len(f.leases)
		})
	}
	shown("all there")

	proxies[0].Drop(netfault.Both)
	f.renewed("one node cut off")
	f.more("one node cut off")
	proxies[0].Heal()

	leader := c.Leader(t)
	c.Nodes[leader].Kill9()
	f.more("right after the leader was killed")
	f.renewed("the leader killed")
	shown("the leader killed")

	second := (leader + 1) % 3
	c.Nodes[second].Kill9()
	f.more("one node left")
	f.renewed("one node left")
	c.Nodes[leader].Restart(t)
	c.Nodes[second].Restart(t)
	f.renewed("all back")
	shown("all back")
}
