package servertest

import (
	"database/sql"
	"net/url"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestInternalQueriesWorkWithSessionSettings: leafsql's queries on the application's connection,
// and on internal connections, work with any character set of results
// and any limit on their rows.
func TestInternalQueriesWorkWithSessionSettings(t *testing.T) {
	settings := []string{"sql_select_limit = 0", "sql_select_limit = 1", "sql_select_limit = 2"}
	for _, charset := range []string{"utf8mb4", "utf16", "utf16le", "utf32", "ucs2", "gbk", "latin1", "binary", "NULL"} {
		settings = append(settings, "character_set_results = "+charset)
	}
	for _, server := range mysqltest.Targets(t) {
		for _, setting := range settings {
			t.Run(server.Name+"/"+setting, func(t *testing.T) {
				dsn := server.Database(t)
				openOn(t, dsn, "leafTables=none", allocTable, row("t", 100, 10), row("temp", 200, 10), row("asked", 300, 10),
					"CREATE TABLE t (id BIGINT PRIMARY KEY, größe INT, b VARCHAR(20))", "CREATE TABLE asked (id BIGINT PRIMARY KEY, a INT)",
					"CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE TRIGGER asked_ai AFTER INSERT ON asked FOR EACH ROW INSERT INTO log VALUES ()")
				leaf := openLeaf(t, dsn, "leafTables=t,temp,asked")
				leaf.SetMaxOpenConns(1)
				exec := func(text string) {
					t.Helper()
					if _, err := leaf.Exec(text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				}
				exec("SET sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES', " + setting)
				want := func(id int64, text string) {
					t.Helper()
					if got := insertID(t, leaf, text); got != id {
						t.Errorf("%s: LastInsertId() = %d, want %d", text, got, id)
					}
				}
				want(100, `INSERT INTO t (b, id) VALUES ('x\', 0)`) // depends on sql_mode
				exec("PREPARE p FROM 'DO 1'")
				exec("EXECUTE p")
				want(101, "INSERT INTO t VALUES (0, 2, 'y')") // queries DATABASE() and the columns
				exec("CREATE TEMPORARY TABLE temp (größe INT, id BIGINT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20)) AUTO_INCREMENT = 50")
				exec("EXECUTE p")
				want(50, "INSERT INTO temp VALUES (3, 0, 'z')") // queries whether it still exists
				want(300, "INSERT INTO asked (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2")
				own := openLeaf(t, dsn, "leafTables=t&"+dsnParam(setting)) // internal connections
				if _, err := own.Exec("INSERT INTO t (b) VALUES ('own')"); err != nil {
					t.Errorf("INSERT with other settings: error %v, want none", err)
				}
			})
		}
	}
}

// TestSessionSettingsStay: leafsql's queries do not change a session's settings.
func TestSessionSettingsStay(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, charset := range []string{"utf16", "NULL", "gbk"} {
			leaf := openLeaf(t, server.Database(t), "leafTables=temp&leafExplicit=keep")
			leaf.SetMaxOpenConns(1)
			var set sql.NullString
			for _, text := range []string{"CREATE TEMPORARY TABLE temp (a INT, id BIGINT PRIMARY KEY)", "SET sql_select_limit = 7, character_set_results = " + charset, "INSERT INTO temp VALUES (1, 5)"} {
				if _, err := leaf.Exec(text); err != nil {
					t.Fatalf("%s: %s: %v", server.Name, text, err)
				}
			}
			if err := leaf.QueryRow("SELECT CAST(CONCAT(@@sql_select_limit, COALESCE(@@character_set_results, 'NULL')) AS BINARY)").Scan(&set); err != nil || set.String != "7"+charset {
				t.Errorf("%s: sql_select_limit and character_set_results = %q, error %v; want %q", server.Name, set.String, err, "7"+charset)
			}
		}
	}
}

// TestDuplicateInAnyLanguageMovesCounter: a duplicate key moves the counter above it
// whatever the language of the server's message.
func TestDuplicateInAnyLanguageMovesCounter(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t&lc_messages=ja_JP", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
		if _, err := plain.Exec("INSERT INTO t (id) VALUES (101), (500)"); err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Exec("INSERT INTO t (a) VALUES (2)"); !isNumber(err, 1062) {
			t.Fatalf("%s: INSERT of a duplicate key: error %v, want error 1062", server.Name, err)
		}
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (3)"); id <= 500 {
			t.Errorf("%s: LastInsertId() after the duplicate = %d, want more than 500", server.Name, id)
		}
	}
}

// dsnParam returns an assignment as a parameter of a DSN.
func dsnParam(setting string) string {
	for i := range setting {
		if setting[i] == ' ' {
			return setting[:i] + "=" + url.QueryEscape(setting[i+len(" = "):])
		}
	}
	return setting
}

// TestInternalPoolsIgnoreCollation: internal connections interpolate arguments, which
// go-sql-driver does not allow with some collations of the application.
func TestInternalPoolsIgnoreCollation(t *testing.T) {
	dsn := mysqltest.Database(t)
	openOn(t, dsn, "leafTables=none", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	leaf := mustOpen(t, driver.Name, dsn+"?collation=gbk_chinese_ci&leafTables=t")
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", 1); id != 100 {
		t.Errorf("LastInsertId() = %d, want 100", id)
	}
}

// TestUseNextToCallIsRecorded: a query that changes the database in use is recorded also if it runs
// a routine, or a statement that SQL prepared.
func TestUseNextToCallIsRecorded(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		dsn, other := target.Database(t), target.Database(t)
		openOn(t, other, "leafTables=none", "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
		_, leaf := openOn(t, dsn, "leafTables=t&multiStatements=true", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE PROCEDURE p() DO 1")
		home, away := databaseOf(t, dsn), databaseOf(t, other)
		for i, run := range []string{"CALL " + home + ".p()", "PREPARE x FROM 'DO 1'; EXECUTE x"} {
			for _, text := range []string{"USE " + away + "; " + run, run + "; USE " + away} {
				c := onOne(t, leaf)
				mustExec(t, c, "USE "+home, text)
				res, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)")
				if err != nil {
					t.Fatalf("%s: %s: %v", target.Name, text, err)
				}
				if id, _ := res.LastInsertId(); id >= 1000 {
					t.Errorf("%s: %s, %d: LastInsertId() = %d of the other database, want less than 1000", target.Name, text, i, id)
				}
				c.Close()
			}
		}
	}
}
