package driver_test

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// keyScripts are about keys that only the server can tell.
var keyScripts = []script{
	{name: "another table", lines: []string{"INSERT INTO t (a, id) VALUES (1, (SELECT MAX(id) FROM s)), (2, (SELECT id + 5 FROM s WHERE a = 2)), (3, (SELECT MAX(id) FROM s WHERE a > 9))", "SELECT MIN(id), COUNT(*) FROM t",
		"INSERT INTO t (id, a) VALUES ((SELECT id FROM s), 9)", "INSERT IGNORE INTO t (id, a) VALUES ((SELECT id FROM s), 9)", "SELECT a FROM t ORDER BY id"}},
	{name: "no table at all", lines: []string{"INSERT INTO t (a, id) VALUES (1, (SELECT id FROM nosuch))", "INSERT INTO t (a, id) VALUES (1, nosuch + 1)", "INSERT INTO t (a, nosuch, id) VALUES (1, 2, 1 - 1)", show}},
	readsRow("INSERT INTO t (id, a) VALUES (id + 1, 5)"),
	readsRow("INSERT INTO t (a, id) VALUES (6, t.a + 1)"),
	readsRow("INSERT INTO t SET a = 7, id = a + 10"),
	{name: "a user's variable", lines: []string{"SET @n = 5", "INSERT INTO t (id, a) VALUES (@n := @n + 1, 50), (@n := @n + 1, 51)", show, "SELECT @n", "INSERT INTO t SET id := @n + 1, a := @n", "INSERT INTO t (id, a, b) VALUES (20 + 0, @n, @m := 8)", show}},
	refusedScript("variable that it assigns", "SET @n = 5", "INSERT INTO t (id, a) VALUES (@n := @n + 1, @n), (@n := @n + 1, @n)"),
	refusedScript("variable that it assigns", "SET @n = 5", "INSERT INTO t (a, id) VALUES (@n := @n + 1, @n), (@n := @n + 1, @n)"),
	refusedScript("variable that it assigns", "SET @n = 5", "INSERT INTO t (a, id) VALUES (1, (@n := @n + 1)) ON DUPLICATE KEY UPDATE b = @n"),
	{name: "a sequence", only: "mariadb", setup: []string{"CREATE SEQUENCE q"}, lines: []string{"INSERT INTO t (a, id) VALUES (1, NEXTVAL(q)), (2, NEXT VALUE FOR q)", show}},
	{name: "two of a sequence", only: "mariadb", setup: []string{"CREATE SEQUENCE q"}, lines: []string{"INSERT INTO t (id, a) VALUES (NEXTVAL(q), PREVIOUS VALUE FOR q)"}, refused: map[string]string{"INSERT INTO t (id, a) VALUES (NEXTVAL(q), PREVIOUS VALUE FOR q)": "sequence"}},
	refusedScript("calls noted()", "INSERT INTO t (id, a) VALUES (noted(5), 1)"),
	refusedScript("calls noted()", "INSERT INTO t (a, id) VALUES (1, 2 + COALESCE(`noted` (5), 1))"),
	refusedScript("calls noted()", "INSERT INTO t (a, id) VALUES (1, (SELECT MAX(noted(a)) FROM s))"),
	{name: "several keys of the target", only: "mysql", lines: []string{"INSERT INTO t (id, a) VALUES (5, 5)", "INSERT INTO t (id, a) VALUES ((SELECT x FROM (SELECT MAX(id) + 1 x FROM t) q), 6), ((SELECT x FROM (SELECT MAX(id) + 2 x FROM `T`) q), 7)"},
		refused: map[string]string{"INSERT INTO t (id, a) VALUES ((SELECT x FROM (SELECT MAX(id) + 1 x FROM t) q), 6), ((SELECT x FROM (SELECT MAX(id) + 2 x FROM `T`) q), 7)": "one by one"}},
	{name: "several keys of the target", only: "mariadb", lines: []string{"INSERT INTO t (id, a) VALUES (5, 5)", "INSERT INTO t (id, a) VALUES ((SELECT MAX(q.id) + 1 FROM t q), 6), ((SELECT MAX(q.id) + 2 FROM t q), 7)", show}},
	refusedScript("own statements", "UPDATE s SET b = 'new'", "INSERT INTO t (id, a) VALUES (1 + 0, ROW_COUNT())"),
	refusedScript("own statements", "UPDATE s SET b = 'new'", "INSERT INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = ROW_COUNT()"),
	refusedScript("own statements", "UPDATE s SET b = 'new'", "INSERT INTO t (id, a) VALUES (ROW_COUNT(), 1)"),
	{name: "the clock", lines: []string{"INSERT INTO t (id, a, b) VALUES (MICROSECOND(NOW(6)) + 1, 1, MICROSECOND(NOW(6)) + 1)", "SELECT id - b, id = MICROSECOND(at) + 1 FROM t",
		"REPLACE INTO t (id, a, b) VALUES (MICROSECOND(CURTIME(6)) + 1, 1, MICROSECOND(NOW(6)) + 1)", "SELECT id - b, id = MICROSECOND(at) + 1 FROM t"}},
	{name: "no space behind", lines: []string{"INSERT INTO t SET a=1,id=(8)+1ON DUPLICATE KEY UPDATE b='x'", "INSERT INTO t SET a=1,id=(1-1)ON DUPLICATE KEY UPDATE b='x'", "SELECT a, b FROM t"}},
}

// readsRow is a statement whose key reads a column of its row.
func readsRow(text string) script { return refusedScript("its key is an expression that reads", text) }

// refusedScript is a script whose last line is refused.
func refusedScript(part string, lines ...string) script {
	text := lines[len(lines)-1]
	return script{name: text, lines: lines, refused: map[string]string{text: part}}
}

func TestEvaluatedInSessions(t *testing.T) {
	playAll(t, keyScripts)
}

// An argument is judged before its text runs, and so not behind a statement
// that may change how it is judged.
func TestUnclearArgumentInTexts(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			plain, leaf := openOn(t, target.Database(t), "leafTables=t&multiStatements=true&interpolateParams=true", allocTable, row("t", 1000, 100), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			leaf.SetMaxOpenConns(1)
			if _, err := leaf.Exec("SET sql_mode = 'STRICT_ALL_TABLES'; INSERT INTO t (id, a) VALUES (?, 1)", "7 days"); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("behind SET sql_mode: %v", err)
			}
			if _, err := leaf.Exec("SET sql_mode = ''"); err != nil {
				t.Fatal(err)
			}
			if _, err := leaf.Exec("INSERT INTO t (id, a) VALUES (?, 2); INSERT INTO t (id, a) VALUES (?, 3)", "7 days", "none"); err != nil {
				t.Error(err)
			}
			if _, err := leaf.Exec("INSERT INTO t (id, a) VALUES (1 - 1, 4), (?, 5)", "8 days"); err != nil { // both kinds
				t.Error(err)
			}
			var n, sum int
			if err := plain.QueryRow("SELECT COUNT(*), SUM(id) FROM t").Scan(&n, &sum); err != nil || n != 4 || sum != 7+1000+8+1001 {
				t.Errorf("%d rows, keys that make %d, %v", n, sum, err)
			}
		})
	}
}

// TestKeyExpressionsRunOnce: the guard around an expression must not run it
// twice, or refuse it.
func TestKeyExpressionsRunOnce(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
		leaf.SetMaxOpenConns(1)
		texts := []string{"INSERT INTO t (id, a) VALUES ((@i := @i + 1), 1)"}
		if server.Name == "mariadb" {
			if _, err := plain.Exec("CREATE SEQUENCE s"); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, "INSERT INTO t (id, a) VALUES (NEXTVAL(s), 2)")
		}
		if _, err := leaf.Exec("SET @i := 100"); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			_, err := leaf.Exec(text)
			if errors.Is(err, driver.ErrRefused) {
				continue
			}
			want, got := []int64{101, 1}[i], int64(0)
			if err := plain.QueryRow("SELECT id FROM t WHERE a = ?", i+1).Scan(&got); err != nil || got != want {
				t.Errorf("%s, %s: key %d, want %d, %v", server.Name, text, got, want, err)
			}
		}
	}
}
