package server

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// tagStats returns the statistics of a tag.
func (s *Server) tagStats(tag string) segment.Stats {
	for _, t := range s.connector.Stats().Tags {
		if t.Tag == tag {
			return t.Stats
		}
	}
	return segment.Stats{}
}

// outages are the ways in which a database becomes unreachable, and reachable again.
var outages = map[string]struct{ begin, end func(*netfault.Proxy) error }{
	"down":   {func(p *netfault.Proxy) error { p.Down(); return nil }, (*netfault.Proxy).Up},
	"silent": {func(p *netfault.Proxy) error { p.Drop(netfault.Both); return nil }, func(p *netfault.Proxy) error { p.Heal(); return nil }},
}

// TestOutageServesIDsInMemory: ids in memory are served without an error, then requests get 503, and ids again when the
// database is back.
func TestOutageServesIDsInMemory(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			_, dsn := createDatabase(t, 200, "orders", "other")
			proxy, dsn := startNetProxy(t, dsn)
			s, server := startServer(t, Config{DSN: dsn, Timeout: time.Second})
			orders := server + "/api/segment/get/orders"
			s.serveFromMemory(t, server, func() error { return outage.begin(proxy) })
			get(t, orders).wantProblem(t, 503, "unavailable")
			get(t, server+"/api/segment/get/other").wantBody(t, fmt.Sprint(s.tagStats("other").Current.End-s.tagStats("other").Left-1))
			get(t, server+"/healthz").wantBody(t, "ok\n")
			get(t, server+"/readyz").wantProblem(t, 503, "unavailable")
			if err := outage.end(proxy); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "ids again", func() bool { return get(t, orders).code == 200 })
			waitFor(t, "ready again", func() bool { return get(t, server+"/readyz").code == 200 })
		})
	}
}

// serveFromMemory begins an outage, and requests all ids of orders that are in memory.
func (s *Server) serveFromMemory(t *testing.T, server string, begin func() error) {
	t.Helper()
	orders := server + "/api/segment/get/orders"
	for range 20 { // the first range is small
		get(t, orders)
		get(t, server+"/api/segment/get/other")
	}
	waitFor(t, "a stock", func() bool { return s.tagStats("orders").Remaining > 100 && s.tagStats("other").Remaining > 100 })
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	for range s.tagStats("orders").Remaining {
		if a := get(t, orders); a.code != 200 {
			t.Fatalf("answer with ids in memory = %d %s, want 200", a.code, a.body)
		}
	}
}

// TestServerWithIDsInMemoryStaysReady: a server with ids in memory stays ready.
func TestServerWithIDsInMemoryStaysReady(t *testing.T) {
	_, dsn := createDatabase(t, 10, "orders")
	proxy, dsn := startNetProxy(t, dsn)
	_, server := startServer(t, Config{DSN: dsn})
	get(t, server+"/readyz").wantBody(t, "ready\n")
	get(t, server+"/api/segment/get/orders").wantBody(t, "1000")
	proxy.Down()
	waitFor(t, "it is noticed", func() bool { return strings.Contains(get(t, server+"/readyz").body, "in memory") })
}

// TestServerListensBeforeItsDatabase: a server that is started before its database listens, is not ready, and
// recovers by itself.
func TestServerListensBeforeItsDatabase(t *testing.T) {
	db, err := mysqltest.Prepare(mysqltest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Stop() })
	_, server, stop := runServer(t, Config{DSN: db.DSN("shop"), Timeout: 500 * time.Millisecond})
	get(t, server+"/healthz").wantBody(t, "ok\n")
	get(t, server+"/readyz").wantProblem(t, 503, "unavailable")
	get(t, server+"/api/segment/get/orders").wantProblem(t, 503, "unavailable")
	get(t, server+"/db").wantProblem(t, 503, "unavailable")
	if a := get(t, server+"/"); a.code != 200 || !strings.Contains(a.body, "No id has been asked for yet") {
		t.Errorf("page = %+v, want 200 and that no id was requested yet", a)
	}
	if err := db.Launch(); err != nil {
		t.Fatal(err)
	}
	get(t, server+"/readyz").wantProblem(t, 503, "unavailable") // the database and leaf_alloc do not exist
	admin := connect(t, db.DSN(""))
	exec(t, admin, "CREATE DATABASE shop")
	shop := connect(t, db.DSN("shop"))
	exec(t, shop, allocTable)
	addTag(t, shop, "orders", 1000, 100)
	waitFor(t, "readiness", func() bool { return get(t, server+"/readyz").code == 200 })
	get(t, server+"/api/segment/get/orders").wantBody(t, "1000")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestDrainAnswersRequestsInProgress: requests in progress are answered even after Config.Drain has passed, and new connections are
// refused.
func TestDrainAnswersRequestsInProgress(t *testing.T) {
	_, dsn := createDatabase(t, 10, "orders", "items")
	proxy, dsn := startNetProxy(t, dsn)
	s, server, stop := runServer(t, Config{DSN: dsn, Drain: 4 * time.Second, Timeout: 40 * time.Second})
	get(t, server+"/api/segment/get/orders").wantBody(t, "1000")
	closed := make(chan struct{})
	proxy.Filter(func(dir netfault.Direction, _ []byte) netfault.Verdict {
		if dir == netfault.ToClient {
			<-closed
		}
		return netfault.Pass
	})
	slow := make(chan answer, 1)
	go func() {
		a, err := sendRequest(context.Background(), "GET", server+"/api/segment/get/items")
		if err != nil {
			t.Error(err)
		}
		slow <- a
	}()
	waitFor(t, "a request that waits", func() bool { return s.requests.Load() == 1 })
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	waitFor(t, "not ready", func() bool { return get(t, server+"/readyz").code == 503 })
	get(t, server+"/api/segment/get/orders").wantBody(t, "1001") // for clients of a balancer that has not noticed yet
	waitFor(t, "nobody listens", func() bool { _, err := sendRequest(t.Context(), "GET", server+"/healthz"); return err != nil })
	close(closed)
	if a := <-slow; a.code != 200 || a.body != "1000" {
		t.Errorf("answer to the request in progress = %+v, want 200 1000", a)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServerIsReadyDespiteOneTag: a row that gives no ids does not make a server not ready in an outage: neither a row
// that was unusable from the start nor one that was used up or deleted later, and independent of the requests
// during the outage.
func TestServerIsReadyDespiteOneTag(t *testing.T) {
	db, dsn := createDatabase(t, 1000, "orders", "deleted")
	addTag(t, db, "bad step", 1, 0)
	exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('used up', 9223372036854775807 - 16, 16)")
	proxy, dsn := startNetProxy(t, dsn)
	s, server := startServer(t, Config{DSN: dsn, Timeout: 200 * time.Millisecond})
	ask := func(tag string) int { return get(t, server+"/api/segment/get/"+tag).code }
	if ask("deleted") != 200 {
		t.Fatal("id of the tag deleted: status is not 200, want 200")
	}
	exec(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 'deleted'")
	waitFor(t, "an end of deleted", func() bool { return ask("deleted") == 404 })
	waitFor(t, "an end of used up", func() bool { return ask("used%20up") == 500 })
	if code := ask("bad%20step"); code != 500 {
		t.Errorf("status of bad step = %d, want 500", code)
	}
	for range 20 {
		ask("orders")
	}
	waitFor(t, "a stock", func() bool { return s.tagStats("orders").Remaining > 100 })
	get(t, server+"/readyz").wantBody(t, "ready\n")
	proxy.Down()
	for range 3 {
		for _, tag := range []string{"bad%20step", "used%20up", "deleted"} {
			if ask(tag) == 200 {
				t.Errorf("status of %s = 200, want an error", tag)
			}
		}
		time.Sleep(probeInterval)
		get(t, server+"/readyz").wantBody(t, "ready: leaf_alloc is unavailable, but there are ids in memory\n")
	}
	for range s.tagStats("orders").Remaining {
		ask("orders")
	}
	get(t, server+"/readyz").wantProblem(t, 503, "unavailable")
}

// TestServerIsReadyWithAWorkerID: a server of snowflakes is ready once it holds a worker id, even if the DSN names no
// source. A server of ids from leaf_alloc without a source reports that it makes no snowflakes, and stays
// ready.
func TestServerIsReadyWithAWorkerID(t *testing.T) {
	dbs, dsns := [3]*sql.DB{}, [3]string{} // pools of one process would share a worker id
	for i := range dbs {
		dbs[i], dsns[i] = createDatabase(t, 100)
		dsns[i] += "?leafNewRegistry=true"
	}
	_, server, _ := runServer(t, Config{DSN: dsns[0], NoSegments: true}) // leaf_worker is missing
	get(t, server+"/readyz").wantProblem(t, 503, "unavailable")
	get(t, server+"/readyz/snowflake").wantProblem(t, 503, "unavailable")
	get(t, server+"/readyz/segment").wantProblem(t, 404, "disabled")

	_, both, _ := runServer(t, Config{DSN: dsns[1] + "&leafWorker=mysql()"})
	get(t, both+"/readyz").wantProblem(t, 503, "unavailable")
	get(t, both+"/readyz/segment").wantBody(t, "ready\n")

	_, lazy, _ := runServer(t, Config{DSN: dsns[2]})
	get(t, lazy+"/readyz").wantBody(t, "ready\n")
	get(t, lazy+"/readyz/snowflake").wantProblem(t, 503, "unavailable") // this starts the search for a worker id
	get(t, lazy+"/api/snowflake/get/x").wantProblem(t, 503, "unavailable")
	get(t, lazy+"/readyz").wantBody(t, "ready\nno snowflakes: there is no worker id\n")
	get(t, lazy+"/readyz/snowflake").wantProblem(t, 503, "unavailable")

	_, none, _ := runServer(t, Config{DSN: dsns[0], NoSnowflakes: true})
	get(t, none+"/readyz").wantBody(t, "ready\n")
	get(t, none+"/readyz/snowflake").wantProblem(t, 404, "disabled")
	get(t, none+"/readyz/nosuch").wantProblem(t, 404, "not-found")

	for _, db := range dbs {
		exec(t, db, workerTable)
	}
	for _, url := range []string{server, both, lazy} {
		waitFor(t, "a worker id", func() bool { return get(t, url+"/readyz/snowflake").code == 200 })
		get(t, url+"/readyz").wantBody(t, "ready\n")
		if a := get(t, url+"/api/snowflake/get/x"); a.code != 200 {
			t.Errorf("answer = %+v, want 200", a)
		}
	}
}
