package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const allocTable = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL," +
	" description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"

// open creates a database, runs setup, and opens the database plain and through leafsql
// with params.
func open(t testing.TB, params string, setup ...string) (plain, leaf *sql.DB) {
	t.Helper()
	dsn := mysqltest.Database(t)
	return openOn(t, dsn, params, setup...)
}

func openOn(t testing.TB, dsn, params string, setup ...string) (plain, leaf *sql.DB) {
	t.Helper()
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	for _, s := range setup {
		if _, err := plain.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	if leaf, err = sql.Open(driver.Name, dsn+sep+params); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leaf.Close() })
	return plain, leaf
}

func row(tag string, max, step int) string {
	return fmt.Sprintf("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('%s', %d, %d)", tag, max, step)
}

// insertID runs an INSERT that must succeed, and returns its id.
func insertID(t *testing.T, db *sql.DB, text string, args ...any) int64 {
	t.Helper()
	res, err := db.Exec(text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	id, err := res.LastInsertId()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// refused runs a query that must fail with a message that contains want, and must not
// write to t. It returns the error.
func refused(t *testing.T, db *sql.DB, want, text string, args ...any) error {
	t.Helper()
	_, err := db.Exec(text, args...)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\n got %v\nwant an error with %q", text, err, want)
	}
	return err
}

func TestRowBelowTableIsRefusedWithFixingSQL(t *testing.T) {
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", 1, 10),
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (41, 1)")
	err := refused(t, leaf, "the highest key is 41", "INSERT INTO t (a) VALUES (1)")
	var te *driver.RefusedError
	if !errors.As(err, &te) || !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("error of type %T, want %T and ErrRefused", err, te)
	}
	mend := te.Fix[strings.Index(te.Fix, "UPDATE"):]
	if _, err := plain.Exec(mend); err != nil {
		t.Fatalf("%s: %v", mend, err)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 42 {
		t.Errorf("LastInsertId() after %s = %d, want 42", mend, id)
	}
}

func TestTooSmallKeyColumnIsRefused(t *testing.T) {
	for _, tt := range []struct {
		ddl, rule string
		max       int
		want      string
	}{
		{"CREATE TABLE t (id DOUBLE PRIMARY KEY, a INT)", "t", 1, "a column of type double cannot hold the ids"},
		{"CREATE TABLE t (id INT PRIMARY KEY, a INT)", "t", 1 << 31, "its highest value is 2147483647"},
		{"CREATE TABLE t (id INT PRIMARY KEY, a INT)", "t", 1<<31 - 2, "above the highest value of the column"},
		{"CREATE TABLE t (id TINYINT PRIMARY KEY, a INT)", "t", 128, "its highest value is 127"},
		{"CREATE TABLE t (x INT, y INT, a INT, PRIMARY KEY (x, y))", "t", 1, "its primary key has 2 columns"},
		{"CREATE TABLE t (x INT, a INT)", "t", 1, "it has no primary key"},
		{"CREATE TABLE t (id INT PRIMARY KEY, a INT)", "t:nosuch", 1, "no such column"},
		{"CREATE TABLE t (id INT PRIMARY KEY, a INT)", "t:snowflake", 1, "t:COLUMN:snowflake"},
	} {
		_, leaf := open(t, "leafTables="+tt.rule, allocTable, row("t", tt.max, 10), tt.ddl)
		refused(t, leaf, tt.want, "INSERT INTO t (a) VALUES (1),(2),(3)")
		var n int
		if err := leaf.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d rows, error %v; want 0", tt.ddl, n, err)
		}
	}
}

func TestAutoIncrementIsWarnedOfOrRefused(t *testing.T) {
	setup := []string{allocTable, row("t", 1, 10), "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"}
	_, leaf := open(t, "leafTables=t&leafAutoIncrement=refuse", setup...)
	refused(t, leaf, "still has AUTO_INCREMENT", "INSERT INTO t (a) VALUES (1)")
	_, leaf = open(t, "leafTables=t", setup...)
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 1 {
		t.Errorf("LastInsertId() = %d, want 1", id)
	}
}

func TestLeafAllocRowsSelectTables(t *testing.T) {
	dsn := mysqltest.Database(t)
	_, leaf := openOn(t, dsn, "")
	err := leaf.Ping()
	for _, way := range []string{"leafCreate=true", "leafAllocTable=", "leafTables=none"} {
		if err == nil || !strings.Contains(err.Error(), way) {
			t.Fatalf("without leaf_alloc: %v; want the hint %s", err, way)
		}
	}
	if _, err := leaf.Exec("SELECT 1"); err == nil {
		t.Error("SELECT without leaf_alloc: no error, want one")
	}
	_, leaf = openOn(t, dsn, "",
		allocTable, row("t", 5, 10), row("nosuch", 1, 10), row("text", 1, 10),
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)",
		"CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT=77",
		"CREATE TABLE text (id VARCHAR(30) PRIMARY KEY, a INT)")
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 5 {
		t.Errorf("LastInsertId() for t = %d, want 5", id)
	}
	if id := insertID(t, leaf, "INSERT INTO other (a) VALUES (1)"); id != 77 {
		t.Errorf("LastInsertId() for a table without a tag = %d, want 77", id)
	}
	if _, err := leaf.Exec("INSERT INTO text (id, a) VALUES ('x', 1)"); err != nil {
		t.Errorf("INSERT into a table with a text key: error %v, want none", err)
	}
}

func TestLeafCreateStartsAboveHighestKeys(t *testing.T) {
	plain, leaf := open(t, "leafTables=t,part_*&leafCreate=true",
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (9, 1)",
		"CREATE TABLE part_1 (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE part_2 (id BIGINT PRIMARY KEY, a INT)",
		"INSERT INTO part_2 VALUES (100, 1)")
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 10 {
		t.Errorf("LastInsertId() = %d, want 10, above MAX(id)", id)
	}
	if id := insertID(t, leaf, "INSERT INTO part_1 (a) VALUES (1)"); id != 101 {
		t.Errorf("LastInsertId() = %d, want 101, above MAX(id) of all tables of the pattern", id)
	}
	if id := insertID(t, leaf, "INSERT INTO part_2 (a) VALUES (1)"); id != 102 {
		t.Errorf("LastInsertId() = %d, want 102 from the tag of the pattern", id)
	}
	var step int
	if err := plain.QueryRow("SELECT step FROM leaf_alloc WHERE biz_tag = 'part_*'").Scan(&step); err != nil || step != 1000 {
		t.Errorf("step = %d, error %v; want 1000", step, err)
	}
}

func TestUnknownTagIsRefused(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	refused(t, leaf, `"t" has no row`, "INSERT INTO t (a) VALUES (1)")
}

func TestLeafZeroKeepStoresZero(t *testing.T) {
	plain, leaf := open(t, "leafTables=t&leafZero=keep", allocTable, row("t", 5, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	for _, s := range []string{"INSERT INTO t (id, a) VALUES (0, 1)", "INSERT INTO t (id, a) VALUES (NULL, 2)"} {
		if _, err := leaf.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := leaf.Exec("REPLACE INTO t (id, a) VALUES (?, 3)", 0); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := plain.QueryRow("SELECT GROUP_CONCAT(id, ':', a ORDER BY id) FROM t").Scan(&got); err != nil || got != "0:3,5:2" {
		t.Errorf("rows = %s, error %v; want 0:3,5:2", got, err)
	}
}

// TestFetchNeedsNoApplicationConnection: a fetch must not need the connection that the
// application holds.
func TestFetchNeedsNoApplicationConnection(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", 1, 2), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	leaf.SetMaxOpenConns(1)
	tx, err := leaf.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for i := range 20 {
		if _, err := tx.Exec("INSERT INTO t (a) VALUES (?)", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestShardsShareLeafAlloc: shards can share one leaf_alloc.
func TestShardsShareLeafAlloc(t *testing.T) {
	ids := mysqltest.Database(t)
	openOn(t, ids, "leafTables=none", allocTable, row("t", 1, 10))
	store := "leafTables=t&leafStore=" + strings.ReplaceAll(ids, "/", "%2F")
	ddl := "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)"
	_, one := open(t, store, ddl)
	_, two := open(t, store, ddl)
	if a, b := insertID(t, one, "INSERT INTO t (a) VALUES (1)"), insertID(t, two, "INSERT INTO t (a) VALUES (1)"); a != 1 || b != 2 {
		t.Errorf("ids %d and %d, want 1 and 2 of one shared segment", a, b)
	}
}

func TestUseChangesConfiguredTables(t *testing.T) {
	other := mysqltest.Database(t)
	name := databaseOf(t, other)
	openOn(t, other, "leafTables=none", "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT=500")
	dsn := mysqltest.Database(t)
	_, leaf := openOn(t, dsn, "leafTables=t&multiStatements=true", allocTable, row("t", 1, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	leaf.SetMaxOpenConns(1)
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 1 {
		t.Errorf("LastInsertId() = %d, want 1", id)
	}
	if _, err := leaf.Exec("USE " + name); err != nil {
		t.Fatal(err)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 500 {
		t.Errorf("LastInsertId() for the table of another database = %d, want 500", id)
	}
	home := databaseOf(t, dsn)
	if id := insertID(t, leaf, "INSERT INTO "+home+".t (a) VALUES (2)"); id != 2 {
		t.Errorf("LastInsertId() for a qualified name = %d, want 2", id)
	}
	if id := insertID(t, leaf, "USE "+home+"; INSERT INTO t (a) VALUES (3)"); id != 3 {
		t.Errorf("LastInsertId() after USE in the same query = %d, want 3", id)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (4)"); id != 4 {
		t.Errorf("LastInsertId() after USE in an earlier query = %d, want 4", id)
	}
	if _, err := leaf.Exec("USE nosuch_database"); err == nil {
		t.Error("USE of a missing database: no error, want one")
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (5)"); id != 5 {
		t.Errorf("LastInsertId() after a failed USE = %d, want 5", id)
	}
}

// TestAlterIsSeen: after an ALTER by another client, no id and no value must be written
// to a wrong column.
func TestAlterIsSeen(t *testing.T) {
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	insertID(t, leaf, "INSERT INTO t VALUES (NULL, 1)")
	if _, err := plain.Exec("ALTER TABLE t ADD b INT FIRST"); err != nil {
		t.Fatal(err)
	}
	insertID(t, leaf, "INSERT INTO t VALUES (NULL, 2)") // caches the columns
	leaf.Exec("INSERT INTO t VALUES (3, NULL, 3)")      // does not match them, so leafsql looks them up again
	insertID(t, leaf, "INSERT INTO t VALUES (4, NULL, 4)")
	var wrong int
	if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE id < 1000 OR a >= 1000 OR b >= 1000").Scan(&wrong); err != nil || wrong != 0 {
		t.Errorf("%d rows have a value in the wrong column, error %v; want 0", wrong, err)
	}
	if _, err := leaf.Exec("ALTER TABLE t DROP b"); err != nil {
		t.Fatal(err)
	}
	insertID(t, leaf, "INSERT INTO t VALUES (NULL, 5)")
}

// TestStartsAboveTheHighestKey: ids start above the highest key, also if MAX compares as text, or is above
// the range of ids.
func TestStartsAboveTheHighestKey(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, setup := range [][]string{
			{"CREATE TABLE t (id VARCHAR(40) PRIMARY KEY, a INT)", "INSERT INTO t VALUES ('9', 0), ('10', 0), ('11', 0)"},
			{"CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a INT)", "INSERT INTO t VALUES (18446744073709551615, 0), (1, 0), (11, 0)"},
		} {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true", append([]string{allocTable}, setup...)...)
			if _, err := leaf.Exec("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 666"); err != nil {
				t.Log(err)
			}
			var overwritten int
			if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE a = 666").Scan(&overwritten); err != nil || overwritten > 0 {
				t.Errorf("%s, %s: %d rows were overwritten, error %v; want 0", server.Name, setup[0], overwritten, err)
			}
		}
	}
}
