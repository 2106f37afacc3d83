package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

var kinds = mysqltest.Kinds()

func init() { mysql.SetLogger(&mysql.NopLogger{}) } // the tests cut connections

// kit is workertest.Registry.RunRules, or with the tag storm workertest.Registry.Run.
type kit = func(workertest.Registry, *testing.T)

// TestWorkerKit runs each part of the kit with its own table on one server. Every second
// part uses clientFoundRows.
func TestWorkerKit(t *testing.T) { onServers(t, workertest.Registry.RunRules) }

func onServers(t *testing.T, kit kit) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			kit(startPair(t, kind).fixture, t)
		})
	}
}

func BenchmarkWorker(b *testing.B) {
	for _, kind := range kinds {
		b.Run(string(kind), func(b *testing.B) { workertest.Registry(startPair(b, kind).fixture).Bench(b) })
	}
}

// pair is a primary reached through a proxy, and another server for fail-overs.
type pair struct {
	proxy            *netfault.Proxy
	primary, standby *mysqltest.Server
	parts            atomic.Int64
}

func startPair(t testing.TB, kind mysqltest.Kind) *pair {
	cfg := mysqltest.Config{Kind: kind, Args: durable} // known by the same identity after a crash
	p := &pair{primary: mysqltest.Run(t, cfg), standby: mysqltest.Run(t, cfg)}
	p.proxy = netfault.Start(t, p.primary.Addr())
	for _, s := range []*mysqltest.Server{p.primary, p.standby} {
		if err := execute(s, "CREATE DATABASE leases"); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func execute(s *mysqltest.Server, statements ...string) error {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.Exec(text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// pool returns a pool for another process, through the proxy.
func (p *pair) pool(foundRows bool) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.ClientFoundRows = "root", "tcp", p.proxy.Addr(), "leases", foundRows
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

func (p *pair) fixture(t testing.TB) workertest.Fixture {
	n := p.parts.Add(1)
	table := fmt.Sprintf("kit%d", n)
	do := func(text string) func() error {
		return func() error { return execute(p.primary, "USE leases", fmt.Sprintf(text, table)) }
	}
	return workertest.Fixture{
		Open: func(context.Context) (worker.Source, error) {
			db, err := p.pool(n%2 == 0)
			if err != nil {
				return worker.Source{}, err
			}
			src := Open(db, Config{Table: table, Create: true})
			src.Close = db.Close
			return src, nil
		},
		Outage:  20 * time.Second,
		Wipe:    do("DROP TABLE %s"),
		Copy:    func() (func() error, error) { return p.copy(p.primary, table) },
		Stop:    p.primary.Kill9,
		Start:   func() error { return p.primary.Launch() },
		Remove:  func(slot int) error { return do(fmt.Sprintf("DELETE FROM %%s WHERE worker_id = %d", slot))() },
		Corrupt: func(slot int) error { return do(fmt.Sprintf("UPDATE %%s SET nonce = '' WHERE worker_id = %d", slot))() },
		FailOver: func() (func() error, error) {
			restore, err := p.copy(p.standby, table)
			return func() error {
				if err := restore(); err != nil {
					return err
				}
				p.proxy.Switch(p.standby.Addr())
				p.proxy.Cut()
				t.Cleanup(func() { p.proxy.Switch(p.primary.Addr()) })
				return nil
			}, err
		},
	}
}

// copy copies the rows of the primary's table; restore makes a server's table
// hold exactly these.
func (p *pair) copy(to *mysqltest.Server, table string) (restore func() error, err error) {
	db, err := sql.Open("mysql", p.primary.DSN("leases"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query("SELECT worker_id, nonce, hw, free, owner, registry FROM " + table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	s := &slots{table: quote.Table(table)}
	statements := []string{"USE leases", schema.LeafWorker(s.table), "DELETE FROM " + table}
	for rows.Next() {
		var (
			slot int
			hw   int64
			d    worker.Doc
		)
		if err := rows.Scan(&slot, &d.Nonce, &hw, &d.Free, &d.Owner, &d.Registry); err != nil {
			return nil, err
		}
		d.HighWater = time.UnixMilli(hw)
		statements = append(statements, s.insert(slot, d))
	}
	return func() error { return execute(to, statements...) }, rows.Err()
}

// TestSilentServerDelaysNoLease uses a server that accepts connections but does not answer on the first ones, as a starting server may.
func TestSilentServerDelaysNoLease(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := startPair(t, kind)
			p.proxy.Silence(3)
			leasetest.Keep(t, p.fixture(t).Open, worker.Config{Workers: 4, NewRegistry: true})
		})
	}
}
