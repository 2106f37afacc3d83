//go:build unix

package clustertest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// A shop is a database with a table for each node, t0 to t2. Applications on the node insert into it through mysql-leaf, and all
// draw on one tag.
type shop struct {
	cluster *clustertest.Cluster
	name    string
	params  string
	clock   func() time.Duration // stops while the machine hangs

	patience time.Duration // time limit of each INSERT of insertSome

	apps         atomic.Int64
	acknowledged atomic.Int64
	failures     failures
}

var shopTables = []string{
	"CREATE TABLE t0 (id BIGINT NOT NULL PRIMARY KEY, app INT)",
	"CREATE TABLE t1 (id BIGINT NOT NULL PRIMARY KEY, app INT)",
	"CREATE TABLE t2 (id BIGINT NOT NULL PRIMARY KEY, app INT)",
}

func newShop(t *testing.T, c *clustertest.Cluster) *shop {
	t.Helper()
	return &shop{cluster: c, clock: stopwatch.Start(t), patience: time.Minute, name: c.Database(t, append(shopTables, leafAlloc, insertRow("t", 5))...)}
}

// newShopWithoutAlloc returns a shop without leaf_alloc, which its applications create.
func newShopWithoutAlloc(t *testing.T, c *clustertest.Cluster) *shop {
	t.Helper()
	return &shop{cluster: c, clock: stopwatch.Start(t), patience: time.Minute, name: c.Database(t, shopTables...), params: "&leafCreate=true"}
}

// insertTolerance is how much longer than its context an INSERT may take on a busy machine.
const insertTolerance = 2 * time.Second

// open opens an application on a node.
func (s *shop) open(t testing.TB, node int) *sql.DB {
	return s.openAt(t, s.cluster.Nodes[node].DSN(s.name))
}

// openAt opens an application with its own segments: applications with equal data sources would share them.
func (s *shop) openAt(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver.Name, fmt.Sprintf("%s?leafTables=t*:id:segment(t)&connectionAttributes=app:%d%s", dsn, s.apps.Add(1), s.params))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// insert inserts one row with a time limit, and fails the test if it takes much longer than the limit.
func (s *shop) insert(t testing.TB, db *sql.DB, node int, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := s.clock()
	_, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO t%d (app) VALUES (?)", node), s.apps.Load())
	if took := s.clock() - began; took > patience+insertTolerance {
		t.Errorf("INSERT on node %d took %v (error %v), want at most %v", node, took, err, patience+insertTolerance)
	}
	if err == nil {
		s.acknowledged.Add(1)
	}
	return err
}

// closeApp closes an application, which must not wait for a node that does not answer.
func (s *shop) closeApp(t testing.TB, db *sql.DB) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		db.Close()
	}()
	for began := s.clock(); s.clock()-began < 5*time.Second; {
		select {
		case <-closed:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("Close() has not returned after 5s, want it earlier")
}

// insertSome runs one application, which inserts up to 50 rows until end, at least one.
func (s *shop) insertSome(t testing.TB, node int, end time.Time) {
	db := s.open(t, node)
	defer s.closeApp(t, db)
	for i := 0; i == 0 || i < 50 && time.Now().Before(end); i++ {
		err := s.insert(t, db, node, s.patience)
		for again := 0; again < 5 && isBehind(err); again++ {
			t.Logf("once more on node %d: %v", node, err)
			err = s.insert(t, db, node, s.patience)
		}
		if err != nil {
			s.failures.add(fmt.Errorf("on node %d: %w", node, err))
		}
	}
}

// isBehind reports whether err is the error of a lost conflict. A node that lags loses every conflict. On a busy machine it may
// take longer to catch up than a fetch is retried.
func isBehind(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (e.Number == 3101 || e.Number == 1213)
}

// verify compares the stored rows with the acknowledged ones, and reports the failures.
func (s *shop) verify(t testing.TB) {
	t.Helper()
	db, err := sql.Open("mysql", s.cluster.Nodes[1].DSN(s.name))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var top int64
	if err := db.QueryRowContext(ctx, "SELECT MAX(max_id) FROM leaf_alloc").Scan(&top); err != nil || top > 1<<36 { // all nodes are one server
		t.Errorf("highest max_id = %d, %v, want at most %d", top, err, int64(1)<<36)
	}
	const count = "SELECT COUNT(*), COUNT(DISTINCT id) FROM (SELECT id FROM t0 UNION ALL SELECT id FROM t1 UNION ALL SELECT id FROM t2) t"
	var rows, ids int64
	for { // this node may not have applied all rows of the others
		if err := db.QueryRowContext(ctx, count).Scan(&rows, &ids); err != nil {
			t.Fatal(err)
		}
		if rows >= s.acknowledged.Load() {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("rows = %d, want the %d acknowledged ones", rows, s.acknowledged.Load())
		}
	}
	t.Logf("%d rows, %d acknowledged, %d duplicates, %d errors", rows, s.acknowledged.Load(), rows-ids, s.failures.count())
	if rows != ids {
		t.Errorf("distinct ids = %d, want %d, one for each row", ids, rows)
	}
	s.failures.report(t)
}

// failures counts the errors that should not have reached a caller, by text.
type failures struct {
	mu  sync.Mutex
	all map[string]int
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[string]int)
	}
	f.all[err.Error()]++
}

func (f *failures) count() (n int) {
	for _, times := range f.all {
		n += times
	}
	return n
}

func (f *failures) report(t testing.TB) {
	t.Helper()
	shown := 0
	for text, times := range f.all {
		if shown++; shown <= 10 {
			t.Errorf("failure, %d times: %s; want none", times, text)
		}
	}
}
