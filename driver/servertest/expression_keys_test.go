package servertest

import (
	"errors"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestExpressionKeysWorkAsWithAutoIncrement(t *testing.T) {
	playAll(t, "expression_keys")
}

// TestUnclearKeysAreRefused: if the key that an argument or an expression makes depends on the column and the
// session, it is refused.
func TestUnclearKeysAreRefused(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, params := range []string{"", "&interpolateParams=true"} {
			plain, leaf := openOn(t, target.Database(t), "leafTables=t"+params, allocTable, row("t", 1000, 100), "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a INT)")
			for _, arg := range []any{"7 days", "", "abc", "0x0", "1e3", 0.4, -0.4, -5, []byte("x"), time.Now()} {
				_, err := leaf.Exec("INSERT INTO t (id, a) VALUES (?, 1)", arg)
				var refused *driver.RefusedError
				if !errors.As(err, &refused) || refused.Column != "id" {
					t.Errorf("%s, %T %v: error %v, want a refusal for column id", target.Name, arg, arg, err)
				}
			}
			for _, text := range []string{"''", "'abc'", "0.4", "'0.4'", "1/4", "CONCAT('a', 1)"} {
				if _, err := leaf.Exec("INSERT INTO t (id, a) VALUES (" + text + ", 1)"); !errors.Is(err, driver.ErrRefused) {
					t.Errorf("%s, %s: error %v, want a refusal", target.Name, text, err)
				}
			}
			var n int
			if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d rows, error %v; want 0", target.Name, n, err)
			}
		}
	}
}
