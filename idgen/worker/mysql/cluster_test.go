package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/testutil/clustertest"
)

// TestWorkerKitOnGalera, like the next test, has processes that write to different nodes at
// the same time. The nodes are one registry.
func TestWorkerKitOnGalera(t *testing.T) {
	onCluster(t, workertest.Registry.RunRules, clustertest.Galera(t), "galera ")
}

func TestWorkerKitOnGroupReplication(t *testing.T) {
	onCluster(t, workertest.Registry.RunRules, clustertest.GroupReplication(t), "group ")
}

func onCluster(t *testing.T, kit kit, c *clustertest.Cluster, identity string) {
	database := c.Database(t)
	open := func(node int, table string) (*sql.DB, worker.Source, error) {
		db, err := sql.Open("mysql", c.Nodes[node].DSN(database))
		if err != nil {
			return nil, worker.Source{}, err
		}
		src := Open(db, Config{Table: table, Create: true})
		src.Close = db.Close
		return db, src, nil
	}
	seen := make(map[string]bool)
	for node := range c.Nodes {
		_, src, err := open(node, "identity")
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		id, err := src.Identity(t.Context())
		if err != nil || !strings.HasPrefix(id, identity) || len(id) < len(identity)+36 {
			t.Errorf("node %d: identity %q, %v, want prefix %q, len(id) at least %v and no error", node, id, err, identity, len(identity)+36)
		}
		seen[id] = true
	}
	if len(seen) != 1 {
		t.Errorf("the nodes have different identities: %v, want len(seen) = 1", seen)
	}
	var parts, processes atomic.Int64
	kit(func(t testing.TB) workertest.Fixture {
		table := fmt.Sprintf("kit%d", parts.Add(1))
		if db, src, err := open(0, table); err != nil {
			t.Fatal(err)
		} else if _, err := db.Exec(schema.LeafWorker(src.Slots.(*slots).table)); err != nil {
			t.Fatal(err)
		} else {
			db.Close()
		}
		do := func(text string) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			db, _, err := open(0, table)
			if err != nil {
				return err
			}
			defer db.Close()
			for ctx.Err() == nil { // until the node has applied the row, and no renewal conflicts
				var res sql.Result
				if res, err = db.ExecContext(ctx, text); err == nil {
					if n, err := res.RowsAffected(); n == 1 || err != nil {
						return err
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
			return cmp.Or(err, context.Cause(ctx))
		}
		fixture := workertest.Fixture{
			Open: func(context.Context) (worker.Source, error) {
				_, src, err := open(int(processes.Add(1))%len(c.Nodes), table)
				return src, err
			},
			Remove: func(slot int) error { return do(fmt.Sprintf("DELETE FROM %s WHERE worker_id = %d", table, slot)) },
			Corrupt: func(slot int) error {
				return do(fmt.Sprintf("UPDATE %s SET nonce = '' WHERE worker_id = %d", table, slot))
			},
		}
		if identity == "galera " { // in Group Replication a TRUNCATE during other writes stops a node
			fixture.Wipe = func() error { return execute(c.Nodes[0], "USE "+database, "TRUNCATE "+table) }
		}
		return fixture
	}, t)
}
