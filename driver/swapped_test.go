package driver

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestRefreshNoticesSwappedTable: if another session gives a table with higher keys the name of a cached one, the refresh notices its new creation
// time. Then the counter is compared with the keys again.
func TestRefreshNoticesSwappedTable(t *testing.T) {
	const columns = " (id BIGINT PRIMARY KEY, a VARCHAR(9))"
	for _, server := range mysqltest.Targets(t) {
		for _, create := range []string{"true", "false"} {
			t.Run(server.Name+"/leafCreate="+create, func(t *testing.T) {
				cfg, err := ParseDSN(server.Database(t) + "?leafTables=t&leafCreate=" + create)
				if err != nil {
					t.Fatal(err)
				}
				plain, err := sql.Open("mysql", cfg.MySQL.FormatDSN())
				if err != nil {
					t.Fatal(err)
				}
				defer plain.Close()
				c, err := NewConnector(cfg)
				if err != nil {
					t.Fatal(err)
				}
				leaf := sql.OpenDB(c)
				defer leaf.Close()
				exec := func(db *sql.DB, texts ...string) {
					t.Helper()
					for _, text := range texts {
						if _, err := db.Exec(text); err != nil {
							t.Fatalf("%s: %v", text, err)
						}
					}
				}
				exec(plain, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT, step INT)", "INSERT INTO leaf_alloc VALUES ('t', 1, 100)",
					"CREATE TABLE t"+columns)
				exec(leaf, "INSERT INTO t (a) VALUES ('app')")
				exec(plain, "DO SLEEP(1.1)", "CREATE TABLE green"+columns, // creation times are whole seconds
					"INSERT INTO green WITH RECURSIVE n AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n WHERE id < 900) SELECT id, 'green' FROM n",
					"RENAME TABLE t TO blue, green TO t")
				if err := c.tables.Refresh(); err != nil {
					t.Fatal(err)
				}
				for range 30 {
					_, err := leaf.Exec("REPLACE INTO t (a) VALUES ('app')")
					if refused := err != nil && strings.Contains(err.Error(), "the highest key is 900"); refused == (create == "true") {
						t.Errorf("error %v, want a refusal with the highest key 900 exactly without leafCreate", err)
					}
				}
				var green int
				if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE a = 'green'").Scan(&green); err != nil || green != 900 {
					t.Errorf("%d rows of the new table remain, error %v; want 900", green, err)
				}
			})
		}
	}
}
