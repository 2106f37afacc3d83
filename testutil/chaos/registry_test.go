//go:build storm

package chaos

import (
	"context"
	"database/sql"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/nacostest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// A registry is the servers of one kind that worker ids are leased from, behind two sets of proxies, one for each half of
// the writers, so that the halves can be cut off one by one.
type registry struct {
	name   string
	nodes  []node
	halves [2]half
	open   func(half) (worker.Source, error)
	params func(half) string // what a writer's DSN says of it

	// older keeps a copy of what the registry holds, for setBack. A single
	// server has to be stopped for both. nil: it is not set back.
	older, setBack func()

	// lose makes the registry forget its last writes, or all, with everybody at work. nil: it does not.
	lose func() (what string)

	// wipe makes it forget all, with everybody at work.
	wipe func()
}

// A node is one server of a registry. After a kill, start lets it serve again.
type node struct{ kill, start func() }

// A half is the ways to all servers of one half of the writers.
type half []*netfault.Proxy

// through leads the ways of both halves to the servers.
func (r *registry) through(t *testing.T, servers ...string) {
	for i := range r.halves {
		for _, addr := range servers {
			r.halves[i] = append(r.halves[i], netfault.Start(t, addr))
		}
	}
}

// switchTo leads all to another server from now on.
func (r *registry) switchTo(server string) {
	for _, h := range r.halves {
		for _, p := range h {
			p.Switch(server)
			p.Cut()
		}
	}
}

func (h half) addrs() (addrs []string) {
	for _, p := range h {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// each does something to every proxy of the half.
func (h half) each(do func(*netfault.Proxy)) {
	for _, p := range h {
		do(p)
	}
}

// cluster is the name of the cluster of three Nacos servers.
const cluster = "cluster"

func startRegistry(t *testing.T, name string, lease time.Duration) *registry {
	start, ok := map[string]func(*testing.T, *registry){
		cluster: nacosCluster, "mysql": mysqlLeases, "redis": redisLeases, "zookeeper": zookeeperLeases, "etcd": etcdLeases,
	}[name]
	if !ok {
		start = nacosServer
	}
	r := &registry{name: name}
	start(t, r)
	open := func(context.Context) (worker.Source, error) { return r.open(r.halves[0]) }
	// On a new registry the first writers would wait out what they cannot know, for over a minute.
	leasetest.InUse(t, open, worker.Config{Workers: workers, Lease: lease, Layout: layout})
	return r
}

// workers is how many worker ids there are: few, so that they change hands.
const workers = 32

func nacosServer(t *testing.T, r *registry) {
	s := nacostest.Start(t, nacostest.Version(r.name), nacostest.Options{})
	var dir string
	r.older = func() { dir = s.Snapshot(t) }
	r.setBack = func() { s.Restore(t, dir) }
	r.wipe = func() { s.Kill9(); s.Wipe(t); s.Restart(t) }
	r.nacos(t, s)
}

func nacosCluster(t *testing.T, r *registry) {
	dsn := mysqltest.Database(t)
	r.older, r.setBack = tables(t, dsn)
	nodes := nacostest.StartCluster(t, dsn).Nodes[:]
	r.wipe = func() { // each node has a copy of the table
		for _, s := range nodes {
			s.Kill9()
		}
		execute(t, dsn, "DELETE FROM config_info")
		for _, s := range nodes {
			s.Restart(t)
		}
	}
	r.nacos(t, nodes...)
}

// nacos leads to each server by two proxies: HTTP and gRPC.
func (r *registry) nacos(t *testing.T, servers ...*nacostest.Server) {
	for _, s := range servers {
		r.nodes = append(r.nodes, node{s.Kill9, func() { s.Restart(t) }})
		r.through(t, s.Addr(), s.GRPCAddr())
	}
	address := func(h half) string {
		var ways []string
		for way := range slices.Chunk(h.addrs(), 2) {
			_, port, err := net.SplitHostPort(way[1])
			if err != nil {
				t.Fatal(err)
			}
			ways = append(ways, way[0]+":"+port)
		}
		return strings.Join(ways, ",")
	}
	r.open = func(h half) (worker.Source, error) {
		open, err := openThrough(address(h), nil)
		if err != nil {
			return worker.Source{}, err
		}
		return open(t.Context())
	}
	r.params = func(h half) string { return "leafWorker=" + source + "(" + address(h) + ")" }
}

// tables gives older and setBack for nodes that keep their configs in a
// database.
func tables(t *testing.T, dsn string) (older, setBack func()) {
	do := func(statements ...string) {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return func() { do("CREATE TABLE older AS SELECT * FROM config_info") },
		func() { do("DELETE FROM config_info", "INSERT INTO config_info SELECT * FROM older") }
}
