package servertest

import (
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestSwapWithStoppedWritersAvoidsCollisions: the procedure in docs/operations.md avoids collisions with higher keys, also if the
// refresh does not notice the swap: EXCHANGE PARTITION and a load do not change the table's creation time.
func TestSwapWithStoppedWritersAvoidsCollisions(t *testing.T) {
	const (
		columns = " (id BIGINT NOT NULL, d INT NOT NULL DEFAULT 0, a VARCHAR(9), PRIMARY KEY (id, d))"
		rows    = "INSERT INTO %s (id, a) SELECT ones.n + 30 * tens.n, 'green' FROM (SELECT d AS n FROM numbers) ones, (SELECT d AS n FROM numbers) tens"
		raise   = "UPDATE leaf_alloc SET max_id = GREATEST(max_id, (SELECT COALESCE(MAX(id), 0) + 1 FROM t)) WHERE biz_tag = 't'"
	)
	for swap, texts := range map[string][]string{
		"RENAME":             {fmt.Sprintf(rows, "green"), "RENAME TABLE t TO blue, green TO t"},
		"EXCHANGE PARTITION": {fmt.Sprintf(rows, "green"), "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE green"},
		"TRUNCATE":           {"TRUNCATE t", fmt.Sprintf(rows, "t")},
	} {
		for _, server := range mysqltest.Targets(t) {
			for _, params := range []string{"leafTables=t:id&leafCreate=true", "leafTables=t:id"} {
				t.Run(server.Name+"/"+swap+"/"+params, func(t *testing.T) {
					dsn := server.Database(t)
					plain, leaf := openOn(t, dsn, params, allocTable, row("t", 1, 100), "CREATE TABLE green"+columns, "CREATE TABLE numbers (d INT)",
						"INSERT INTO numbers VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30)",
						"CREATE TABLE t"+columns+" PARTITION BY LIST (d) (PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (1))")
					insertID(t, leaf, "REPLACE INTO t (a) VALUES ('app')")
					leaf.Close()
					if params == "leafTables=t:id" {
						texts = append(texts[:len(texts):len(texts)], raise)
					}
					for _, text := range texts {
						if _, err := plain.Exec(text); err != nil {
							t.Fatalf("%s: %v", text, err)
						}
					}
					_, leaf = openOn(t, dsn, params)
					for range 30 {
						insertID(t, leaf, "REPLACE INTO t (a) VALUES ('app')")
					}
					var green int
					if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE a = 'green'").Scan(&green); err != nil || green != 900 {
						t.Errorf("%d of the rows that came are left, %v; want 900", green, err)
					}
				})
			}
		}
	}
}
