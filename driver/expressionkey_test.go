package driver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// keyScripts are about keys that only the server knows: none is asked for.
var keyScripts = []script{
	refusedScript("only the server", "SET @n = 5", "INSERT INTO t (id, a) VALUES (@n, 1)"),
	refusedScript("only the server", "SET @n = 5", "INSERT INTO t SET id := (@n), a := 1"),
	refusedScript("only the server", "SET @n = 5", "INSERT INTO t (id, a) VALUES (NULL, 1), (@n, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)"),
	refusedScript("only the server", "INSERT INTO s (a) VALUES (LAST_INSERT_ID(40))", "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(), 2)"),
	refusedScript("only the server", "INSERT INTO t (a, id) VALUES (3, last_insert_id ( ))"),
	refusedScript("only the server", "INSERT INTO t (id, a) VALUES (@@last_insert_id, 2)"),
	refusedScript("only the server", "INSERT INTO t (a, id) VALUES (1, (SELECT MAX(id) FROM s))"),
	refusedScript("only the server", "INSERT INTO t (id, a) VALUES (id + 1, 5)"),
	refusedScript("only the server", "INSERT INTO t (id, a) VALUES (noted(5), 1)"),
	refusedScript("only the server", "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(7), 1)"),
	refusedScript("own statements", "UPDATE s SET b = 'new'", "INSERT INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = ROW_COUNT()"),
}

// refusedScript is a script whose last line is refused.
func refusedScript(part string, lines ...string) script {
	text := lines[len(lines)-1]
	return script{name: text, lines: lines, refused: map[string]string{text: part}}
}

func TestKeysThatAreExpressions(t *testing.T) {
	playAll(t, keyScripts)
}

// TestUnclearArguments: an argument of which only the column and the session could tell
// what key it makes is refused, and so is such an expression.
func TestUnclearArguments(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, params := range []string{"", "&interpolateParams=true"} {
			plain, leaf := openOn(t, target.Database(t), "leafTables=t"+params, allocTable, row("t", 1000, 100), "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a INT)")
			for _, arg := range []any{"7 days", "", "abc", "0x0", "1e3", 0.4, -0.4, -5, []byte("x"), time.Now()} {
				_, err := leaf.Exec("INSERT INTO t (id, a) VALUES (?, 1)", arg)
				var refused *driver.RefusedError
				if !errors.As(err, &refused) || refused.Column != "id" {
					t.Errorf("%s, %T %v: %v", target.Name, arg, arg, err)
				}
			}
			for _, text := range []string{"''", "'abc'", "0.4", "'0.4'", "1/4", "CONCAT('a', 1)"} {
				if _, err := leaf.Exec("INSERT INTO t (id, a) VALUES (" + text + ", 1)"); !errors.Is(err, driver.ErrRefused) {
					t.Errorf("%s, %s: %v", target.Name, text, err)
				}
			}
			var n int
			if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d rows, %v", target.Name, n, err)
			}
		}
	}
}
