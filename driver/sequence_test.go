package driver_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const seqTable = "CREATE TABLE t_sequence (name VARCHAR(64) PRIMARY KEY, current_value BIGINT NOT NULL, increment INT NOT NULL, min_value BIGINT, max_value BIGINT, cycle TINYINT)"

// TestSequence: a table's keys come from a row of t_sequence, and keys of its own move
// that row. The statements are those of every other generator.
func TestSequence(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t:id:sequence(seq_t)", seqTable, tableT, "INSERT INTO t_sequence VALUES ('seq_t', 100, 10, 1, NULL, 0)")
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?), (?)", 1, 2); id != 101 {
			t.Error(server.Name, id)
		}
		mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (500, 3)")
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (4)"); id != 501 {
			t.Error(server.Name, "after 500:", id)
		}
		var current int
		if err := plain.QueryRow("SELECT current_value FROM t_sequence").Scan(&current); err != nil || current < 501 {
			t.Error(current, err)
		}
		stats, err := driver.StatsOf(leaf)
		if err != nil || len(stats.Tables) != 1 || stats.Tables[0].Generator != "sequence" || stats.Tables[0].Tag != "seq_t" || !stats.Tags[0].Sequence {
			t.Errorf("%+v, %v", stats, err)
		}
	}
}

// TestSequenceCreate: leafCreate makes the table and the row, above the keys in use.
func TestSequenceCreate(t *testing.T) {
	plain, leaf := open(t, "leafCreate=true&leafTables=t:id:sequence(seq_t)", tableT, "INSERT INTO t (id) VALUES (41)")
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 42 {
		t.Error(id)
	}
	var name string
	if err := plain.QueryRow("SELECT name FROM t_sequence").Scan(&name); err != nil || name != "seq_t" {
		t.Error(name, err)
	}
}

// TestSequenceMended: each refusal names the SQL that mends it.
func TestSequenceMended(t *testing.T) {
	plain, leaf := open(t, "leafTables=t:id:sequence(seq_t)", tableT, "INSERT INTO t (id) VALUES (41)")
	refused(t, leaf, "there is no table t_sequence", "INSERT INTO t (a) VALUES (1)")
	mustExec(t, plain, seqTable)
	err := refused(t, leaf, "has no row in `t_sequence`", "INSERT INTO t (a) VALUES (1)")
	_, fix, _ := strings.Cut(err.Error(), "in use: ")
	mustExec(t, plain, strings.ReplaceAll(fix, "<highest id>", "7"))
	err = refused(t, leaf, `sequence "seq_t" would start at 8`, "INSERT INTO t (a) VALUES (1)")
	_, fix, _ = strings.Cut(err.Error(), "if processes run: ")
	mustExec(t, plain, fix)
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id <= 41 {
		t.Error(id)
	}
}

// TestSequenceCycle: behind max_value comes min_value where the row says so, and not
// while any table that the sequence feeds has keys in there.
func TestSequenceCycle(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t:id:sequence(ring),u_*:id:sequence(ring)", seqTable, tableT,
				"CREATE TABLE u_1 (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t_sequence VALUES ('ring', 0, 1000, 1, 6, 1)")
			insert := func(text string, want int64) {
				t.Helper()
				if id := insertID(t, leaf, text); id != want {
					t.Fatalf("%s: id %d, want %d", text, id, want)
				}
			}
			insert("INSERT INTO t (a) VALUES (1), (2), (3), (4)", 1)
			insert("INSERT INTO u_1 (a) VALUES (5)", 5)
			var table *driver.RefusedError
			err := refused(t, leaf, "has one", "INSERT INTO t (a) VALUES (6), (7)") // neither split nor begun again
			if !errors.As(err, &table) {
				t.Error(err)
			}
			insert("INSERT INTO t (a) VALUES (6)", 6)
			mustExec(t, plain, "DELETE FROM t")
			refused(t, leaf, "its row 5 has one", "INSERT INTO t (a) VALUES (6)")
			mustExec(t, plain, "DELETE FROM u_1")
			insert("INSERT INTO t (a) VALUES (6), (7)", 1)
			mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (4, 0)") // moves it, within the round
			insert("INSERT INTO u_1 (a) VALUES (8)", 5)
			mustExec(t, plain, "INSERT INTO t (id) VALUES (6)") // nobody told us
			refused(t, leaf, "its row 6 has one", "INSERT INTO t (a) VALUES (9)")
			mustExec(t, plain, "DELETE FROM t WHERE id = 6")
			insert("INSERT INTO t (a) VALUES (9)", 6)
		})
	}
}

// TestSequenceElsewhere: a sequence that is not with its tables may feed other shards,
// whose keys nobody sees: it is not begun again.
func TestSequenceElsewhere(t *testing.T) {
	store := mysqltest.Database(t)
	openOn(t, store, "leafTables=none", seqTable, "INSERT INTO t_sequence VALUES ('ring', 0, 1000, 1, 6, 1)", "SELECT 1")
	_, leaf := open(t, "leafTables=t:id:sequence(ring)&leafStore="+strings.ReplaceAll(store, "/", "%2F"), tableT)
	refused(t, leaf, "other shards", "INSERT INTO t (a) VALUES (1)")
}

// TestSequenceShared: tables of one sequence have no id in common, over processes.
func TestSequenceShared(t *testing.T) {
	dsn := mysqltest.Database(t)
	params := "leafTables=t:id:sequence(s),u:id:sequence(s)"
	plain, a := openOn(t, dsn, params, seqTable, tableT, "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t_sequence VALUES ('s', 0, 7, 1, NULL, 0)")
	_, b := openOn(t, dsn, params+"&connectionAttributes=other:1") // a store of its own
	for i := range 40 {
		mustExec(t, a, fmt.Sprintf("INSERT INTO t (a) VALUES (%d), (%d)", 2*i, 2*i+1))
		mustExec(t, b, fmt.Sprintf("INSERT INTO u (a) VALUES (%d)", i))
	}
	var n int
	if err := plain.QueryRow("SELECT COUNT(DISTINCT id) FROM (SELECT id FROM t UNION ALL SELECT id FROM u) x").Scan(&n); err != nil || n != 120 {
		t.Error(n, err)
	}
}

func TestSequenceAndSegmentStore(t *testing.T) {
	cfg, err := driver.ParseDSN("u@/d?leafTables=t:id:sequence(s)")
	if err != nil {
		t.Fatal(err)
	}
	cfg.SegmentStore = segmenttest.NewMemory(segment.Row{Tag: "t", MaxID: 1, Step: 1})
	if _, err := driver.NewConnector(cfg); err == nil || !strings.Contains(err.Error(), "sequences are rows") {
		t.Error(err)
	}
}
