package servertest

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestRawStatementRefusesTooFewArguments: too few arguments are an error, as with the inner driver.
func TestRawStatementRefusesTooFewArguments(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
	sc, err := leaf.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	sc.Raw(func(dc any) error {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v, want an error", p)
			}
		}()
		st, err := dc.(sqldriver.Conn).Prepare("INSERT INTO t (a, b) VALUES (?, ?)")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		//lint:ignore SA1019 the point
		if _, err := st.Exec([]sqldriver.Value{int64(1)}); err == nil {
			t.Error("Exec with too few arguments: no error, want one")
		}
		return nil
	})
}

// TestPreparedVariantsAreBounded: a batch with explicit keys in changing rows must
// not use up the server's prepared statements.
func TestPreparedVariantsAreBounded(t *testing.T) {
	const n = 200
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", notByUs, 1_000_000), tableT)
	st, err := leaf.Prepare("INSERT IGNORE INTO t (id, a) VALUES (?, NULL)" + strings.Repeat(", (?, NULL)", n-1))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	count := func() (n int) {
		if err := plain.QueryRow("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Scan(new(string), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	for i := range n {
		args := make([]any, n)
		for r := range args {
			if r != i {
				args[r] = 10 + r
			}
		}
		if _, err := st.Exec(args...); err != nil {
			t.Fatal(err)
		}
	}
	if made := count() - before; made > 64 {
		t.Errorf("%d prepared statements remain on the server for one of the application, want at most 64", made)
	}
}

// TestPreparedVariantUnderAnotherModeIsRefused: an execution needs a variant of the query that depends on its
// arguments. A variant that is prepared after a change of mode would be read
// differently, so it is refused. Variants that are already prepared still work.
func TestPreparedVariantUnderAnotherModeIsRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, tt := range []struct{ before, text, after string }{
			{"sql_mode = ''", `INSERT INTO t (id, b) VALUES (?, "id")`, "sql_mode = 'ANSI_QUOTES'"},
			{"sql_mode = 'NO_BACKSLASH_ESCAPES'", `INSERT INTO t (id, b) VALUES (?, 'x\n')`, "sql_mode = ''"},
			{"sql_mode = ''", `INSERT INTO t (id, b) VALUES (?, '1' || '0')`, "sql_mode = 'PIPES_AS_CONCAT'"},
			{"sql_mode = ''", `INSERT INTO t (id, b) VALUES (?, NOT 1 BETWEEN -5 AND 5)`, "sql_mode = 'HIGH_NOT_PRECEDENCE'"},
			{"NAMES utf8mb4", `INSERT INTO t (id, b) VALUES (?, 'é')`, "NAMES latin1"},
		} {
			_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, b VARCHAR(20) CHARACTER SET utf8mb4)")
			leaf.SetMaxOpenConns(1)
			set := func(s string) {
				t.Helper()
				if _, err := leaf.Exec("SET " + s); err != nil {
					t.Fatal(err)
				}
			}
			set(tt.before)
			st, err := leaf.Prepare(tt.text)
			if err != nil {
				t.Fatalf("%s: %s: %v", server.Name, tt.text, err)
			}
			defer st.Close()
			args := func(key any) []any {
				return append([]any{key}, slices.Repeat([]any{1}, strings.Count(tt.text, "?")-1)...)
			}
			if _, err := st.Exec(args(nil)...); err != nil {
				t.Errorf("%s: %s: error %v, want none", server.Name, tt.text, err)
			}
			set(tt.after)
			if _, err := st.Exec(args(7)...); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %s after SET %s: error %v, want a refusal", server.Name, tt.text, tt.after, err)
			}
			set(tt.before)
			if _, err := st.Exec(args(8)...); err != nil {
				t.Errorf("%s: %s after SET %s: error %v, want none", server.Name, tt.text, tt.before, err)
			}
			var values int
			if err := leaf.QueryRow("SELECT COUNT(DISTINCT b) FROM t WHERE b <> 'x'").Scan(&values); err != nil || values != 1 {
				t.Errorf("%s: %s: %d different values of b, error %v; want 1", server.Name, tt.text, values, err)
			}
		}
	}
}

// TestPreparedStatementIsPlannedAgainAfterCall: a routine may have changed the database in use and
// the table. The statement is planned again with their current state, not refused.
func TestPreparedStatementIsPlannedAgainAfterCall(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 100, 10),
			"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b INT)", "CREATE PROCEDURE nothing() DO 1", "CREATE PROCEDURE swap() ALTER TABLE t MODIFY a INT AFTER b")
		leaf.SetMaxOpenConns(1)
		asked, err := leaf.Prepare("INSERT INTO t (id, a) VALUES (NULL, ?)")
		if err != nil {
			t.Fatal(err)
		}
		positional, err := leaf.Prepare("INSERT INTO t VALUES (?, ?, ?)")
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []func() (sql.Result, error){
			func() (sql.Result, error) { return leaf.Exec("CALL nothing()") },
			func() (sql.Result, error) { return asked.Exec(1) },
			func() (sql.Result, error) { return leaf.Exec("CALL nothing()") },
			func() (sql.Result, error) { return positional.Exec(5, 2, 3) },
			func() (sql.Result, error) { return leaf.Exec("CALL swap()") },
			func() (sql.Result, error) { return positional.Exec(nil, 4, 5) },
			func() (sql.Result, error) { return positional.Exec(6, 6, 7) },
		} {
			if _, err := step(); err != nil {
				t.Errorf("%s: error %v, want none", server.Name, err)
			}
		}
		var rows string
		if err := plain.QueryRow("SELECT GROUP_CONCAT(CONCAT_WS(' ', a, b) ORDER BY COALESCE(b, a) SEPARATOR ', ') FROM t").Scan(&rows); err != nil || rows != "1, 2 3, 5 4, 7 6" {
			t.Errorf("%s: rows = %q, error %v; want \"1, 2 3, 5 4, 7 6\"", server.Name, rows, err)
		}
	}
}

// TestStoredRowCountIsKeptOrRefused: no query is sent before a statement that
// stores ROW_COUNT(). The statement is refused if it requires one.
func TestStoredRowCountIsKeptOrRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t,temp", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)",
			"CREATE TABLE temp (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE x (i INT)", "CREATE PROCEDURE three() INSERT INTO x VALUES (1), (2), (3)")
		leaf.SetMaxOpenConns(1)
		var db string
		if err := leaf.QueryRow("SELECT DATABASE()").Scan(&db); err != nil {
			t.Fatal(err)
		}
		moves := server.Name == "mariadb" && server.Has(t, 100602, 0)
		for _, tt := range []struct {
			text    string
			refused bool
		}{
			{"INSERT INTO t (a) VALUES (ROW_COUNT())", moves}, // the server's routines may change the database in use
			{"REPLACE INTO t (a) VALUES (ROW_COUNT())", moves},
			{"INSERT INTO " + db + ".t (a) VALUES (ROW_COUNT())", false},
			{"INSERT INTO x (i) VALUES (ROW_COUNT())", false},
			{"INSERT INTO " + db + ".t VALUES (NULL, ROW_COUNT())", true}, // routines may move columns
			{"INSERT INTO temp (a) VALUES (ROW_COUNT())", true},           // routines may drop the table that hides it
		} {
			if _, err := leaf.Exec("DROP TEMPORARY TABLE IF EXISTS temp"); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"DELETE FROM t", "CREATE TEMPORARY TABLE temp (id BIGINT PRIMARY KEY, a INT)", "DELETE FROM x", "CALL three()"} {
				if _, err := leaf.Exec(text); err != nil {
					t.Fatal(err)
				}
			}
			_, err := leaf.Exec(tt.text)
			if errors.Is(err, driver.ErrRefused) != tt.refused || !tt.refused && err != nil {
				t.Errorf("%s: %s: error %v, want a refusal %t", server.Name, tt.text, err, tt.refused)
			}
			var three int
			if err := leaf.QueryRow("SELECT (SELECT COUNT(*) FROM t WHERE a = 3) + (SELECT COUNT(*) FROM x WHERE i = 3)").Scan(&three); err != nil || !tt.refused && three != 2 {
				t.Errorf("%s: %s: ROW_COUNT() of 3 is stored in %d tables, error %v; want 2", server.Name, tt.text, three, err)
			}
		}
	}
}

// TestPreparedEffectsAreRecordedEachTime: a prepared statement's changes of the session are recorded at
// each execution, not only at the first.
func TestPreparedEffectsAreRecordedEachTime(t *testing.T) {
	const utf8Text, gbkText = "INSERT INTO t (b) VALUES ('é\\\\')", "INSERT INTO t (b) VALUES ('\xbf\\')"
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b VARCHAR(20))")
		leaf.SetMaxOpenConns(1)
		prepare := func(text string) *sql.Stmt {
			t.Helper()
			st, err := leaf.Prepare(text)
			if err != nil {
				t.Fatalf("%s: %s: %v", server.Name, text, err)
			}
			t.Cleanup(func() { st.Close() })
			return st
		}
		run := func(st *sql.Stmt) {
			t.Helper()
			if _, err := st.Exec(); err != nil {
				t.Fatalf("%s: %v", server.Name, err)
			}
		}
		gbk, utf8 := prepare("SET NAMES gbk"), prepare("SET NAMES utf8mb4")
		for range 2 {
			insertID(t, leaf, utf8Text)
			run(gbk)
			if _, err := leaf.Exec(gbkText); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: query in another character set: error %v, want a refusal", server.Name, err)
			}
			run(utf8)
		}
		if server.Name != "mariadb" || !server.Has(t, 100602, 0) {
			continue // USE cannot be prepared
		}
		var here, there string
		if err := leaf.QueryRow("SELECT DATABASE(), CONCAT(DATABASE(), '_2')").Scan(&here, &there); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"CREATE DATABASE " + there, "CREATE TABLE " + there + ".t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"} {
			if _, err := plain.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { plain.Exec("DROP DATABASE " + there) })
		away := prepare("USE " + there)
		for i := range 2 {
			if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id < 100 {
				t.Errorf("LastInsertId() of a configured table = %d, want at least 100", id)
			}
			run(away)
			if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != int64(i+1) {
				t.Errorf("id %d of a table that is not configured, want %d", id, i+1)
			}
			if _, err := leaf.Exec("USE " + here); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPreparedStatementsWithOnlyEffectsAreRecorded: the server counts the arguments of such statements, and
// their effects are recorded at each execution.
func TestPreparedStatementsWithOnlyEffectsAreRecorded(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 100, 10),
			tableT, "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1)", "CREATE FUNCTION f() RETURNS INT NO SQL RETURN 1")
		leaf.SetMaxOpenConns(1)
		mustExec(t, leaf, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "CREATE TEMPORARY TABLE tmp (a INT)")
		update, err := leaf.Prepare(`UPDATE s SET a = f() + LENGTH('C:\') WHERE a = ?`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := update.Exec(1); err != nil {
			t.Errorf("%s: prepared UPDATE: error %v, want none", server.Name, err)
		}
		truncate, err := leaf.Prepare("TRUNCATE TABLE leaf_alloc")
		if err != nil {
			t.Fatal(err)
		}
		for _, next := range []string{"1000", "2000"} {
			mustExec(t, leaf, "REPLACE INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', "+next+", 10)")
			if _, err := leaf.Exec("INSERT INTO t (a) VALUES (?)", next); err != nil {
				t.Errorf("%s: INSERT with %v: error %v, want none", server.Name, next, err)
			}
			if _, err := truncate.Exec(); err != nil {
				t.Fatal(err)
			}
			if _, err := leaf.Exec("INSERT INTO t (a) VALUES (3)"); err == nil {
				t.Errorf("%s: INSERT after TRUNCATE of leaf_alloc: no error, want one", server.Name)
			}
		}
	}
}

// TestPreparedStatementStoresRowCount: no query is sent before a prepared statement that stores ROW_COUNT().
func TestPreparedStatementStoresRowCount(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		_, leaf := openOn(t, dsn, "leafTables=t", allocTable, row("t", 100, 10), tableT, "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2), (3)", "CREATE PROCEDURE p() DO 1")
		c := onOne(t, leaf)
		mustExec(t, c, "CALL p()", "UPDATE s SET a = a + 1")
		st, err := c.PrepareContext(t.Context(), "INSERT INTO "+databaseOf(t, dsn)+".t (a) VALUES (ROW_COUNT())")
		if err == nil {
			_, err = st.Exec()
			st.Close()
		}
		var n int
		if err == nil {
			if err := c.QueryRowContext(t.Context(), "SELECT a FROM t").Scan(&n); err != nil || n != 3 {
				t.Errorf("%s: stored ROW_COUNT() = %d, error %v; want 3", server.Name, n, err)
			}
		} else if !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: error %v, want a refusal", server.Name, err)
		}
	}
}
