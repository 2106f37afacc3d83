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

// A registry is a set of servers of one kind that lease worker ids. Each half of the writers has its own proxies to the
// servers, so that one half can be cut off.
type registry struct {
	name   string
	nodes  []node
	halves [2]proxyHalf
	open   func(proxyHalf) (worker.Source, error)
	params func(proxyHalf) string // returns the parameters of a writer's DSN for the registry

	// copyState makes a copy of the registry's data for restoreState, which restores it. A single
	// server has to be stopped for both. If nil, the registry is not set back.
	copyState, restoreState func()

	// lose makes the registry lose its last writes or all data while writers run. If nil, there is no such loss.
	lose func() (what string)

	// wipe deletes all data of the registry while writers run.
	wipe func()
}

// A node is one server of a registry. After a kill, start starts it again.
type node struct{ kill, start func() }

// A proxyHalf has the proxies to all servers for one half of the writers.
type proxyHalf []*netfault.Proxy

// addProxies starts proxies to the servers for both halves.
func (r *registry) addProxies(t *testing.T, servers ...string) {
	for i := range r.halves {
		for _, addr := range servers {
			r.halves[i] = append(r.halves[i], netfault.Start(t, addr))
		}
	}
}

// switchTo makes all proxies lead to another server, and cuts their connections.
func (r *registry) switchTo(server string) {
	for _, h := range r.halves {
		for _, p := range h {
			p.Switch(server)
			p.Cut()
		}
	}
}

// addrs returns the proxies' addresses.
func (h proxyHalf) addrs() (addrs []string) {
	for _, p := range h {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// each calls do with every proxy of the half.
func (h proxyHalf) each(do func(*netfault.Proxy)) {
	for _, p := range h {
		do(p)
	}
}

// cluster is the name of the cluster of three Nacos servers.
const cluster = "cluster"

// startRegistry starts the registry of a name, one of the flag chaos.servers.
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
	// On a new registry the first writers would wait for over a minute, until possible earlier leases have ended.
	leasetest.InUse(t, open, worker.Config{Workers: workers, Lease: lease, Layout: layout})
	return r
}

// workers is the number of worker ids: few, so that they change hands.
const workers = 32

// nacosServer starts one Nacos server.
func nacosServer(t *testing.T, r *registry) {
	s := nacostest.Start(t, nacostest.Version(r.name), nacostest.Options{})
	var dir string
	r.copyState = func() { dir = s.Snapshot(t) }
	r.restoreState = func() { s.Restore(t, dir) }
	r.wipe = func() { s.Kill9(); s.Wipe(t); s.Restart(t) }
	r.addNacos(t, s)
}

// nacosCluster starts three Nacos servers on one database.
func nacosCluster(t *testing.T, r *registry) {
	dsn := mysqltest.Database(t)
	r.copyState, r.restoreState = tableStates(t, dsn)
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
	r.addNacos(t, nodes...)
}

// addNacos starts two proxies for each server, for HTTP and for gRPC, and sets open and params.
func (r *registry) addNacos(t *testing.T, servers ...*nacostest.Server) {
	for _, s := range servers {
		r.nodes = append(r.nodes, node{s.Kill9, func() { s.Restart(t) }})
		r.addProxies(t, s.Addr(), s.GRPCAddr())
	}
	address := func(h proxyHalf) string {
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
	r.open = func(h proxyHalf) (worker.Source, error) {
		open, err := openThrough(address(h), nil)
		if err != nil {
			return worker.Source{}, err
		}
		return open(t.Context())
	}
	r.params = func(h proxyHalf) string { return "leafWorker=" + source + "(" + address(h) + ")" }
}

// tableStates returns copyState and restoreState for nodes that store their configs in a
// database.
func tableStates(t *testing.T, dsn string) (copyState, restoreState func()) {
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
