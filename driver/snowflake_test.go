package driver_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestSnowflake(t *testing.T) {
	dsn := mysqltest.Database(t)
	state := strings.ReplaceAll(t.TempDir(), "/", "%2F")
	params := "leafTables=t::snowflake&leafWorker=static(7)&leafNewRegistry=true&leafState=" + state
	_, one := openOn(t, dsn, params, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	// A second pool with an equal source shares the worker id, which the
	// state's lock would otherwise refuse.
	_, two := openOn(t, dsn, params)
	last := int64(0)
	for i, db := range []*sql.DB{one, two, one} {
		id := insertID(t, db, "INSERT INTO t (a) VALUES (1), (2), (3)")
		parts, err := snowflake.Leaf.Decompose(id)
		if err != nil || parts.Worker != 7 || id <= last {
			t.Errorf("id %d: %+v, %v; the one before was %d", id, parts, err, last)
		}
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM t WHERE id BETWEEN ? AND ?", id, id+2).Scan(&n); err != nil || n != 3 {
			t.Errorf("insert %d: %d consecutive ids, %v", i, n, err)
		}
		last = id
	}
	_, small := open(t, params, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
	refused(t, small, "above the highest that the column holds", "INSERT INTO t (a) VALUES (1)")
	refused(t, one, "at most 4096", "INSERT INTO t (a) VALUES (0)"+strings.Repeat(",(0)", 4096))
}

func TestSnowflakeConfig(t *testing.T) {
	for params, want := range map[string]string{
		"leafTables=t::snowflake&leafWorker=nosuch(1)":                       `worker source "nosuch" is unknown; registered are env, ordinal, static`,
		"leafTables=t::snowflake&leafWorker=static(7)&leafSnowflake=1-2":     "1-2",
		"leafTables=t::snowflake&leafWorker=static(7)&leafSnowflake=50-10-4": "50-10-4",
	} {
		_, err := driver.Driver{}.OpenConnector("u@tcp(127.0.0.1:1)/d?" + params)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", params, err, want)
		}
	}
}
