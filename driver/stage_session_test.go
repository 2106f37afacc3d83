package driver_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A script is statements on one or two connections, which begin with "2:" for
// the second. What each comes to must be the same through the plain driver
// with AUTO_INCREMENT and through mysql-leaf.
type script struct {
	name, only string
	params     string
	rules      string   // "": leafTables=t:id
	setup      []string // run as it is
	lines      []string
	// refused are the lines that mysql-leaf refuses, though the server would run
	// them, by a part of the message. The rest of the script is not compared.
	refused map[string]string
}

// scriptTables are there in every script. s has values for t.
var scriptTables = []string{
	"CREATE TABLE t (id BIGINT NOT NULL {AUTO} PRIMARY KEY, a INT UNIQUE, b VARCHAR(40), at DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6), CHECK (a < 1000))",
	"CREATE TABLE s (id BIGINT PRIMARY KEY, a INT, b VARCHAR(40))",
	"INSERT INTO s VALUES (11, 1, 'x'), (12, 2, 'y'), (13, 3, 'z')",
	"CREATE TABLE log (a INT)",
	"CREATE FUNCTION noted(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (x); RETURN x; END",
}

// The statements that the scripts are about.
const (
	copyS  = "INSERT INTO t (a, b) SELECT a, b FROM s ORDER BY a"
	copyID = "INSERT INTO t (id, a, b) SELECT id, a, b FROM s ORDER BY a"
	fails  = "INSERT INTO t (a, b) SELECT 5, 'five' FROM s"                                                 // 1062 in the copy
	breaks = "INSERT INTO t (a, b) SELECT noted(a) + 500, b FROM s UNION SELECT 'word', '' ORDER BY 2 DESC" // an error in the source
	show   = "SELECT id, a, b FROM t ORDER BY id"
	last   = "SELECT LAST_INSERT_ID()"
	auto   = "SELECT @@autocommit"
)

var scripts = []script{
	{name: "the id before", lines: []string{"DO LAST_INSERT_ID(777)", copyID, last, "INSERT IGNORE INTO t (a) SELECT 1 FROM s WHERE FALSE", last, "INSERT INTO t (id, a) VALUES (30, 9)", last, "INSERT INTO t (a) SELECT a + 10 FROM s", last}},
	{name: "the id before, in a transaction", lines: []string{"DO LAST_INSERT_ID(777)", "BEGIN", copyID, last, "INSERT IGNORE INTO t (a) SELECT 1 FROM s WHERE FALSE", last, "INSERT INTO t (a) SELECT a + 10 FROM s WHERE a > 3", last, "COMMIT", show}},
	{name: "the id in the select", lines: []string{"DO LAST_INSERT_ID(777)", "INSERT INTO t (a, b) SELECT a, LAST_INSERT_ID() FROM s ORDER BY a", show, last,
		"INSERT INTO t (id, a, b) SELECT NULL, 7, LAST_INSERT_ID()", "SELECT b > 1000000 FROM t WHERE a = 7", "INSERT INTO t (b, a) SELECT LAST_INSERT_ID(), 8 WHERE LAST_INSERT_ID() > 0 ORDER BY LAST_INSERT_ID()", "SELECT b > 1000000 FROM t WHERE a = 8"}},
	{name: "the id before, in the row behind the key", lines: []string{"DO LAST_INSERT_ID(777)", "INSERT INTO t VALUES (NULL, 1, LAST_INSERT_ID(), DEFAULT)", last, "SELECT b FROM t WHERE a = 1",
		"INSERT INTO t (id, a, b) VALUES (0, 2, LAST_INSERT_ID()), (DEFAULT, 3, LAST_INSERT_ID())", last, "SELECT a FROM t WHERE id = LAST_INSERT_ID()", "SELECT COUNT(DISTINCT b) FROM t WHERE a > 1",
		"INSERT INTO t SET id = NULL, a = 4, b = LAST_INSERT_ID()", last, "REPLACE INTO t (id, a, b) VALUES (NULL, 4, LAST_INSERT_ID()), (500, 5, LAST_INSERT_ID())", last, "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (id, a, b) VALUES (NULL, 4, LAST_INSERT_ID()) ON DUPLICATE KEY UPDATE b = VALUES(b)", last, "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (id, a, b) VALUES (NULL, 6, LAST_INSERT_ID()) ON DUPLICATE KEY UPDATE b = VALUES(b)", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (a) VALUES (7) ON DUPLICATE KEY UPDATE b = LAST_INSERT_ID()", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT IGNORE INTO t (id, a, b) VALUES (NULL, 8, LAST_INSERT_ID())", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", "INSERT IGNORE INTO t (id, a, b) VALUES (NULL, 8, LAST_INSERT_ID())", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (id, a, b) VALUES (30, 9, LAST_INSERT_ID())", show, "INSERT INTO t (id, a, b) VALUES (NULL, 10, LAST_INSERT_ID())", "SELECT a FROM t WHERE id = LAST_INSERT_ID()"}},
	on("mariadb", refusedScript("or run it with Exec", "DO LAST_INSERT_ID(777)", "INSERT INTO t (a, b) VALUES (2, 'x'), (3, LAST_INSERT_ID()) RETURNING a, b", "SELECT a FROM t WHERE id = LAST_INSERT_ID()",
		"INSERT INTO t (id, a) VALUES (NULL, 4) RETURNING id, a, b", "SELECT a FROM t WHERE id = LAST_INSERT_ID()", "INSERT INTO t (id, a, b) VALUES (NULL, 1, LAST_INSERT_ID()) RETURNING a, b")),
	on("mariadb", refusedScript("or run it with Exec", "INSERT IGNORE INTO t (id, a, b) VALUES (NULL, 5, 'z'), (NULL, 1, LAST_INSERT_ID() > 0) RETURNING a")),
	{name: "autocommit off", lines: []string{"SET autocommit = 0", copyS, "2:" + show, auto, fails, auto, show, "ROLLBACK", show, copyS, "COMMIT", "2:" + show, breaks, auto, "SET autocommit = 1", "SELECT COUNT(*) FROM log"}},
	{name: "a transaction", lines: []string{"BEGIN", "INSERT INTO s VALUES (14, 4, 'w')", copyS, "2:" + show, fails, breaks, show, "ROLLBACK", show, "2:SELECT COUNT(*) FROM s", "SELECT COUNT(*) FROM log", copyS, "2:" + show}},
	{name: "savepoints", lines: []string{"BEGIN", "SAVEPOINT one", "INSERT INTO s VALUES (14, 4, 'w')", "SAVEPOINT two", copyS, "ROLLBACK TO SAVEPOINT two", show, copyS, fails, "SAVEPOINT three", breaks, "ROLLBACK TO SAVEPOINT three", show, "ROLLBACK TO SAVEPOINT one", show, "COMMIT", show}},
	{name: "a savepoint of our name", lines: []string{"BEGIN", "SAVEPOINT leafsql", "INSERT INTO s VALUES (14, 4, 'w')", copyS, fails, "ROLLBACK TO SAVEPOINT leafsql", show, "SELECT COUNT(*) FROM s", "COMMIT"}},
	{name: "no savepoint outside", lines: []string{copyS, "ROLLBACK TO SAVEPOINT leafsql", "BEGIN", "ROLLBACK TO SAVEPOINT one", copyS, "COMMIT", show}},
	{name: "completion_type 1", lines: []string{"SET completion_type = 1", copyS, "2:" + show, fails, breaks, "2:SELECT COUNT(*) FROM log", "INSERT INTO t (a) SELECT a + 20 FROM s", "2:" + show, "ROLLBACK", "SET completion_type = 0", "ROLLBACK", show}},
	{name: "completion_type 2", lines: []string{"SET completion_type = 2", copyS, "2:" + show, fails, show, breaks, "DO 1", "INSERT INTO t (a) SELECT a + 20 FROM s", "2:" + show}},
	{name: "transaction characteristics in autocommit", lines: []string{"SET TRANSACTION READ ONLY", copyS, show, copyS, show}},
	{name: "transaction characteristics", lines: []string{"SET TRANSACTION READ ONLY", "BEGIN", copyS, "COMMIT", copyS, show}},
	{name: "sql_mode ORACLE", only: "mariadb", lines: []string{"SET sql_mode = 'ORACLE'", before, copyS, last, auto, fails, breaks, auto, show, "START TRANSACTION", "INSERT INTO t (a) SELECT a + 10 FROM s", fails, show, "2:" + show, "ROLLBACK", show, copyID, "ROLLBACK TO SAVEPOINT one"}},
	{name: "read only", lines: []string{"START TRANSACTION READ ONLY", copyS, "SELECT COUNT(*) FROM s", "COMMIT", copyS, show}},
	{name: "the session is read only", lines: []string{"SET SESSION TRANSACTION READ ONLY", copyS, auto, "SET SESSION TRANSACTION READ WRITE", copyS, show}},
	{name: "the session is read only, one transaction is not", lines: []string{"SET SESSION TRANSACTION READ ONLY", "SET @x = 5", "SET TRANSACTION READ WRITE", copyS, auto, "SET TRANSACTION READ WRITE", "INSERT INTO t (a) SELECT a + 10 FROM s", "INSERT INTO t (a) SELECT a + 20 FROM s",
		"START TRANSACTION READ WRITE", "INSERT INTO t (a) SELECT a + 30 FROM s", "COMMIT", "SET TRANSACTION READ WRITE", "INSERT INTO t (a) SELECT a + 40 FROM s", show, auto, "SELECT @x"}},
	{name: "gtid_next", only: "mysql", lines: []string{"SET gtid_next = CONCAT(UUID(), ':1')", "BEGIN", copyS, fails, "COMMIT", "SET gtid_next = AUTOMATIC", "SET autocommit = 0", "SET gtid_next = CONCAT(UUID(), ':1')", "INSERT INTO t (a) SELECT a + 10 FROM s", "2:" + show, "COMMIT", "SET gtid_next = AUTOMATIC", "INSERT INTO t (a) SELECT a + 20 FROM s", "ROLLBACK", auto, "SET autocommit = 1", show}},
	on("mysql", refusedScript("gtid_next", "SET gtid_next = CONCAT(UUID(), ':1')", copyS)),
	{name: "isolation of one transaction", lines: []string{"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", copyS, "2:BEGIN", "2:DELETE FROM s", "SELECT COUNT(*) FROM s", "2:ROLLBACK",
		"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "BEGIN", "INSERT INTO t (a) SELECT a + 10 FROM s", "2:BEGIN", "2:INSERT INTO s VALUES (20, 20, '')", "SELECT COUNT(*) FROM log", "ROLLBACK", "2:ROLLBACK"}},
	{name: "the snapshot", lines: []string{"BEGIN", copyS, "2:INSERT INTO log VALUES (1)", "SELECT COUNT(*) FROM log", "COMMIT",
		"BEGIN", "INSERT INTO t (id, a) SELECT id + 10, a + 10 FROM s", "2:INSERT INTO log VALUES (1)", "SELECT COUNT(*) FROM log", "2:INSERT INTO log VALUES (1)", "SELECT COUNT(*) FROM log", "COMMIT",
		"BEGIN", "INSERT INTO t (id, a, b) VALUES (NULL, 100, LAST_INSERT_ID())", fails, "2:INSERT INTO log VALUES (1)", "SELECT COUNT(*) FROM log", "COMMIT"}},
	{name: "tables locked", lines: []string{"LOCK TABLES t WRITE, s READ", copyS, "SELECT COUNT(*) FROM log", fails, "SELECT COUNT(*) FROM log", show, auto, "UNLOCK TABLES", show}},
	{name: "tables locked, autocommit off", lines: []string{"SET autocommit = 0", "LOCK TABLES t WRITE, s READ", copyS, "SELECT COUNT(*) FROM log", fails, "SELECT COUNT(*) FROM log", "COMMIT", "UNLOCK TABLES", "2:" + show}},
	{name: "the target is not locked", lines: []string{"LOCK TABLES s READ", copyS, "UNLOCK TABLES", "LOCK TABLES t READ, s READ", copyS, "UNLOCK TABLES", show, auto}},
	{name: "XA", only: "mariadb", lines: []string{"XA START 'x'", copyS, fails, "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'", show, copyS, "XA START 'y'", "INSERT INTO t (a) SELECT a + 10 FROM s", "XA END 'y'", "XA ROLLBACK 'y'", show}},
	{name: "XA", only: "mysql", lines: []string{"XA START 'x'", copyS}, refused: map[string]string{copyS: "SET xa_detach_on_prepare = OFF"}},
	{name: "XA without detaching", only: "mysql", lines: []string{"SET SESSION xa_detach_on_prepare = OFF", "XA START 'x'", copyS, fails, "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'", show, copyS}},
	{name: "auto_increment_increment", lines: []string{"SET auto_increment_increment = 3, auto_increment_offset = 2", copyS, "SELECT COUNT(*), COUNT(DISTINCT id) FROM t", "INSERT INTO t (id, a) SELECT IF(a = 2, 500, 0), a + 10 FROM s ORDER BY a", "SELECT id = 500, a FROM t WHERE a > 10 ORDER BY a"}},
	{name: "insert_id", lines: []string{"SET insert_id = 500", "INSERT INTO t (id, a, b) SELECT id, a, b FROM s ORDER BY a", "SELECT id, a FROM t ORDER BY a"}},
	{name: "an upsert's names", setup: []string{"ALTER TABLE s ADD leafsql_n INT DEFAULT 7, ADD n INT DEFAULT 8"}, lines: []string{
		copyS, "INSERT INTO t (a, b) SELECT a, 'new' FROM s ON DUPLICATE KEY UPDATE t.b = CONCAT(t.b, VALUES(b), VALUES(a))", "SELECT a, b FROM t ORDER BY a",
		"INSERT INTO t (a, b) SELECT leafsql_n, n FROM s ON DUPLICATE KEY UPDATE t.b = t.a + 1, t.a = t.a + 10", "SELECT a, b FROM t ORDER BY a",
		"INSERT INTO t (a) SELECT 1 ON DUPLICATE KEY UPDATE b = nosuch", "INSERT INTO t (a) SELECT 1 FROM s ON DUPLICATE KEY UPDATE b = s.b"},
		refused: map[string]string{"INSERT INTO t (a) SELECT 1 FROM s ON DUPLICATE KEY UPDATE b = s.b": "that only the source knows"}},
	{name: "the clock", lines: []string{"INSERT INTO t (a, b) SELECT a, NOW(6) FROM s", "SELECT COUNT(*) FROM t WHERE b = at", "INSERT INTO t (a, b) SELECT a + 10, CURRENT_TIMESTAMP(6) FROM s WHERE SLEEP(0.02) = 0", "SELECT COUNT(*) FROM t WHERE b = at",
		"INSERT INTO t (id, b, a) SELECT IF(a = 1, 99, NULL), LOCALTIMESTAMP(6), a + 20 FROM s", "SELECT COUNT(*) FROM t WHERE b = at", "REPLACE INTO t (a, b) SELECT a + 30, SYSDATE(6) < NOW(6) FROM s", "SELECT COUNT(*) FROM t WHERE b = 0"}},
	{name: "the clock stands", lines: []string{"SET timestamp = 1729990800.25", "INSERT INTO t (a, b) SELECT a, NOW(6) FROM s", "SELECT COUNT(*), MAX(at) FROM t WHERE b = at", "SELECT @@timestamp"}},
	{name: "a permanent table of the stage's name", setup: []string{"CREATE TABLE leafsql_stage (x INT)", "INSERT INTO leafsql_stage VALUES (5)"}, lines: []string{
		copyS, "SELECT * FROM leafsql_stage", "BEGIN", "INSERT INTO t (a) SELECT a + 10 FROM s", "COMMIT", "2:SELECT * FROM leafsql_stage", "INSERT INTO t (a) SELECT a + 20 FROM s", "SELECT * FROM leafsql_stage"}},
	{name: "a temporary target", lines: []string{"CREATE TEMPORARY TABLE t (b VARCHAR(40), id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 1000000000000", copyS, "INSERT INTO t SELECT b, NULL, a FROM s ORDER BY a", show, "BEGIN", copyS, "ROLLBACK", "SELECT COUNT(*) FROM t", "DROP TEMPORARY TABLE t", show, copyS}},
	{name: "a view as the target", setup: []string{"RENAME TABLE t TO base", "CREATE VIEW t AS SELECT id, a, b FROM base WHERE a < 100 WITH CHECK OPTION"}, lines: []string{copyS, show, "INSERT INTO t (a) SELECT a + 99 FROM s", show, copyID, "INSERT INTO t SELECT NULL, a + 10, b FROM s ORDER BY a", show}},
	{name: "a partitioned target", setup: []string{"DROP TABLE t", "CREATE TABLE t (id BIGINT NOT NULL {AUTO} PRIMARY KEY, a INT, b VARCHAR(40)) PARTITION BY HASH (id) PARTITIONS 4"}, lines: []string{copyS, show, "INSERT INTO t PARTITION (p0, p1, p2, p3) (a) SELECT a + 10 FROM s", show}},
	{name: "triggers", setup: []string{"ALTER TABLE t MODIFY b VARCHAR(40) NOT NULL", "CREATE TRIGGER mends BEFORE INSERT ON t FOR EACH ROW SET NEW.b = COALESCE(NEW.b, 'mended')", "CREATE TRIGGER tells AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)"},
		lines: []string{"INSERT INTO t (a, b) SELECT a, NULL FROM s ORDER BY a", show, last, "SELECT * FROM log", fails, "SELECT * FROM log", "INSERT INTO t (id, a, b) VALUES (NULL, 100, NULL)", show}},
	{name: "constraints", lines: []string{"INSERT INTO t (a) SELECT a + 998 FROM s", show, "INSERT IGNORE INTO t (a) SELECT a + 998 FROM s ORDER BY a", show}},
	{name: "no rows", lines: []string{"INSERT INTO t (a) SELECT a FROM s WHERE a > 9", last, "SELECT ROW_COUNT() <= 0", "INSERT INTO t (a, nosuch) SELECT a, 1 FROM s WHERE a > 9", "INSERT INTO t (a) SELECT a, 1 FROM s WHERE a > 9", "REPLACE INTO t (a) SELECT nosuch FROM s", "INSERT INTO t (a) SELECT a FROM nosuch"}},
	{name: "a default that the mode forbids", setup: []string{"SET sql_mode = ''", "DROP TABLE t", "CREATE TABLE t (id BIGINT NOT NULL {AUTO} PRIMARY KEY, a INT, b DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00', c INT DEFAULT 5)"}, params: "&sql_mode='STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
		lines: []string{"INSERT INTO t (a, b) SELECT a, '2024-01-01' FROM s", "INSERT INTO t (a, b) SELECT a, '0000-00-00' FROM s", "SELECT a, b FROM t", "SELECT @@sql_mode", "BEGIN", "INSERT INTO t (a, b) SELECT a, NULL FROM s", "COMMIT", "SELECT @@sql_mode"}},
	{name: "defaults that are expressions", setup: []string{"ALTER TABLE t ADD iu INT DEFAULT 3, ADD ref INT DEFAULT (iu + 3), ADD u VARCHAR(40) DEFAULT (UPPER('x'))"}, lines: []string{"INSERT INTO t (iu, ref, a, u) SELECT 3, a, a, b FROM s ORDER BY a", "SELECT a, ref, iu, u FROM t ORDER BY a", "INSERT INTO t (a) SELECT a + 10 FROM s", "SELECT a, ref, iu, u FROM t ORDER BY a"}},
	{name: "a generated column", setup: []string{"ALTER TABLE t ADD twice INT AS (a * 2) STORED"}, lines: []string{copyS, "SELECT a, twice FROM t ORDER BY a", "INSERT INTO t (a, twice) SELECT a + 10, 1 FROM s"}},
	{name: "memory", lines: []string{"SET default_tmp_storage_engine = MEMORY", "INSERT INTO t (a, b) SELECT a, REPEAT('x', 40) FROM s", show}, only: "mysql"},
	{name: "MyISAM", setup: []string{"ALTER TABLE t ENGINE = MyISAM"}, lines: []string{copyS, show, "INSERT INTO t (a, b) SELECT a + 10, b FROM s UNION SELECT 1, 'dup' ORDER BY 1 DESC", "SELECT a FROM t ORDER BY a", "BEGIN", "INSERT INTO t (a) SELECT a + 20 FROM s", "ROLLBACK", "SELECT a FROM t ORDER BY a"}},
	{name: "limits of the session", lines: []string{"SET sql_select_limit = 2", copyS, "SET sql_select_limit = DEFAULT", show, "SET sql_safe_updates = 1", "INSERT INTO t (a) SELECT a + 10 FROM s", "SELECT a FROM t ORDER BY a"}},
	{name: "more rows than may be joined", lines: []string{"SET sql_big_selects = 0, max_join_size = 2", copyS}},
	{name: "a user's variables", lines: []string{"SET @n = 5", "INSERT INTO t (a, b) SELECT (@n := @n + 1), @n FROM s ORDER BY s.a", "SELECT a, b FROM t ORDER BY a", "SELECT @n"}},
	{name: "the caller's error is not a column of ours", lines: []string{"INSERT INTO t (a) SELECT leafsql_n FROM s", "INSERT INTO t (leafsql_n) SELECT a FROM s"}},
}

func TestStagedInSessions(t *testing.T) { playAll(t, scripts) }

// playAll runs scripts on each server that they are for.
func playAll(t *testing.T, scripts []script) {
	for _, target := range mysqltest.Targets(t) {
		for _, sc := range scripts {
			if sc.only == "" || sc.only == target.Name {
				t.Run(target.Name+"/"+sc.name, func(t *testing.T) { sc.run(t, target) })
			}
		}
	}
}

func (sc *script) run(t *testing.T, target mysqltest.Target) {
	want := sc.play(t, target, "mysql", "AUTO_INCREMENT")
	for _, auto := range []string{"AUTO_INCREMENT", ""} {
		got := sc.play(t, target, driver.Name, auto)
		for i, line := range sc.lines {
			if part, ok := sc.refused[line]; ok {
				if !strings.Contains(got[i], part) {
					t.Errorf("table %q: %s: %s, want a refusal with %q", auto, line, got[i], part)
				}
				break
			}
			if got[i] != want[i] {
				t.Logf("so far %q", got[:i])
				t.Errorf("table %q: %s: %s, want %s", auto, line, got[i], want[i])
			}
		}
	}
}

// play runs the script on one side and tells what came of each line.
func (sc *script) play(t *testing.T, target mysqltest.Target, name, auto string) (told []string) {
	t.Helper()
	setup := append([]string{allocTable, row("t", generatedFrom, 1000)}, slices.Concat(scriptTables, sc.setup)...)
	for i := range setup {
		setup[i] = strings.ReplaceAll(setup[i], "{AUTO}", auto)
	}
	if auto != "" {
		setup = append(setup, fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d", map[bool]string{true: "base", false: "t"}[strings.Contains(strings.Join(sc.setup, ";"), "TO base")], int64(generatedFrom)))
	}
	dsn := target.Database(t)
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	plain.SetMaxOpenConns(1)
	for _, text := range setup {
		if _, err := plain.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	params := "?" + strings.TrimPrefix(sc.params, "&")
	if name == driver.Name {
		params += "&" + cmp.Or(sc.rules, "leafTables=t:id")
	}
	db, err := sql.Open(name, dsn+params)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var conns [2]*sql.Conn
	for i := range conns {
		if conns[i], err = db.Conn(context.Background()); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
		for _, text := range []string{"SET SESSION innodb_lock_wait_timeout = 1", "SET SESSION lock_wait_timeout = 1"} {
			if _, err := conns[i].ExecContext(context.Background(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, line := range sc.lines {
		text, second := strings.CutPrefix(strings.NewReplacer("{AUTO}", auto, "{DB}", path.Base(dsn)).Replace(line), "2:")
		conn := conns[0]
		if second {
			conn = conns[1]
		}
		told = append(told, tell(conn, text))
	}
	return told
}

// generatedKey finds the keys that the twins may have different.
var generatedKey = regexp.MustCompile(`\b1000000\d{6}\b`)

// tell runs a statement and tells what an application sees of it.
func tell(conn *sql.Conn, text string) string {
	ctx := context.Background()
	number := func(err error) string {
		var me *mysql.MySQLError
		if errors.As(err, &me) {
			return "error " + strconv.Itoa(int(me.Number))
		}
		return err.Error()
	}
	if !strings.HasPrefix(text, "SELECT") && !strings.Contains(text, "RETURNING") {
		res, err := conn.ExecContext(ctx, text)
		if err != nil {
			return number(err)
		}
		affected, _ := res.RowsAffected()
		id, _ := res.LastInsertId()
		if id < generatedFrom || strings.Contains(text, "DUPLICATE") || strings.Contains(text, "IGNORE") {
			id = 0 // a table without AUTO_INCREMENT does not tell explicit keys, and several rows have no single true id there
		}
		return generatedKey.ReplaceAllString(fmt.Sprintf("affected %d, id %d", affected, id), "generated")
	}
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return number(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	values, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	var b strings.Builder
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return number(err)
		}
		for _, v := range values {
			fmt.Fprintf(&b, "%v ", map[bool]string{true: v.String, false: "NULL"}[v.Valid])
		}
		b.WriteString("; ")
	}
	if err := rows.Err(); err != nil {
		return number(err)
	}
	return generatedKey.ReplaceAllString(b.String(), "generated")
}

// TestStagedEscapes: what the inner driver puts into the text is escaped as the
// session's sql_mode reads it, whatever a staging sent before.
func TestStagedEscapes(t *testing.T) {
	value := `it's \' "quoted" \\ ', (SELECT 1)) -- `
	for _, target := range mysqltest.Targets(t) {
		for _, mode := range []string{"NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,STRICT_TRANS_TABLES", "NO_ZERO_DATE,STRICT_TRANS_TABLES"} {
			_, leaf := openOn(t, target.Database(t), "leafTables=t:id&interpolateParams=true&sql_mode="+url.QueryEscape("'"+mode+"'"), allocTable, row("t", generatedFrom, 1000), "SET SESSION sql_mode = ''",
				"CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(100), d DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00')", "CREATE TABLE s (n INT)", "INSERT INTO s VALUES (1)")
			leaf.SetMaxOpenConns(1)
			for _, text := range []string{"INSERT INTO t (a, d) SELECT ?, NOW() FROM s", "INSERT INTO t (id, a, d) VALUES (NULL, ?, NOW())", "INSERT INTO t (a, d) VALUES (?, NOW())"} {
				if _, err := leaf.Exec(text, value); err != nil {
					t.Errorf("%s, %s: %s: %v", target.Name, mode, text, err)
				}
				var n int
				if err := leaf.QueryRow("SELECT COUNT(*) FROM t WHERE a = ?", value).Scan(&n); err != nil || n != 1 {
					t.Errorf("%s, %s: %s: %d rows, %v", target.Name, mode, text, n, err)
				}
				if _, err := leaf.Exec("DELETE FROM t"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestStageThatCouldNotBeDropped: one that is left where a read-only transaction came next
// is dropped by the run that meets it.
func TestStageThatCouldNotBeDropped(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		other := server.Database(t)
		openOn(t, other, "leafTables=none", "CREATE TABLE u (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		_, leaf := openOn(t, server.Database(t), "leafTables=t,"+databaseOf(t, other)+".u&leafCreate=true", "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
		c := onOne(t, leaf)
		mustExec(t, c, "BEGIN", "INSERT INTO t (a) SELECT a FROM s", "COMMIT", "START TRANSACTION READ ONLY")
		if _, err := c.ExecContext(t.Context(), "INSERT INTO "+databaseOf(t, other)+".u (a) SELECT a FROM s"); !isNumber(err, 1792) {
			t.Errorf("%s: %v, want 1792", server.Name, err)
		}
		mustExec(t, c, "COMMIT", "INSERT INTO t (a) SELECT a FROM s", "INSERT INTO t (a) SELECT a FROM s")
		var n int
		if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 6 {
			t.Errorf("%s: %d rows, %v", server.Name, n, err)
		}
	}
}
