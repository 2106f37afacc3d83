package proxy_test

import (
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestFailingBulkUsesUpNoColumn: the counter skips a key that takes more than half of the column's room only if
// its row may have been stored, as rows before a bad one may be.
func TestFailingBulkUsesUpNoColumn(t *testing.T) {
	const far = 2_000_000_000
	s, i, null := proxytest.String, proxytest.Int, proxytest.Null
	for _, engine := range []string{"InnoDB", "MyISAM"} {
		for _, begin := range []string{"DO 0", "START TRANSACTION"} {
			for name, rows := range map[string][]row{
				"first row":  {{i(7), s("b")}, {i(far), s("a")}},
				"second row": {{i(far), s("a")}, {i(7), s("b")}},
				"lacking":    {{withType(8, null()), s("a")}, {i(far), s("b")}, {null(), s("c")}},
			} {
				t.Run(engine+"/"+begin+"/"+name, func(t *testing.T) {
					p := newTestDatabase(t, mysqltest.TargetOf(t, mysqltest.MariaDB))
					p.exec("CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(3)) ENGINE="+engine, "INSERT INTO items VALUES (7, 'x')")
					o := p.rootOptions()
					o.Capabilities = bulkCapabilities
					c := p.dial(proxytest.Start(t, p.dsn+"?leafTables=items&leafCreate=true"), o)
					c.Query(begin)
					number, _ := c.Prepare("INSERT INTO items (id, name) VALUES (?, ?)").Bulk(0, rows...).Err()
					want := 1062
					if name == "lacking" {
						want = 0
					}
					if number != want {
						t.Fatalf("error %d, want %d", number, want)
					}
					stored := c.Query(fmt.Sprintf("SELECT COUNT(*) FROM items WHERE id = %d", far)).Rows()[0][0]
					c.Query("COMMIT")
					got := c.Query("INSERT INTO items (name) VALUES ('x')").OK().ID
					if stored == "1" && got <= far || stored == "0" && got != 8 {
						t.Errorf("next id = %d with %s stored rows of the key %d, want one above a stored key, or else 8", got, stored, far)
					}
				})
			}
		}
	}
}

// TestFirstInsertIntoARecreatedDatabaseIsFilled: the first migration of Flyway and Liquibase writes tables that are new
// to the proxy, in a database that was dropped by another connection or directly.
func TestFirstInsertIntoARecreatedDatabaseIsFilled(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for _, directly := range []bool{false, true} {
			addr := proxytest.Start(t, p.dsn+"?leafTables=*&leafCreate=true")
			p.recreate("CREATE TABLE a (id BIGINT PRIMARY KEY, x INT)")
			c, other := p.dial(addr, p.rootOptions()), p.dial(addr, p.rootOptions())
			if number, text := c.Query("INSERT INTO a (x) VALUES (1)").Err(); number != 0 {
				t.Fatalf("INSERT: error %d %s, want none", number, text)
			}
			texts := []string{"DROP DATABASE " + p.name, "CREATE DATABASE " + p.name, "USE " + p.name, "CREATE TABLE flyway_schema_history (id BIGINT PRIMARY KEY, x INT)",
				"CREATE TABLE b (id BIGINT PRIMARY KEY, x INT)"}
			for _, text := range texts {
				if directly {
					if _, err := p.db.Exec(text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				} else if number, message := other.Query(text).Err(); number != 0 {
					t.Fatalf("%s: error %d %s, want none", text, number, message)
				}
			}
			c.Query("USE " + p.name)
			for _, table := range []string{"flyway_schema_history", "b"} {
				if number, message := c.Query("INSERT INTO " + table + " (x) VALUES (1)").Err(); number != 0 {
					t.Errorf("dropped directly %t: first INSERT into %s: error %d %s, want none", directly, table, number, message)
				}
			}
		}
	})
}
