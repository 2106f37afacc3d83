//go:build unix && storm

package clustertest_test

import (
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/clustertest"
)

// patience is the time limit of each INSERT while nodes are killed.
const patience = 8 * time.Second

func newStormShop(t *testing.T, c *clustertest.Cluster) *shop {
	t.Helper()
	s := newShop(t, c)
	s.patience = patience
	return s
}

// insertFor runs apps applications at a time on each of the nodes for the duration d. Each application inserts up to 50 rows and
// is followed by another one.
func (s *shop) insertFor(t testing.TB, d time.Duration, apps int, nodes ...int) {
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for _, node := range nodes {
		for range apps {
			wg.Go(func() {
				s.insertSome(t, node, end)
				for time.Now().Before(end) {
					s.insertSome(t, node, end)
				}
			})
		}
	}
	wg.Wait()
}

// waitForInsert waits until an application on a returned node can insert.
func (s *shop) waitForInsert(t testing.TB, db *sql.DB, node int) {
	t.Helper()
	begin := time.Now()
	for err := s.insert(t, db, node, patience); err != nil; err = s.insert(t, db, node, patience) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("INSERT on node %d a minute after its return: %v, want no error", node, err)
		}
	}
}

// testNoMajority kills two nodes while two applications run on the third: one with ids in memory, and one that
// has to fetch some. Their INSERTs must fail and Close must return.
func (s *shop) testNoMajority(t *testing.T) {
	busy, idle := s.open(t, 2), s.open(t, 2)
	if err := s.insert(t, busy, 2, patience); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.cluster.Nodes[:2] {
		if err := n.Kill9(); err != nil {
			t.Fatal(err)
		}
	}
	// The third node may need a moment to notice.
	var wg sync.WaitGroup
	for _, db := range []*sql.DB{busy, idle} {
		wg.Go(func() {
			var err error
			for end := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(end); {
				err = s.insert(t, db, 2, patience)
			}
			if err == nil {
				t.Error("an INSERT without a majority succeeded, want an error")
			}
			t.Log(err)
			s.closeApp(t, db)
		})
	}
	wg.Wait()
}
