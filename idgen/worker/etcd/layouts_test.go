package etcd_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/etcd"
	"github.com/leafsql/leafsql/idgen/worker/etcd/etcdtest"
	"github.com/leafsql/leafsql/idgen/worker/mysql"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestEverySourceFillsItsLayouts issues ids in layouts with few worker ids and with data centres, with
// every source of worker ids.
func TestEverySourceFillsItsLayouts(t *testing.T) {
	db, err := sql.Open("mysql", mysqltest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	server := etcdtest.Start(t, etcdtest.Config{})
	sources := map[string]func(name string) (worker.Source, error){
		"mysql": func(name string) (worker.Source, error) {
			return mysql.Open(db, mysql.Config{Table: name, Create: true}), nil
		},
		"etcd": func(name string) (worker.Source, error) {
			return etcd.Open(etcd.Config{Servers: []string{server.Addr}, Prefix: name})
		},
	}
	for i, text := range []string{"41-5-17", "41-5+5-12"} {
		layout, err := snowflake.ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		for source, open := range sources {
			t.Run(source+" "+text, func(t *testing.T) {
				seen, ids := make(map[int]bool), make(map[int64]bool)
				for range 3 {
					g, err := snowflake.New(layout, func(context.Context) (worker.Source, error) { return open(fmt.Sprintf("layout%d", i)) }, worker.Config{NewRegistry: true})
					if err != nil {
						t.Fatal(err)
					}
					defer g.Close()
					first, err := g.Next(t.Context(), 1)
					if err != nil {
						t.Fatal(err)
					}
					p, err := layout.Decompose(first)
					if err != nil {
						t.Fatal(err)
					}
					id := g.Worker().Worker
					whole := p.Worker
					if layout.Datacenter > 0 {
						whole |= p.Datacenter << (layout.Worker - layout.Datacenter)
					}
					if whole != id || id >= layout.Workers() || seen[id] || ids[first] {
						t.Errorf("id with the parts %+v from worker id %d, want this worker id, within the layout, and both new; worker id used before: %t, id used before: %t", p, id, seen[id], ids[first])
					}
					seen[id], ids[first] = true, true
				}
			})
		}
	}
}
