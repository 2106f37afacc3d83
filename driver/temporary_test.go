package driver_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	makeT  = "CREATE TEMPORARY TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)"
	dropT  = "DROP TEMPORARY TABLE t"
	intoT  = "INSERT INTO t (a) VALUES (1), (2)"
	idsOfT = "SELECT id, a FROM t ORDER BY id"
)

// temporaryScripts are about temporary tables, whose names rules mean.
var temporaryScripts = []script{
	{name: "ranks", lines: []string{"CREATE TEMPORARY TABLE order_rank (rk INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "INSERT INTO order_rank (a) SELECT a FROM s ORDER BY a DESC", "SELECT rk, a FROM order_rank ORDER BY rk",
		"INSERT INTO order_rank VALUES (NULL, 7), (0, 8)", "SELECT rk, a FROM order_rank ORDER BY rk", "DROP TABLE order_rank", "CREATE TEMPORARY TABLE order_rank (rk TINYINT AUTO_INCREMENT PRIMARY KEY, a INT)", "INSERT INTO order_rank SET a = 1", "SELECT rk FROM order_rank"}},
	{name: "keys of rows", lines: []string{"CREATE TEMPORARY TABLE ids (id BIGINT NOT NULL PRIMARY KEY)", "INSERT INTO ids VALUES (1), (2)", "INSERT INTO ids SELECT id + 10 FROM s", "SELECT COUNT(*) FROM ids", intoT, idsOfT}},
	{name: "one that hides a table", lines: []string{intoT, makeT, intoT, "INSERT INTO t (a) SELECT a FROM s", "SELECT LAST_INSERT_ID()", idsOfT, "UPDATE log SET a = 1", intoT, dropT, intoT, idsOfT}},
	{name: "dropped as a table", lines: []string{makeT, intoT, "DROP TABLE t", intoT, idsOfT}},
	{name: "dropped where there is none", lines: []string{intoT, "DROP TEMPORARY TABLE IF EXISTS t", intoT, idsOfT}},
	{name: "not made", lines: []string{"CREATE TEMPORARY TABLE t (a INT, a INT)", intoT, idsOfT}},
	{name: "made twice", lines: []string{makeT, "CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT)", intoT, makeT, intoT, idsOfT}},
	{name: "made from a select", lines: []string{"CREATE TEMPORARY TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY) SELECT a FROM s", intoT, "SELECT a FROM t ORDER BY id"}},
	{name: "altered", lines: []string{makeT, "ALTER TABLE t ADD b INT", "INSERT INTO t (a, b) VALUES (1, 2)", "ALTER TABLE t AUTO_INCREMENT = 50", intoT, idsOfT}},
	{name: "renamed", lines: []string{"CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "ALTER TABLE x RENAME TO t", intoT, idsOfT, "ALTER TABLE t RENAME y", intoT, idsOfT, "INSERT INTO y (a) VALUES (3)", "SELECT id FROM y"}},
	{name: "renamed by RENAME", only: "mariadb", lines: []string{"CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "RENAME TABLE x TO t", intoT, idsOfT, "RENAME TABLE t TO y", intoT, idsOfT}},
	{name: "made and dropped by procedures", setup: []string{"CREATE PROCEDURE make() " + makeT, "CREATE PROCEDURE gone() " + dropT},
		lines: []string{intoT, "CALL make()", intoT, idsOfT, "CALL gone()", intoT, idsOfT, makeT, intoT, "CALL gone()", "INSERT INTO t (a) SELECT a FROM s", idsOfT}},
	{name: "made by a stored text", lines: []string{"PREPARE p FROM '" + makeT + "'", "EXECUTE p", intoT, idsOfT, "PREPARE p FROM '" + dropT + "'", "EXECUTE p", intoT, idsOfT}},
	{name: "dropped by a function", setup: []string{"CREATE FUNCTION gone() RETURNS INT BEGIN " + dropT + "; RETURN 1; END"}, lines: []string{makeT, intoT, "DO gone()", intoT, idsOfT}},
	{name: "dropped by a function in a select", setup: []string{"CREATE FUNCTION gone() RETURNS INT BEGIN " + dropT + "; RETURN 1; END"}, lines: []string{makeT, intoT, "SELECT gone()", intoT, idsOfT}},
	{name: "dropped by a view's function", setup: []string{"CREATE FUNCTION gone() RETURNS INT BEGIN " + dropT + "; RETURN 1; END", "CREATE VIEW v AS SELECT gone() a"},
		lines: []string{makeT, intoT, "SELECT a FROM v", intoT, idsOfT, makeT, intoT, "INSERT INTO log SELECT a FROM v", intoT, idsOfT}},
	{name: "dropped by a trigger", setup: []string{"CREATE TABLE other (a INT)", "CREATE TRIGGER tr BEFORE INSERT ON other FOR EACH ROW " + dropT}, lines: []string{makeT, intoT, "INSERT INTO other VALUES (1)", intoT, idsOfT}},
	{name: "dropped by a trigger of updates", setup: []string{"CREATE TRIGGER tr BEFORE UPDATE ON log FOR EACH ROW " + dropT}, lines: []string{"INSERT INTO log VALUES (1)", makeT, intoT, "UPDATE log SET a = 2", intoT, idsOfT}},
	{name: "dropped by a configured table's trigger", rules: "leafTables=*&leafCreate=true", setup: []string{"CREATE TABLE u (id BIGINT NOT NULL {AUTO} PRIMARY KEY, a INT)", "CREATE TRIGGER tr BEFORE INSERT ON u FOR EACH ROW " + dropT}, lines: []string{makeT, intoT, "INSERT INTO u (a) VALUES (1)", intoT, "SELECT COUNT(*) FROM t"}},
	{name: "in a text that failed part-way", params: "&multiStatements=true", lines: []string{makeT + "; SELECT nosuch", intoT, idsOfT, dropT + "; SELECT nosuch", intoT, idsOfT}},
	{name: "made in the same text", params: "&multiStatements=true", lines: []string{makeT + "; " + intoT, idsOfT, dropT + "; " + intoT, idsOfT}},
	{name: "in another database", lines: []string{makeT, "USE mysql", "USE {DB}", intoT, idsOfT, "SELECT COUNT(*) FROM {DB}.t", "INSERT INTO {DB}.t (a) VALUES (9)", idsOfT}},
	{name: "other connections", lines: []string{makeT, "2:" + intoT, intoT, idsOfT, "2:SELECT a FROM t", "2:" + dropT, "2:" + intoT, dropT, intoT, "SELECT COUNT(*) FROM t"}},
	{name: "dropped with one that is not there", lines: []string{makeT, intoT, "DROP TABLE nosuch, t", intoT, idsOfT, makeT, intoT, "DROP TEMPORARY TABLE IF EXISTS nosuch, t", intoT, "SELECT COUNT(*) FROM t"}},
	{name: "an answer with rows that fails before it is made", params: "&multiStatements=true", lines: []string{"SELECT 1; SELECT nosuch; " + makeT, intoT, idsOfT, makeT, "SELECT 1; SELECT nosuch; " + dropT, intoT, idsOfT}},
	{name: "an answer with rows", params: "&multiStatements=true", lines: []string{"SELECT 1; " + makeT, intoT, idsOfT, "SELECT 1; " + dropT, intoT, idsOfT}},
	{name: "made in other spellings", lines: []string{"CREATE /*!40000 TEMPORARY */ TABLE {DB} . `t` (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", intoT, idsOfT, "DROP /* t */ TABLE IF EXISTS `t` RESTRICT", intoT, "/*!" + makeT + " */", intoT, idsOfT, "TRUNCATE t", intoT, idsOfT, "DROP TABLES t", intoT}},
	{name: "made by MariaDB's forms", only: "mariadb", lines: []string{makeT, "CREATE OR REPLACE TEMPORARY TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", intoT, idsOfT, "DROP TABLE t", "SET STATEMENT max_statement_time = 60 FOR " + makeT, intoT, idsOfT, "SET STATEMENT max_statement_time = 60 FOR " + dropT, intoT, "SELECT COUNT(*) FROM t",
		"BEGIN NOT ATOMIC " + makeT + "; END", intoT, idsOfT, "BEGIN NOT ATOMIC " + dropT + "; END", intoT, "SELECT COUNT(*) FROM t"}},
	{name: "renamed among other changes", lines: []string{"CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "ALTER TABLE x ADD b INT, RENAME TO {DB}.t", intoT, idsOfT, "ALTER TABLE t DROP b, RENAME AS y, AUTO_INCREMENT = 40", intoT, idsOfT}},
	{name: "the table it hides is renamed", only: "mysql", lines: []string{makeT, "RENAME TABLE t TO y", intoT, idsOfT, dropT, intoT, "RENAME TABLE y TO t", intoT, idsOfT}},
	{name: "rolled back", lines: []string{"BEGIN", makeT, intoT, "ROLLBACK", intoT, "SELECT a FROM t ORDER BY id", "BEGIN", dropT, "ROLLBACK", intoT, idsOfT, "START TRANSACTION READ ONLY", makeT, intoT, "COMMIT", "SELECT a FROM t ORDER BY id"}},
	{name: "dropped by a function in an update", setup: []string{"CREATE FUNCTION gone() RETURNS INT BEGIN " + dropT + "; RETURN 1; END"}, lines: []string{"INSERT INTO log VALUES (1)", makeT, intoT, "UPDATE log SET a = gone()", intoT, idsOfT, makeT, "INSERT INTO log VALUES (gone())", intoT, "SELECT COUNT(*) FROM t", makeT, "SET @x = gone()", intoT, "SELECT COUNT(*) FROM t",
		makeT, "DELETE FROM log WHERE a = gone()", intoT, "SELECT COUNT(*) FROM t"}},
	{name: "upserts", lines: []string{"CREATE TEMPORARY TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b INT)", "INSERT INTO t (a, b) VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2", "INSERT INTO t (a, b) VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2", "SELECT LAST_INSERT_ID()", "SELECT id, a, b FROM t"}},
}

// TestTemporaryTables: temporary tables are the server's, under exact rules and patterns.
func TestTemporaryTables(t *testing.T) {
	for _, rules := range []string{"leafTables=t:id", "leafTables=*&leafCreate=true"} {
		t.Run(rules[len("leafTables="):][:1], func(t *testing.T) {
			scripts := make([]script, len(temporaryScripts))
			for i, sc := range temporaryScripts {
				sc.rules = cmp.Or(sc.rules, rules)
				scripts[i] = sc
			}
			playAll(t, scripts)
		})
	}
}

// TestTemporaryTableLikeAMigratedOne: it has neither AUTO_INCREMENT nor a default, so that
// a row without a key is refused, whatever the name of the table.
func TestTemporaryTableLikeAMigratedOne(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, rules := range []string{"t", "*"} {
			_, leaf := openOn(t, target.Database(t), "leafTables="+rules+"&sql_mode=%27%27", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
			c := onOne(t, leaf)
			mustExec(t, c, "INSERT INTO t (a) VALUES (1)", "CREATE TEMPORARY TABLE x LIKE t", "INSERT INTO x (id, a) VALUES (5, 1)", "INSERT INTO x SELECT * FROM t")
			for _, text := range []string{"INSERT INTO x (a) VALUES (1)", "INSERT IGNORE INTO x (a) VALUES (1)", "INSERT INTO x VALUES (0, 1)", "REPLACE INTO x SET a = 1", "INSERT INTO x (a) SELECT a FROM s"} {
				_, err := c.ExecContext(t.Context(), text)
				var refused *driver.RefusedError
				if !errors.As(err, &refused) || !strings.Contains(refused.Fix, "MODIFY `id` bigint") || !strings.Contains(refused.Fix, "AUTO_INCREMENT") {
					t.Errorf("%s, %s: %s: %v", target.Name, rules, text, err)
				} else {
					_, fix, _ := strings.Cut(refused.Fix, ": ")
					mustExec(t, c, "SELECT 1", "DROP TEMPORARY TABLE x", "CREATE TEMPORARY TABLE x LIKE t", fix, strings.Replace(text, "VALUES (0, 1)", "VALUES (NULL, 1)", 1), "DROP TEMPORARY TABLE x", "CREATE TEMPORARY TABLE x LIKE t")
				}
			}
			if _, err := c.ExecContext(t.Context(), "INSERT INTO x (id, a) VALUES (?, 1)", nil); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s, %s: an argument: %v", target.Name, rules, err)
			}
			var n int
			if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM x").Scan(&n); err != nil || n != 0 {
				t.Errorf("%s, %s: %d rows, %v", target.Name, rules, n, err)
			}
		}
	}
}

// TestTemporaryTableLikeOneByDetours: likewise where it was renamed, altered, or made
// like another one.
func TestTemporaryTableLikeOneByDetours(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t&sql_mode=%27%27", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		for name, texts := range map[string][]string{
			"renamed":    {"CREATE TEMPORARY TABLE x LIKE t", "ALTER TABLE x RENAME TO y"},
			"altered":    {"CREATE TEMPORARY TABLE y LIKE t", "ALTER TABLE y ADD b INT"},
			"made twice": {"CREATE TEMPORARY TABLE y LIKE t", "CREATE TEMPORARY TABLE IF NOT EXISTS y (id INT AUTO_INCREMENT PRIMARY KEY, a INT)"},
			"like it":    {"CREATE TEMPORARY TABLE x LIKE t", "CREATE TEMPORARY TABLE y LIKE x"},
		} {
			c := onOne(t, leaf)
			mustExec(t, c, append([]string{"DROP TEMPORARY TABLE IF EXISTS x, y"}, texts...)...)
			if _, err := c.ExecContext(t.Context(), "INSERT IGNORE INTO y (a) VALUES (1)"); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %s: %v", target.Name, name, err)
			}
			c.Close()
		}
	}
}

// TestTemporaryTableLikeOneAltered: values without a list go to its own columns.
func TestTemporaryTableLikeOneAltered(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT)")
		c := onOne(t, leaf)
		mustExec(t, c, "CREATE TEMPORARY TABLE x LIKE t", "INSERT INTO x VALUES (4, 1, 2)", "ALTER TABLE x MODIFY b INT AFTER id", "INSERT INTO x VALUES (5, 2, 1)")
		var n int
		if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM x WHERE a = 1 AND b = 2").Scan(&n); err != nil || n != 2 {
			t.Errorf("%s: %d rows, %v", target.Name, n, err)
		}
		if _, err := c.ExecContext(t.Context(), "INSERT INTO x VALUES (0, 2, 1)"); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %v", target.Name, err)
		}
	}
}

// TestTemporaryTableBehindAPreparedStatement: which table a prepared statement writes is
// decided when it runs, also where there was nothing to fill when it was prepared.
func TestTemporaryTableBehindAPreparedStatement(t *testing.T) {
	type step struct {
		before string
		id     int64
	}
	for _, target := range mysqltest.Targets(t) {
		for first, steps := range map[string][]step{
			"DO 1": {{"DO 1", 1000}, {makeT, 1}, {"DO 1", 2}, {dropT, 1001}, {makeT, 1}},
			makeT:  {{"DO 1", 1}, {dropT, 1000}, {makeT, 1}, {dropT, 1001}},
		} {
			_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
			c := onOne(t, leaf)
			mustExec(t, c, first)
			st, err := c.PrepareContext(t.Context(), "INSERT INTO t (a) VALUES (?)")
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for i, tt := range steps {
				mustExec(t, c, tt.before)
				res, err := st.Exec(i)
				if err != nil {
					t.Fatalf("%s, %s first, %d: %v", target.Name, first, i, err)
				}
				if id, _ := res.LastInsertId(); id != tt.id {
					t.Errorf("%s, %s first, %d: id %d, want %d", target.Name, first, i, id, tt.id)
				}
			}
		}
	}
}

// TestTemporaryTablesByOtherWays: one that a list of changes renames, and one that is made
// while the database in use is not known.
func TestTemporaryTablesByOtherWays(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		other := target.Database(t)
		openOn(t, other, "leafTables=none", "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT)")
		name := databaseOf(t, other)
		_, leaf := openOn(t, target.Database(t), "leafTables=t,"+name+".t&multiStatements=true&leafCreate=true", allocTable, row("t", 3_000_000_000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		c := onOne(t, leaf)
		for i, texts := range [][]string{
			{"CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "ALTER TABLE x ADD b INT, RENAME t"},
			{dropT, "CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "USE " + name, makeT},
		} {
			mustExec(t, c, texts...)
			res, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)")
			if err != nil {
				t.Errorf("%s, %d: %v", target.Name, i, err)
			} else if id, _ := res.LastInsertId(); id != 1 {
				t.Errorf("%s, %d: id %d", target.Name, i, id)
			}
		}
		mustExec(t, c, dropT, "USE "+databaseOf(t, target.Database(t)))
		if _, err := c.ExecContext(t.Context(), "USE "+name+"; SELECT nosuch"); err == nil {
			t.Error("no error")
		}
		mustExec(t, c, makeT)
		if res, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)"); err != nil {
			t.Errorf("%s: %v", target.Name, err)
		} else if id, _ := res.LastInsertId(); id != 1 {
			t.Errorf("%s: id %d", target.Name, id)
		}
	}
}
