package servertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// onOne returns a connection for the test alone.
func onOne(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mustExec(t *testing.T, c interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := c.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// TestMovedColumnsGetTheirOwnValues: after any DDL that moves a table's columns, no value of an
// INSERT without a column list is written to another column.
func TestMovedColumnsGetTheirOwnValues(t *testing.T) {
	const move = "ALTER TABLE t MODIFY b INT FIRST"
	for _, server := range mysqltest.Targets(t) {
		for name, texts := range map[string][]string{
			"plain":              {move},
			"comment":            {"/* v12 */ " + move},
			"line comment":       {"-- v12\n" + move},
			"hash":               {"# v12\n" + move},
			"other spacing":      {"ALTER\n\tTABLE\r\nt MODIFY b INT FIRST"},
			"version comment":    {"/*!50000 ALTER */ TABLE t MODIFY b INT FIRST"},
			"quoted":             {"ALTER TABLE `t` MODIFY b INT FIRST"},
			"qualified":          {"ALTER TABLE SELF.t MODIFY b INT FIRST"},
			"with others":        {"DO 1; -- v12\n" + move + "; DO 2"},
			"beside the insert":  {"-- v12\n" + move + "; INSERT INTO t VALUES (1, NULL, 2)"},
			"large":              {"DO '" + strings.Repeat("x", 5000) + "'; " + move},
			"renamed away":       {"CREATE TABLE u (b INT, id BIGINT NOT NULL PRIMARY KEY, a INT); RENAME TABLE t TO v, u TO t"},
			"renamed by alter":   {"CREATE TABLE u (b INT, id BIGINT NOT NULL PRIMARY KEY, a INT); DROP TABLE t; ALTER TABLE u RENAME TO t"},
			"dropped and made":   {"DROP TABLE IF EXISTS t; CREATE TABLE IF NOT EXISTS t (b INT, id BIGINT NOT NULL PRIMARY KEY, a INT)"},
			"prepared text":      {"PREPARE s FROM '" + move + "'", "EXECUTE s"},
			"procedure":          {"CREATE PROCEDURE p() " + move, "CALL p()"},
			"database made anew": {"DROP DATABASE SELF; CREATE DATABASE SELF; USE SELF; CREATE TABLE t (b INT, id BIGINT NOT NULL PRIMARY KEY, a INT); " + allocTable + "; " + row("t", 1000, 10)},
		} {
			t.Run(server.Name+"/"+name, func(t *testing.T) {
				dsn := server.Database(t)
				_, leaf := openOn(t, dsn, "leafTables=t&leafStore="+strings.ReplaceAll(dsn, "/", "%2F")+withMult, allocTable, row("t", 1000, 10),
					"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT)")
				c := onOne(t, leaf)
				mustExec(t, c, "INSERT INTO t VALUES (NULL, 2, 1)")
				for _, text := range texts {
					mustExec(t, c, strings.ReplaceAll(text, "SELF", databaseOf(t, dsn)))
				}
				mustExec(t, c, "INSERT INTO t VALUES (1, NULL, 2)")
				var wrong int
				if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t WHERE a <> 2 OR b <> 1 OR id < 1000").Scan(&wrong); err != nil || wrong > 0 {
					t.Errorf("%d rows have a value of another column, error %v; want 0", wrong, err)
				}
			})
		}
	}
}

// TestUnfillableQueryAfterRoutineIsRefused: a query that can no longer be filled after a routine moved the
// table's columns is refused, not sent unchanged.
func TestUnfillableQueryAfterRoutineIsRefused(t *testing.T) {
	const text = "INSERT INTO t VALUES (NULL, @x := 1, @x)"
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 1000, 10),
			"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT)", "CREATE PROCEDURE p() ALTER TABLE t MODIFY b INT FIRST")
		c := onOne(t, leaf)
		mustExec(t, c, text, "CALL p()")
		for range 2 {
			if _, err := c.ExecContext(t.Context(), text); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %v, want a refusal", server.Name, err)
			}
		}
		var rows int
		if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%s: %d rows, error %v; want 1", server.Name, rows, err)
		}
	}
}

// TestPreparedStatementsFollowTheTable: prepared statements follow changes of the table, including those
// that read rows from a select.
func TestPreparedStatementsFollowTheTable(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 1000, 10),
			"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT)", "CREATE TABLE s LIKE t", "INSERT INTO s VALUES (0, 1, 2)")
		c := onOne(t, leaf)
		for name, text := range map[string]string{"select": "INSERT INTO t SELECT * FROM s", "rows": "INSERT INTO t VALUES (NULL, 1, 2)"} {
			st, err := c.PrepareContext(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			for _, ddl := range []string{"DO 1", "ALTER TABLE t MODIFY b INT AFTER id", "ALTER TABLE t ADD x INT AFTER b"} {
				mustExec(t, c, ddl, strings.Replace(ddl, "TABLE t", "TABLE s", 1))
				mustExec(t, c, "DELETE FROM t")
				_, err := st.ExecContext(t.Context())
				var id, a, b sql.NullInt64
				if scanErr := c.QueryRowContext(t.Context(), "SELECT MAX(id), MAX(a), MAX(b) FROM t").Scan(&id, &a, &b); scanErr != nil {
					t.Fatal(scanErr)
				}
				wrong := id.Int64 < 1000 || a.Int64 == b.Int64
				if name == "select" && (a.Int64 != 1 || b.Int64 != 2) {
					wrong = true
				}
				if err == nil && wrong || err != nil && name == "select" {
					t.Errorf("%s, %s after %s: row (%d, %d, %d), error %v; want values in their columns, or an error of VALUES", server.Name, name, ddl, id.Int64, a.Int64, b.Int64, err)
				}
			}
			st.Close()
			mustExec(t, c, "ALTER TABLE t DROP x, MODIFY b INT AFTER a", "ALTER TABLE s DROP x, MODIFY b INT AFTER a")
		}
	}
}

// TestColumnAddedByAnotherClientIsAccepted: after another client's ALTER, an INSERT without a column list
// works as it does without leafsql.
func TestColumnAddedByAnotherClientIsAccepted(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		if _, err := leaf.Prepare("INSERT INTO t VALUES (NULL, ?, ?)"); err == nil {
			t.Error("Prepare of three values for two columns: no error, want one")
		}
		insertID(t, leaf, "INSERT INTO t VALUES (NULL, 1)")
		mustExec(t, plain, "ALTER TABLE t ADD b INT")
		insertID(t, leaf, "INSERT INTO t VALUES (NULL, 2, 3)")
		st, err := leaf.Prepare("INSERT INTO t VALUES (NULL, ?, ?)")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		mustExec(t, plain, "ALTER TABLE t DROP b")
		insertID(t, leaf, "INSERT INTO t VALUES (NULL, 4)")
		mustExec(t, plain, "ALTER TABLE t ADD b INT")
		if _, err := leaf.Exec("INSERT INTO t SELECT 0, 5, 6 FROM t LIMIT 1"); err != nil {
			t.Errorf("%s: INSERT … SELECT: error %v, want none", server.Name, err)
		}
		if _, err := st.Exec(7, 8); err != nil {
			t.Errorf("%s: prepared INSERT: error %v, want none", server.Name, err)
		}
		mustExec(t, plain, "ALTER TABLE t ADD c INT")
		if _, err := leaf.Prepare("INSERT INTO t VALUES (NULL, ?, ?, ?)"); err != nil { // the first statement after the ALTER
			t.Errorf("%s: Prepare after ALTER: error %v, want none", server.Name, err)
		}
		if _, err := leaf.Exec("INSERT INTO t VALUES (NULL, 9)"); err == nil {
			t.Errorf("%s: INSERT with too few values: no error, want one", server.Name)
		}
	}
}

// TestWaitingCallersReturnWhenContextEnds: if the store does not respond, a caller without a
// deadline must not block other callers.
func TestWaitingCallersReturnWhenContextEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	store := fmt.Sprintf("root@tcp(%s)%%2Fids", silent.Addr())
	for _, tables := range []string{"auto", "t"} {
		_, leaf := open(t, "leafTables="+tables+"&leafStore="+store, tableT)
		long, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); leaf.ExecContext(long, "INSERT INTO t (a) VALUES (1)") }()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			took := stopwatch.Start(t)
			_, err := leaf.ExecContext(ctx, "INSERT INTO t (a) VALUES (1)")
			if !errors.Is(err, context.DeadlineExceeded) || took() > 3*time.Second {
				t.Errorf("leafTables=%s: error %v after %v, want DeadlineExceeded within 3s", tables, err, took())
			}
			cancel()
		}
		cancel()
		<-done
	}
}

// TestUnknownNamesInRulesAreReported: rules with unknown names are reported.
func TestUnknownNamesInRulesAreReported(t *testing.T) {
	log := captureLog(t)
	_, leaf := open(t, "leafTables=order,Items", allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)")
	for range 2 {
		if err := leaf.Ping(); err != nil {
			t.Fatal(err)
		}
		leaf.SetMaxIdleConns(0)
	}
	for _, name := range []string{".order ", ".Items "} {
		if n := strings.Count(log.String(), name); n != 1 {
			t.Errorf("%q is in the log %d times, want once:\n%s", name, n, log)
		}
	}
	_, leaf = open(t, "leafCreate=true", tableT)
	if err := leaf.Ping(); err != nil || !strings.Contains(log.String(), "no table is filled") {
		t.Errorf("Ping() = %v, want nil, and a line \"no table is filled\" in the log:\n%s", err, log)
	}
}

// TestWildcardRulesSkipUnfitTables: wildcard rules skip join tables, tables
// without a key, and keys of other types.
func TestWildcardRulesSkipUnfitTables(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=*,!excluded&leafCreate=true",
			"CREATE TABLE a (id BIGINT PRIMARY KEY, v INT)", "CREATE TABLE b (id BIGINT PRIMARY KEY, v INT)", "CREATE TABLE `订单` (id BIGINT PRIMARY KEY, v INT)",
			"CREATE TABLE a_b (a BIGINT, b BIGINT, PRIMARY KEY (a, b))", "CREATE TABLE settings (name VARCHAR(20), v INT)",
			"CREATE TABLE texts (id VARCHAR(36) DEFAULT (UUID()) PRIMARY KEY, v INT)", "CREATE TABLE bytes (id BINARY(16) PRIMARY KEY)",
			"CREATE TABLE excluded (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT=77")
		for table, want := range map[string]int64{"a": 1, "b": 1, "`订单`": 1, "excluded": 77} {
			if id := insertID(t, leaf, "INSERT INTO "+table+" (v) VALUES (1)"); id != want {
				t.Errorf("%s, %s: id %d, want %d", server.Name, table, id, want)
			}
		}
		mustExec(t, leaf, "INSERT INTO a_b VALUES (1, 2)", "INSERT INTO settings VALUES ('x', 1)", "INSERT INTO texts (v) VALUES (1)", "INSERT INTO bytes VALUES ('x')")
		var tags, text string
		const q = "SELECT (SELECT GROUP_CONCAT(biz_tag ORDER BY biz_tag) FROM leaf_alloc), (SELECT id FROM texts)"
		if err := plain.QueryRow(q).Scan(&tags, &text); err != nil || tags != "a,b,订单" || len(text) != 36 {
			t.Errorf("%s: tags %s, text key %s, error %v; want a,b,订单 and a UUID", server.Name, tags, text, err)
		}
	}
}

// TestLeafCreateRefusesFilledTableOfShard: other databases may have higher keys.
func TestLeafCreateRefusesFilledTableOfShard(t *testing.T) {
	ids := mysqltest.Database(t)
	params := "leafTables=full,fresh&leafCreate=true&leafStore=" + strings.ReplaceAll(ids, "/", "%2F")
	_, leaf := open(t, params, "CREATE TABLE full (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO full VALUES (3, 0)", "CREATE TABLE fresh (id BIGINT PRIMARY KEY, a INT)")
	if id := insertID(t, leaf, "INSERT INTO fresh (a) VALUES (1)"); id != 1 {
		t.Errorf("LastInsertId() for an empty table = %d, want 1", id)
	}
	err := refused(t, leaf, "leafsql init", "INSERT INTO full (a) VALUES (1)")
	if !errors.Is(err, driver.ErrRefused) {
		t.Errorf("error of type %T, want ErrRefused", err)
	}
}

// captureLog collects log output until the test ends.
func captureLog(t *testing.T) *logBuffer {
	t.Helper()
	log, before := new(logBuffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return log
}

// TestRenamedTableWithHigherKeysLosesNoRow: ids in memory must not collide with the keys of a
// table that was renamed to this name.
func TestRenamedTableWithHigherKeysLosesNoRow(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		renames := []string{"RENAME TABLE t TO told, t2 TO t", "DROP TABLE t; ALTER TABLE t2 RENAME TO t"}
		if server.Name == "mariadb" {
			renames = append(renames, "RENAME TABLE t WAIT 5 TO told, t2 NOWAIT TO t")
		}
		for _, rename := range renames {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true"+withMult, allocTable, tableT, "CREATE TABLE t2 LIKE t")
			insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
			if _, err := plain.Exec("INSERT INTO t2 (id, a) VALUES (2, 12), (3, 13), (4, 14), (5, 15)"); err != nil {
				t.Fatal(err)
			}
			_, err := leaf.Exec(rename)
			for strings.Contains(fmt.Sprint(err), "Error 1205") { // the server's purge holds the table, and NOWAIT does not wait
				_, err = leaf.Exec(rename)
			}
			if err != nil {
				notOnThisVersion(t, rename, err)
				t.Fatal(err)
			}
			if id := insertID(t, leaf, "REPLACE INTO t (a) VALUES (2)"); id != 6 {
				t.Errorf("%s, %s: LastInsertId() = %d, want 6", server.Name, rename, id)
			}
		}
	}
}

// TestQueryCreatesAndFillsTable: a migration file is one query, which may create a table and fill it.
func TestQueryCreatesAndFillsTable(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t:id"+withMult, allocTable, row("t", notByUs, 1000))
		_, err := leaf.Exec("CREATE TABLE t (id BIGINT PRIMARY KEY, a INT); INSERT INTO t (a) VALUES (1)")
		if err != nil && !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: error %v, want none or a refusal", server.Name, err)
		}
	}
}
