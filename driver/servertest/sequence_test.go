package servertest

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

// TestSequenceRowGivesKeys: a table's keys come from a row of t_sequence, and explicit keys move
// that row. The statements are the same as for the other generators.
func TestSequenceRowGivesKeys(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t:id:sequence(seq_t)", seqTable, tableT, "INSERT INTO t_sequence VALUES ('seq_t', 100, 10, 1, NULL, 0)")
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?), (?)", 1, 2); id != 101 {
			t.Errorf("%s: LastInsertId() = %d, want 101", server.Name, id)
		}
		mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (500, 3)")
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (4)"); id != 501 {
			t.Errorf("%s: LastInsertId() after key 500 = %d, want 501", server.Name, id)
		}
		var current int
		if err := plain.QueryRow("SELECT current_value FROM t_sequence").Scan(&current); err != nil || current < 501 {
			t.Errorf("current_value = %d, error %v; want at least 501", current, err)
		}
		stats, err := driver.StatsOf(leaf)
		if err != nil || len(stats.Tables) != 1 || stats.Tables[0].Generator != "sequence" || stats.Tables[0].Tag != "seq_t" || !stats.Tags[0].Sequence {
			t.Errorf("StatsOf() = %+v, %v; want one table with the sequence seq_t", stats, err)
		}
	}
}

// TestLeafCreateMakesSequence: leafCreate creates the table and the row, above the keys in use.
func TestLeafCreateMakesSequence(t *testing.T) {
	plain, leaf := open(t, "leafCreate=true&leafTables=t:id:sequence(seq_t)", tableT, "INSERT INTO t (id) VALUES (41)")
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 42 {
		t.Errorf("LastInsertId() = %d, want 42", id)
	}
	var name string
	if err := plain.QueryRow("SELECT name FROM t_sequence").Scan(&name); err != nil || name != "seq_t" {
		t.Errorf("name in t_sequence = %q, error %v; want seq_t", name, err)
	}
}

// TestSequenceErrorsHaveFixingSQL: each refusal contains the SQL that fixes it.
func TestSequenceErrorsHaveFixingSQL(t *testing.T) {
	plain, leaf := open(t, "leafTables=t:id:sequence(seq_t)", tableT, "INSERT INTO t (id) VALUES (41)")
	refused(t, leaf, "the table t_sequence", "INSERT INTO t (a) VALUES (1)")
	mustExec(t, plain, seqTable)
	err := refused(t, leaf, "has no row in `t_sequence`", "INSERT INTO t (a) VALUES (1)")
	_, fix, _ := strings.Cut(err.Error(), "in use: ")
	mustExec(t, plain, strings.ReplaceAll(fix, "<highest id>", "7"))
	err = refused(t, leaf, `the next id of row "seq_t" of t_sequence is 8`, "INSERT INTO t (a) VALUES (1)")
	_, fix, _ = strings.Cut(err.Error(), "if processes are running: ")
	mustExec(t, plain, fix)
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id <= 41 {
		t.Errorf("LastInsertId() = %d, want more than 41", id)
	}
}

// TestCyclingSequenceIsRefused: a sequence that restarts at its end is refused, before the first id and
// later, with the UPDATE that fixes it.
func TestCyclingSequenceIsRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t:id:sequence(ring)", seqTable, tableT, "INSERT INTO t_sequence VALUES ('ring', 0, 1, 1, 60, 1)")
		for round := range int64(3) {
			var row *segment.RowError
			_, err := leaf.Exec("INSERT INTO t () VALUES ()")
			if !errors.As(err, &row) || !strings.Contains(err.Error(), "cycle is 1") || row.Tag != "ring" {
				t.Fatalf("%s: error %v, want a RowError of ring with \"cycle is 1\"", server.Name, err)
			}
			mustExec(t, plain, row.Fix)
			if id := insertID(t, leaf, "INSERT INTO t () VALUES ()"); id <= round {
				t.Fatalf("%s: LastInsertId() = %d, want more than %d", server.Name, id, round)
			}
			mustExec(t, plain, "UPDATE t_sequence SET cycle = 1")
			for range 30 { // ids in memory may still be issued
				if _, err = leaf.Exec("INSERT INTO t () VALUES ()"); err != nil {
					break
				}
			}
		}
	}
}

// TestTablesShareSequence: tables that share a sequence have no id in common, across processes.
func TestTablesShareSequence(t *testing.T) {
	dsn := mysqltest.Database(t)
	params := "leafTables=t:id:sequence(s),u:id:sequence(s)"
	plain, a := openOn(t, dsn, params, seqTable, tableT, "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t_sequence VALUES ('s', 0, 7, 1, NULL, 0)")
	_, b := openOn(t, dsn, params+"&connectionAttributes=other:1") // uses its own store
	for i := range 40 {
		mustExec(t, a, fmt.Sprintf("INSERT INTO t (a) VALUES (%d), (%d)", 2*i, 2*i+1))
		mustExec(t, b, fmt.Sprintf("INSERT INTO u (a) VALUES (%d)", i))
	}
	var n int
	if err := plain.QueryRow("SELECT COUNT(DISTINCT id) FROM (SELECT id FROM t UNION ALL SELECT id FROM u) x").Scan(&n); err != nil || n != 120 {
		t.Errorf("%d different ids, error %v; want 120", n, err)
	}
}

func TestSequenceWithSegmentStoreIsRefused(t *testing.T) {
	cfg, err := driver.ParseDSN("u@/d?leafTables=t:id:sequence(s)")
	if err != nil {
		t.Fatal(err)
	}
	cfg.SegmentStore = new(segmenttest.Memory).Put(segmenttest.Row{Tag: "t", MaxID: 1, Step: 1})
	if _, err := driver.NewConnector(cfg); err == nil || !strings.Contains(err.Error(), "sequences are rows") {
		t.Errorf("NewConnector(): error %v, want one with \"sequences are rows\"", err)
	}
}
