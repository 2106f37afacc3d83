package servertest

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	countedTable = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)"
	tenRows      = "INSERT INTO t (v) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)"
	cacheCounter = "SELECT auto_increment FROM information_schema.tables WHERE table_schema = DATABASE()" // MySQL then caches it for a day
)

// TestCounterStartsAboveAutoIncrement: a counter that replaces AUTO_INCREMENT issues no id that AUTO_INCREMENT issued
// before, whether or not the row still exists.
func TestCounterStartsAboveAutoIncrement(t *testing.T) {
	for _, tt := range []struct {
		name   string
		setup  []string
		params string
		want   int64
	}{
		{"highest rows deleted", []string{countedTable, cacheCounter, tenRows, "DELETE FROM t WHERE id > 5"}, "", 11},
		{"all rows deleted", []string{countedTable, tenRows, "DELETE FROM t"}, "", 11},
		{"a start of its own", []string{countedTable + " AUTO_INCREMENT = 100000"}, "", 100000},
		{"new", []string{countedTable}, "", 1},
		{"truncated", []string{countedTable, tenRows, "TRUNCATE TABLE t"}, "", 1},
		{"another column counts", []string{"CREATE TABLE t (id BIGINT PRIMARY KEY, v INT AUTO_INCREMENT UNIQUE) AUTO_INCREMENT = 77"}, "", 1},
		{"another table of the pattern", []string{countedTable, "CREATE TABLE t2 LIKE t", "ALTER TABLE t2 AUTO_INCREMENT = 500"}, "leafTables=t*", 500},
		{"keys that leafsql does not follow", []string{countedTable, "INSERT INTO t VALUES (4000000000000000000, 1)"}, "leafTables=t&leafExplicit=keep", 1},
		{"unsigned at its end", []string{"CREATE TABLE t (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (18446744073709551614, 1)"}, "", 1},
		{"row that nobody fetched from", []string{allocTable, row("t", 1, 10), countedTable, tenRows, "DELETE FROM t"}, "", 11},
		{"row from before a way back", []string{allocTable, row("t", 5, 10), countedTable, tenRows, "DELETE FROM t"}, "", raised},
		{"row above it", []string{allocTable, row("t", 50, 10), countedTable, tenRows, "DELETE FROM t"}, "", 50},
	} {
		for _, server := range mysqltest.Targets(t) {
			for _, first := range []string{"INSERT INTO t (v) VALUES (90)", "INSERT INTO t (v) SELECT 90", "REPLACE INTO t (id, v) VALUES (1, 89), (NULL, 90)", "LOCK TABLES"} {
				if first == "LOCK TABLES" && tt.name != "all rows deleted" {
					continue // it waits for a second
				}
				t.Run(server.Name+"/"+tt.name+"/"+first, func(t *testing.T) {
					params := tt.params
					if params == "" {
						params = "leafTables=t"
					}
					_, leaf := openOn(t, server.Database(t), params+"&leafCreate=true", tt.setup...)
					leaf.SetMaxOpenConns(1)
					if first == "LOCK TABLES" {
						if _, err := leaf.Exec("LOCK TABLES t WRITE"); err != nil {
							t.Fatal(err)
						}
						first = "INSERT INTO t (v) VALUES (90)"
					}
					insertID(t, leaf, first)
					want := tt.want
					if strings.HasPrefix(first, "REPLACE") && !strings.Contains(params, "keep") {
						want = max(want, 2)
					}
					var got int64
					if err := leaf.QueryRow("SELECT id FROM t WHERE v = 90").Scan(&got); err != nil || got != want && !(tt.want == raised && got > 1<<30) {
						t.Errorf("first id = %d, %v; want %d", got, err, want)
					}
				})
			}
		}
	}
}

// raised represents an id above a margin: the row was used and then moved back, so processes may hold ids.
const raised = -1

// TestRowBelowAutoIncrementIsMoved: a row below AUTO_INCREMENT is moved, also without leafCreate. A gap that AUTO_INCREMENT left
// is no reason to refuse a table.
func TestRowBelowAutoIncrementIsMoved(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, at := range []int{0, 1, 5, 10} {
			_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", at, 10), countedTable, tenRows, "DELETE FROM t")
			if got := insertID(t, leaf, "INSERT INTO t (v) VALUES (90)"); got != 11 && !(at > 1 && got > 1<<30) {
				t.Errorf("%s: id after a row at %d = %d, want 11, or above a margin if the row was drawn from", server.Name, at, got)
			}
		}
	}
}

// TestNoCounterIfAutoIncrementIsUnknown: no counter is created if the AUTO_INCREMENT of the table, or of the same
// table on other shards, is unknown.
func TestNoCounterIfAutoIncrementIsUnknown(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name+"/no right", func(t *testing.T) {
			dsn := server.Database(t)
			db := databaseOf(t, dsn)
			user := "u" + db[len(db)-12:]
			plain, _ := openOn(t, dsn, "leafTables=none", allocTable, countedTable, tenRows, "DELETE FROM t", "CREATE USER "+user+" IDENTIFIED BY 'pw'",
				"GRANT INSERT, SELECT (v) ON "+db+".t TO "+user, "GRANT ALL ON "+db+".leaf_alloc TO "+user)
			t.Cleanup(func() { plain.Exec("DROP USER " + user) })
			leaf := openLeaf(t, strings.Replace(dsn, "root", user+":pw", 1), "leafTables=t&leafCreate=true")
			refused(t, leaf, "GRANT SELECT", "INSERT INTO t (v) VALUES (90)")
		})
		t.Run(server.Name+"/other shards", func(t *testing.T) {
			store := server.Database(t)
			_, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true&leafStore="+strings.ReplaceAll(store, "/", "%2F"), countedTable, tenRows, "DELETE FROM t")
			refused(t, leaf, "leafsql init with all shards", "INSERT INTO t (v) VALUES (90)")
		})
	}
}

// TestFirstSelectedKeysMoveCounterJustAbove: keys that the first statement of a process selects do not count as keys that the counter
// missed. The counter moves just above them, and nothing is refused after rows were stored.
func TestFirstSelectedKeysMoveCounterJustAbove(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for name, table := range map[string]string{
			"AUTO_INCREMENT": countedTable,
			"none":           "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)",
			"MyISAM":         "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT) ENGINE=MyISAM",
		} {
			for _, text := range []string{"INSERT INTO t SELECT 3000, 89 UNION ALL SELECT 2999, 88", "REPLACE INTO t (v, id) SELECT id, v FROM source"} {
				t.Run(server.Name+"/"+name+"/"+text, func(t *testing.T) {
					_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 50, 10), "CREATE TABLE source (v INT, id INT)", "INSERT INTO source VALUES (2999, 88), (3000, 89)", table)
					insertID(t, leaf, text)
					if got := insertID(t, leaf, "INSERT INTO t (v) VALUES (90)"); got != 3001 {
						t.Errorf("id after the key 3000 = %d, want 3001", got)
					}
				})
				t.Run(server.Name+"/"+name+"/"+text+"/no row of leaf_alloc", func(t *testing.T) {
					_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, "CREATE TABLE source (v INT, id INT)", "INSERT INTO source VALUES (2999, 88), (3000, 89)", table)
					insertID(t, leaf, text)
				})
			}
		}
	}
}
