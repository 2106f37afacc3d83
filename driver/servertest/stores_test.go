package servertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func storesParam(dsn string) string { return "leafStore=" + strings.ReplaceAll(dsn, "/", "%2F") }

// TestSeveralStoresRefused: a leafStore of several stores, which versions before 0.2 accepted, is refused with a hint. A row of
// one of several stores is refused as well, whatever its step.
func TestSeveralStoresRefused(t *testing.T) {
	if _, err := driver.ParseDSN("u@/d?leafStore=u@tcp(a)%2Fx|u@tcp(b)%2Fx"); err == nil || !strings.Contains(err.Error(), "run leafsql init -from-stores 'A|B|C'") {
		t.Errorf("ParseDSN(): error %v, want the hint leafsql init -from-stores", err)
	}
	for _, server := range mysqltest.Targets(t) {
		store := server.Database(t)
		plain, _ := openOn(t, store, "", allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('t', 100000001, 0, 'leafsql: store 2 of 3, blocks of 100000000, step 10, life ab, set cd')")
		_, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true&"+storesParam(store), tableT)
		for range 2 {
			err := refused(t, leaf, "run leafsql init -from-stores with all 3 stores", "INSERT INTO t (a) VALUES (1)")
			if row, ok := errors.AsType[*segment.RowError](err); !ok || strings.Contains(err.Error(), "UPDATE") {
				t.Errorf("%s: row error %v of %v, want a RowError without UPDATE", server.Name, row, err)
			}
			mustExec(t, plain, "UPDATE leaf_alloc SET step = 1000")
		}
	}
}

// TestProposedSQLNamesTheStore: SQL in errors names the database of leafStore, so it works
// on any connection.
func TestProposedSQLNamesTheStore(t *testing.T) {
	app, store := mysqltest.Database(t), mysqltest.Database(t)
	in := databaseOf(t, store)
	_, other := openOn(t, store, "", allocTable)
	other.Close() // a pool on the store's database uses the table's name without the database
	plain, leaf := openOn(t, app, "leafTables=t,u:id:snowflake&leafNewRegistry=true&"+storesParam(store), tableT, "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)")
	mend := func(insert, begin, highest string) {
		t.Helper()
		_, err := leaf.Exec(insert)
		if err == nil {
			t.Fatalf("%s: no error, want one", insert)
		}
		_, fix, ok := strings.Cut(err.Error(), begin)
		if !ok || !strings.Contains(err.Error(), in) {
			t.Fatalf("%s: %v", insert, err)
		}
		fix, _, _ = strings.Cut(begin+fix, "; ") // text that a wrapping error adds
		mustExec(t, plain, strings.ReplaceAll(fix, highest, "7"))
	}
	mend("INSERT INTO t (a) VALUES (1)", "INSERT INTO `", "<highest id + 1>")
	mustExec(t, leaf, "INSERT INTO t (a) VALUES (1)")
	mend("INSERT INTO u (a) VALUES (1)", "CREATE TABLE ", "-")
	leaf.Close()

	mustExec(t, plain, "INSERT INTO t (id, a) VALUES (900, 2)")
	_, leaf = openOn(t, app, "leafTables=t&"+storesParam(store))
	mend("INSERT INTO t (a) VALUES (3)", "UPDATE "+in+".leaf_alloc", "-")
	mustExec(t, leaf, "INSERT INTO t (a) VALUES (3)")
}
