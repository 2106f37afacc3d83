package driver_test

import "testing"

// upsertSelectScripts are upserts whose rows come from a select and whose update list
// names its source.
var upsertSelectScripts = []script{
	{name: "a derived table", lines: []string{copyS, "INSERT INTO t (a, b) SELECT * FROM (SELECT a, CONCAT(b, '!') b FROM s) AS d ON DUPLICATE KEY UPDATE b = d.b", ab,
		"INSERT INTO t (a, b) SELECT * FROM (SELECT a + 2 a, MAX(b) n FROM s GROUP BY a) AS d ON DUPLICATE KEY UPDATE t.b = CONCAT(t.b, d.n)", ab, "INSERT INTO t (a, b) SELECT d.a, d.c FROM (SELECT a, 5 c FROM s) d ON DUPLICATE KEY UPDATE b = d.c + d.a", ab}},
	{name: "one table", lines: []string{"INSERT INTO t (a, b) VALUES (1, 10)", "INSERT INTO t (a, b) SELECT a, id FROM s ON DUPLICATE KEY UPDATE b = t.b + s.id", ab, "INSERT INTO t (a, b) SELECT s.a, s.id FROM s ON DUPLICATE KEY UPDATE t.b = t.b + s.id", ab,
		"INSERT INTO t (a, b) SELECT q.a, q.id FROM s AS q WHERE q.a > 1 ON DUPLICATE KEY UPDATE b = q.id", ab, "BEGIN", "INSERT INTO t (a, b) SELECT a, id FROM s ON DUPLICATE KEY UPDATE b = s.id * 2", "COMMIT", ab}},
	{name: "an alias that is called new", lines: []string{copyS, "INSERT INTO t (a, b) SELECT a, id FROM s AS new ON DUPLICATE KEY UPDATE b = new.id", ab, "INSERT INTO t (a, b) SELECT new.a, CONCAT(new.b, 2) FROM s new ON DUPLICATE KEY UPDATE b = CONCAT(new.b, VALUES(b))", ab}},
	{name: "with keys of its own", lines: []string{copyID, "INSERT INTO t (id, a, b) SELECT id, a, b FROM s ON DUPLICATE KEY UPDATE b = CONCAT(s.b, s.id)", ab, "INSERT INTO t (id, a, b) SELECT IF(a = 2, id, NULL), a, b FROM s ON DUPLICATE KEY UPDATE b = s.a", ab}},
	{name: "names that are not there", lines: []string{copyS, "INSERT INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = nosuch.b", "INSERT INTO t (a, b) SELECT a, b FROM s AS d ON DUPLICATE KEY UPDATE b = d.nosuch", ab}},
	// The refusal comes before the source is read: noted() did not run.
	{name: "a refusal comes first", lines: []string{copyS, "INSERT INTO t (a, b) SELECT noted(a), b FROM s ON DUPLICATE KEY UPDATE b = s.id", "SELECT COUNT(*) FROM log"}, refused: map[string]string{"INSERT INTO t (a, b) SELECT noted(a), b FROM s ON DUPLICATE KEY UPDATE b = s.id": "only the source knows"}},
}

// TestUpsertsThatNameTheirSource do what they do under AUTO_INCREMENT.
func TestUpsertsThatNameTheirSource(t *testing.T) {
	playAll(t, upsertSelectScripts)
}
