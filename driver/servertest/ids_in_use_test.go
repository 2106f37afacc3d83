package servertest

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestPoolOpenedAfterRollbackIssuesNoUsedID: while a pool has ids in memory, the table returns to
// AUTO_INCREMENT, which uses these ids, and then to leafsql again. A pool that is opened then
// shares the memory. Its rows equal those of a twin that always had AUTO_INCREMENT.
func TestPoolOpenedAfterRollbackIssuesNoUsedID(t *testing.T) {
	forms := []string{
		"INSERT INTO t (a) VALUES (?)",
		"INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = -a",
		"INSERT IGNORE INTO t (a) VALUES (?)",
		"REPLACE INTO t (a) VALUES (?)",
		"INSERT INTO t (a) SELECT ? FROM t LIMIT 1",
	}
	for _, target := range mysqltest.Targets(t) {
		for i, form := range forms {
			t.Run(fmt.Sprint(target.Name, "/", i), func(t *testing.T) {
				const first, back, again = 30, 400, 60
				var rows [2]string
				for i, name := range []string{"mysql", driver.Name} {
					dsn := target.Database(t)
					plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 100),
						"CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
					params := ""
					if name == driver.Name {
						params = "?leafTables=t"
					}
					a := 0
					write := func(db *sql.DB, form string, n int) {
						t.Helper()
						for range n {
							a++
							if _, err := db.Exec(form, a); err != nil {
								t.Fatalf("%s: row %d by %s: %v", name, a, form, err)
							}
						}
					}
					pool := func() *sql.DB {
						db, err := sql.Open(name, dsn+params)
						if err != nil {
							t.Fatal(err)
						}
						t.Cleanup(func() { db.Close() })
						return db
					}
					write(pool(), forms[0], first)
					write(plain, forms[0], back)
					if _, err := plain.Exec("UPDATE leaf_alloc SET max_id = GREATEST(max_id, (SELECT MAX(id) + 1 FROM t))"); err != nil {
						t.Fatal(err)
					}
					write(pool(), form, again)
					if err := plain.QueryRow("SELECT CONCAT(COUNT(*), ' rows, ', SUM(a), ', ', SUM(a * a), ', ', COUNT(DISTINCT a)) FROM t").Scan(&rows[i]); err != nil {
						t.Fatal(err)
					}
				}
				if rows[0] != rows[1] {
					t.Errorf("rows = %s, want %s", rows[1], rows[0])
				}
			})
		}
	}
}
