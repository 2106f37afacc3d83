package driver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// keyScripts are about keys that only the server knows.
var keyScripts = []script{
	{name: "a user's variable", lines: []string{"SET @n = 5, @none = NULL", "INSERT INTO t SET id := @n, a := @n", "INSERT INTO t (id, a, b) VALUES (@n + 0, 50, 'x')",
		"INSERT INTO t (id, a) VALUES ((@none), 51), (@N, 52) ON DUPLICATE KEY UPDATE a = VALUES(a)", show}, refused: map[string]string{"INSERT INTO t (id, a, b) VALUES (@n + 0, 50, 'x')": "only the server"}},
	{name: "a large variable", lines: []string{"SET @n = 9007199254740993, @s = '9007199254740995'", "INSERT INTO t (id, a) VALUES (@n, 1)", "INSERT INTO t (id, a) VALUES (@s, 2)", show}},
	{name: "a negative one", lines: []string{"SET @n = -7", "INSERT INTO t (id, a) VALUES (@n, 1)", show}},
	{name: "an answer with rows", only: "mariadb", lines: []string{"SET @n = -7, @none = NULL", "DO LAST_INSERT_ID(777)", "INSERT INTO t (id, a) VALUES (@n, 1) RETURNING id, a", "SELECT LAST_INSERT_ID()",
		"INSERT INTO t (id, a, b) VALUES (@none, 2, LAST_INSERT_ID()) RETURNING a, b", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", "SET @n = 40", "INSERT INTO t (id, a, b) VALUES (@n, 3, LAST_INSERT_ID() > 0) RETURNING a, b", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT IGNORE INTO t (id, a, b) VALUES (@none, 4, LAST_INSERT_ID() > 0) RETURNING a, b"},
		refused: map[string]string{"INSERT IGNORE INTO t (id, a, b) VALUES (@none, 4, LAST_INSERT_ID() > 0) RETURNING a, b": "or run it with Exec"}},
	refusedScript("depends on the column", "SET @n = 2.5e0", "INSERT INTO t (id, a) VALUES (@n, 1)"),
	refusedScript("depends on the column", "SET @n = 'abc'", "INSERT INTO t (id, a) VALUES (@n, 1)"),
	{name: "the parent's id", lines: []string{"INSERT INTO s (a) VALUES (LAST_INSERT_ID(40))", "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(), 2)", "INSERT INTO t (id, a) VALUES (@@last_insert_id + 0, 2)", show, "SELECT LAST_INSERT_ID()"},
		refused: map[string]string{"INSERT INTO t (id, a) VALUES (@@last_insert_id + 0, 2)": "only the server"}},
	{name: "no id yet", lines: []string{"INSERT INTO t (a, id) VALUES (2, LAST_INSERT_ID())", "INSERT INTO t (a, id) VALUES (3, last_insert_id ( ))", "SELECT a FROM t ORDER BY id"}},
	{name: "in use already", lines: []string{"SET @n = 50", "INSERT INTO t (id, a) VALUES (@n, 1)", "INSERT INTO t (id, a) VALUES (@n, 2)", "INSERT INTO t (a) VALUES (3)", "SELECT a FROM t ORDER BY id"}},
	refusedScript("only the server", "INSERT INTO t (a, id) VALUES (1, (SELECT MAX(id) FROM s))"),
	refusedScript("only the server", "INSERT INTO t (id, a) VALUES (id + 1, 5)"),
	refusedScript("only the server", "INSERT INTO t (id, a) VALUES (noted(5), 1)"),
	refusedScript("only the server", "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(7), 1)"),
	refusedScript("asked for before", "SET @n = 5", "INSERT INTO t (id, a) VALUES (@n, @n := 7)"),
	refusedScript("asked for before", "SET @n = 5", "INSERT INTO t (a, id) VALUES (noted(5), @n)"),
	refusedScript("asked for before", "SET @n = 5", "INSERT INTO t (a, id) VALUES (LAST_INSERT_ID(7), @n)"),
	refusedScript("asked for before", "SET @n = 5", "UPDATE s SET b = 'new'", "INSERT INTO t (id, a) VALUES (@n, ROW_COUNT())"),
	refusedScript("own statements", "UPDATE s SET b = 'new'", "INSERT INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = ROW_COUNT()"),
}

// refusedScript is a script whose last line is refused.
func refusedScript(part string, lines ...string) script {
	text := lines[len(lines)-1]
	return script{name: text, lines: lines, refused: map[string]string{text: part}}
}

func TestKeysAskedFor(t *testing.T) {
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
				if _, err := leaf.Exec("INSERT INTO t (a, id) VALUES (1, @@last_insert_id), (2, ?)", arg); !errors.Is(err, driver.ErrRefused) {
					t.Errorf("%s, beside a key that is asked for, %T %v: %v", target.Name, arg, arg, err)
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
