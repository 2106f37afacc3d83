package driver_test

import (
	"database/sql"
	"errors"
	"regexp"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const before = "DO LAST_INSERT_ID(777)"

// readsID is a trigger that notes what LAST_INSERT_ID() says to it.
const readsID = "ON t FOR EACH ROW INSERT INTO log VALUES (LAST_INSERT_ID())"

// idScripts are about what LAST_INSERT_ID() says while a statement runs as
// several, and afterwards.
var idScripts = []script{
	{name: "in the update list", lines: []string{copyS, before, "INSERT INTO t (a, b) SELECT a, 'new' FROM s ON DUPLICATE KEY UPDATE b = LAST_INSERT_ID()", last, show,
		before, "INSERT INTO t (id, a, b) SELECT id, a, 'new' FROM s ON DUPLICATE KEY UPDATE b = @@last_insert_id + 1", last, show,
		before, "INSERT INTO t (id, a, b) SELECT NULLIF(id, 12), a, 'new' FROM s ON DUPLICATE KEY UPDATE b = @@identity + 2", last, show}},
	{name: "in the update list, the row is not there", lines: []string{before, "INSERT INTO t (a, b) SELECT a, b FROM s WHERE a = 2 ON DUPLICATE KEY UPDATE b = LAST_INSERT_ID()", last, "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"BEGIN", before, "INSERT INTO t (a, b) SELECT a + 10, b FROM s WHERE a = 2 ON DUPLICATE KEY UPDATE b = LAST_INSERT_ID()", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", "COMMIT"}},
	{name: "in the source", lines: []string{before, "INSERT INTO t (a, b) SELECT a, @@last_insert_id FROM s", show, before, "INSERT INTO t (a, b) SELECT a + 10, @@session.identity FROM s", show, before, "INSERT INTO t (id, a, b) VALUES (NULL, 20, @@identity)", show, last}},
	{name: "variables in the row", lines: []string{before, "INSERT INTO t VALUES (NULL, 1, @@identity, DEFAULT)", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()", before, "INSERT INTO t VALUES (NULL, 2, @@session.last_insert_id, DEFAULT)", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()"}},
	{name: "in a function of the update list", setup: []string{"CREATE FUNCTION id_now() RETURNS BIGINT READS SQL DATA RETURN LAST_INSERT_ID()"},
		lines: []string{copyS, before, "INSERT INTO t (a, b) SELECT a, 'new' FROM s ON DUPLICATE KEY UPDATE b = id_now()", "SELECT a, b FROM t ORDER BY a"}},
	on("mariadb", refusedScript("or run it with Exec", before, "INSERT INTO t (id, a) VALUES (NULL, 20) RETURNING a, LAST_INSERT_ID()")),
	on("mariadb", refusedScript("RETURNING beside rows", copyS, "INSERT INTO t (a, b) SELECT a + 10, b FROM s ORDER BY a RETURNING a")),
	{name: "in a trigger before", setup: []string{"CREATE TRIGGER notes BEFORE INSERT " + readsID}, lines: idInTrigger},
	{name: "in a trigger after", setup: []string{"CREATE TRIGGER notes AFTER INSERT " + readsID}, lines: idInTrigger},
	{name: "in a trigger made later", lines: []string{before, "INSERT INTO t (a) VALUES (100)", "CREATE TRIGGER notes BEFORE INSERT " + readsID, before, "INSERT INTO t (a) VALUES (101)", copyS, "SELECT * FROM log", last}},
	{name: "in a trigger on an update", setup: []string{"CREATE TRIGGER notes BEFORE UPDATE " + readsID}, lines: []string{copyS, before,
		"INSERT INTO t (a, b) SELECT a, 'new' FROM s ON DUPLICATE KEY UPDATE b = VALUES(b)", "SELECT * FROM log", before, "INSERT INTO t (id, a, b) SELECT id, a, 'newer' FROM s ON DUPLICATE KEY UPDATE b = VALUES(b)", "SELECT * FROM log"}},
	{name: "in a trigger that a trigger fires", setup: []string{"CREATE TABLE log2 (x BIGINT)", "CREATE TRIGGER first AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)"}, lines: []string{"INSERT INTO t (a) VALUES (100)", "CREATE TRIGGER second AFTER INSERT ON log FOR EACH ROW INSERT INTO log2 VALUES (LAST_INSERT_ID())",
		before, "INSERT INTO t (a) VALUES (1)", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", before, "INSERT INTO t (a) VALUES (2), (3)", before, "INSERT INTO t (a) SELECT a + 10 FROM s", "SELECT * FROM log2"}},
	{name: "in a trigger that a function fires", setup: []string{"CREATE TABLE log2 (x BIGINT)"}, lines: []string{"INSERT INTO t (a) VALUES (100)", "CREATE TRIGGER second AFTER INSERT ON log FOR EACH ROW INSERT INTO log2 VALUES (LAST_INSERT_ID())",
		before, "INSERT INTO t (id, a) VALUES (NULL, noted(1))", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", before, "INSERT INTO t (a, b) VALUES (noted(2), 1), (noted(3), 1)", before, "INSERT INTO t (a) VALUES (2) ON DUPLICATE KEY UPDATE b = noted(5)", before, "INSERT INTO t (a) SELECT noted(a + 10) FROM s", "SELECT * FROM log2"}},
	{name: "in a trigger of an upsert's updates", setup: []string{"ALTER TABLE log MODIFY a BIGINT", "CREATE TRIGGER notes BEFORE UPDATE " + readsID}, lines: []string{"INSERT INTO t (a) VALUES (1), (2)",
		before, "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 'new'", before, "INSERT INTO t (a) VALUES (1), (2) ON DUPLICATE KEY UPDATE b = VALUES(a)", before, "INSERT INTO t (id, a) VALUES (5, 1) ON DUPLICATE KEY UPDATE id = id, b = 'newer'",
		before, "INSERT INTO t (a) VALUES (3) ON DUPLICATE KEY UPDATE b = 'new'", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", "SELECT * FROM log"}},
	{name: "in a trigger that a trigger of updates fires", setup: []string{"CREATE TABLE log2 (x BIGINT)", "CREATE TRIGGER first AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)", "CREATE TRIGGER second AFTER INSERT ON log FOR EACH ROW INSERT INTO log2 VALUES (@@identity)"}, lines: []string{"INSERT INTO t (a) VALUES (1), (2)",
		before, "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 'new'", "SELECT * FROM log2"}},
	{name: "set in the row", lines: []string{"INSERT INTO t VALUES (NULL, 1, LAST_INSERT_ID(77), DEFAULT)", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()", "INSERT INTO t (a, b) VALUES (2, LAST_INSERT_ID(77))", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (b, id, a) VALUES (LAST_INSERT_ID(77), 0, 3), (LAST_INSERT_ID(78), 0, 4)", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()", "INSERT INTO t SET a = 5, id = NULL, b = LAST_INSERT_ID(77)", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()",
		"REPLACE INTO t (id, a, b) VALUES (NULL, 5, LAST_INSERT_ID(79))", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (id, a, b) VALUES (NULL, 6, LAST_INSERT_ID(77)) ON DUPLICATE KEY UPDATE b = 5", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (id, a, b) VALUES (600, 7, LAST_INSERT_ID(77))", last}},
	{name: "set in a select without a table", lines: []string{"INSERT INTO t (a, b) SELECT 1, LAST_INSERT_ID(77)", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()", "INSERT INTO t (id, a, b) SELECT NULL, 2, LAST_INSERT_ID(77)", "SELECT a, b FROM t WHERE id = LAST_INSERT_ID()"}},
	refusedScript("LAST_INSERT_ID(…)", before, "INSERT INTO t (id, a) SELECT LAST_INSERT_ID(id), a FROM s"),
	refusedScript("LAST_INSERT_ID(…)", before, "INSERT INTO t (a, b) SELECT a, LAST_INSERT_ID(a) FROM s"),
	refusedScript("only the server", before, "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(77), 1)"),
}

var idInTrigger = []string{before, copyS, "SELECT * FROM log", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", before, "INSERT INTO t (id, a) SELECT id, a + 10 FROM s", "SELECT * FROM log", last,
	before, "INSERT INTO t (id, a) SELECT IF(a = 2, id + 10, NULL), a + 20 FROM s ORDER BY a", "SELECT * FROM log", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
	before, "INSERT INTO t (id, a) VALUES (NULL, 31)", "SELECT * FROM log", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", before, "INSERT INTO t (a) VALUES (32), (33)", "SELECT * FROM log", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
	before, "INSERT INTO t (id, a) VALUES (NULL, 34)", "SELECT * FROM log", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", before, "INSERT INTO t (a) SELECT 35", "SELECT * FROM log", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
	"BEGIN", before, "INSERT INTO t (a, b) SELECT a + 40, b FROM s ORDER BY a", "SELECT * FROM log", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", "COMMIT"}

// plainScripts are about errors and settings that statements which run as
// several share with those that run as one.
var plainScripts = []script{
	{name: "read only, twice", lines: []string{"SET TRANSACTION READ ONLY", copyS, copyS, copyID, "SELECT COUNT(*) FROM t", copyS, show, "SET TRANSACTION READ ONLY", "INSERT INTO t (id, a) VALUES (NULL, 50)", "INSERT INTO t (id, a) VALUES (NULL, 50)", "SELECT COUNT(*) FROM t"}},
	{name: "a limit of 0 on selects", lines: []string{"SET sql_select_limit = 0", copyS, copyID, "INSERT INTO t (id, a) VALUES (NULL, 31), (NULL, 32), (33, 33)", "INSERT INTO t (id, a) SELECT IF(a = 2, id, NULL), a + 40 FROM s",
		"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `INSERT INTO t (a, b) VALUES (61, 'x\'), (62, '\')`, "SET sql_select_limit = DEFAULT", show}},
	{name: "a limit of 1 on selects", lines: []string{"SET sql_select_limit = 1", "INSERT INTO t (id, a) VALUES (NULL, 31), (NULL, 32), (33, 33)", "INSERT INTO t (id, a) SELECT IF(a = 2, id, NULL), a + 40 FROM s", "SET sql_select_limit = DEFAULT", show}},
	{name: "the target as the source", lines: []string{copyS, "INSERT INTO t (a, b) SELECT q.a, q.b FROM t q ON DUPLICATE KEY UPDATE t.b = CONCAT(t.b, VALUES(b))", show}},
	{name: "words before INTO", lines: []string{"INSERT LOW_PRIORITY INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = t.b", "INSERT HIGH_PRIORITY INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = CONCAT(t.b, 'h')",
		"INSERT LOW_PRIORITY IGNORE INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = CONCAT(t.b, 'l')", show}},
	{name: "SET STATEMENT", only: "mariadb", lines: []string{copyS, "SET STATEMENT max_statement_time = 60 FOR INSERT INTO t (a, b) SELECT a, 'new' FROM s ON DUPLICATE KEY UPDATE b = VALUES(b)", show}},
	{name: "an upsert's source acts once", setup: []string{"CREATE FUNCTION acts(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (x); RETURN x; END"}, lines: []string{"SET @n = 10",
		"INSERT INTO t (a, b) SELECT a, b FROM s WHERE id = acts(12) ON DUPLICATE KEY UPDATE b = VALUES(b)", "INSERT INTO t (a, b) SELECT a + 10, b FROM s WHERE acts(1) = 1 ON DUPLICATE KEY UPDATE b = CONCAT(t.b, VALUES(b))",
		"INSERT INTO t (a, b) SELECT a + 20, b FROM s WHERE id = (SELECT acts(12)) ON DUPLICATE KEY UPDATE b = CONCAT(VALUES(`b`), VALUES (t.a))", "SELECT COUNT(*) FROM log",
		"INSERT INTO t (a, b) SELECT a + 30, b FROM s WHERE id = (@n := @n + 1) ON DUPLICATE KEY UPDATE b = t.b + 1", "SELECT @n", show}},
	{name: "a sequence in an upsert's source", only: "mariadb", setup: []string{"CREATE SEQUENCE q"}, lines: []string{"INSERT INTO t (a, b) SELECT a, b FROM s WHERE id = NEXTVAL(q) + 11 ON DUPLICATE KEY UPDATE b = VALUES(b)",
		"INSERT INTO t (a, b) SELECT a + 10, b FROM s WHERE NEXT VALUE FOR q > 0 ON DUPLICATE KEY UPDATE b = t.b + 1", "SELECT NEXTVAL(q)", show}},
	{name: "an upsert into a view", setup: []string{"RENAME TABLE t TO base", "CREATE VIEW t AS SELECT id, a AS x, b AS y FROM base"}, lines: []string{"INSERT INTO t (x, y) SELECT a, b FROM s ORDER BY a", "INSERT INTO t (x, y) SELECT a, b FROM s ORDER BY a ON DUPLICATE KEY UPDATE y = CONCAT(y, VALUES(y))", "SELECT id, x, y FROM t ORDER BY id",
		"INSERT INTO t (id, x, y) SELECT IF(a = 2, 50, NULL), a + 1, b FROM s ORDER BY a ON DUPLICATE KEY UPDATE y = CONCAT(y, VALUES(y))", "SELECT id, x, y FROM t ORDER BY id"}},
	{name: "rows exchanged with a partition", setup: []string{"DROP TABLE t", "CREATE TABLE t (id BIGINT NOT NULL {AUTO} PRIMARY KEY, a INT)", "CREATE TABLE x (id BIGINT NOT NULL {AUTO} PRIMARY KEY, a INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN MAXVALUE)",
		"INSERT INTO x VALUES (1000000000004, 99)"}, lines: []string{"INSERT INTO t (a) VALUES (1)", "ALTER TABLE x EXCHANGE PARTITION p WITH TABLE t", "INSERT INTO t (a) VALUES (2), (3), (4), (5), (6)", "SELECT a FROM t ORDER BY id"}},
	{name: "a column twice", lines: []string{"INSERT INTO t (a, a) SELECT a, a FROM s", "INSERT INTO t (a, b, A) SELECT a, b, a FROM s ON DUPLICATE KEY UPDATE b = 'x'", "INSERT INTO t (id, a, id) VALUES (NULL, 2, 3)"}},
}

// keysThatFail are runs that bring a huge key, each of which fails.
var keysThatFail = []string{
	"INSERT INTO t (id, a) SELECT 5000000000000, 2000 FROM s LIMIT 1",      // a CHECK says no
	"INSERT INTO t (id, a) SELECT 5000000000000 + 0, 'x' FROM s LIMIT 1",   // no number
	"INSERT INTO t (id, a) SELECT 99999999999999999999, 50 FROM s LIMIT 1", // out of range
}

// A key of a run that failed does not move the counter.
func TestFailedKeyMovesNothing(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, name := range []string{"mysql", driver.Name} {
			auto := map[bool]string{true: "AUTO_INCREMENT"}[name == "mysql"]
			plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", generatedFrom, 1000), "CREATE TABLE t (id BIGINT NOT NULL "+auto+" PRIMARY KEY, a INT UNIQUE, CHECK (a < 1000))", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
			db := map[bool]*sql.DB{true: plain, false: leaf}[name == "mysql"]
			for _, text := range keysThatFail {
				if res, err := db.Exec(text); err == nil {
					t.Errorf("%s, %s: %s: %v", target.Name, name, text, res)
				}
			}
			if _, err := db.Exec("INSERT INTO t (a) SELECT a FROM s"); err != nil {
				t.Fatal(err)
			}
			var highest int64
			if err := plain.QueryRow("SELECT MAX(id) FROM t").Scan(&highest); err != nil || highest > generatedFrom+10 {
				t.Errorf("%s, %s: the highest key is %d, %v", target.Name, name, highest, err)
			}
			if _, err := db.Exec("INSERT INTO t (id, a) SELECT 5000000000000, 51 FROM s LIMIT 1"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("INSERT INTO t (a) VALUES (52)"); err != nil {
				t.Fatal(err)
			}
			if err := plain.QueryRow("SELECT id FROM t WHERE a = 52").Scan(&highest); err != nil || highest <= 5000000000000 {
				t.Errorf("%s, %s: behind a key that was stored the next is %d, %v", target.Name, name, highest, err)
			}
		}
	}
}

// Errors name the target and its key, as those of the plain driver.
func TestStagedErrorsNameTheTarget(t *testing.T) {
	texts := []string{"INSERT INTO t (a) SELECT b FROM s", "INSERT INTO t (id, a) SELECT b, 1 FROM s",
		"INSERT INTO t (c) SELECT c FROM s", "INSERT INTO t (d) SELECT c FROM s", "INSERT INTO t (a) SELECT nosuch FROM s", "INSERT INTO t (id, a) SELECT 7, a FROM s", "INSERT INTO t (a) SELECT 5000 FROM s",
		"INSERT INTO t (a, c) SELECT 1 FROM s"}
	for _, target := range mysqltest.Targets(t) {
		var told [2][]string
		for i, auto := range []string{"AUTO_INCREMENT", ""} {
			plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", generatedFrom, 1000), "CREATE TABLE t (id BIGINT NOT NULL "+auto+" PRIMARY KEY, a INT, c VARCHAR(5), d CHAR(3) CHARACTER SET latin1, CHECK (a < 1000))",
				"CREATE TABLE s (a INT, b VARCHAR(40), c VARCHAR(40))", "INSERT INTO s VALUES (1, 'x', 'longer ü😀'), (2, 'y', '')")
			for _, text := range texts {
				_, err := []*sql.DB{plain, leaf}[i].Exec(text)
				if err == nil {
					err = errors.New("none")
				}
				told[i] = append(told[i], databaseName.ReplaceAllString(err.Error(), "database"))
			}
		}
		for i, text := range texts {
			if told[0][i] != told[1][i] {
				t.Errorf("%s: %s\n\t%s\n\twant %s", target.Name, text, told[1][i], told[0][i])
			}
		}
	}
}

// databaseName is that of a test's database.
var databaseName = regexp.MustCompile(`leafsql_[0-9a-f]{12}`)

func TestStagedIDs(t *testing.T)       { playAll(t, idScripts) }
func TestStagedLikePlain(t *testing.T) { playAll(t, plainScripts) }
