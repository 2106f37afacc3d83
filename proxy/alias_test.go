package proxy_test

import (
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// TestColumnsWithAliasGivesIDs: a proxy with go-sql-driver's columnsWithAlias=true in its DSN gives ids.
func TestColumnsWithAliasGivesIDs(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		c := p.dial(proxytest.Start(p.t, p.dsn+"?leafTables=items&columnsWithAlias=true"), p.rootOptions())
		c.Query("INSERT INTO items (name, n) VALUES ('a', 1)")
		c.Query("INSERT INTO items (name, n) SELECT name, n FROM source")
		if n := p.queryValue("SELECT COUNT(*) FROM items WHERE id >= 1000"); n != "4" {
			t.Errorf("rows with a generated key = %s, want 4", n)
		}
	})
}
