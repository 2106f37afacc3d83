//go:build unix && storm

package clustertest_test

import (
	"context"
	"database/sql"
	"flag"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

var (
	storm  = flag.Duration("storm", time.Minute, "how long the storm of fetches blows, and that of inserts half as long")
	starts = flag.Int("storm.starts", 200, "how often 18 generators start at once")
	kills  = flag.Int("storm.kills", 6, "how often a node is frozen, and how often one is killed, each time another one")
)

func TestStormGalera(t *testing.T) {
	t.Parallel()
	c := clustertest.Galera(t)
	runStorms(t, c)
	testNodesLeave(t, c)
	t.Run("no majority", func(t *testing.T) {
		s := newStormShop(t, c)
		s.testNoMajority(t)
		c.Rejoin(t)
		for node := range c.Nodes {
			db := s.open(t, node)
			s.waitForInsert(t, db, node)
			s.closeApp(t, db)
		}
		s.verify(t)
	})
}

func TestStormGroupReplication(t *testing.T) {
	t.Parallel()
	c := clustertest.GroupReplication(t)
	runStorms(t, c)
	t.Run("switch-over", func(t *testing.T) { testSwitchOver(t, c) })
	testNodesLeave(t, c)
	t.Run("no majority", func(t *testing.T) { newStormShop(t, c).testNoMajority(t) })
}

func runStorms(t *testing.T, c *clustertest.Cluster) {
	t.Run("fetches", func(t *testing.T) { testFetches(t, c) })
	t.Run("starts", func(t *testing.T) { testGeneratorsStart(t, c) })
	t.Run("inserts", func(t *testing.T) { testInserts(t, c) })
	t.Run("create", func(t *testing.T) { testCreates(t, c) })
}

func testNodesLeave(t *testing.T, c *clustertest.Cluster) {
	thaw := func(t testing.TB, node *mysqltest.Server) {
		if err := node.Thaw(); err != nil {
			t.Fatal(err)
		}
		c.Await(t)
	}
	rejoin := func(t testing.TB, _ *mysqltest.Server) { c.Rejoin(t) }
	for i := range *kills {
		t.Run("node frozen", func(t *testing.T) { testNodeAway(t, c, i%3, (*mysqltest.Server).Freeze, thaw) })
		t.Run("node killed", func(t *testing.T) { testNodeAway(t, c, i%3, (*mysqltest.Server).Kill9, rejoin) })
	}
}

// testFetches runs four callers on each node, and two that switch to another node with each connection.
func testFetches(t *testing.T, c *clustertest.Cluster) {
	name := c.Database(t, leafAlloc, insertRow("o", 10))
	var stores []*segment.AllocStore
	for _, n := range c.Nodes {
		store := segment.NewAllocStore(openPool(t, n.DSN(name), nil), "leaf_alloc")
		stores = append(stores, store, store, store, store)
	}
	for range 2 {
		db := openPool(t, c.Nodes[0].DSN(name), dialInTurn(c))
		db.SetMaxIdleConns(0)
		stores = append(stores, segment.NewAllocStore(db, "leaf_alloc"))
	}
	var (
		ids      idcheck.Collector
		failures failures
		fetched  atomic.Int64
		wg       sync.WaitGroup
	)
	end := time.Now().Add(*storm)
	for _, store := range stores {
		issued := ids.Recorder()
		wg.Go(func() {
			var seen, floor int64
			for i := 0; time.Now().Before(end); i++ {
				if i%5 == 0 {
					floor = seen + rand.Int64N(30) // as after a row with an explicit key
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				r, err := store.Fetch(ctx, segment.Request{Tag: "o", N: 10, Step: 10, Floor: floor, Seen: seen})
				cancel()
				if err != nil {
					failures.add(err)
					continue
				}
				if r.Start < floor || r.End-r.Start != 10 {
					t.Errorf("the ids from %d to %d, wanted were 10 from %d up", r.Start, r.End, floor)
				}
				issued.Add(r.Start, int(r.End-r.Start))
				seen = r.End
				fetched.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d segments, %d duplicates, %d errors", fetched.Load(), ids.Report().Duplicates/10, failures.count())
	ids.Verify(t)
	failures.report(t)
}

// testGeneratorsStart starts 18 processes at the same moment, again and again. A process is a pool and a
// generator here.
func testGeneratorsStart(t *testing.T, c *clustertest.Cluster) {
	var failures failures
	var issued, duplicates int64
	for range *starts {
		name := c.Database(t, leafAlloc, insertRow("o", 1))
		var ids idcheck.Collector
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i := range 18 {
			r := ids.Recorder()
			wg.Go(func() {
				db := openPool(t, c.Nodes[i%3].DSN(name), nil)
				defer db.Close()
				g := segment.New(segment.NewAllocStore(db, "leaf_alloc"), "o", nil)
				defer g.Close()
				<-begin
				for range 3 {
					id, err := g.Next(t.Context(), 1)
					for again := 0; again < 5 && isBehind(err); again++ {
						id, err = g.Next(t.Context(), 1)
					}
					if err != nil {
						failures.add(err)
						continue
					}
					r.Add(id, 1)
				}
			})
		}
		close(begin)
		wg.Wait()
		report := ids.Verify(t)
		issued += report.Issued
		duplicates += report.Duplicates
	}
	t.Logf("%d starts: %d ids, %d duplicates, %d errors", *starts, issued, duplicates, failures.count())
	failures.report(t)
}

// testInserts runs four applications on each node, which insert into the node's own table with ids of one tag.
// So no primary key reports a duplicate.
func testInserts(t *testing.T, c *clustertest.Cluster) {
	s := newStormShop(t, c)
	s.insertFor(t, *storm/2, 4, 0, 1, 2)
	s.verify(t)
}

// testCreates starts twelve applications in a database without leaf_alloc.
func testCreates(t *testing.T, c *clustertest.Cluster) {
	for range 3 {
		s := newShopWithoutAlloc(t, c)
		s.patience = patience
		s.insertFor(t, 0, 4, 0, 1, 2)
		s.verify(t)
	}
}

// testSwitchOver makes the primary read-only and another node the primary, with a balancer that keeps sessions.
// leafsql's internal connections must leave the old primary. The application's connections have a lifetime.
func testSwitchOver(t *testing.T, c *clustertest.Cluster) {
	s := newStormShop(t, c)
	c.SinglePrimary(t, 0)
	defer c.MultiPrimary(t)
	proxy := netfault.Start(t, c.Nodes[0].Addr())
	db := s.openAt(t, "root@tcp("+proxy.Addr()+")/"+s.name)
	defer s.closeApp(t, db)
	db.SetConnMaxLifetime(time.Second)
	for range 20 {
		if err := s.insert(t, db, 0, patience); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Switch(c.Nodes[1].Addr())
	c.SinglePrimary(t, 1)
	begin, failed, inRow := time.Now(), 0, 0
	var last error
	for inRow < 500 && time.Since(begin) < 20*time.Second { // enough for some fetches
		if err := s.insert(t, db, 0, patience); err != nil {
			failed, inRow, last = failed+1, 0, err
			continue
		}
		inRow++
	}
	if inRow < 500 {
		t.Errorf("%d INSERTs in a row succeeded after the change of the primary, want 500; %d failed, the last with: %v", inRow, failed, last)
	}
	t.Logf("%d INSERTs failed, and none any more after %v", failed, time.Since(begin).Round(100*time.Millisecond))
	s.verify(t)
}

// testNodeAway checks that applications on two nodes continue while the third node is away, and applications on
// the third node when it is back.
func testNodeAway(t *testing.T, c *clustertest.Cluster, node int, away func(*mysqltest.Server) error, back func(testing.TB, *mysqltest.Server)) {
	s := newStormShop(t, c)
	var wg sync.WaitGroup
	wg.Go(func() { s.insertFor(t, 4*time.Second, 2, (node+1)%3, (node+2)%3) })
	there := s.open(t, node)
	defer s.closeApp(t, there)
	for range 20 {
		if err := s.insert(t, there, node, patience); err != nil {
			t.Fatal(err)
		}
	}
	if err := away(c.Nodes[node]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if s.insert(t, there, node, 2*time.Second) == nil {
			t.Errorf("an INSERT on node %d, which is cut off, succeeded, want an error", node)
		}
	}
	wg.Wait()
	back(t, c.Nodes[node])
	s.waitForInsert(t, there, node)
	s.verify(t)
}

// openPool opens a pool of the same size as the driver's pool for leaf_alloc.
func openPool(t testing.TB, dsn string, dial func(context.Context, string, string) (net.Conn, error)) *sqlx.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DialFunc = dial
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	db.SetMaxOpenConns(4)
	t.Cleanup(func() { db.Close() })
	return db
}

// dialInTurn returns a dial function that uses the nodes in turn, like a balancer.
func dialInTurn(c *clustertest.Cluster) func(context.Context, string, string) (net.Conn, error) {
	var turn atomic.Int64
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, c.Nodes[turn.Add(1)%3].Addr())
	}
}
