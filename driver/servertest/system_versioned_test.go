package servertest

import (
	"context"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const versioned = " WITH SYSTEM VERSIONING"

// mariaDBWithVersions returns a MariaDB server with system-versioned tables.
func mariaDBWithVersions(t *testing.T) mysqltest.Target {
	t.Helper()
	server := mysqltest.TargetOf(t, mysqltest.MariaDB)
	server.SkipUnless(t, "WITH SYSTEM VERSIONING", 100304, 0)
	return server
}

// TestPatternStartsAboveSystemVersionedTables: the new row of a pattern's tag is above the
// keys of all tables of the pattern.
func TestPatternStartsAboveSystemVersionedTables(t *testing.T) {
	const columns = " (id BIGINT NOT NULL PRIMARY KEY, v INT)"
	for _, option := range []string{"", versioned} {
		_, leaf := openOn(t, mariaDBWithVersions(t).Database(t), "leafTables=order_*&leafCreate=true", "CREATE TABLE order_1"+columns,
			"CREATE TABLE order_2"+columns+option, "INSERT INTO order_2 VALUES (1, 1), (500, 1)")
		if got := insertID(t, leaf, "INSERT INTO order_1 (v) VALUES (1)"); got != 501 {
			t.Errorf("first id of order_1 next to order_2%s = %d, want 501", option, got)
		}
	}
}

// TestInspectListsSystemVersionedTables: inspections list them by name and by pattern.
func TestInspectListsSystemVersionedTables(t *testing.T) {
	dsn := mariaDBWithVersions(t).Database(t)
	openOn(t, dsn, "leafTables=none", "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)"+versioned)
	for _, rule := range []string{"t", "*"} {
		got, err := inspect.Server(context.Background(), dsn+"?leafTables="+rule, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Tables) != 1 || got.Tables[0].Table != "t" || !got.Tables[0].AutoIncrement || len(got.Missing) != 0 {
			t.Errorf("leafTables=%s: tables %+v, missing %v; want t with AUTO_INCREMENT", rule, got.Tables, got.Missing)
		}
	}
}

// TestSystemVersionedTableKeepsLastInsertID: LastInsertId is the same as with AUTO_INCREMENT, although the history
// row counts as affected, too.
func TestSystemVersionedTableKeepsLastInsertID(t *testing.T) {
	server := mariaDBWithVersions(t)
	for _, params := range []string{"", "&interpolateParams=true"} {
		native := openBrought(t, "mysql", server.Database(t), "BIGINT NOT NULL AUTO_INCREMENT", params, versioned)
		leaf := openBrought(t, driver.Name, server.Database(t), "BIGINT NOT NULL", "&leafTables=t&leafCreate=true"+params, versioned)
		for _, tt := range broughtKeys {
			for _, prepared := range []bool{false, true} {
				if tt.only != "" && tt.only != server.Name || prepared && strings.Contains(tt.text, ";") {
					continue
				}
				want, wantSQL := broughtID(t, native, tt.text, prepared, tt.args)
				if tt.zero {
					want = 0
				}
				if id, inSQL := broughtID(t, leaf, tt.text, prepared, tt.args); id != want || inSQL != wantSQL {
					t.Errorf("%s, prepared %t: %s %v: LastInsertId() = %d, LAST_INSERT_ID() = %d; want %d and %d", params, prepared, tt.text, tt.args, id, inSQL, want, wantSQL)
				}
			}
		}
	}
}
