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

// lost is how long a server continues without its replica before the fail-over: longer than the time between two renewals.
const lost = 3 * time.Second

// mysqlLeases starts one MariaDB, and fails over to another one that lacks the last writes.
func mysqlLeases(t *testing.T, r *registry) {
	servers := []*mysqltest.Server{mysqltest.Run(t, mysqltest.Config{}), mysqltest.Run(t, mysqltest.Config{})}
	const create = "CREATE DATABASE leases"
	for _, s := range servers {
		execute(t, s.DSN(""), create)
	}
	r.through(t, servers[0].Addr())
	at := servers[0]
	r.nodes = []node{{
		func() { check(t, at.Kill9()) },
		func() { check(t, at.Restart()) },
	}}
	dsn := func(h half) string {
		return mysqltest.WithDatabase(strings.Replace(servers[0].DSN(""), servers[0].Addr(), h.addrs()[0], 1), "leases")
	}
	r.open = func(h half) (worker.Source, error) {
		db, err := sql.Open("mysql", dsn(h))
		if err != nil {
			return worker.Source{}, err
		}
		t.Cleanup(func() { db.Close() })
		return workermysql.Open(db, workermysql.Config{Create: true}), nil
	}
	r.params = func(h half) string { return "leafStore=" + url.QueryEscape(dsn(h)) }
	r.lose = func() string {
		replicate(t, servers[0].DSN("leases"), servers[1].DSN("leases"))
		time.Sleep(lost)
		check(t, servers[0].Kill9())
		at = servers[1]
		r.switchTo(at.Addr())
		return "failed over, the writes of its last 3 s lost"
	}
	r.wipe = func() { execute(t, at.DSN("leases"), "TRUNCATE leaf_worker") }
}

// replicate copies the current leases.
func replicate(t *testing.T, from, to string) {
	source, err := sql.Open("mysql", from)
	check(t, err)
	defer source.Close()
	var name, create string
	check(t, source.QueryRow("SHOW CREATE TABLE leaf_worker").Scan(&name, &create))
	execute(t, to, create)
	rows, err := source.Query("SELECT worker_id, nonce, hw, free, owner, registry, update_time FROM leaf_worker")
	check(t, err)
	defer rows.Close()
	target, err := sql.Open("mysql", to)
	check(t, err)
	defer target.Close()
	for rows.Next() {
		var row [7]any
		check(t, rows.Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &row[6]))
		_, err := target.Exec("INSERT INTO leaf_worker (worker_id, nonce, hw, free, owner, registry, update_time) VALUES (?, ?, ?, ?, ?, ?, ?)", row[:]...)
		check(t, err)
	}
	check(t, rows.Err())
}

// execute runs a statement on a new connection.
func execute(t *testing.T, dsn, statement string) {
	db, err := sql.Open("mysql", dsn)
	check(t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	check(t, err)
}

// redisLeases starts a Redis primary with two replicas. When the primary dies, a replica replaces it, once without the
// last writes.
func redisLeases(t *testing.T, r *registry) {
	servers := redistest.StartReplicated(t, redistest.Config{})
	primary, err := servers.Primary()
	check(t, err)
	r.through(t, primary.Addr)
	var was *redistest.Server
	failOver := func() {
		was, err = servers.FailOver()
		check(t, err)
		now, err := servers.Primary()
		check(t, err)
		r.switchTo(now.Addr)
	}
	r.nodes = []node{{failOver, func() { check(t, was.Start()); check(t, servers.Await()) }}}
	r.open = func(h half) (worker.Source, error) { return redis.Open(redis.Config{Servers: h.addrs()}) }
	r.params = func(h half) string { return "leafWorker=redis(" + h.addrs()[0] + ")" }
	r.lose = func() string {
		check(t, servers.CutReplication())
		time.Sleep(lost)
		failOver()
		check(t, servers.HealReplication())
		check(t, was.Start())
		return "failed over, the writes of its last 3 s lost"
	}
	r.wipe = func() {
		now, err := servers.Primary()
		check(t, err)
		check(t, now.FlushAll())
	}
}

// zookeeperLeases starts an ensemble of three servers.
func zookeeperLeases(t *testing.T, r *registry) {
	servers := zktest.StartEnsemble(t, zktest.Config{})
	for _, s := range servers.Nodes {
		r.node(t, s.Process, s.Addr)
	}
	r.open = func(h half) (worker.Source, error) { return zookeeper.Open(zookeeper.Config{Servers: h.addrs()}) }
	r.params = func(h half) string { return "leafWorker=zookeeper(" + strings.Join(h.addrs(), ",") + ")" }
	r.wipe = func() { wipe(t, servers.Nodes[:], servers.Start) }
}

// etcdLeases starts a cluster of three servers.
func etcdLeases(t *testing.T, r *registry) {
	servers := etcdtest.StartCluster(t, etcdtest.Config{})
	for _, s := range servers.Nodes {
		r.node(t, s.Process, s.Addr)
	}
	r.open = func(h half) (worker.Source, error) { return etcd.Open(etcd.Config{Servers: h.addrs()}) }
	r.params = func(h half) string { return "leafWorker=etcd(" + strings.Join(h.addrs(), ",") + ")" }
	r.wipe = func() { wipe(t, servers.Nodes[:], servers.Start) }
}

// node adds a server of a cluster to the registry.
func (r *registry) node(t *testing.T, p *process.Process, addr string) {
	r.nodes = append(r.nodes, node{func() { check(t, p.Kill9()) }, func() { check(t, p.Start()) }})
	r.through(t, addr)
}

// wipe kills and wipes all servers, and then calls start to start them again.
func wipe[S interface {
	Kill9() error
	Wipe() error
}](t *testing.T, servers []S, start func() error) {
	for _, s := range servers {
		check(t, s.Kill9())
		check(t, s.Wipe())
	}
	check(t, start())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
