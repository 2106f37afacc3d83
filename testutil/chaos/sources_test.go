//go:build storm

package chaos

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/etcd"
	"github.com/leafsql/leafsql/idgen/worker/etcd/etcdtest"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
	"github.com/leafsql/leafsql/idgen/worker/redis"
	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper/zktest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/process"
)

// failOverDelay is how long a server continues without its replica before the fail-over: longer than the time
// between two renewals.
const failOverDelay = 3 * time.Second

// mysqlLeases starts one MariaDB, and fails over to another one that lacks the last writes.
func mysqlLeases(t *testing.T, r *registry) {
	servers := []*mysqltest.Server{mysqltest.Run(t, mysqltest.Config{}), mysqltest.Run(t, mysqltest.Config{})}
	const create = "CREATE DATABASE leases"
	for _, s := range servers {
		execute(t, s.DSN(""), create)
	}
	r.addProxies(t, servers[0].Addr())
	at := servers[0]
	r.nodes = []node{{
		func() { mustSucceed(t, at.Kill9()) },
		func() { mustSucceed(t, at.Restart()) },
	}}
	dsn := func(h proxyHalf) string {
		return mysqltest.WithDatabase(strings.Replace(servers[0].DSN(""), servers[0].Addr(), h.addrs()[0], 1), "leases")
	}
	r.open = func(h proxyHalf) (worker.Source, error) {
		db, err := sql.Open("mysql", dsn(h))
		if err != nil {
			return worker.Source{}, err
		}
		t.Cleanup(func() { db.Close() })
		return workermysql.Open(db, workermysql.Config{Create: true}), nil
	}
	r.params = func(h proxyHalf) string { return "leafStore=" + url.QueryEscape(dsn(h)) }
	r.lose = func() string {
		replicate(t, servers[0].DSN("leases"), servers[1].DSN("leases"))
		time.Sleep(failOverDelay)
		mustSucceed(t, servers[0].Kill9())
		at = servers[1]
		r.switchTo(at.Addr())
		return "failed over, the writes of its last 3 s lost"
	}
	r.wipe = func() { execute(t, at.DSN("leases"), "TRUNCATE leaf_worker") }
}

// replicate copies the current leases.
func replicate(t *testing.T, from, to string) {
	source, err := sql.Open("mysql", from)
	mustSucceed(t, err)
	defer source.Close()
	var name, create string
	mustSucceed(t, source.QueryRow("SHOW CREATE TABLE leaf_worker").Scan(&name, &create))
	execute(t, to, create)
	rows, err := source.Query("SELECT worker_id, nonce, hw, free, owner, registry, update_time FROM leaf_worker")
	mustSucceed(t, err)
	defer rows.Close()
	target, err := sql.Open("mysql", to)
	mustSucceed(t, err)
	defer target.Close()
	for rows.Next() {
		var row [7]any
		mustSucceed(t, rows.Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &row[6]))
		_, err := target.Exec("INSERT INTO leaf_worker (worker_id, nonce, hw, free, owner, registry, update_time) VALUES (?, ?, ?, ?, ?, ?, ?)", row[:]...)
		mustSucceed(t, err)
	}
	mustSucceed(t, rows.Err())
}

// execute runs a statement on a new connection.
func execute(t *testing.T, dsn, statement string) {
	db, err := sql.Open("mysql", dsn)
	mustSucceed(t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	mustSucceed(t, err)
}

// redisLeases starts a Redis primary with two replicas. When the primary dies, a replica replaces it, once without the
// last writes.
func redisLeases(t *testing.T, r *registry) {
	servers := redistest.StartReplicated(t, redistest.Config{})
	primary, err := servers.Primary()
	mustSucceed(t, err)
	r.addProxies(t, primary.Addr)
	var was *redistest.Server
	failOver := func() {
		was, err = servers.FailOver()
		mustSucceed(t, err)
		now, err := servers.Primary()
		mustSucceed(t, err)
		r.switchTo(now.Addr)
	}
	r.nodes = []node{{failOver, func() { mustSucceed(t, was.Start()); mustSucceed(t, servers.Await()) }}}
	r.open = func(h proxyHalf) (worker.Source, error) { return redis.Open(redis.Config{Servers: h.addrs()}) }
	r.params = func(h proxyHalf) string { return "leafWorker=redis(" + h.addrs()[0] + ")" }
	r.lose = func() string {
		mustSucceed(t, servers.CutReplication())
		time.Sleep(failOverDelay)
		failOver()
		mustSucceed(t, servers.HealReplication())
		mustSucceed(t, was.Start())
		return "failed over, the writes of its last 3 s lost"
	}
	r.wipe = func() {
		now, err := servers.Primary()
		mustSucceed(t, err)
		mustSucceed(t, now.FlushAll())
	}
}

// zookeeperLeases starts an ensemble of three servers.
func zookeeperLeases(t *testing.T, r *registry) {
	servers := zktest.StartEnsemble(t, zktest.Config{})
	for _, s := range servers.Nodes {
		r.addNode(t, s.Process, s.Addr)
	}
	r.open = func(h proxyHalf) (worker.Source, error) { return zookeeper.Open(zookeeper.Config{Servers: h.addrs()}) }
	r.params = func(h proxyHalf) string { return "leafWorker=zookeeper(" + strings.Join(h.addrs(), ",") + ")" }
	r.wipe = func() { wipe(t, servers.Nodes[:], servers.Start) }
}

// etcdLeases starts a cluster of three servers.
func etcdLeases(t *testing.T, r *registry) {
	servers := etcdtest.StartCluster(t, etcdtest.Config{})
	for _, s := range servers.Nodes {
		r.addNode(t, s.Process, s.Addr)
	}
	r.open = func(h proxyHalf) (worker.Source, error) { return etcd.Open(etcd.Config{Servers: h.addrs()}) }
	r.params = func(h proxyHalf) string { return "leafWorker=etcd(" + strings.Join(h.addrs(), ",") + ")" }
	r.wipe = func() { wipe(t, servers.Nodes[:], servers.Start) }
}

// addNode adds a server of a cluster to the registry.
func (r *registry) addNode(t *testing.T, p *process.Process, addr string) {
	r.nodes = append(r.nodes, node{func() { mustSucceed(t, p.Kill9()) }, func() { mustSucceed(t, p.Start()) }})
	r.addProxies(t, addr)
}

// wipe kills and wipes all servers, and then calls start to start them again.
func wipe[S interface {
	Kill9() error
	Wipe() error
}](t *testing.T, servers []S, start func() error) {
	for _, s := range servers {
		mustSucceed(t, s.Kill9())
		mustSucceed(t, s.Wipe())
	}
	mustSucceed(t, start())
}

func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
