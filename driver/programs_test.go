package driver_test

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// returns defines a stored function whose value is an expression.
func returns(function, expression string) string {
	return "CREATE FUNCTION " + function + " RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA RETURN " + expression
}

const (
	update3 = "UPDATE s SET b = CONCAT(b, 'n')" // 3 rows
	ab      = "SELECT a, b FROM t ORDER BY a"
	newest  = "SELECT a FROM t WHERE id = LAST_INSERT_ID()"

	callsF = "INSERT INTO t (a, b) SELECT a, f() FROM s"
	idView = "CREATE VIEW v AS SELECT a, LAST_INSERT_ID() l FROM s"
)

// refusedBy is a script whose last line is refused because of what setup made.
func refusedBy(part string, setup []string, lines ...string) script {
	sc := refusedScript(part, lines...)
	sc.setup = setup
	return sc
}

// programScripts are about stored programs that would notice that a statement
// runs as several, or carries the id.
var programScripts = []script{
	refusedBy("own statements", []string{returns("f()", "ROW_COUNT()")}, update3, "INSERT INTO t (id, a, b) VALUES (NULL, 1, f())", ab, update3, callsF),
	refusedBy("own statements", []string{returns("f()", "FOUND_ROWS()")}, update3, callsF),
	refusedBy("own statements", []string{returns("g()", "ROW_COUNT()"), returns("f()", "g() + 1")}, update3, callsF),
	refusedBy("own statements", []string{returns("f()", "@@autocommit")}, callsF),
	refusedBy("own statements", []string{returns("f()", "ROW_COUNT()")}, update3, "INSERT INTO t (a, b) SELECT a, 1 FROM s ON DUPLICATE KEY UPDATE b = f()"),
	refusedBy("own statements", []string{returns("f()", "ROW_COUNT()"), "CREATE VIEW v AS SELECT a, f() c FROM s"}, update3, "INSERT INTO t (a, b) SELECT a, c FROM v"),
	refusedBy("own statements", nil, callsF, returns("f()", "5"), callsF, ab, "DROP FUNCTION f", returns("f()", "ROW_COUNT()"), "INSERT INTO t (a, b) SELECT a + 10, f() FROM s"),
	refusedBy("own statements", []string{"CREATE TABLE q AS SELECT a FROM s", "CREATE FUNCTION f() RETURNS INT MODIFIES SQL DATA BEGIN UPDATE s SET b = CONCAT(b, 'u'); RETURN ROW_COUNT(); END"}, "INSERT INTO t (a, b) SELECT a, f() FROM q"),
	{name: "counts that it does not call", setup: []string{"CREATE PROCEDURE p() SELECT ROW_COUNT()", returns("f()", "5")}, lines: []string{callsF, ab, "INSERT INTO t (a, b) SELECT a + 10, 'it''s \\' `x` \u00fc p' FROM s", ab}},

	{name: "columns and variables that are named like counts", setup: []string{"CREATE TABLE stats (row_count INT)", "INSERT INTO stats VALUES (0)", "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW BEGIN UPDATE stats SET row_count = row_count + 1; IF @@session.sql_log_bin IS NOT NULL THEN SET @autocommit = 1; END IF; END",
		"CREATE FUNCTION f() RETURNS INT READS SQL DATA BEGIN DECLARE rowcount INT; SELECT COUNT(*) INTO rowcount FROM log; RETURN rowcount; END"}, lines: []string{callsF, ab, "INSERT INTO t (id, a) VALUES (NULL, 10)", "SELECT row_count FROM stats"}},
	refusedBy("own statements", []string{"CREATE FUNCTION f() RETURNS INT READS SQL DATA BEGIN DECLARE n INT; SET n = (SELECT COUNT(*) FROM log); RETURN ROW_COUNT(); END"}, update3, callsF),
	refusedBy("own statements", []string{"CREATE FUNCTION f() RETURNS INT MODIFIES SQL DATA BEGIN UPDATE log SET a = 1; RETURN FOUND_ROWS(); END"}, "SELECT a FROM s LIMIT 2", callsF),

	refusedBy("uses the table,", []string{returns("f()", "(SELECT COUNT(*) FROM s, /* all */ (log, `t`))")}, callsF),
	refusedBy("uses the table,", []string{"CREATE VIEW v AS SELECT s.a FROM s LEFT JOIN (log JOIN t) ON s.a = t.a", returns("f()", "(SELECT COUNT(*) FROM v)")}, callsF),
	refusedBy("use c,", []string{"CREATE TABLE c (a INT)", "CREATE TRIGGER first AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)", "CREATE TRIGGER second AFTER INSERT ON log FOR EACH ROW INSERT INTO c VALUES (NEW.a)", returns("f()", "(SELECT COUNT(*) FROM c)")}, callsF),
	{name: "columns and parameters that are named like tables", setup: []string{"CREATE TABLE q (t INT, log INT)", "INSERT INTO q VALUES (7, 8)", "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
		"CREATE FUNCTION f(t INT) RETURNS INT READS SQL DATA BEGIN /* for t */ DECLARE a INT; SELECT MAX(q.log) INTO a FROM q WHERE q.t >= t; RETURN a + t; END"}, lines: []string{"INSERT INTO t (a, b) SELECT a, f(a) FROM s ORDER BY a", ab, "SELECT COUNT(*) FROM log"}},
	refusedBy("uses the table,", []string{returns("f()", "(SELECT COUNT(*) FROM t)")}, "INSERT INTO t (a, b) VALUES (10, f()), (11, f())", ab, callsF),
	{name: "what its update list reads", setup: []string{returns("f()", "5"), returns("g()", "(SELECT COUNT(*) FROM t)")}, lines: []string{"INSERT INTO t (a) VALUES (1), (2)", "INSERT INTO t (a, b) SELECT a, f() FROM s ORDER BY a ON DUPLICATE KEY UPDATE b = g()", ab}},
	refusedBy("use log,", []string{"CREATE TRIGGER tells AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)", returns("f()", "(SELECT COUNT(*) FROM log)")}, callsF),
	{name: "what other tables have", setup: []string{"CREATE TABLE q (a INT)", "CREATE TRIGGER tells AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)", returns("f()", "(SELECT COUNT(*) FROM q)")}, lines: []string{callsF, ab}},
	refusedBy("use @x,", []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = @x"}, "SET @x = 5", "INSERT INTO t (a) SELECT (@y := a + 20) FROM s", ab, "INSERT INTO t (a) SELECT (@x := a + 30) FROM s"),
	refusedBy("use @x,", []string{"CREATE FUNCTION f() RETURNS INT NO SQL BEGIN SET @x = @x + 1; RETURN @x; END"}, "SET @x = 5", "INSERT INTO t (a, b) SELECT f(), @x FROM s", ab, "INSERT INTO t (a) SELECT f() FROM s ON DUPLICATE KEY UPDATE b = @x"),
	refusedBy("use q,", []string{"CREATE TABLE q (a INT)", "CREATE FUNCTION f(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO q VALUES (x); RETURN (SELECT COUNT(*) FROM q); END"}, copyS, "INSERT INTO t (a) SELECT f(a) FROM s ON DUPLICATE KEY UPDATE b = f(9)"),
	refusedBy("use q,", []string{"CREATE TABLE q (a INT)", "CREATE FUNCTION f(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO q VALUES (x); RETURN x; END", "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = (SELECT COUNT(*) FROM q)"}, "INSERT INTO t (a) SELECT f(a) FROM s"),
	refusedBy("use @x,", []string{"CREATE FUNCTION f(x INT) RETURNS INT NO SQL BEGIN SELECT x, x INTO @y, @x; RETURN x; END", "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = @x"}, "INSERT INTO t (a) SELECT f(a) FROM s"),
	refusedBy("use @x,", []string{"CREATE PROCEDURE p(OUT o INT) SET o = 7", "CREATE FUNCTION f(x INT) RETURNS INT NO SQL BEGIN CALL p(@x); RETURN x; END", "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = @x"}, "INSERT INTO t (a) SELECT f(a) FROM s"),
	refusedBy("only the server", []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = @x"}, "SET @x = 5", "INSERT INTO t (id, a) VALUES ((@x := @x + 2), 1), ((@x := @x + 2), 2)"),
	refusedBy("use @x,", []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = 1, @x = NEW.a"}, "SET @x = 100", "INSERT INTO t (a, b) SELECT a, @y FROM s", ab, "INSERT INTO t (a, b) SELECT a + 10, @x FROM s"),
	refusedBy("use @x,", []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SELECT NEW.a, NEW.b INTO @y, @x", returns("f()", "@x")}, "SET @x = 100", callsF),
	{name: "variables that nobody sets", setup: []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN IF @who = 'me' THEN INSERT INTO log SELECT @who = 'me', @at FROM DUAL; END IF; SET NEW.b = @who; END", "ALTER TABLE log ADD at INT"},
		lines: []string{"SET @who = 'me', @at = 5", "INSERT INTO t (a, b) SELECT a, @who FROM s WHERE @at = 5 ORDER BY a", ab, "INSERT INTO t SELECT NULL, @at, @who, NOW() FROM s LIMIT 1", ab, "SELECT * FROM log"}},
	refusedScript("@@autocommit", "INSERT INTO t (a, b) SELECT a, @@autocommit FROM s"),

	{name: "one time", setup: []string{returns("f()", "MICROSECOND(NOW(6))"), "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = CONCAT(MICROSECOND(NOW(6)), ' ', COALESCE(NEW.b, ''))"}, lines: []string{callsF, "INSERT INTO t (a, b, at) SELECT a + 10, MICROSECOND(NOW(6)), NOW(6) FROM s",
		"SELECT a FROM t WHERE b = CONCAT(MICROSECOND(at), ' ', MICROSECOND(at)) ORDER BY a"}},
	{name: "a default that reads the id", only: "mariadb", setup: []string{"ALTER TABLE t ADD d BIGINT DEFAULT (@@identity)"}, lines: []string{before, "INSERT INTO t (a) VALUES (1), (2)", "SELECT a, d FROM t ORDER BY a", newest, before, "INSERT INTO t (a) SELECT a + 10 FROM s", "SELECT a, d FROM t ORDER BY a"}},

	{name: "a view in the row", setup: []string{idView}, lines: []string{before, "INSERT INTO t (a, b) VALUES (1, (SELECT MAX(l) FROM v))", ab, newest,
		before, "INSERT INTO t (id, a, b) VALUES (NULL, 2, (SELECT MAX(l) FROM v)), (NULL, 3, (SELECT MAX(l) FROM v))", ab, newest, before, "INSERT INTO t SET id = NULL, a = 4, b = (SELECT MAX(l) FROM v)", ab, newest,
		before, "INSERT INTO t (id, a, b) SELECT NULL, 5, (SELECT MAX(l) FROM v)", ab, newest, before, "INSERT INTO t (a, b) SELECT a + 10, (SELECT MAX(l) FROM v) FROM s", ab, newest,
		before, "INSERT INTO t (id, a, b) VALUES (NULL, 20, (SELECT MAX(l) FROM v))", ab, newest}},
	{name: "a view in the update list", setup: []string{idView}, lines: []string{copyS, before, "INSERT INTO t (a, b) VALUES (1, 'x') ON DUPLICATE KEY UPDATE b = (SELECT MAX(l) FROM v)", ab,
		before, "INSERT INTO t (a, b) SELECT a, b FROM s ON DUPLICATE KEY UPDATE b = (SELECT MAX(l) FROM v)", ab}},
	{name: "a view that calls a function", setup: []string{returns("f()", "LAST_INSERT_ID()"), "CREATE VIEW v AS SELECT a, f() l FROM s"}, lines: []string{before, "INSERT INTO t (id, a, b) VALUES (NULL, 2, (SELECT MAX(l) FROM v)), (NULL, 3, (SELECT MAX(l) FROM v))", ab, newest}},
	{name: "a view made later", lines: []string{"INSERT INTO t (id, a, b) VALUES (NULL, 1, (SELECT MAX(a) FROM s))", idView, before, "INSERT INTO t (id, a, b) VALUES (NULL, 2, (SELECT MAX(l) FROM v))", ab, newest}},

	{name: "names of MariaDB's functions", only: "mysql", setup: []string{returns("nvl2(x INT)", "LAST_INSERT_ID()"), returns("chr(x INT)", "LAST_INSERT_ID()")}, lines: []string{before, "INSERT INTO t (id, a, b) VALUES (NULL, 1, nvl2(1))", ab, newest, before, "INSERT INTO t (id, a, b) VALUES (NULL, 2, chr(1))", ab, newest}},
	{name: "names of MySQL's functions", only: "mariadb", setup: []string{returns("any_value(x INT)", "LAST_INSERT_ID()")}, lines: []string{before, "INSERT INTO t (id, a, b) VALUES (NULL, 1, any_value(1))", ab, newest}},
	{name: "names with a space behind", setup: []string{returns("`count`(x INT)", "LAST_INSERT_ID()"), returns("`now`(x INT)", "LAST_INSERT_ID()")}, lines: []string{before, "INSERT INTO t (id, a, b) VALUES (NULL, 1, count (1))", ab, newest, before, "INSERT INTO t (id, a, b) VALUES (NULL, 2, now (1))", ab, newest,
		before, "INSERT INTO t (id, a, b) VALUES (NULL, 3, ABS (-1))", ab, newest}},
	on("mysql", refusedBy("only the server", []string{returns("nextval(x INT)", "5")}, "INSERT INTO t (id, a) VALUES (nextval(1), 1)")),
	refusedBy("only the server", []string{returns("`sum`(x INT)", "5")}, "INSERT INTO t (id, a) VALUES (sum (1), 1)"),

	{name: "a package", only: "mariadb", params: "&sql_mode=ORACLE", setup: idPackage, lines: []string{before, "INSERT INTO t (id, a, b) VALUES (NULL, 1, p.f())", ab, newest}},
	{name: "a package that counts", only: "mariadb", params: "&sql_mode=ORACLE", setup: []string{idPackage[0], idPackage[1], "CREATE PACKAGE BODY p AS FUNCTION f RETURN INT AS BEGIN RETURN SQL%ROWCOUNT; END; END"}, lines: []string{update3, "INSERT INTO t (a, b) SELECT a, p.f() FROM s"},
		refused: map[string]string{"INSERT INTO t (a, b) SELECT a, p.f() FROM s": "own statements"}},
}

// idPackage makes a package whose function reads LAST_INSERT_ID().
var idPackage = []string{"SET sql_mode = 'ORACLE'", "CREATE PACKAGE p AS FUNCTION f RETURN INT; END", "CREATE PACKAGE BODY p AS FUNCTION f RETURN INT AS BEGIN RETURN LAST_INSERT_ID(); END; END"}

func on(server string, sc script) script {
	sc.only = server
	return sc
}

func TestProgramsInSessions(t *testing.T) {
	playAll(t, programScripts)
}

// TestProgramsMadeLater: what a program does counts from its own DDL on.
func TestProgramsMadeLater(t *testing.T) {
	const reads = "INSERT INTO t (id, a) VALUES (NULL, (SELECT MAX(l) FROM v))"
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", generatedFrom, 1000), tableT, "CREATE TABLE s (a INT)")
		leaf.SetMaxOpenConns(1)
		mustExec(t, leaf, returns("f()", "5"), "INSERT INTO t (a) SELECT f() FROM s", "DROP FUNCTION f", returns("f()", "ROW_COUNT()"))
		if _, err := leaf.Exec("INSERT INTO t (a) SELECT f() FROM s"); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %v, want a refusal", target.Name, err)
		}
		mustExec(t, leaf, "CREATE VIEW v AS SELECT 5 l", reads, "DELETE FROM t", "CREATE OR REPLACE VIEW v AS SELECT LAST_INSERT_ID() l", before, reads)
		var a int
		if err := leaf.QueryRow("SELECT a FROM t").Scan(&a); err != nil || a != 777 {
			t.Errorf("%s: the view read %d, %v", target.Name, a, err)
		}
	}
}

// TestProgramsOfOtherDatabases: bare names in a routine are of its own database.
func TestProgramsOfOtherDatabases(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		other := target.Database(t)
		makes, _ := openOn(t, other, "leafTables=none", "CREATE TABLE log (a INT)", "INSERT INTO log VALUES (0)",
			"CREATE FUNCTION g() RETURNS INT MODIFIES SQL DATA BEGIN UPDATE log SET a = a + 1; RETURN 1; END", returns("f()", "g()"), "CREATE VIEW v AS SELECT f() c")
		name := databaseOf(t, other)
		own := target.Database(t)
		_, leaf := openOn(t, own, "leafTables=t&multiStatements=true", allocTable, row("t", 1, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2), (3)",
			"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = (SELECT MAX(a) FROM "+name+".log)")
		leaf.SetMaxOpenConns(1)
		t1, s := databaseOf(t, own)+".t", databaseOf(t, own)+".s"
		for _, text := range []string{
			"INSERT INTO t (a) SELECT " + name + ".f() FROM s", "INSERT INTO t (a) SELECT c FROM s, " + name + ".v",
			"USE " + name + "; INSERT INTO " + t1 + " (a) SELECT f() FROM " + s,
		} {
			if _, err := leaf.Exec(text); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %s: %v, not refused", target.Name, text, err)
			}
		}
		var n int
		if err := makes.QueryRow("SELECT a FROM log").Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d, %v: it ran", target.Name, n, err)
		}
	}
}
