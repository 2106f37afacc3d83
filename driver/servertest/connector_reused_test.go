package servertest

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestConnectorServesTheNextPool: a Connector that a pool closed works for the next pool, and
// the next pool's Close releases everything again.
func TestConnectorServesTheNextPool(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			dsn := target.Database(t)
			plain, other := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 2), tableT, "CREATE TABLE s (id BIGINT PRIMARY KEY, a INT)")
			plain.Close()
			other.Close()
			cfg, err := driver.ParseDSN(dsn + "?leafTables=t,s::snowflake&leafNewRegistry=true&leafCreate=true")
			if err != nil {
				t.Fatal(err)
			}
			inner, err := mysql.NewConnector(cfg.MySQL)
			if err != nil {
				t.Fatal(err)
			}
			wrapped := cfg.Clone()
			wrapped.MySQL = nil
			before := goleak.IgnoreCurrent()
			a := 0
			for name, open := range map[string]func() (*driver.Connector, error){
				"NewConnector": func() (*driver.Connector, error) { return driver.NewConnector(cfg) },
				"Wrap":         func() (*driver.Connector, error) { return driver.Wrap(inner, wrapped) },
			} {
				connector, err := open()
				if err != nil {
					t.Fatal(err)
				}
				for n := range 3 {
					db := sql.OpenDB(connector)
					for range 5 {
						a++
						insertID(t, db, "INSERT INTO t (a) VALUES (?)", a)
						insertID(t, db, "INSERT INTO s (a) VALUES (?)", a)
					}
					if stats := connector.Stats(); len(stats.Tables) != 2 {
						t.Errorf("%s, pool %d: Stats() has %d tables, want 2", name, n, len(stats.Tables))
					}
					if _, err := connector.Segment("t").Next(t.Context(), 1); err != nil {
						t.Errorf("%s, pool %d: Next(): error %v, want none", name, n, err)
					}
					if w := connector.Worker(); w.Worker < 0 {
						t.Errorf("%s, pool %d: Worker() = %+v, want a worker id", name, n, w)
					}
					if err := db.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := connector.Close(); err != nil {
					t.Errorf("Close() = %v, want nil", err)
				}
				goleak.VerifyNone(t, before)
			}
		})
	}
}

// TestPoolContinuesAfterOtherPoolClosesConnector: if one of two pools closes their Connector, the other pool
// continues with new connections.
func TestPoolContinuesAfterOtherPoolClosesConnector(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			dsn := target.Database(t)
			openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 2), tableT, row("u", 1, 2), "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)")
			cfg, err := driver.ParseDSN(dsn + "?leafTables=t,u")
			if err != nil {
				t.Fatal(err)
			}
			connector, err := driver.NewConnector(cfg)
			if err != nil {
				t.Fatal(err)
			}
			one, two := sql.OpenDB(connector), sql.OpenDB(connector)
			insertID(t, one, "INSERT INTO t (a) VALUES (1)")
			insertID(t, two, "INSERT INTO t (a) VALUES (2)")
			if err := errors.Join(one.Close(), one.Close()); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				insertID(t, two, "INSERT INTO t (a) VALUES (?)", 3+i)
				insertID(t, two, "INSERT INTO u (a) VALUES (?)", i)
			}
			if err := two.Close(); err != nil {
				t.Errorf("Close() = %v, want nil", err)
			}
		})
	}
}
