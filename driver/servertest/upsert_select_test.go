package servertest

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestUpsertsMayNameTheirSource: such upserts have the same effect as under AUTO_INCREMENT.
func TestUpsertsMayNameTheirSource(t *testing.T) {
	playAll(t, "upsert_select")
}

// TestRefusedUpsertReadsNothing: the refusal comes before the source is read.
func TestRefusedUpsertReadsNothing(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 100, 10),
			"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b INT)", "CREATE TABLE s (a INT, b INT)", "INSERT INTO s VALUES (1, 1)", "CREATE TABLE log (a INT)",
			"CREATE FUNCTION noted(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (x); RETURN x; END")
		if _, err := leaf.Exec("INSERT INTO t (a) SELECT noted(a) FROM s ON DUPLICATE KEY UPDATE b = s.b"); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: error %v, want a refusal", target.Name, err)
		}
		var read, ids int
		if err := plain.QueryRow("SELECT (SELECT COUNT(*) FROM log), (SELECT COUNT(*) FROM t)").Scan(&read, &ids); err != nil || read+ids > 0 {
			t.Errorf("%s: %d rows read, %d stored, error %v; want 0 and 0", target.Name, read, ids, err)
		}
	}
}
