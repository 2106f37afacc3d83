//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// countStatements returns a DSN for connections that count the statements that they send.
func countStatements(t *testing.T, dsn string) (same string, statements *atomic.Int64) {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	statements = new(atomic.Int64)
	cfg.Net = "counted" + cfg.DBName
	mysql.RegisterDialContext(cfg.Net, func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return &countedConn{c, statements}, err
	})
	t.Cleanup(func() { mysql.DeregisterDialContext(cfg.Net) })
	return cfg.FormatDSN(), statements
}

type countedConn struct {
	net.Conn
	statements *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	const query = 3 // COM_QUERY
	if len(b) > 4 && b[3] == 0 && b[4] == query {
		c.statements.Add(1)
	}
	return c.Conn.Write(b)
}

// TestMigrateIsLinear: each table of a migration takes at most as many statements as a single table, in both
// directions.
func TestMigrateIsLinear(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		const many = 16
		one := make(map[string]int64)
		for _, n := range []int{1, many} {
			dsn, statements := countStatements(t, target.Database(t))
			var tables []string
			for i := range n {
				tables = append(tables, fmt.Sprintf("t%d", i))
				open(t, dsn, "CREATE TABLE "+tables[i]+" (id INT AUTO_INCREMENT PRIMARY KEY)")
			}
			for _, step := range []string{"-do=widen", "-do=switch", "-do=drop", "-back", "-do=drop", "-do=unguard"} {
				before := statements.Load()
				mustRun(t, exitOK, append([]string{"migrate", "-dsn", dsn, step}, tables...)...)
				took := statements.Load() - before
				if n == 1 {
					one[step] = took
				} else if took > many*one[step] {
					t.Errorf("statements of %s with %d tables = %d, want at most %d, since one table takes %d", step, many, took, many*one[step], one[step])
				}
			}
		}
	})
}
