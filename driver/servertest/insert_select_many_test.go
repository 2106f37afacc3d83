package servertest

import (
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestManyRowsOfSelectGetConsecutiveIDs: from 1,000 rows on, the ids may come from the AUTO_INCREMENT numbers of the
// temporary table. The session can choose numbers with gaps.
func TestManyRowsOfSelectGetConsecutiveIDs(t *testing.T) {
	const n = 1500
	for _, target := range mysqltest.Targets(t) {
		for _, tt := range []struct {
			name, set, text string
			filled          int
			id              int64
		}{
			{"no key", "", "INSERT INTO t (a, b) SELECT a, b FROM src ORDER BY a DESC", n, 1000},
			{"NULL as key", "", "INSERT INTO t (id, a, b) SELECT NULL, a, b FROM src ORDER BY a DESC", n, 1000},
			{"some keys", "", "INSERT INTO t (id, a, b) SELECT IF(a % 3, NULL, a / 3), a, b FROM src ORDER BY a DESC", n - n/3, 1000},
			{"upsert", "", "INSERT INTO t (a, b) SELECT a, b FROM src ORDER BY a DESC ON DUPLICATE KEY UPDATE b = VALUES(b)", n, 0},
			{"increment", "SET auto_increment_increment = 7, auto_increment_offset = 3", "INSERT INTO t (a, b) SELECT a, b FROM src ORDER BY a DESC", n, 1000},
			{"increment, NULL as key", "SET auto_increment_increment = 7, auto_increment_offset = 3", "INSERT INTO t (id, a, b) SELECT NULL, a, b FROM src ORDER BY a DESC", n, 1000},
			{"increment, upsert", "SET auto_increment_increment = 2", "INSERT INTO t (a, b) SELECT a, b FROM src ORDER BY a DESC ON DUPLICATE KEY UPDATE b = VALUES(b)", n, 0},
			{"first number", "SET insert_id = 50", "INSERT INTO t (a, b) SELECT a, b FROM src ORDER BY a DESC", n, 1000},
		} {
			t.Run(target.Name+"/"+tt.name, func(t *testing.T) {
				_, leaf := openOn(t, target.Database(t), "leafTables=t", append([]string{allocTable, row("t", 1000, 5000), tableT}, seedSource(n)...)...)
				leaf.SetMaxOpenConns(1)
				if tt.set != "" {
					if _, err := leaf.Exec(tt.set); err != nil {
						t.Fatal(err)
					}
				}
				res, err := leaf.Exec(tt.text)
				if err != nil {
					t.Fatal(err)
				}
				affected, _ := res.RowsAffected()
				if id, _ := res.LastInsertId(); affected != n || id != tt.id {
					t.Errorf("RowsAffected() = %d, LastInsertId() = %d; want %d and %d", affected, id, n, tt.id)
				}
				var filled, first, last, unordered int
				if err := leaf.QueryRow("SELECT COUNT(*), MIN(id), MAX(id) FROM t WHERE id >= 1000").Scan(&filled, &first, &last); err != nil {
					t.Fatal(err)
				}
				if filled != tt.filled || first != 1000 || last != 999+tt.filled {
					t.Errorf("%d rows with ids from %d to %d, want %d from 1000 to %d", filled, first, last, tt.filled, 999+tt.filled)
				}
				const pairs = "SELECT COUNT(*) FROM t x JOIN t y ON y.id = x.id + 1 WHERE x.id >= 1000 AND y.a >= x.a"
				if err := leaf.QueryRow(pairs).Scan(&unordered); err != nil || unordered != 0 {
					t.Errorf("%d ids do not follow ORDER BY, error %v; want 0", unordered, err)
				}
			})
		}
	}
}
