//go:build unix

package clustertest_test

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/clustertest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	mysql.SetLogger(log.New(io.Discard, "", 0)) // nodes are killed
	os.Exit(m.Run())
}

// TestGalera: applications on each node of an undisturbed cluster insert. The next test is the same with Group Replication.
// The build tag storm adds storms on both.
func TestGalera(t *testing.T) { runShop(t, clustertest.Galera(t)) }

func TestGroupReplication(t *testing.T) { runShop(t, clustertest.GroupReplication(t)) }

func runShop(t *testing.T, c *clustertest.Cluster) {
	t.Run("inserts", func(t *testing.T) { newShop(t, c).onEachNode(t) })
	t.Run("create", func(t *testing.T) { newShopWithoutAlloc(t, c).onEachNode(t) })
}

// onEachNode runs one application on each node, all inserting at the same time.
func (s *shop) onEachNode(t *testing.T) {
	var wg sync.WaitGroup
	never := time.Now().Add(time.Hour)
	for node := range s.cluster.Nodes {
		wg.Go(func() { s.insertSome(t, node, never) })
	}
	wg.Wait()
	s.verify(t)
	// The nodes share one identity, so no fetch moved the row up by a margin.
	db := s.open(t, 0)
	defer s.closeApp(t, db)
	var maxID int64
	var description string
	if err := db.QueryRow("SELECT max_id, description FROM leaf_alloc").Scan(&maxID, &description); err != nil || maxID > 1<<36 || !strings.HasSuffix(description, " 0 0") {
		t.Errorf("leaf_alloc's row = %d, %q, %v, want max_id up to %d and a mark without jumps", maxID, description, err, int64(1)<<36)
	}
}

const leafAlloc = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL," +
	" description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"

// insertRow returns the statement that adds a tag's row.
func insertRow(tag string, step int) string {
	return fmt.Sprintf("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('%s', 1, %d)", tag, step)
}
