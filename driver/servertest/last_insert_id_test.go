package servertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestUpsertReturnsNoUnusedID: if the update list does not set the key's
// id, an updated row returns 0 rather than the unused id.
func TestUpsertReturnsNoUnusedID(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, tt := range []struct{ table, text string }{
			{"CREATE TABLE t (id VARCHAR(40) PRIMARY KEY, a INT UNIQUE, b VARCHAR(20))", "INSERT INTO t (a, b) VALUES (1, ?) ON DUPLICATE KEY UPDATE b = VALUES(b)"},
			{tableT, "INSERT INTO t (a, b) VALUES (1, ?) ON DUPLICATE KEY UPDATE id = 777, b = VALUES(b)"},
			{tableT, "INSERT INTO t (a, b) VALUES (1, ?) ON DUPLICATE KEY UPDATE id = id + 0, b = VALUES(b)"},
		} {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tt.table, "INSERT INTO t VALUES (7, 1, 'x')")
			for _, b := range []string{"updated", "updated"} { // the second does not change the row
				id := insertID(t, leaf, tt.text, b)
				var n int
				if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE id = ?", fmt.Sprint(id)).Scan(&n); err != nil || id != 0 && n == 0 {
					t.Errorf("%s, %s: LastInsertId() = %d, error %v; want 0 or the id of a row", server.Name, tt.text, id, err)
				}
			}
		}
	}
}

// TestOnlyResultReturnsIDAfterCall: after a CALL, only the Result returns the id.
func TestOnlyResultReturnsIDAfterCall(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t&leafLastInsertID=result"+withMult, allocTable, row("t", notByUs, 1000), tableT,
			"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END")
		if id := insertID(t, leaf, "CALL p(); INSERT INTO t (a) VALUES (1)"); id != notByUs {
			t.Errorf("%s: LastInsertId() = %d, want %d", server.Name, id, notByUs)
		}
	}
}

// TestMarkOfApplicationReturnsIDOfExistingRow: id = LAST_INSERT_ID(id) requests the
// existing row's id, and the server returns it.
func TestMarkOfApplicationReturnsIDOfExistingRow(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t&leafLastInsertID=result", allocTable, row("t", notByUs, 1000), tableT, "INSERT INTO t VALUES (7, 1, 'x')")
		if id := insertID(t, leaf, "INSERT INTO t (a, b) VALUES (1, 'y') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), b = VALUES(b)"); id != 7 {
			t.Errorf("%s: LastInsertId() = %d, want 7", server.Name, id)
		}
	}
}

// TestReturningThatReadsLastIDIsRefused: the session's id cannot be set while rows are read. A
// statement that cannot set it itself is therefore refused, and works with Exec.
func TestReturningThatReadsLastIDIsRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		if server.Name != "mariadb" {
			continue
		}
		server.SkipUnless(t, "INSERT … RETURNING", 100500, 0)
		_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
		leaf.SetMaxOpenConns(1)
		for _, text := range []string{"INSERT INTO t (a) VALUES (1) RETURNING id, LAST_INSERT_ID()", "INSERT INTO t (id, a) VALUES (NULL, LAST_INSERT_ID()) RETURNING id"} {
			var id, said int64
			if err := leaf.QueryRow(text).Scan(&id, &said); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: error %v, want a refusal", text, err)
			}
			id = insertID(t, leaf, text)
			if err := leaf.QueryRow("SELECT LAST_INSERT_ID()").Scan(&said); err != nil || said != id {
				t.Errorf("LAST_INSERT_ID() = %d, error %v; want %d", said, err, id)
			}
		}
	}
}
