package servertest

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// broughtKeys are statements with an explicit key in each row, for a table with the rows
// (1, 10) and (2, 11). zero is set if AUTO_INCREMENT's LastInsertId does not follow from the
// statement and the number of rows, or is the last of several keys: leafsql returns 0 then.
var broughtKeys = []struct {
	text string
	args []any
	zero bool
	only string
	mark bool // the id comes from a marker, and so is missing under leafLastInsertID=result
	none bool // LastInsertId is 0, but not in TiDB's own result
}{
	{text: "INSERT INTO t (id, v) VALUES (50, 1)"},
	{text: "INSERT INTO t (id, v) VALUES ((50), 1)"},
	{text: "INSERT INTO t (id, v) VALUES ('50', 1)"},
	{text: "INSERT INTO t VALUES (50, 1)"},
	{text: "INSERT INTO t SET id = 50, v = 5"},
	{text: "INSERT INTO t (id, v) VALUES (50, 1), (40, 3)", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (?, ?)", args: []any{50, 1}},
	{text: "INSERT INTO t (id, v) VALUES (?, ?)", args: []any{uint64(50), 1}},
	{text: "INSERT INTO t (id, v) VALUES (?, ?)", args: []any{"50", 1}},
	{text: "INSERT INTO t (id, v) VALUES (?, ?), (?, ?)", args: []any{50, 1, 40, 3}, zero: true},
	{text: "INSERT INTO t (id, v) VALUES (?, ?), (40, ?)", args: []any{50, 1, 3}, zero: true},
	{text: "INSERT INTO t (id, v) VALUES (50, ?), (?, ?)", args: []any{1, 40, 3}, zero: true},
	{text: "INSERT INTO t (id, v) VALUES (9223372036854775807, 1)"},
	{text: "INSERT INTO t (id, v) VALUES (-5, 1)", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (50, LAST_INSERT_ID(7))"},
	{text: "INSERT INTO t (id, v) SELECT 50, 3 WHERE 1"},
	{text: "INSERT INTO t (id, v) SELECT 50, 3 WHERE 0"},
	{text: "INSERT IGNORE INTO t (id, v) VALUES (50, 1)"},
	{text: "INSERT IGNORE INTO t (id, v) VALUES (1, 1)", none: true},
	{text: "INSERT IGNORE INTO t (id, v) VALUES (50, 1), (1, 1)", zero: true},
	{text: "REPLACE INTO t (id, v) VALUES (50, 1)"},
	{text: "REPLACE INTO t (id, v) VALUES (1, 9), (50, 9)", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (50, 1) ON DUPLICATE KEY UPDATE v = 77"},
	{text: "INSERT INTO t (id, v) VALUES (60, 10) ON DUPLICATE KEY UPDATE v = 77", mark: true},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = 77", args: []any{60, 10}, mark: true},
	{text: "INSERT INTO t (id, v) VALUES (1, 5) ON DUPLICATE KEY UPDATE v = VALUES(v), id = id", mark: true},
	{text: "INSERT INTO t (id, v) VALUES (1, 5) ON DUPLICATE KEY UPDATE v = VALUES(v), id = VALUES(id)"},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) ON DUPLICATE KEY UPDATE v = 20, id = VALUES(id)"},
	{text: "INSERT INTO t (id, v) VALUES (1, 5) ON DUPLICATE KEY UPDATE id = id"},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = ?, v = ?", args: []any{1, 5, 1, 5}},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = ?, id = ?", args: []any{50, 10, 5, 50}},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = ?, v = ?", args: []any{1, 10, 1, 10}},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = ?, v = ?", args: []any{50, 1, 50, 1}},
	{text: "INSERT INTO t (id, v) VALUES (50, ?) ON DUPLICATE KEY UPDATE id = ?, v = 5", args: []any{10, int64(50)}},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) ON DUPLICATE KEY UPDATE id = 50, v = 5"},
	{text: "INSERT INTO t (id, v) VALUES (1, 10) ON DUPLICATE KEY UPDATE id = 1"},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) ON DUPLICATE KEY UPDATE id = 51, v = 5", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) ON DUPLICATE KEY UPDATE id = 50, v = 5, id = 51", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) ON DUPLICATE KEY UPDATE id = 50 + 1, v = 5", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = ?, v = ?", args: []any{50, 10, 51, 5}, zero: true},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = ?, v = ?, id = VALUES(id)", args: []any{50, 10, 51, 5}},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) AS new ON DUPLICATE KEY UPDATE v = 20, id = new.id", only: "mysql"},
	{text: "INSERT INTO t (id, v) VALUES (1, 5) AS `new` ON DUPLICATE KEY UPDATE v = `new`.v, id = `new`.`id`", only: "mysql"},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) AS new(v, id) ON DUPLICATE KEY UPDATE v = new.v + 20, t.id = new.id", only: "mysql", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (50, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), v = VALUES(v)"},
	{text: "INSERT INTO t (id, v) VALUES (50, 10) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), v = 5"},
	{text: "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", args: []any{50, 1}},
	{text: "INSERT INTO t (id, v) VALUES (60, 10) ON DUPLICATE KEY UPDATE v = v"},
	{text: "INSERT INTO t (id, v) VALUES (1, 1), (50, 1) ON DUPLICATE KEY UPDATE v = 78", zero: true},
	{text: "INSERT INTO t (id, v) VALUES (1, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"},
	{text: "INSERT INTO t (id, v) VALUES (50, 1); INSERT INTO t (id, v) VALUES (40, 3)"},
	{text: "UPDATE t SET v = 100 WHERE id = 2; INSERT INTO t (id, v) VALUES (50, 1)"},
}

// onTiDB reports whether the tests run on TiDB, which has no row aliases.
func onTiDB() bool { return os.Getenv(mysqltest.EnvServer) == "tidb" }

// onVitess reports whether the tests run on Vitess.
func onVitess() bool { return os.Getenv(mysqltest.EnvServer) == "vitess" }

// bareWhere reports whether a statement has a WHERE without FROM, which MariaDB allows since 10.3.
func bareWhere(text string) bool {
	return strings.Contains(text, "WHERE") && !strings.Contains(text, "FROM") && strings.Contains(text, "SELECT")
}

// TestExplicitKeysKeepLastInsertID: after rows with explicit keys, LastInsertId is the same as with AUTO_INCREMENT, also for
// a column without it: ORMs find the row by it. SQL's LAST_INSERT_ID() does not change.
func TestExplicitKeysKeepLastInsertID(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		bare := server.Has(t, 100300, 0)
		for _, params := range []string{"", "&leafExplicit=keep", "&leafLastInsertID=result", "&interpolateParams=true"} {
			native := openBrought(t, "mysql", server.Database(t), "BIGINT NOT NULL AUTO_INCREMENT", "")
			leaf := openBrought(t, driver.Name, server.Database(t), "BIGINT NOT NULL", "&leafTables=t&leafCreate=true"+params)
			for _, tt := range broughtKeys {
				for _, prepared := range []bool{false, true} {
					if tt.only != "" && (tt.only != server.Name || onTiDB()) || prepared && strings.Contains(tt.text, ";") || !bare && bareWhere(tt.text) {
						continue
					}
					want, wantSQL := broughtID(t, native, tt.text, prepared, tt.args)
					if tt.zero || tt.none || tt.mark && strings.Contains(params, "result") {
						want = 0
					}
					if id, inSQL := broughtID(t, leaf, tt.text, prepared, tt.args); id != want || inSQL != wantSQL {
						t.Errorf("%s%s, prepared %t: %s %v: LastInsertId() = %d, LAST_INSERT_ID() = %d; want %d and %d", server.Name, params, prepared, tt.text, tt.args, id, inSQL, want, wantSQL)
					}
				}
			}
		}
	}
}

// TestClientFoundRowsKeepsLastInsertID: with clientFoundRows, a row that an upsert did not change
// counts like an inserted row. LastInsertId is still the same as with AUTO_INCREMENT, or if
// that is 0, the key of an existing row.
func TestClientFoundRowsKeepsLastInsertID(t *testing.T) {
	const found = "&clientFoundRows=true"
	for _, server := range mysqltest.Targets(t) {
		bare := server.Has(t, 100300, 0)
		native := openBrought(t, "mysql", server.Database(t), "BIGINT NOT NULL AUTO_INCREMENT", found)
		for _, key := range []string{"BIGINT NOT NULL", "BIGINT NOT NULL AUTO_INCREMENT"} {
			leaf := openBrought(t, driver.Name, server.Database(t), key, "&leafTables=t&leafCreate=true"+found)
			for _, tt := range broughtKeys {
				if tt.only != "" && (tt.only != server.Name || onTiDB()) || strings.Contains(tt.text, ";") || !bare && bareWhere(tt.text) {
					continue
				}
				want, _ := broughtID(t, native, tt.text, false, tt.args)
				id, _ := broughtID(t, leaf, tt.text, false, tt.args)
				var there bool
				if err := leaf.QueryRow("SELECT COUNT(*) FROM t WHERE id = ?", id).Scan(&there); err != nil {
					t.Fatal(err)
				}
				if id != want && (id != 0 || !tt.zero && !tt.mark) && (want != 0 || !there) {
					t.Errorf("%s, %s: %s %v: LastInsertId %d, want %d", server.Name, key, tt.text, tt.args, id, want)
				}
			}
		}
	}
}

// TestLastInsertIDIsNeverChangedKey: LastInsertId is never a key that the server may have changed.
func TestLastInsertIDIsNeverChangedKey(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		const loose = "&sql_mode=%27%27"
		tiny := openBrought(t, driver.Name, server.Database(t), "TINYINT NOT NULL", "&leafTables=t&leafCreate=true"+loose)
		for _, text := range []string{"INSERT INTO t (id, v) VALUES (300, 1)", "INSERT INTO t (id, v) VALUES (?, ?)"} {
			var args []any
			if strings.Contains(text, "?") {
				args = []any{300, 1}
			}
			if id, _ := broughtID(t, tiny, text, false, args); id != 0 {
				t.Errorf("%s: %s: LastInsertId() = %d, want 0, since the server changed the key to 127", server.Name, text, id)
			}
		}
		triggered := openBrought(t, driver.Name, server.Database(t), "BIGINT NOT NULL", "&leafTables=t&leafCreate=true")
		if _, err := triggered.Exec("CREATE TRIGGER other BEFORE INSERT ON t FOR EACH ROW SET NEW.id = NEW.id + IF(NEW.id = 50, 1, 0)"); err != nil {
			t.Fatal(err)
		}
		if id, _ := broughtID(t, triggered, "INSERT INTO t (id, v) VALUES (50, 1)", false, nil); id != 0 {
			t.Errorf("%s: LastInsertId() = %d, want 0, since a trigger changed the key to 51", server.Name, id)
		}
		for _, key := range []string{"BIGINT NOT NULL", "BIGINT NOT NULL AUTO_INCREMENT"} {
			found := openBrought(t, driver.Name, server.Database(t), key, "&leafTables=t&leafCreate=true&clientFoundRows=true")
			if id, _ := broughtID(t, found, "INSERT INTO t (id, v) VALUES (60, 10) ON DUPLICATE KEY UPDATE v = v", false, nil); id != 0 {
				t.Errorf("%s, %s: LastInsertId() = %d, want 0, since row 1 was found", server.Name, key, id)
			}
		}
	}
}

func openBrought(t *testing.T, name, dsn, key, params string, options ...string) *sql.DB {
	t.Helper()
	db := mustOpen(t, name, dsn+"?multiStatements=true"+params)
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (id " + key + " PRIMARY KEY, v INT, UNIQUE KEY (v))" + strings.Join(options, "")); err != nil {
		t.Fatal(err)
	}
	return db
}

// broughtID runs a statement on the two rows and returns its LastInsertId and SQL's LAST_INSERT_ID().
func broughtID(t *testing.T, db *sql.DB, text string, prepared bool, args []any) (id, inSQL int64) {
	t.Helper()
	for _, before := range []string{"DELETE FROM t", "INSERT INTO t (id, v) VALUES (1, 10), (2, 11)", "DO LAST_INSERT_ID(3)", "SET @before = LAST_INSERT_ID(3)"} {
		if _, err := db.Exec(before); err != nil {
			t.Fatal(err)
		}
	}
	exec := func() (sql.Result, error) { return db.Exec(text, args...) }
	if prepared {
		stmt, err := db.Prepare(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		defer stmt.Close()
		exec = func() (sql.Result, error) { return stmt.Exec(args...) }
	}
	res, err := exec()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if id, err = res.LastInsertId(); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT LAST_INSERT_ID()").Scan(&inSQL); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", text, err))
	}
	return id, inSQL
}
