package servertest

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestLoweredRowIsRaisedWithMargin: a row that was moved back is raised with a margin, also if the process has created another
// tag's row before. Other processes may hold ranges above the highest key.
func TestLoweredRowIsRaisedWithMargin(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, before := range []string{"", "INSERT INTO o1 (v) VALUES (1)", "INSERT INTO o1 (id, v) VALUES (7, 1)"} {
			_, leaf := openOn(t, server.Database(t), "leafTables=o1,o2&leafCreate=true", allocTable, row("o2", 5000, 1000),
				"CREATE TABLE o1 (id BIGINT PRIMARY KEY, v INT)", "CREATE TABLE o2 (id BIGINT PRIMARY KEY, v INT)", "INSERT INTO o2 VALUES (9000, 1)")
			if before != "" {
				if _, err := leaf.Exec(before); err != nil {
					t.Fatal(err)
				}
			}
			if got := insertID(t, leaf, "INSERT INTO o2 (v) VALUES (1)"); got <= 9001+1<<36 {
				t.Errorf("%s, after %q: id = %d, want more than %d", server.Name, before, got, 9001+1<<36)
			}
		}
	}
}

// TestMarkIsOmittedIfItDoesNotFit: if description is too short for a mark, ids are issued without one. This holds also if the server would
// truncate the mark under the application's sql_mode, since no later fetch could read a truncated mark.
func TestMarkIsOmittedIfItDoesNotFit(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, mode := range []string{"''", "'ANSI_QUOTES'", "'STRICT_TRANS_TABLES'"} {
			plain, leaf := openOn(t, server.Database(t), "leafTables=o&sql_mode="+url.QueryEscape(mode), allocTable, row("o", 1, 1), "CREATE TABLE o (id BIGINT PRIMARY KEY, v INT)",
				"ALTER TABLE leaf_alloc MODIFY description VARCHAR(30)", "UPDATE leaf_alloc SET description = 'orders'")
			for want := int64(1); want < 5; want++ {
				if got := insertID(t, leaf, "INSERT INTO o (v) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)"); got != 9*want-8 {
					t.Errorf("%s, sql_mode %s: id = %d, want %d", server.Name, mode, got, 9*want-8)
				}
			}
			var description string
			if err := plain.QueryRow("SELECT description FROM leaf_alloc").Scan(&description); err != nil || description != "orders" {
				t.Errorf("%s, sql_mode %s: description = %q, error %v; want orders", server.Name, mode, description, err)
			}
		}
	}
}

// TestLeafCreateMakesSegmentsAndSequences: leafCreate creates the tables of both when first needed, in either order.
func TestLeafCreateMakesSegmentsAndSequences(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, texts := range [][2]string{{"INSERT INTO o (v) VALUES (1)", "INSERT INTO s (v) VALUES (1)"}, {"INSERT INTO s (v) VALUES (1)", "INSERT INTO o (v) VALUES (1)"}} {
			_, leaf := openOn(t, server.Database(t), "leafTables=o,s:id:sequence(seq_s)&leafCreate=true",
				"CREATE TABLE o (id BIGINT PRIMARY KEY, v INT)", "CREATE TABLE s (id BIGINT PRIMARY KEY, v INT)")
			for _, text := range texts {
				if got := insertID(t, leaf, text); got != 1 {
					t.Errorf("%s: %s: id = %d, want 1", server.Name, text, got)
				}
			}
		}
	}
}

// TestRecreatedDatabaseStartsAtOne: test suites and migrations drop their database, and then write tables that the process
// may not have written before.
func TestRecreatedDatabaseStartsAtOne(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, elsewhere := range []bool{false, true} {
			dsn := server.Database(t)
			db := databaseOf(t, dsn)
			plain, leaf := openOn(t, dsn, "leafTables=*&leafCreate=true", "CREATE TABLE one (id BIGINT PRIMARY KEY, v INT)")
			leaf.SetMaxOpenConns(1)
			plain.SetMaxOpenConns(1)
			for _, text := range []string{"INSERT INTO one (v) VALUES (1)", "INSERT INTO one (v) VALUES (2)"} {
				insertID(t, leaf, text)
			}
			by := leaf
			if elsewhere {
				by = plain
			}
			for _, text := range []string{"DROP DATABASE " + db, "CREATE DATABASE " + db, "USE " + db, "CREATE TABLE history (id BIGINT PRIMARY KEY, v INT)",
				"CREATE TABLE one (id BIGINT PRIMARY KEY, v INT)", "CREATE TABLE two (id BIGINT PRIMARY KEY, v INT)"} {
				if _, err := by.Exec(text); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := leaf.Exec("USE " + db); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"history", "two"} {
				if got := insertID(t, leaf, "INSERT INTO "+table+" (v) VALUES (1)"); got != 1 {
					t.Errorf("%s, recreated elsewhere %t: first id of %s = %d, want 1", server.Name, elsewhere, table, got)
				}
			}
		}
	}
}

// TestDeletedCounterRowIsNotCreatedAgain: a process that has drawn from a row does not create it again, since others may hold ids. The error
// states how to create it.
func TestDeletedCounterRowIsNotCreatedAgain(t *testing.T) {
	plain, leaf := open(t, "leafTables=t&leafCreate=true", allocTable, row("t", 1, 1), tableT)
	insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
	if _, err := plain.Exec("DELETE FROM leaf_alloc"); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		_, err = leaf.Exec("INSERT INTO t (a) VALUES (?)", 10+i)
	}
	const hint = "restart this process with leafCreate=true"
	if _, ok := errors.AsType[*segment.UnknownTagError](err); !ok || !strings.Contains(err.Error(), hint) {
		t.Errorf("error %v; want an UnknownTagError with %q", err, hint)
	}
}
