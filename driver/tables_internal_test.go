package driver

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// openCounting opens a pool and counts its statements, including those of internal
// pools.
func openCounting(t *testing.T, rules string, setup ...string) (db *sql.DB, c *Connector, sent *atomic.Int64) {
	t.Helper()
	setup = append(setup, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL)")
	for _, s := range slices.Clone(setup) {
		if name, ok := strings.CutPrefix(s, "CREATE TABLE "); ok {
			name, _, _ = strings.Cut(name, " ")
			setup = append(setup, "INSERT INTO leaf_alloc VALUES ('"+name+"', 1, 1000)")
		}
	}
	sent = new(atomic.Int64)
	db, c = openRecorded(t, mysqltest.Database(t), "leafTables="+rules, setup, func(inner driver.Connector) recording { return counting(inner, sent) })
	return db, c, sent
}

// TestTemporaryTablesCostNothing: temporary tables of other sessions must not make
// connections look up anything again.
func TestTemporaryTablesCostNothing(t *testing.T) {
	db, _, sent := openCounting(t, "t", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	db.SetMaxIdleConns(4)
	if _, err := db.Exec("INSERT INTO t (a) VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	before := sent.Load()
	var wg sync.WaitGroup
	const inserts = 250
	for g := range 4 {
		wg.Go(func() {
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Errorf("error %v, want none", err)
				return
			}
			defer c.Close()
			for i := range inserts {
				text := fmt.Sprintf("INSERT INTO t (a) VALUES (%d)", g)
				if i%10 == 0 {
					text = fmt.Sprintf("CREATE TEMPORARY TABLE x%d_%d (a INT)", g, i)
				}
				if _, err := c.ExecContext(t.Context(), text); err != nil {
					t.Errorf("%s: error %v, want none", text, err)
				}
			}
		})
	}
	wg.Wait()
	// A few statements are for connecting and for ids.
	if extra := sent.Load() - before - 4*inserts; extra > 4*inserts*3/100 {
		t.Errorf("%d statements, want at most %d for %d of the application", 4*inserts+extra, 4*inserts*103/100, 4*inserts)
	}
}

// TestUseMakesTheDatabaseKnown: after a USE that failed, leafsql queries the database in use. After one that succeeded it
// does not.
func TestUseMakesTheDatabaseKnown(t *testing.T) {
	dsn := mysqltest.Database(t)
	var queries atomic.Int64
	db, _ := openRecorded(t, dsn, "leafTables=t&leafCreate=true", []string{"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)"}, func(inner driver.Connector) recording {
		return recording{Connector: inner, sent: func(text string) {
			if strings.Contains(text, "DATABASE()") {
				queries.Add(1)
			}
		}}
	})
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	use := "USE " + dsn[strings.LastIndexByte(dsn, '/')+1:]
	for _, tt := range []struct {
		texts []string
		want  int64
	}{{[]string{"USE no_such_database"}, 1}, {[]string{"USE no_such_database", use}, 0}} {
		for _, text := range tt.texts {
			_, err := c.ExecContext(t.Context(), text)
			if (err == nil) != (text == use) {
				t.Fatalf("%s: error %v, want none only for the test's database", text, err)
			}
		}
		before := queries.Load()
		if _, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		if got := queries.Load() - before; got != tt.want {
			t.Errorf("after %q, an INSERT queried the database %d times, want %d", tt.texts, got, tt.want)
		}
	}
}

// TestTablesAreLookedUpOnce: tables are looked up once, however many connections need them,
// and one query refreshes a hundred of them.
func TestTablesAreLookedUpOnce(t *testing.T) {
	const tables, conns = 120, 16
	setup := make([]string, tables)
	for i := range setup {
		setup[i] = fmt.Sprintf("CREATE TABLE t%d (id BIGINT PRIMARY KEY, a INT)", i)
	}
	db, c, sent := openCounting(t, "*", setup...)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	run := func() int64 {
		before := sent.Load()
		var wg sync.WaitGroup
		for range conns {
			wg.Go(func() {
				for i := range tables {
					if _, err := db.Exec(fmt.Sprintf("INSERT INTO t%d (a) VALUES (1)", i)); err != nil {
						t.Errorf("INSERT: error %v, want none", err)
					}
				}
			})
		}
		wg.Wait()
		return sent.Load() - before - conns*tables
	}
	// The columns, the highest key, the row, which the generator caches, and two
	// fetches.
	each, refresh := int64(5), int64(3)
	if readsRights(t, db) {
		each, refresh = each+6, 2*refresh
	}
	if extra := run(); extra > each*tables+3*conns {
		t.Errorf("%d internal statements for the first use of %d tables, want at most %d", extra, tables, each*tables+3*conns)
	}
	schema := c.tables.Schema.Load()
	before := sent.Load()
	for range 3 {
		if err := c.tables.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
	if n := sent.Load() - before; n > 3*refresh*(tables/perQuery+1) {
		t.Errorf("%d statements to refresh %d tables three times, want at most %d", n, tables, 3*refresh*(tables/perQuery+1))
	}
	if c.tables.Schema.Load() != schema {
		t.Error("plans were dropped without a change, want the same schema")
	}
	if extra := run(); extra > tables {
		t.Errorf("%d internal statements after the refresh, want at most %d", extra, tables)
	}
}

// TestRepeatedLookupKeepsFreeIDs: a table that is looked up again continues with the ids in
// memory, also if rows above them have ids that other processes fetched. Ids that rows
// have are skipped.
func TestRepeatedLookupKeepsFreeIDs(t *testing.T) {
	db, c, sent := openCounting(t, "t", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	other, err := sql.Open("mysql", c.cfg.MySQL.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	insert := func() int64 {
		t.Helper()
		res, err := db.Exec("INSERT INTO t (a) VALUES (1)")
		if err != nil {
			t.Fatal(err)
		}
		id, err := res.LastInsertId()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	moreOfRights := int64(0)
	if readsRights(t, db) {
		moreOfRights = 7
	}
	for want := int64(1); want <= 20; want++ { // the second range, up to 1016, is in memory
		if id := insert(); id != want {
			t.Fatalf("LastInsertId() = %d, want %d", id, want)
		}
	}
	for i, step := range []struct {
		row       int64 // key of a row that another process inserts
		id, extra int64
	}{
		{0, 21, 3},      // columns, the highest key, the row
		{5000, 22, 4},   // and the highest key in memory
		{300, 301, 4},   // ids from 301 on are free
		{1016, 5001, 5}, // no id is free: a range is fetched
	} {
		if step.row > 0 {
			if _, err := other.Exec("INSERT INTO t VALUES (?, 2)", step.row); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Exec("UPDATE leaf_alloc SET max_id = GREATEST(max_id, ? + 1)", step.row); err != nil {
				t.Fatal(err)
			}
		}
		c.tables.Forget(func(catalog.Name) bool { return true })
		before := sent.Load()
		id := insert()
		if extra := sent.Load() - before - 1; id != step.id || extra > step.extra+moreOfRights {
			t.Errorf("step %d: LastInsertId() = %d after %d internal statements, want %d after %d", i, id, extra, step.id, step.extra)
		}
	}
}

// perQuery is the number of tables that package catalog refreshes in one query.
const perQuery = 100

// TestRefreshFindsChanges: an ALTER by another client that only moves columns causes
// no error, so the refresh has to find it.
func TestRefreshFindsChanges(t *testing.T) {
	db, c, _ := openCounting(t, "t,u", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b INT)", "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)")
	other, err := sql.Open("mysql", c.cfg.MySQL.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	exec := func(db *sql.DB, text string) {
		t.Helper()
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	exec(db, "INSERT INTO t VALUES (NULL, 1, 2)")
	exec(db, "INSERT INTO u VALUES (NULL, 1)")
	known := func() any {
		t, _ := c.tables.Schema.Load().Lookup(t.Context(), c.tables.NormalizeName(c.tables.DefaultDB, "u"))
		return t
	}
	kept := known()
	exec(other, "ALTER TABLE t MODIFY b INT AFTER id")
	if err := c.tables.Refresh(); err != nil {
		t.Fatal(err)
	}
	exec(db, "INSERT INTO t VALUES (NULL, 2, 1)")
	var wrong int
	if err := db.QueryRow("SELECT COUNT(*) FROM t WHERE a <> 1 OR b <> 2").Scan(&wrong); err != nil || wrong > 0 {
		t.Errorf("%d rows have a value of another column, error %v; want 0", wrong, err)
	}
	if known() != kept {
		t.Error("another table was evicted, want it cached")
	}
}
