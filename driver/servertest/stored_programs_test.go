package servertest

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// returns returns the definition of a stored function that returns an expression.
func returns(function, expression string) string {
	return "CREATE FUNCTION " + function + " RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA RETURN " + expression
}

func TestProgramsInSessionsWorkAsPlain(t *testing.T) {
	playAll(t, "stored_programs")
}

// TestProgramsCountAfterTheirDDL: the effects of a program count as soon as its DDL ran.
func TestProgramsCountAfterTheirDDL(t *testing.T) {
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
			t.Errorf("%s: value that the view read = %d, error %v; want 777", target.Name, a, err)
		}
	}
}

// TestProgramsUseNamesOfTheirDatabase: names without a database in a routine refer to the routine's database.
func TestProgramsUseNamesOfTheirDatabase(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		other := target.Database(t)
		makes, _ := openOn(t, other, "leafTables=none", "CREATE TABLE log (a INT)", "INSERT INTO log VALUES (0)",
			"CREATE FUNCTION g() RETURNS INT MODIFIES SQL DATA BEGIN UPDATE log SET a = a + 1; RETURN 1; END", returns("f()", "g()"), "CREATE VIEW v AS SELECT f() c")
		name := databaseOf(t, other)
		own := target.Database(t)
		_, leaf := openOn(t, own, "leafTables=t&multiStatements=true", allocTable, row("t", 1, 10),
			"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2), (3)",
			"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = (SELECT MAX(a) FROM "+name+".log)")
		leaf.SetMaxOpenConns(1)
		t1, s := databaseOf(t, own)+".t", databaseOf(t, own)+".s"
		for _, text := range []string{
			"INSERT INTO t (a) SELECT " + name + ".f() FROM s", "INSERT INTO t (a) SELECT c FROM s, " + name + ".v",
			"USE " + name + "; INSERT INTO " + t1 + " (a) SELECT f() FROM " + s,
		} {
			if _, err := leaf.Exec(text); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %s: error %v, want a refusal", target.Name, text, err)
			}
		}
		var n int
		if err := makes.QueryRow("SELECT a FROM log").Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: value in log = %d, error %v; want 0, since nothing ran", target.Name, n, err)
		}
	}
}
