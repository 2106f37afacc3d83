package chaos

import (
	"context"
	"database/sql"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/nacostest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// A registry is a Nacos server, or the nodes of a cluster, behind two sets of
// proxies, one for each half of the writers, so that the halves can be cut off
// one by one.
type registry struct {
	name   string
	nodes  []*nacostest.Server
	halves [2]half

	// older keeps a copy of what the registry holds, for setBack. A single
	// server has to be stopped for both.
	older, setBack func()
}

// A half is the ways to the nodes of one half of the writers, HTTP and gRPC.
type half []struct{ http, grpc *netfault.Proxy }

// cluster is the name of the cluster of three.
const cluster = "cluster"

func startRegistry(t *testing.T, name string, lease time.Duration) *registry {
	r := &registry{name: name}
	if name == cluster {
		dsn := mysqltest.Database(t)
		for _, n := range nacostest.StartCluster(t, dsn).Nodes {
			r.nodes = append(r.nodes, n)
		}
		r.older, r.setBack = tables(t, dsn)
	} else {
		s := nacostest.Start(t, nacostest.Version(name), nacostest.Options{})
		r.nodes = []*nacostest.Server{s}
		var dir string
		r.older = func() { dir = s.Snapshot(t) }
		r.setBack = func() { s.Restore(t, dir) }
	}
	for i := range r.halves {
		r.halves[i] = make(half, len(r.nodes))
		for j, n := range r.nodes {
			r.halves[i][j].http = netfault.Start(t, n.Addr())
			r.halves[i][j].grpc = netfault.Start(t, n.GRPCAddr())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.prepare(ctx, lease); err != nil {
		t.Fatal(err)
	}
	return r
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

// workers is how many worker ids there are: few, so that they change hands.
const workers = 32

// prepare makes the documents of all worker ids: on a new registry the first
// writers would wait out what they cannot know, for over a minute.
func (r *registry) prepare(ctx context.Context, lease time.Duration) error {
	open, err := worker.Lookup(r.spec(0), nil)
	if err != nil {
		return err
	}
	return worker.Prepare(ctx, open, worker.Config{Workers: workers, Lease: lease, Layout: layout})
}

// spec is what a writer puts into leafWorker.
func (r *registry) spec(writer int) string {
	var nodes []string
	for _, way := range r.halves[writer%2] {
		_, port, err := net.SplitHostPort(way.grpc.Addr())
		if err != nil {
			panic(err)
		}
		nodes = append(nodes, way.http.Addr()+":"+port)
	}
	return source + "(" + strings.Join(nodes, ",") + ")"
}

// each does something to every proxy of the half.
func (h half) each(do func(*netfault.Proxy)) {
	for _, way := range h {
		do(way.http)
		do(way.grpc)
	}
}
