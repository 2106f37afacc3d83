package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A flow is a sequence of statements on a table with explicit and generated keys.
// The next inserted row has the same id as under AUTO_INCREMENT, or a higher one
// if ours is set.
type flow struct {
	name   string
	key    string // the key's type, BIGINT if empty
	steps  []string
	ours   int64  // next id with leafsql, if it differs from AUTO_INCREMENT's
	why    string // reason of the difference
	rows   bool   // other rows' ids differ as well: only the number of rows is compared
	margin bool   // the next id is a margin above ours
}

// restart is a step that ends the process: the next step uses a new pool.
const restart = "!"

var flows = []flow{
	{name: "nothing", steps: nil},
	{name: "seed", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a')"}},
	{name: "two seeds", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a'), (2, 'b')"}},
	{name: "SET", steps: []string{"INSERT INTO t SET id = 9, u = 'a'"}},
	{name: "text", steps: []string{"INSERT INTO t (id, u) VALUES ('77', 'a')"}},
	{name: "far", steps: []string{"INSERT INTO t (id, u) VALUES (100000, 'a')"}},
	{name: "then below", steps: []string{"INSERT INTO t (id, u) VALUES (100000, 'a')", "INSERT INTO t (id, u) VALUES (50, 'b')"}},
	{name: "mixed", steps: []string{"INSERT INTO t (id, u) VALUES (NULL, 'a'), (3, 'b'), (NULL, 'c')"}, ours: 6, rows: true, why: "ids of one statement are consecutive, and above its keys"},
	{name: "mixed below", steps: []string{"INSERT INTO t (id, u) VALUES (NULL, 'a'), (2, 'b'), (NULL, 'c')"}, ours: 5, rows: true, why: "likewise"},
	{name: "key, then none", steps: []string{"INSERT INTO t (id, u) VALUES (5, 'a'), (NULL, 'b')"}, ours: 7, why: "AUTO_INCREMENT reserves in powers of two"},
	{name: "select", steps: []string{"INSERT INTO t (id, u) SELECT 1, 'a' UNION SELECT 20, 'b' UNION SELECT 3, 'c'"}, ours: 21, why: "AUTO_INCREMENT reserves in powers of two, MariaDB"},
	{name: "select in another order", steps: []string{"INSERT INTO t (id, u) SELECT 20, 'a' UNION SELECT 1, 'b' UNION SELECT 3, 'c'"}, ours: 21, why: "likewise"},
	{name: "select without a table", steps: []string{"INSERT INTO t (id, u) SELECT 20, 'a' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t)"}},
	{name: "load", steps: []string{"LOAD DATA LOCAL INFILE 'Reader::keys' INTO TABLE t (id, u)"}},
	{name: "negative", steps: []string{"INSERT INTO t (id, u) VALUES (-7, 'a')"}},
	{name: "replace", steps: []string{"REPLACE INTO t (id, u) VALUES (40, 'a')"}},
	{name: "replace over a unique key", steps: []string{"INSERT INTO t (id, u) VALUES (3, 'a')", "REPLACE INTO t (id, u) VALUES (40, 'a')"}},
	{name: "ignore, duplicate key", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a')", "INSERT IGNORE INTO t (id, u) VALUES (1, 'b')"}},
	{name: "ignore, duplicate elsewhere", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a')", "INSERT IGNORE INTO t (id, u) VALUES (700, 'a')"},
		ours: 701, why: "a row that is ignored leaves a gap"},
	{name: "upsert that inserts", steps: []string{"INSERT INTO t (id, u) VALUES (60, 'a') ON DUPLICATE KEY UPDATE v = 1"}},
	{name: "upsert that updates", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a')", "INSERT INTO t (id, u) VALUES (60, 'a') ON DUPLICATE KEY UPDATE v = 1"},
		ours: 61, why: "a row that is not inserted leaves a gap"},
	{name: "ignored select", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a')", "INSERT IGNORE INTO t (id, u) SELECT 700, 'a'"}},
	{name: "failed, duplicate", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a')", "INSERT INTO t (id, u) VALUES (700, 'a')"}, ours: 701, why: "a statement that fails leaves a gap"},
	{name: "failed, bad value", steps: []string{"INSERT INTO t (id, u, v) VALUES (700, 'a', 'x')"}, ours: 701, why: "likewise"},
	{name: "failed in the second row", steps: []string{"INSERT INTO t (id, u) VALUES (700, 'a'), (3, 'a')"}},
	{name: "rolled back", steps: []string{"BEGIN", "INSERT INTO t (id, u) VALUES (700, 'a')", "ROLLBACK"}},
	{name: "deleted", steps: []string{"INSERT INTO t (id, u) VALUES (700, 'a')", "DELETE FROM t"}},
	{name: "truncated", steps: []string{"INSERT INTO t (id, u) VALUES (700, 'a')", "TRUNCATE t"}, ours: 701, why: "the counter goes on"},
	{name: "the highest", steps: []string{"INSERT INTO t (id, u) VALUES (9223372036854775807, 'a')"}, ours: 1, why: "no id is above it; AUTO_INCREMENT fails"},
	{name: "next to the highest", steps: []string{"INSERT INTO t (id, u) VALUES (9223372036854775806, 'a')"}, ours: 1, why: "no id that can be issued is left above it"},
	{name: "the highest, deleted again", steps: []string{"INSERT INTO t (id, u) VALUES (9223372036854775807, 'a')", "DELETE FROM t"}, ours: 1, why: "likewise"},
	{name: "unsigned above the signed", key: "BIGINT UNSIGNED", steps: []string{"INSERT INTO t (id, u) VALUES (9223372036854775813, 'a')"}, ours: 1, why: "not followed: ids end at 2^63-1"},
	{name: "int at its end", key: "INT", steps: []string{"INSERT INTO t (id, u) VALUES (2147483647, 'a')"}, ours: 1, why: "no id is above it; AUTO_INCREMENT fails"},
	{name: "int out of range", key: "INT", steps: []string{"INSERT INTO t (id, u) VALUES (5000000000, 'a')"}},
	{name: "snowflake", steps: []string{"INSERT INTO t (id, u) VALUES (1800000000000000000, 'a')"}},
	{name: "several statements", steps: []string{"INSERT INTO t (u) VALUES ('a'); INSERT INTO t (id, u) VALUES (5, 'b'); INSERT INTO t (u) VALUES ('c')"},
		ours: 8, rows: true, why: "all floors of a text come before its ids"},
	{name: "key by UPDATE", steps: []string{"INSERT INTO t (u) VALUES ('a')", "UPDATE t SET id = 500"}, ours: 2, why: "not seen"},
	{name: "seeds, then the server", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'admin'), (2, 'guest')", restart, "INSERT INTO t (u) VALUES ('x')"},
		ours: 20, rows: true, why: "the rest of a range is lost at the end"},
	{name: "rolled back, then the server", steps: []string{"INSERT INTO t (id, u) VALUES (1, 'a')", "BEGIN", "INSERT INTO t (id, u) VALUES (700, 'b')", "ROLLBACK", restart},
		ours: 1701, why: "likewise"},
	{name: "deleted, then the server", steps: []string{"INSERT INTO t (id, u) VALUES (700, 'a')", "DELETE FROM t", restart}, ours: 717, why: "likewise"},
	{name: "updated, then the server", steps: []string{"INSERT INTO t (u) VALUES ('a')", "UPDATE t SET id = 500", restart},
		ours: 501, margin: true, why: "found at the start, and other processes may hold ranges above"},
}

// TestFlows: an application that seeds rows and then generates keys finds the same
// rows as with AUTO_INCREMENT, in one process and in the next.
func TestFlows(t *testing.T) {
	mysql.RegisterReaderHandler("keys", func() io.Reader { return strings.NewReader("900\ta\n30\tb\n") })
	for _, server := range mysqltest.Targets(t) {
		for _, f := range flows {
			t.Run(server.Name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				key := f.key
				if key == "" {
					key = "BIGINT"
				}
				native := runFlow(t, "mysql", server.Database(t), f, key+" NOT NULL AUTO_INCREMENT")
				for _, ai := range []string{"", " AUTO_INCREMENT"} {
					got := runFlow(t, driver.Name, server.Database(t), f, key+" NOT NULL"+ai)
					want := native
					if f.ours != 0 {
						want.next = f.ours
					}
					if f.margin && got.next > f.ours+1<<36 {
						want.next = got.next
					}
					if f.rows {
						want.rows = got.rows
					}
					if got != want {
						t.Errorf("with %q:\n got %+v\nwant %+v (AUTO_INCREMENT: %d; %s)", ai, got, want, native.next, f.why)
					}
				}
			})
		}
	}
}

type outcome struct {
	errors string // error numbers of the steps
	rows   string
	count  int
	next   int64 // -1 for an error
}

func runFlow(t *testing.T, driverName, dsn string, f flow, key string) (o outcome) {
	t.Helper()
	plain, _ := openOn(t, dsn, "leafTables=none", "CREATE TABLE t (id "+key+" PRIMARY KEY, u VARCHAR(20) UNIQUE, v INT)")
	open := func() *sql.DB {
		params := "?multiStatements=true"
		if driverName == driver.Name {
			params += "&leafTables=t&leafCreate=true"
		}
		db := mustOpen(t, driverName, dsn+params)
		db.SetMaxOpenConns(1)
		return db
	}
	db := open()
	for _, text := range f.steps {
		if text == restart {
			db.Close()
			db = open()
			continue
		}
		_, err := db.Exec(text)
		o.errors += " " + errorNumber(err)
	}
	if err := plain.QueryRow("SELECT COUNT(*), COALESCE(GROUP_CONCAT(id, ':', u, ':', COALESCE(v, '') ORDER BY u, id), '') FROM t").Scan(&o.count, &o.rows); err != nil {
		t.Fatal(err)
	}
	res, err := db.Exec("INSERT INTO t (u) VALUES ('next')")
	if err != nil {
		o.next = -1
		return o
	}
	o.next, _ = res.LastInsertId()
	return o
}

// errorNumber returns the number of the server's error, or the kind of leafsql's error.
func errorNumber(err error) string {
	var e *mysql.MySQLError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return fmt.Sprint(e.Number)
	}
	return err.Error()
}

// TestServerKeepsRowsOfInstaller: an installer seeds rows 1 and 2. Then a server
// inserts, replaces and upserts, and no row is overwritten or lost.
func TestServerKeepsRowsOfInstaller(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		_, installer := openOn(t, dsn, "leafTables=users,tags&leafCreate=true")
		mustExec(t, installer, "CREATE TABLE users (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) UNIQUE)", "CREATE TABLE tags LIKE users",
			"INSERT INTO users (id, name) VALUES (1, 'admin')", "INSERT INTO users (id, name) VALUES (2, 'guest')", "INSERT INTO tags VALUES (1, 'first')")
		installer.Close()
		_, app := openOn(t, dsn, "leafTables=users,tags&leafCreate=true")
		mustExec(t, app, "REPLACE INTO users (name) VALUES ('eve')", "INSERT INTO users (name) VALUES ('bob') ON DUPLICATE KEY UPDATE name = VALUES(name)",
			"INSERT IGNORE INTO users (name) VALUES ('ann')", "INSERT INTO tags (id, name) VALUES (2, 'second')", "INSERT INTO tags (name) VALUES ('third')",
			"INSERT INTO users (id, name) VALUES (5000, 'import')", "INSERT INTO users (name) VALUES ('last')")
		var users, tags string
		if err := app.QueryRow("SELECT (SELECT GROUP_CONCAT(name ORDER BY id) FROM users), (SELECT GROUP_CONCAT(name ORDER BY id) FROM tags)").Scan(&users, &tags); err != nil {
			t.Fatal(err)
		}
		if users != "admin,guest,eve,bob,ann,import,last" || tags != "first,second,third" {
			t.Errorf("%s: users = %s, tags = %s; want admin,guest,eve,bob,ann,import,last and first,second,third", server.Name, users, tags)
		}
	}
}

// TestKeepIgnoresExplicitKeys: with leafExplicit=keep, explicit keys do not move the counter.
func TestKeepIgnoresExplicitKeys(t *testing.T) {
	plain, leaf := open(t, "leafTables=t&leafExplicit=keep", allocTable, row("t", 1, 10), tableT)
	mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (5000, 1)", "INSERT INTO t (id, a) SELECT 6000, 2 FROM DUAL", "INSERT INTO t (id, a) SELECT id + 1, 3 FROM t WHERE a = 1")
	var max int64
	if err := plain.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&max); err != nil || max != 1 {
		t.Errorf("max_id = %d, error %v; want 1", max, err)
	}
}

// TestKeepMovesCounterForNearKeysOnly: with leafExplicit=keep, far keys do not move the counter when the table is next used
// either. Only near keys do.
func TestKeepMovesCounterForNearKeysOnly(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		dsn := target.Database(t)
		plain, _ := openOn(t, dsn, "leafTables=none", allocTable, tableT, "INSERT INTO t (id, a) VALUES (16, 1), (1 << 40, 2), (1 << 60, 3)")
		for i, params := range []string{"&leafCreate=true", "&leafCreate=true&leafLastInsertID=result", ""} {
			leaf := openLeaf(t, dsn, "leafTables=t&leafExplicit=keep"+params)
			if id := insertID(t, leaf, fmt.Sprintf("INSERT INTO t (a) VALUES (%d)", 10+i)); id < 17 || id > 2000 {
				t.Errorf("%s: %q: LastInsertId() = %d, want 17 to 2000", target.Name, params, id)
			}
			mustExec(t, leaf, fmt.Sprintf("INSERT INTO t (id, a) VALUES (%d, %d)", 1<<60+i+1, 20+i))
			leaf.Close()
		}
		mustExec(t, plain, "INSERT INTO t (id, a) VALUES (5000, 30)")
		refused(t, openLeaf(t, dsn, "leafTables=t&leafExplicit=keep"), "the highest key is 5000", "INSERT INTO t (a) VALUES (31)")
		refused(t, openLeaf(t, dsn, "leafTables=t"), fmt.Sprintf("the highest key is %d", 1<<60+3), "INSERT INTO t (a) VALUES (31)")
	}
}

// TestExplicitKeyNeedsNoRowInLeafAlloc: without a row in leaf_alloc there is no counter to move, and no error.
func TestExplicitKeyNeedsNoRowInLeafAlloc(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, tableT)
	mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (5000, 1)", "INSERT INTO t (id, a) VALUES (5001, 2)")
	refused(t, leaf, "has no row", "INSERT INTO t (a) VALUES (3)")
}

// TestKeyAboveRangeFailsWhileStoreIsAway: while the store is unreachable, a key above the cached range fails
// with a hint. A key below it needs no store.
func TestKeyAboveRangeFailsWhileStoreIsAway(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB})
	ids := server.Target().Database(t)
	openOn(t, ids, "leafTables=none", allocTable, row("t", 1, 1000))
	_, leaf := open(t, "leafTables=t&leafStore="+strings.ReplaceAll(ids, "/", "%2F"), tableT)
	insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
	mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (500, 2)", "INSERT INTO t (id, a) VALUES (600, 3)") // each fetches a range above its key
	if err := server.Kill9(); err != nil {
		t.Fatal(err)
	}
	mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (700, 4)")
	_, err := leaf.Exec("INSERT INTO t (id, a) VALUES (50000, 5)")
	var fill *driver.FillError
	var away *segment.UnavailableError
	if !errors.As(err, &fill) || fill.Key != 50000 || !errors.As(err, &away) || !strings.Contains(err.Error(), "leafExplicit=keep") {
		t.Errorf("error %v, want a FillError of key 50000 with the hint leafExplicit=keep", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
}

// TestDuplicateMovesTheCounter: ids collide only once with a key that was added to the table
// unseen.
func TestDuplicateMovesTheCounter(t *testing.T) {
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", 1, 1000), tableT)
	insertID(t, leaf, "INSERT INTO t (a) VALUES (0)")
	mustExec(t, plain, "INSERT INTO t (id, a) VALUES (2, 100), (3, 101), (300, 102)")
	_, err := leaf.Exec("INSERT INTO t (a) VALUES (1)")
	if errorNumber(err) != "1062" {
		t.Fatalf("error %v, want error 1062", err)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 301 {
		t.Errorf("LastInsertId() = %d, want 301", id)
	}
}

// TestLoadDataFillsAndFollows: rows of a file are filled and move the counter like others.
func TestLoadDataFillsAndFollows(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t&allowAllFiles=true", allocTable, row("t", 100, 1000), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, c VARCHAR(30))")
		load := func(content, clause string) {
			t.Helper()
			file := filepath.Join(t.TempDir(), "rows")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			mustExec(t, leaf, "DELETE FROM t", "LOAD DATA LOCAL INFILE '"+file+"' INTO TABLE t FIELDS TERMINATED BY ',' "+clause)
		}
		rows := func(want string) {
			t.Helper()
			var got string
			if err := leaf.QueryRow("SELECT GROUP_CONCAT(id, ':', a, ':', COALESCE(c, '') ORDER BY a) FROM t").Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s, want %s, %v", server.Name, got, want, err)
			}
		}
		load("5,x,50\n", "(id, @skipped, a)")
		rows("5:50:")
		load("50\n60\n", "(a)")
		rows("100:50:,101:60:")
		load("7,1,x\n0,2,y\n\\N,3,z\n", "")
		rows("7:1:x,102:2:y,103:3:z")
		load("5000,1,x\n", "")
		mustExec(t, leaf, "INSERT INTO t (a) VALUES (2)")
		rows("5000:1:x,5001:2:")
	}
}

// TestIDsEndAtHighestValueOfColumn: when ids reach the highest value of the key column, INSERTs are
// refused in every sql_mode: no id is clipped, and ids do not restart.
func TestIDsEndAtHighestValueOfColumn(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for typ, highest := range map[string]int64{"TINYINT": 127, "TINYINT UNSIGNED": 255, "SMALLINT": 32767,
			"MEDIUMINT": 8388607, "INT": 2147483647, "INT UNSIGNED": 4294967295, "BIGINT": 9223372036854775806} {
			for _, mode := range []string{"STRICT_ALL_TABLES", ""} {
				plain, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true&sql_mode='"+mode+"'", fmt.Sprintf("CREATE TABLE t (id %s PRIMARY KEY, a INT)", typ))
				insertID(t, leaf, "INSERT INTO t (id) VALUES (?)", highest-2)
				insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
				if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (2)"); id != highest {
					t.Errorf("%s: %s: last id = %d, want %d", server.Name, typ, id, highest)
				}
				for _, text := range []string{"INSERT INTO t (a) VALUES (3)", "INSERT IGNORE INTO t (a) VALUES (3), (4)", "REPLACE INTO t (a) VALUES (3)",
					"INSERT INTO t (a) VALUES (3) ON DUPLICATE KEY UPDATE a = 9", "INSERT INTO t (a) SELECT a FROM t"} {
					var fill *driver.FillError
					if _, err := leaf.Exec(text); !errors.Is(err, driver.ErrRefused) && !errors.As(err, &fill) {
						t.Errorf("%s: %s, sql_mode '%s': %s: error %v, want a refusal or a FillError", server.Name, typ, mode, text, err)
					}
				}
				var n, top int64
				if err := plain.QueryRow("SELECT COUNT(*), MAX(id) FROM t WHERE COALESCE(a, 0) < 3").Scan(&n, &top); err != nil || n != 3 || top != highest {
					t.Errorf("%s: %s: %d rows, highest key %d, error %v; want 3 and %d", server.Name, typ, n, top, err, highest)
				}
			}
		}
	}
}
