package statuspage

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/inspect"
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
	wants(t, text(w), "No statistics", "shop1: ", "connection refused")
	if n := strings.Count(text(w), "connection refused"); n != 1 {
		t.Errorf("page has the error of the only pool %d times, want once\n%s", n, text(w))
	}
	if w.Code != 503 {
		t.Errorf("w.Code = %d, want 503", w.Code)
	}
}

// TestFailedLookUpsDelayOnlyTheFirstRequest: only the first request waits for a pool if its server does not answer, and the pool is looked
// up again after a pause, without delaying a request.
func TestFailedLookUpsDelayOnlyTheFirstRequest(t *testing.T) {
	shop := openPool(t, "u@tcp(127.0.0.1:1)/d?leafTables=none")
	lookUp := inspect.Pool
	defer func() { inspect.Pool = lookUp }()
	connector, err := lookUp(shop)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		var answers atomic.Bool
		inspect.Pool = func(db *sql.DB) (sqldriver.Connector, error) {
			if db == shop {
				return connector, nil
			}
			attempts.Add(1)
			time.Sleep(5 * time.Second)
			if answers.Load() {
				return connector, nil
			}
			return nil, sqldriver.ErrBadConn
		}
		page := OfPools(map[string]*sql.DB{"shop": shop, "silent": new(sql.DB)}, "shops")
		for i, want := range []struct {
			pause, duration time.Duration
			attempts        int64
			problem         bool
		}{
			{0, 5*time.Second + firstLook, 1, true},
			{time.Second, 0, 1, true},
			{time.Second, 0, 1, true},
			{retryPause, 0, 2, true},
			{6 * time.Second, 0, 2, true},
			{retryPause, 0, 3, true},
			{6 * time.Second, 0, 3, false},
			{retryPause, 0, 3, false},
		} {
			time.Sleep(want.pause)
			answers.Store(i >= 5)
			start := time.Now()
			got := strings.Contains(text(get(t, page, "/")), "Pool silent "+sqldriver.ErrBadConn.Error())
			duration := time.Since(start)
			synctest.Wait()
			if duration != want.duration || attempts.Load() != want.attempts || got != want.problem {
				t.Errorf("request %d took %v after %d attempts and lists the pool: %v; want %v, %d, %v", i, duration, attempts.Load(), got, want.duration, want.attempts, want.problem)
			}
		}
	})
}

// TestDecoderIsHiddenIfLayoutsDiffer: an id is not decoded if the pools have several layouts.
func TestDecoderIsHiddenIfLayoutsDiffer(t *testing.T) {
	const dsn = "u@tcp(127.0.0.1:1)/d?leafTables=t:id:snowflake&leafWorker=static(7)"
	dbs := map[string]*sql.DB{"a": openPool(t, dsn), "b": openPool(t, dsn)}
	wants(t, text(get(t, OfPools(dbs, "shops"), "/?id=1234567890123456789")), "Decode a snowflake", "Read as")
	dbs["c"] = openPool(t, dsn+"&leafSnowflake=41-5-12")
	if page := text(get(t, OfPools(dbs, "shops"), "/?id=1234567890123456789")); strings.Contains(page, "Decode a snowflake") || strings.Contains(page, "Read as") {
		t.Errorf("page of pools with several layouts = %s, want no decoder", page)
	}
}
