package servertest

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestColumnsWithAliasDoesNotAffectInternalQueries: the column names under go-sql-driver's columnsWithAlias=true do not
// affect leafsql's queries, also on the application's connections.
func TestColumnsWithAliasDoesNotAffectInternalQueries(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for name, of := range map[string]func(dsn string) *sql.DB{
			"DSN": func(dsn string) *sql.DB {
				return openLeaf(t, dsn, "columnsWithAlias=true&leafTables=t,u:id:sequence(seq_u)")
			},
			"leafStore": func(dsn string) *sql.DB {
				return openLeaf(t, dsn, "leafTables=t,u:id:sequence(seq_u)&leafStore="+strings.ReplaceAll(dsn, "/", "%2F")+"?columnsWithAlias=true")
			},
			"Wrap": func(dsn string) *sql.DB {
				cfg, err := driver.ParseDSN(dsn + "?columnsWithAlias=true&leafTables=t,u:id:sequence(seq_u)")
				if err != nil {
					t.Fatal(err)
				}
				inner, err := mysql.NewConnector(cfg.MySQL)
				if err != nil {
					t.Fatal(err)
				}
				connector, err := driver.Wrap(inner, cfg)
				if err != nil {
					t.Fatal(err)
				}
				db := sql.OpenDB(connector)
				t.Cleanup(func() { db.Close() })
				return db
			},
		} {
			t.Run(target.Name+"/"+name, func(t *testing.T) {
				dsn := target.Database(t)
				plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", 100, 10), seqTable, "INSERT INTO t_sequence VALUES ('seq_u', 100, 10, 1, NULL, 0)",
					"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)", "CREATE PROCEDURE nothing() DO 1")
				leaf := of(dsn)
				c := onOne(t, leaf)
				mustExec(t, c, "INSERT INTO t (a) VALUES (1)", "INSERT INTO t (id, a) VALUES (500, 2)", "INSERT INTO t (a) SELECT a + 2 FROM t", "INSERT INTO u (a) VALUES (1)",
					"CALL nothing()", "INSERT INTO t VALUES (NULL, 5)") // the columns are looked up again
				var got string
				if err := plain.QueryRow("SELECT CONCAT((SELECT GROUP_CONCAT(CONCAT(id, ' ', a) ORDER BY a SEPARATOR ', ') FROM t), '; ', (SELECT id FROM u))").Scan(&got); err != nil || got != "100 1, 500 2, 501 3, 502 4, 503 5; 101" {
					t.Errorf("rows = %q, error %v; want \"100 1, 500 2, 501 3, 502 4, 503 5; 101\"", got, err)
				}
			})
		}
	}
}

// TestDatabaseNameMayHaveDots: a database with a domain as its name works, also next to a database named like the part before the first dot.
func TestDatabaseNameMayHaveDots(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		other := target.Database(t)
		name := databaseOf(t, other) + ".example.org"
		root, _ := openOn(t, other, "leafTables=none", "CREATE DATABASE `"+name+"`")
		t.Cleanup(func() { root.Exec("DROP DATABASE `" + name + "`") })
		dsn := strings.Replace(other, "/"+databaseOf(t, other), "/"+name, 1)
		plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE f (id BIGINT PRIMARY KEY, a INT)")
		for _, pool := range [][2]string{
			{dsn, "leafTables=t,f:id:snowflake&leafCreate=true&leafNewRegistry=true"},
			{other, "leafTables=" + name + ".t," + name + ".f:id:snowflake&leafNewRegistry=true&leafAllocTable=" + name + ".leaf_alloc"},
		} {
			leaf := openLeaf(t, pool[0], pool[1])
			mustExec(t, leaf, "INSERT INTO `"+name+"`.t (a) VALUES (1)", "INSERT INTO `"+name+"`.f (a) SELECT 1", "DELETE FROM `"+name+"`.t")
			leaf.Close()
		}
		var maxID, flakes, strays int
		if err := plain.QueryRow("SELECT (SELECT max_id FROM leaf_alloc), (SELECT COUNT(*) FROM f), (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?)", databaseOf(t, other)).
			Scan(&maxID, &flakes, &strays); err != nil || maxID <= 101 || flakes != 2 || strays != 0 {
			t.Errorf("%s: max_id = %d, %d snowflakes, %d tables in the other database, error %v; want more than 101, 2 and 0", target.Name, maxID, flakes, strays, err)
		}
	}
}

// TestSemicolonInRuleHasHint: the error for such a name in a rule states how to write it.
func TestSemicolonInRuleHasHint(t *testing.T) {
	_, err := driver.ParseDSN("/shop?leafTables=tab;le")
	if err == nil || !strings.Contains(err.Error(), "or a * if the name has a ;") {
		t.Fatalf("ParseDSN() = %v, want a hint", err)
	}
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=tab*le:id:segment(tab)", allocTable, row("tab", 100, 10), "CREATE TABLE `tab;'le` (id BIGINT PRIMARY KEY, a INT)")
		if id := insertID(t, leaf, "INSERT INTO `tab;'le` (a) VALUES (1)"); id != 100 {
			t.Errorf("%s: id %d, want 100", target.Name, id)
		}
	}
}
