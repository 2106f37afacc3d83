package servertest

import (
	"net/url"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestStagedInSessions(t *testing.T) { playAll(t, "transactions") }

// TestStagedArgumentsAreEscapedForMode: arguments that the inner driver interpolates are escaped for the
// session's sql_mode, whatever a staging sent before.
func TestStagedArgumentsAreEscapedForMode(t *testing.T) {
	value := `it's \' "quoted" \\ ', (SELECT 1)) -- `
	for _, target := range mysqltest.Targets(t) {
		for _, mode := range []string{"NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,STRICT_TRANS_TABLES", "NO_ZERO_DATE,STRICT_TRANS_TABLES"} {
			_, leaf := openOn(t, target.Database(t), "leafTables=t:id&interpolateParams=true&sql_mode="+url.QueryEscape("'"+mode+"'"), allocTable, row("t", generatedFrom, 1000), "SET SESSION sql_mode = ''",
				"CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(100), d DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00')", "CREATE TABLE s (n INT)", "INSERT INTO s VALUES (1)")
			leaf.SetMaxOpenConns(1)
			for _, text := range []string{"INSERT INTO t (a, d) SELECT ?, NOW() FROM s", "INSERT INTO t (id, a, d) VALUES (NULL, ?, NOW())", "INSERT INTO t (a, d) VALUES (?, NOW())"} {
				if _, err := leaf.Exec(text, value); err != nil {
					t.Errorf("%s, %s: %s: error %v, want none", target.Name, mode, text, err)
				}
				var n int
				if err := leaf.QueryRow("SELECT COUNT(*) FROM t WHERE a = ?", value).Scan(&n); err != nil || n != 1 {
					t.Errorf("%s, %s: %s: %d rows, error %v; want 1", target.Name, mode, text, n, err)
				}
				if _, err := leaf.Exec("DELETE FROM t"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestRemainingStageIsDroppedLater: a staging table that remained because of a read-only transaction
// is dropped by the next staged statement.
func TestRemainingStageIsDroppedLater(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		other := server.Database(t)
		openOn(t, other, "leafTables=none", "CREATE TABLE u (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		_, leaf := openOn(t, server.Database(t), "leafTables=t,"+databaseOf(t, other)+".u&leafCreate=true",
			"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
		c := onOne(t, leaf)
		mustExec(t, c, "BEGIN", "INSERT INTO t (a) SELECT a FROM s", "COMMIT", "START TRANSACTION READ ONLY")
		if _, err := c.ExecContext(t.Context(), "INSERT INTO "+databaseOf(t, other)+".u (a) SELECT a FROM s"); !isNumber(err, 1792) {
			t.Errorf("%s: error %v, want error 1792", server.Name, err)
		}
		mustExec(t, c, "COMMIT", "INSERT INTO t (a) SELECT a FROM s", "INSERT INTO t (a) SELECT a FROM s")
		var n int
		if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 6 {
			t.Errorf("%s: %d rows, error %v; want 6", server.Name, n, err)
		}
	}
}
