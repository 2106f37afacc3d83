package statuspage

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// openPool opens a pool and runs SQL in it.
func openPool(t *testing.T, dsn string, texts ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver.Name, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

const (
	createAlloc = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL)"
	createTag   = "INSERT INTO leaf_alloc VALUES ('t', 100, 1000)"
	createTable = "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)"
	insertRow   = "INSERT INTO t (a) VALUES (1)"
)

// TestPoolsThatShareAStoreShowItsTagsOnce: two pools share a leaf_alloc, and a third one has a tag of the same name in its own.
func TestPoolsThatShareAStoreShowItsTagsOnce(t *testing.T) {
	first, second := mysqltest.Database(t), mysqltest.Database(t)
	store := "&leafStore=" + strings.ReplaceAll(first, "/", "%2F")
	const lease = "&leafWorker=static(7)"
	dbs := map[string]*sql.DB{
		"shop0": openPool(t, first+"?leafTables=t"+store+lease, createAlloc, createTag, createTable, insertRow),
		"shop1": openPool(t, second+"?leafTables=t"+store+lease, createTable, insertRow),
	}
	page := text(get(t, OfPools(dbs, "shops"), "/"))
	wants(t, page, "shops", "all is well", "2 ids issued", "Worker id (shop0, shop1) State idle", ".t (shop0) segment t 1 1 0", ".t (shop1) segment t 1 1 0")
	if n := strings.Count(page, "100 … 116"); n != 1 {
		t.Errorf("page shows the range of the shared tag %d times, want once\n%s", n, page)
	}
	if strings.Contains(page, " t (shop") {
		t.Errorf("page = \n%s\nwant the only tag t without the name of a pool", page)
	}

	dbs["archive"] = openPool(t, mysqltest.Database(t)+"?leafTables=t", createAlloc, createTag, createTable, insertRow)
	page = text(get(t, OfPools(dbs, "shops"), "/"))
	wants(t, page, "3 ids issued", "t (archive)", "t (shop0)")
	if n := strings.Count(page, "100 … 116"); n != 2 || strings.Contains(page, " t (shop1)") {
		t.Errorf("page shows %d ranges, want one for each leaf_alloc\n%s", n, page)
	}
}

func TestUnreadablePoolsAreListed(t *testing.T) {
	other, err := sql.Open("mysql", "u@tcp(127.0.0.1:1)/d")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	dbs := map[string]*sql.DB{"shop0": openPool(t, "u@tcp(127.0.0.1:1)/d?leafTables=none"), "shop1": other}
	w := get(t, OfPools(dbs, "shops"), "/")
	wants(t, text(w), "1 to look at", "Pool shop1 ", "connection refused")
	if w.Code != 200 {
		t.Errorf("w.Code = %d, want 200", w.Code)
	}
	delete(dbs, "shop0")
	w = get(t, OfPools(dbs, "shops"), "/")
	wants(t, text(w), "Nothing can be told", "shop1: ", "connection refused")
	if w.Code != 503 {
		t.Errorf("w.Code = %d, want 503", w.Code)
	}
}
