package servertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func storesParam(dsns ...string) string {
	return "leafStore=" + strings.ReplaceAll(strings.Join(dsns, "|"), "/", "%2F")
}

// TestStores: one table over three leaf_alloc. Keys of its own move all of them, and what
// was named in another order is refused.
func TestStores(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsns := []string{server.Database(t), server.Database(t), server.Database(t)}
		app := server.Database(t)
		_, leaf := openOn(t, app, "leafCreate=true&leafTables=t&"+storesParam(dsns...), tableT)
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1), (2), (3)"); id != 1 {
			t.Error(server.Name, id)
		}
		mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (500, 4)")
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (5)"); id != 501 {
			t.Error(server.Name, id)
		}
		mustExec(t, leaf, "INSERT INTO t (id, a) VALUES (150000000, 6)") // the second store's
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (7)"); id <= 150000000 {
			t.Error(server.Name, id)
		}
		leaf.Close()
		_, again := openOn(t, app, "leafTables=t&"+storesParam(dsns...))
		if id := insertID(t, again, "INSERT INTO t (a) VALUES (8)"); id <= 150000000 {
			t.Error(server.Name, id)
		}
		again.Close()
		for _, others := range [][]string{{dsns[1], dsns[0], dsns[2]}, dsns[:2]} {
			_, wrong := openOn(t, app, "leafTables=t&"+storesParam(others...))
			err := refused(t, wrong, "name the stores as they were named first", "INSERT INTO t (a) VALUES (9)")
			var stores *segment.RowError
			var fill *driver.FillError
			if !errors.As(err, &fill) || !errors.As(err, &stores) || !strings.Contains(stores.Table, " of store 1 of ") {
				t.Errorf("%v", err)
			}
		}
		_, alone := openOn(t, app, "leafTables=t&"+storesParam(dsns[2]))
		if err := refused(t, alone, "name all 3 of them in leafStore", "INSERT INTO t (a) VALUES (10)"); strings.Contains(err.Error(), "UPDATE") {
			t.Error(err)
		}
		_, auto := openOn(t, app, storesParam(dsns...))
		if id := insertID(t, auto, "INSERT INTO t (a) VALUES (11)"); id <= 150000000 {
			t.Error(server.Name, id)
		}
	}
}

// TestStoresRowTooLow: rows that came from elsewhere are seen at the start.
func TestStoresRowTooLow(t *testing.T) {
	dsns := []string{mysqltest.Database(t), mysqltest.Database(t)}
	app := mysqltest.Database(t)
	plain, leaf := openOn(t, app, "leafCreate=true&leafTables=t&"+storesParam(dsns...), tableT)
	insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
	leaf.Close()
	mustExec(t, plain, "INSERT INTO t (id, a) VALUES (7000, 2)")
	_, without := openOn(t, app, "leafTables=t&"+storesParam(dsns...))
	refused(t, without, "set leafCreate=true", "INSERT INTO t (a) VALUES (3)")
	_, with := openOn(t, app, "leafCreate=true&leafTables=t&"+storesParam(dsns...))
	if id := insertID(t, with, "INSERT INTO t (a) VALUES (3)"); id <= 7000 {
		t.Error(id)
	}
}

func TestStoresDSN(t *testing.T) {
	for dsn, want := range map[string]string{
		"leafStore=u@tcp(a)%2Fx|u@tcp(b)%2Fx":                             "",
		"leafStore=u@tcp(a)%2Fx|u@tcp(a)%2Fx":                             "the same store twice",
		"leafStore=u@tcp(a)%2Fx|":                                         "leafStore",
		"leafStore=u@tcp(a)%2Fx|u@tcp(b)%2Fx&leafTables=t:id:sequence(s)": "names several",
	} {
		cfg, err := driver.ParseDSN("u@/d?" + dsn)
		if err == nil {
			var c *driver.Connector
			if c, err = driver.NewConnector(cfg); err == nil {
				if back, err := driver.ParseDSN(cfg.FormatDSN()); err != nil || back.Store != cfg.Store {
					t.Error(back, err)
				}
				c.Close()
			}
		}
		if (err == nil) != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

// TestProposedSQLNamesTheStore: SQL that errors propose is about the database of leafStore,
// on whatever connection it is run.
func TestProposedSQLNamesTheStore(t *testing.T) {
	app, store := mysqltest.Database(t), mysqltest.Database(t)
	in := databaseOf(t, store)
	_, other := openOn(t, store, "", allocTable)
	other.Close() // a pool on the store's own database calls the table by its bare name
	plain, leaf := openOn(t, app, "leafTables=t,u:id:snowflake&leafNewRegistry=true&"+storesParam(store), tableT, "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)")
	mend := func(insert, begin, highest string) {
		t.Helper()
		_, err := leaf.Exec(insert)
		if err == nil {
			t.Fatalf("%s runs", insert)
		}
		_, fix, ok := strings.Cut(err.Error(), begin)
		if !ok || !strings.Contains(err.Error(), in) {
			t.Fatalf("%s: %v", insert, err)
		}
		fix, _, _ = strings.Cut(begin+fix, "; ") // what an error around it adds
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
