package driver_test

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// upsertSelectScripts are upserts whose rows come from a select and whose update list
// names its source.
var upsertSelectScripts = []script{
	{name: "a derived table", lines: []string{copyS, "INSERT INTO t (a, b) SELECT * FROM (SELECT a, CONCAT(b, '!') b FROM s) AS d ON DUPLICATE KEY UPDATE b = d.b", ab,
		"INSERT INTO t (a, b) SELECT * FROM (SELECT a + 2 a, MAX(b) n FROM s GROUP BY a) AS d ON DUPLICATE KEY UPDATE t.b = CONCAT(t.b, d.n)", ab, "INSERT INTO t (a, b) SELECT d.a, d.c FROM (SELECT a, 5 c FROM s) d ON DUPLICATE KEY UPDATE b = d.c + d.a", ab}},
	{name: "one table", lines: []string{"INSERT INTO t (a, b) VALUES (1, 10)", "INSERT INTO t (a, b) SELECT a, id FROM s ON DUPLICATE KEY UPDATE b = t.b + s.id", ab, "INSERT INTO t (a, b) SELECT s.a, s.id FROM s ON DUPLICATE KEY UPDATE t.b = t.b + s.id", ab,
		"INSERT INTO t (a, b) SELECT q.a, q.id FROM s AS q WHERE q.a > 1 ON DUPLICATE KEY UPDATE b = q.id", ab, "BEGIN", "INSERT INTO t (a, b) SELECT a, id FROM s ON DUPLICATE KEY UPDATE b = s.id * 2", "COMMIT", ab}},
	{name: "an alias that is called new", lines: []string{copyS, "INSERT INTO t (a, b) SELECT a, id FROM s AS new ON DUPLICATE KEY UPDATE b = new.id", ab, "INSERT INTO t (a, b) SELECT new.a, new.b FROM s new ON DUPLICATE KEY UPDATE b = CONCAT(new.b, VALUES(b))", ab}},
	{name: "with keys of its own", lines: []string{copyID, "INSERT INTO t (id, a, b) SELECT id, a, b FROM s ON DUPLICATE KEY UPDATE b = CONCAT(s.b, s.id)", ab, "INSERT INTO t (id, a, b) SELECT IF(a = 2, id, NULL), a, b FROM s ON DUPLICATE KEY UPDATE b = s.a", ab}},
	refusedScript("only the source knows", copyS, "INSERT INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = nosuch.b"),
	refusedScript("only the source knows", copyS, "INSERT INTO t (a, b) SELECT a, CONCAT(b, 2) FROM s AS d ON DUPLICATE KEY UPDATE b = d.b"),
}

// TestUpsertsThatNameTheirSource do what they do under AUTO_INCREMENT.
func TestUpsertsThatNameTheirSource(t *testing.T) {
	playAll(t, upsertSelectScripts)
}

// TestRefusedUpsertReadsNothing: the refusal comes before the source is read.
func TestRefusedUpsertReadsNothing(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b INT)", "CREATE TABLE s (a INT, b INT)", "INSERT INTO s VALUES (1, 1)", "CREATE TABLE log (a INT)",
			"CREATE FUNCTION noted(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (x); RETURN x; END")
		if _, err := leaf.Exec("INSERT INTO t (a) SELECT noted(a) FROM s ON DUPLICATE KEY UPDATE b = s.b"); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %v", target.Name, err)
		}
		var read, ids int
		if err := plain.QueryRow("SELECT (SELECT COUNT(*) FROM log), (SELECT COUNT(*) FROM t)").Scan(&read, &ids); err != nil || read+ids > 0 {
			t.Errorf("%s: %d rows read, %d stored, %v", target.Name, read, ids, err)
		}
	}
}
