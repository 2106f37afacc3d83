package proxy_test

import (
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestZeroIsAKeyUnderNoAutoValueOnZero: a 0 is a key in a session with the mode, in every protocol, and requests an
// id in any other session.
func TestZeroIsAKeyUnderNoAutoValueOnZero(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		if p.Target.Name == string(mysqltest.MariaDB) {
			o.Capabilities = bulkCapabilities
		}
		p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
			s, i, null := proxytest.String, proxytest.Int, proxytest.Null
			shown := func() {
				c.Query("SELECT id, name FROM items ORDER BY id")
				c.Query("DELETE FROM items")
			}
			key := c.Prepare("INSERT INTO items (name, id) VALUES (?, ?)")
			written := c.Prepare("INSERT INTO items (id, name) VALUES (0, ?)")
			for _, mode := range []string{"NO_AUTO_VALUE_ON_ZERO", "", "NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES"} {
				c.Query("/*!40101 SET SQL_MODE='" + mode + "' */")
				c.Query("INSERT INTO items (id, name, n) VALUES (0, 'nobody', 1), (NULL, 'generated', 2), (7, 'own', 3)")
				c.Query("SELECT LAST_INSERT_ID(), ROW_COUNT()")
				shown()
				c.Query("INSERT INTO items (id, name) VALUES ('0', 'nobody')")
				shown()
				c.Query("INSERT INTO items (id, name) SELECT n - 50, name FROM source WHERE n = 50")
				shown()
				key.Execute(s("nobody"), i(0))
				shown()
				key.Execute(s("nobody"), s("0"))
				shown()
				written.Execute(s("nobody"))
				shown()
				if o.Capabilities&proxytest.Bulk != 0 {
					key.Bulk(0, row{s("nobody"), i(0)}, row{s("generated"), null()}, row{s("own"), i(7)})
					shown()
				}
			}
		})
	})
}
