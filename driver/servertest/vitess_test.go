//go:build vitess

package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The tests of this file need Vitess, and are run by make versions SERVERS=vitess.

// sharded creates a table in a keyspace with two shards, whose vindex is the key. It returns the DSN of the keyspace with leaf_alloc in
// a keyspace without shards.
func sharded(t *testing.T, table, params string) (dsn string, plain *sql.DB) {
	t.Helper()
	store := mysqltest.Database(t)
	storeName, _ := openOn(t, store, "leafTables=none", allocTable, row(table, 100, 1000))
	var db string
	if err := storeName.QueryRow("SELECT DATABASE()").Scan(&db); err != nil {
		t.Fatal(err)
	}
	dsn = mysqltest.WithDatabase(mysqltest.DSN(t), mysqltest.ShardedKeyspace)
	plain = mustOpen(t, "mysql", dsn)
	plain.Exec("ALTER VSCHEMA CREATE VINDEX xxhash USING xxhash") // an error means that another test has created it
	mustExec(t, plain, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, a INT, b INT)", "ALTER VSCHEMA ON "+table+" ADD VINDEX xxhash(id)")
	t.Cleanup(func() {
		for _, text := range []string{"DROP TABLE " + table, "ALTER VSCHEMA DROP TABLE " + table} {
			if _, err := plain.Exec(text); err != nil {
				t.Errorf("%s: error %v, want none", text, err)
			}
		}
	})
	for { // vtgate learns the table's vindex and columns some time later
		if _, err := plain.Exec("INSERT INTO " + table + " (id, a) VALUES (1, 1), (2, 2)"); err == nil {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	mustExec(t, plain, "DELETE FROM "+table)
	return dsn + "?leafTables=" + table + "&leafAllocTable=" + db + ".leaf_alloc" + params, plain
}

// TestVitessFillsTablesOfSeveralShards: rows get keys of leaf_alloc as text, with arguments and prepared, in a transaction and by several
// connections at once, and are on both shards.
func TestVitessFillsTablesOfSeveralShards(t *testing.T) {
	dsn, plain := sharded(t, "filled", "")
	leaf := mustOpen(t, "mysql-leaf", dsn)
	if id := insertID(t, leaf, "INSERT INTO filled (a) VALUES (1), (2)"); id != 100 {
		t.Errorf("LastInsertId() = %d, want 100", id)
	}
	if id := insertID(t, leaf, "INSERT INTO filled SET a = ?", 3); id != 102 {
		t.Errorf("with an argument LastInsertId() = %d, want 102", id)
	}
	if id := insertID(t, leaf, "INSERT IGNORE INTO filled (a) VALUES (4)"); id != 103 {
		t.Errorf("IGNORE: LastInsertId() = %d, want 103", id)
	}
	if id := insertID(t, leaf, "INSERT INTO filled (id, a) VALUES (200, 5)"); id != 200 {
		t.Errorf("a row with its key: LastInsertId() = %d, want 200", id)
	}
	tx, err := leaf.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	if _, err := tx.Exec("INSERT INTO filled (a) VALUES (6), (7), (8)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow("SELECT LAST_INSERT_ID()").Scan(&last); err != nil || last != 201 {
		t.Errorf("LAST_INSERT_ID() = %d, error %v; want 201", last, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if _, err := leaf.Exec("INSERT INTO filled (a) VALUES (?), (?)", 9, 9); err != nil {
					t.Errorf("error %v, want none", err)
				}
			}
		})
	}
	wg.Wait()
	var rows, keys int
	if err := plain.QueryRow("SELECT COUNT(*), COUNT(DISTINCT id) FROM filled").Scan(&rows, &keys); err != nil || rows != 168 || keys != rows {
		t.Errorf("%d rows with %d keys, error %v; want 168 of each", rows, keys, err)
	}
	for _, shard := range []string{"-80", "80-"} {
		db := mustOpen(t, "mysql", mysqltest.WithDatabase(mysqltest.DSN(t), mysqltest.ShardedKeyspace+":"+shard))
		if err := db.QueryRow("SELECT COUNT(*) FROM filled").Scan(&rows); err != nil || rows == 0 || rows == keys {
			t.Errorf("%d rows in shard %s, error %v; want some of %d", rows, shard, err, keys)
		}
	}
}

// TestVitessSelectWithoutRowReturnsNoID: on several shards, a select without a table stores its row, with an id. If its WHERE clause is
// false, LastInsertId is 0 and LAST_INSERT_ID() the previous id.
func TestVitessSelectWithoutRowReturnsNoID(t *testing.T) {
	dsn, plain := sharded(t, "selected", "")
	leaf := mustOpen(t, "mysql-leaf", dsn)
	leaf.SetMaxOpenConns(1)
	for i, c := range []struct {
		text         string
		id, previous int64
	}{
		{"SELECT ?", 100, 100},
		{"SELECT ? FROM DUAL WHERE 1 = 0", 0, 100},
		{"SELECT ? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM selected WHERE a = 0)", 0, 100},
		{"SELECT ? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM selected WHERE a = 3)", 103, 103},
	} {
		text := "INSERT INTO selected (a) " + c.text
		id := insertID(t, leaf, text, i)
		var stored, sqlID int64
		if err := leaf.QueryRow("SELECT LAST_INSERT_ID()").Scan(&sqlID); err != nil || id != c.id || sqlID != c.previous {
			t.Errorf("%s: LastInsertId() = %d, want %d; LAST_INSERT_ID() = %d, error %v, want %d", text, id, c.id, sqlID, err, c.previous)
		}
		if err := plain.QueryRow("SELECT COALESCE(MAX(id), 0) FROM selected WHERE a = ?", i).Scan(&stored); err != nil || stored != c.id {
			t.Errorf("%s: id %d is stored, error %v; want %d", text, stored, err, c.id)
		}
	}
}

// TestVitessRefusesUpsertsOfVindex: an upsert into a table whose vindex is the key is refused with a hint that helps.
func TestVitessRefusesUpsertsOfVindex(t *testing.T) {
	dsn, plain := sharded(t, "upserted", "")
	leaf := mustOpen(t, "mysql-leaf", dsn)
	const upsert = "INSERT INTO upserted (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 2"
	for _, text := range []string{upsert, "INSERT INTO upserted (a) VALUES (?) ON DUPLICATE KEY UPDATE b = 2"} {
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = 1
		}
		if _, err := leaf.Exec(text, args...); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "leafLastInsertID=result") {
			t.Errorf("%s: error %v, want a refusal with a hint", text, err)
		}
	}
	var rows int
	if err := plain.QueryRow("SELECT COUNT(*) FROM upserted").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v, want none", rows, err)
	}
	leaf = mustOpen(t, "mysql-leaf", dsn+"&leafLastInsertID=result")
	id := insertID(t, leaf, upsert)
	var stored int64
	if err := plain.QueryRow("SELECT id FROM upserted").Scan(&stored); err != nil || id != stored {
		t.Errorf("LastInsertId() = %d, id %d is stored, error %v", id, stored, err)
	}
}

// TestVitessRefusesStatementsOfUnknownRows: statements whose rows only the server knows are refused and store no row.
func TestVitessRefusesStatementsOfUnknownRows(t *testing.T) {
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
		"CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
	for _, text := range []string{
		"INSERT INTO t (a) SELECT a FROM s",
		"REPLACE INTO t (a) TABLE s",
		"INSERT INTO t (a) WITH c AS (SELECT a FROM s) SELECT a FROM c",
		"INSERT INTO t (a) SELECT a FROM s ON DUPLICATE KEY UPDATE a = 5",
		"LOAD DATA LOCAL INFILE 'no such file' INTO TABLE t (a)",
	} {
		if err := refused(t, leaf, "are not filled on Vitess", text); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %T, want a refusal", text, err)
		}
	}
	var rows int
	if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v, want none", rows, err)
	}
}

// TestVitessMarksRows: a fetch through vtgate is marked with the server_uuid of the MySQL server that executes it, also if the database in use
// has shards. A row with another server's mark jumps.
func TestVitessMarksRows(t *testing.T) {
	dsn, plain := sharded(t, "marked", "")
	leaf := mustOpen(t, "mysql-leaf", dsn)
	insertID(t, leaf, "INSERT INTO marked (a) VALUES (1)")
	_, alloc, _ := strings.Cut(dsn, "leafAllocTable=")
	var right bool
	const hash = "LEFT(SHA2(CONCAT('server ', @@server_uuid), 256), 16)"
	if err := plain.QueryRow("SELECT LOCATE(CONCAT('leafsql@', " + hash + "), description) > 0 FROM " + alloc + " WHERE biz_tag = 'marked'").Scan(&right); err != nil || !right {
		t.Errorf("the row has the server's mark = %v, error %v; want true", right, err)
	}
	mustExec(t, plain, "UPDATE "+alloc+" SET description = REPLACE(description, "+hash+", '0123456789abcdef') WHERE biz_tag = 'marked'")
	insertID(t, leaf, "INSERT INTO marked (a) VALUES (1)"+strings.Repeat(", (1)", 3000)) // more ids than the ranges in memory
	if id := insertID(t, leaf, "INSERT INTO marked (a) VALUES (1)"); id < 1<<20 {
		t.Errorf("LastInsertId() = %d, want a margin above 100", id)
	}
}

// TestVitessWorkerIDs: worker ids come from leaf_worker in a keyspace without shards.
func TestVitessWorkerIDs(t *testing.T) {
	plain, leaf := open(t, "leafTables=t:id:snowflake&leafCreate=true&leafNewRegistry=true", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1), (2)")
	var ids string
	if err := plain.QueryRow("SELECT GROUP_CONCAT(id ORDER BY id) FROM t").Scan(&ids); err != nil || ids != fmt.Sprintf("%d,%d", id, id+1) {
		t.Errorf("ids %s, error %v; want %d and the next", ids, err, id)
	}
}
