package main

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// emptyTableStatements are statements that leave an empty table with AUTO_INCREMENT at 11.
var emptyTableStatements = []string{"CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)", "SELECT auto_increment FROM information_schema.tables WHERE table_schema = DATABASE()",
	"INSERT INTO orders (n) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)", "DELETE FROM orders"}

// TestRowsStartAboveAutoIncrement: rows start above the highest AUTO_INCREMENT of all shards.
func TestRowsStartAboveAutoIncrement(t *testing.T) {
	for _, ahead := range []string{"", " AUTO_INCREMENT = 5000"} {
		want := int64(11)
		if ahead != "" {
			want = 5000
		}
		for how, run := range map[string]func(t *testing.T, shards []string, db *sql.DB) (start int64){
			"init": func(t *testing.T, shards []string, db *sql.DB) int64 {
				mustRun(t, exitOK, "init", "-dsn", shards[0]+"?leafTables=orders", "-shard", shards[1])
				return queryNumber(t, db, "SELECT max_id FROM leaf_alloc")
			},
			"init with a row": func(t *testing.T, shards []string, db *sql.DB) int64 {
				exec(t, db, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 10, 1000)")
				mustRun(t, exitOK, "init", "-dsn", shards[0]+"?leafTables=orders", "-shard", shards[1])
				return queryNumber(t, db, "SELECT max_id FROM leaf_alloc")
			},
			"migrate": func(t *testing.T, shards []string, db *sql.DB) int64 {
				mustRun(t, exitOK, "migrate", "-dsn", shards[0], "-shard", shards[1], "-do", "switch", "orders")
				return queryNumber(t, db, "SELECT max_id FROM leaf_alloc")
			},
			"migrate with a row": func(t *testing.T, shards []string, db *sql.DB) int64 {
				exec(t, db, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 10, 1000)")
				mustRun(t, exitOK, "migrate", "-dsn", shards[0], "-shard", shards[1], "-do", "switch", "orders")
				return queryNumber(t, db, "SELECT max_id FROM leaf_alloc")
			},
			"check": func(t *testing.T, shards []string, db *sql.DB) int64 {
				exec(t, db, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 10, 1000)")
				_, out, errs := runLeafsql(t.Context(), "check", "-dsn", shards[0]+"?leafTables=orders", "-shard", shards[1])
				var key string
				if _, after, ok := strings.Cut(out, "has or had the key "); ok {
					fmt.Sscan(after, &key)
				} else {
					t.Errorf("output = %s%s, want a finding", out, errs)
				}
				highest, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimRight(key, "."), ",", ""), 10, 64)
				if err != nil {
					t.Error(err)
				}
				return highest + 1
			},
		} {
			for _, target := range mysqltest.Targets(t) {
				t.Run(target.Name+"/"+how+ahead, func(t *testing.T) {
					shards := []string{target.Database(t), target.Database(t)}
					db := open(t, shards[0], emptyTableStatements...)
					open(t, shards[1], emptyTableStatements[0]+ahead)
					got := run(t, shards, db)
					if n := queryNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc WHERE description LIKE 'leafsql@%'"); n != 1 && (how == "init" || how == "migrate" || how == "init with a row") {
						t.Error("description has no mark of the server, want one")
					}
					if strings.HasPrefix(how, "init") {
						checkMargin(t, db, "orders", want)
					} else if got != want {
						t.Errorf("max_id = %d, want %d", got, want)
					}
				})
			}
		}
	}
}

// TestWayBackStartsAboveLeafAlloc: after the way back, the server does not generate the ids of deleted rows
// again.
func TestWayBackStartsAboveLeafAlloc(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		db := open(t, dsn, emptyTableStatements...)
		other := open(t, second, emptyTableStatements[0])
		args := func(more ...string) []string {
			return append([]string{"migrate", "-dsn", dsn, "-shard", second}, more...)
		}
		mustRun(t, exitOK, args("-do", "switch", "orders")...)
		mustRun(t, exitOK, args("-do", "drop", "orders")...)
		leaf, err := sql.Open("mysql-leaf", dsn+"?leafTables=orders")
		if err != nil {
			t.Fatal(err)
		}
		exec(t, leaf, "INSERT INTO orders (n) VALUES (11), (12)", "DELETE FROM orders")
		leaf.Close()
		want := queryNumber(t, db, "SELECT max_id FROM leaf_alloc")
		for range 2 { // adds AUTO_INCREMENT, then drops the trigger
			mustRun(t, exitOK, args("-back", "orders")...)
		}
		for _, db := range []*sql.DB{db, other} {
			exec(t, db, "INSERT INTO orders (n) VALUES (1)")
			if got := queryNumber(t, db, "SELECT MAX(id) FROM orders"); got != want {
				t.Errorf("first id of AUTO_INCREMENT = %d, want leaf_alloc's max_id, %d", got, want)
			}
		}
	})
}
