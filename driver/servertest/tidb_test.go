//go:build tidb

package servertest

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/serverid"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The tests of this file need TiDB, and are run by make versions SERVERS=tidb.

// TestTiDBRefusesStatementsOfUnknownRows: statements whose rows only the server knows, and INSERTs in statements that only TiDB runs, are refused and store
// no row.
func TestTiDBRefusesStatementsOfUnknownRows(t *testing.T) {
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
		"CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
	for text, want := range map[string]string{
		"INSERT INTO t (a) SELECT a FROM s":                               "are not filled on TiDB",
		"REPLACE INTO t (a) TABLE s":                                      "are not filled on TiDB",
		"INSERT INTO t (a) WITH c AS (SELECT a FROM s) SELECT a FROM c":   "are not filled on TiDB",
		"INSERT INTO t (a) SELECT a FROM s ON DUPLICATE KEY UPDATE a = 5": "are not filled on TiDB",
		"LOAD DATA LOCAL INFILE 'no such file' INTO TABLE t (a)":          "are not filled on TiDB",
		"/*T! INSERT INTO t (a) VALUES (1) */":                            "version comment",
		"/*T![auto_rand] INSERT INTO t (a) VALUES (1) */":                 "version comment",
		"/*!99999 INSERT INTO t (a) VALUES (1) */":                        "version comment",
		"EXPLAIN ANALYZE INSERT INTO t (a) VALUES (1)":                    "unknown form",
		"DESC ANALYZE FORMAT = 'brief' INSERT INTO t (a) VALUES (1)":      "unknown form",
		"TRACE INSERT INTO t (a) VALUES (1)":                              "unknown form",
		"BATCH ON s.a LIMIT 1 INSERT INTO t (a) SELECT a FROM s":          "unknown form",
	} {
		if err := refused(t, leaf, want, text); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %T, want a refusal", text, err)
		}
	}
	var rows int
	if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v, want none", rows, err)
	}
}

// TestTiDBKeepsSessionID: LAST_INSERT_ID() is the id of a row that reads the previous id, and an upsert of a row with its own key does
// not change it.
func TestTiDBKeepsSessionID(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	c, err := leaf.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, step := range []struct {
		text string
		want int64
	}{
		{"INSERT INTO t (id, a) VALUES (1, 5)", 0},
		{"INSERT INTO t (id, a) VALUES (1, 5) ON DUPLICATE KEY UPDATE a = 4", 0},
		{"INSERT INTO t (a) VALUES (1)", 100},
		{"INSERT INTO t (id, a) VALUES (NULL, LAST_INSERT_ID())", 101},
		{"INSERT INTO t (id, a) VALUES (1, 5) ON DUPLICATE KEY UPDATE a = 6", 101},
		{"INSERT INTO t (id, a) VALUES (1, 5) ON DUPLICATE KEY UPDATE a = a", 101},
	} {
		if _, err := c.ExecContext(t.Context(), step.text); err != nil {
			t.Fatal(err)
		}
		var id int64
		if err := c.QueryRowContext(t.Context(), "SELECT LAST_INSERT_ID()").Scan(&id); err != nil || id != step.want {
			t.Errorf("after %s: LAST_INSERT_ID() = %d, %v, want %d", step.text, id, err, step.want)
		}
	}
}

// TestTiDBSelectWithoutRowReturnsNoID: a select without a table whose WHERE clause is false stores no row, so LastInsertId is 0 and
// LAST_INSERT_ID() the previous id. If it stores or updates a row, both are the row's id.
func TestTiDBSelectWithoutRowReturnsNoID(t *testing.T) {
	for _, params := range []string{"", "&interpolateParams=true", "&multiStatements=true"} {
		_, leaf := open(t, "leafTables=t"+params, allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b INT)")
		leaf.SetMaxOpenConns(1)
		st, err := leaf.Prepare("INSERT INTO t (a) SELECT ? FROM DUAL WHERE ? = 1")
		if err != nil {
			t.Fatal(err)
		}
		var previous int64
		for _, c := range []struct {
			text     string
			args     []any
			prepared bool
			stored   bool
		}{
			{text: "INSERT INTO t (a) VALUES (1)", stored: true},
			{text: "INSERT INTO t (a) SELECT 2 FROM DUAL WHERE 1 = 0"},
			{text: "INSERT INTO t (a) SELECT ? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t WHERE a = 1)", args: []any{2}},
			{text: "INSERT IGNORE INTO t (a) SELECT 2 FROM DUAL WHERE 1 = 0"},
			{text: "REPLACE INTO t (a) SELECT 2 FROM DUAL WHERE 1 = 0"},
			{text: "INSERT INTO t (a) SELECT 2 FROM DUAL WHERE 1 = 0 ON DUPLICATE KEY UPDATE b = 1"},
			{text: "prepared", args: []any{2, 0}, prepared: true},
			{text: "prepared", args: []any{2, 1}, prepared: true, stored: true},
			{text: "INSERT INTO t (a) SELECT 3 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t WHERE a = 3)", stored: true},
			{text: "INSERT INTO t (a) SELECT 4 ON DUPLICATE KEY UPDATE b = 1", stored: true},
			{text: "INSERT INTO t (a) SELECT 3 FROM DUAL ON DUPLICATE KEY UPDATE b = 1", stored: true},
		} {
			exec := func() (sql.Result, error) { return leaf.Exec(c.text, c.args...) }
			if c.prepared {
				exec = func() (sql.Result, error) { return st.Exec(c.args...) }
			}
			res, err := exec()
			if err != nil {
				t.Fatalf("%s: %v", c.text, err)
			}
			id, _ := res.LastInsertId()
			want := int64(0)
			if c.stored {
				if err := leaf.QueryRow("SELECT id FROM t ORDER BY b DESC, id DESC LIMIT 1").Scan(&want); err != nil {
					t.Fatal(err)
				}
				previous = want
			}
			var sqlID int64
			if err := leaf.QueryRow("SELECT LAST_INSERT_ID()").Scan(&sqlID); err != nil || id != want || sqlID != previous {
				t.Errorf("%s %v, params %q: LastInsertId() = %d, want %d; LAST_INSERT_ID() = %d, error %v, want %d", c.text, c.args, params, id, want, sqlID, err, previous)
			}
		}
	}
}

// TestTiDBSpreadTablesAreFilled: a table whose rows are spread is filled. TiDB itself refuses a row with a key in a table with an AUTO_RANDOM key,
// unless the session allows it.
func TestTiDBSpreadTablesAreFilled(t *testing.T) {
	dsn := mysqltest.Database(t)
	_, leaf := openOn(t, dsn, "leafTables=t,r", allocTable, row("t", 100, 10), row("r", 100, 10),
		"CREATE TABLE t (id BIGINT NOT NULL, a INT, PRIMARY KEY (id) NONCLUSTERED) SHARD_ROW_ID_BITS = 4 PRE_SPLIT_REGIONS = 4",
		"CREATE TABLE r (id BIGINT AUTO_RANDOM PRIMARY KEY, a INT)")
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1), (2)"); id != 100 {
		t.Errorf("LastInsertId() = %d, want 100", id)
	}
	if _, err := leaf.Exec("INSERT INTO r (a) VALUES (1)"); !isNumber(err, 8216) {
		t.Errorf("error %v, want 8216", err)
	}
	insertID(t, openLeaf(t, dsn, "leafTables=r&allow_auto_random_explicit_insert=1"), "INSERT INTO r (a) VALUES (1)")
}

// TestTiDBUnknownFunctionIsNotLookedUp: a function that leafsql does not know is not looked for among stored routines.
func TestTiDBUnknownFunctionIsNotLookedUp(t *testing.T) {
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b BIGINT)")
	for range 2 {
		insertID(t, leaf, "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = TIDB_SHARD(5)")
	}
	var same bool
	if err := plain.QueryRow("SELECT b = TIDB_SHARD(5) AND id = 100 FROM t").Scan(&same); err != nil || !same {
		t.Errorf("row has its id and value = %v, error %v; want true", same, err)
	}
}

// TestTiDBHasNoIdentity: rows of leaf_alloc get no mark, since an acknowledged commit is in the majority of replicas.
func TestTiDBHasNoIdentity(t *testing.T) {
	plain, leaf := open(t, "leafTables=t&leafCreate=true", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	server, err := serverid.Query(t.Context(), plain)
	if err != nil || server != (serverid.Server{}) {
		t.Errorf("Query() = %+v, %v, want the zero value", server, err)
	}
	insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
	var marks int
	if err := plain.QueryRow("SELECT COUNT(*) FROM leaf_alloc WHERE description LIKE '%leafsql@%'").Scan(&marks); err != nil || marks != 0 {
		t.Errorf("%d rows with a mark, %v, want none", marks, err)
	}
}

// TestTiDBIgnoresSkipLocked: two readers of a queue that use SKIP LOCKED read the same row.
func TestTiDBIgnoresSkipLocked(t *testing.T) {
	db := mustOpen(t, "mysql", mysqltest.Database(t))
	mustExec(t, db, "CREATE TABLE outbox (id BIGINT PRIMARY KEY)", "INSERT INTO outbox VALUES (1), (2)")
	for range 2 {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		var id int64
		if err := tx.QueryRow("SELECT id FROM outbox ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED").Scan(&id); err != nil || id != 1 {
			t.Errorf("SKIP LOCKED returned id %d, error %v; want 1, otherwise change docs/distributed.md, since TiDB has SKIP LOCKED now", id, err)
		}
	}
}
