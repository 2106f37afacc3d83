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

// flock is a number of leases that have to be kept whatever happens.
type flock struct {
	t      *testing.T
	cfg    Config
	leases []*worker.Keeper
}

// more takes another lease and logs how long it took.
func (f *flock) more(when string) {
	f.t.Helper()
	began := time.Now()
	k, err := worker.Keep(func(ctx context.Context) (worker.Source, error) { return Open(ctx, f.cfg) },
		worker.Config{NewRegistry: true, Workers: 64, Lease: 18 * time.Second})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { k.Close() })
	go k.Wait(f.t.Context())
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

func TestCluster(t *testing.T) {
	t.Parallel()
	_, f, _ := onCluster(t)
	for range 6 {
		f.more("all there")
	}
	f.shown("all there")
}

// onCluster returns a cluster, no leases yet, and a proxy in front of each node's
// gRPC port.
func onCluster(t *testing.T) (*nacostest.Cluster, *flock, [3]*netfault.Proxy) {
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
	return c, f, proxies
}

// shown waits until the console lists every lease.
func (f *flock) shown(when string) {
	f.t.Helper()
	cfg := f.cfg
	if err := cfg.complete(); err != nil {
		f.t.Fatal(err)
	}
	names := newCluster(cfg, httpOf(cfg))
	defer names.close()
	eventually(f.t, when+": all in the console", func() bool {
		list, err := names.list(f.t.Context())
		return err == nil && len(list) == len(f.leases)
	})
}
