package segment_test

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestMemory(t *testing.T) {
	segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture {
		m := segmenttest.NewMemory()
		return segmenttest.Fixture{
			Store:  m,
			Put:    func(row segment.Row) error { m.Put(row); return nil },
			Delete: func(tag string) error { m.Delete(tag); return nil },
		}
	})
}

// pool opens dsn with further parameters.
func pool(t testing.TB, dsn, params string) *sqlx.DB {
	t.Helper()
	if params != "" {
		sep := "?"
		if strings.Contains(dsn, "?") {
			sep = "&"
		}
		dsn += sep + params
	}
	db, err := sqlx.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// allocStore creates a table of its own.
func allocStore(t testing.TB, db *sqlx.DB, table string) *segment.AllocStore {
	t.Helper()
	s := segment.NewAllocStore(db, table)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAllocStore(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		isolation := "transaction_isolation"
		if server.Name == "mariadb" {
			isolation = "tx_isolation"
		}
		for name, params := range map[string]string{
			"default":         "",
			"found rows":      "clientFoundRows=true&interpolateParams=true",
			"read committed":  isolation + "=%27READ-COMMITTED%27&sql_mode=%27%27",
			"repeatable read": isolation + "=%27REPEATABLE-READ%27&autocommit=0",
			"serializable":    isolation + "=%27SERIALIZABLE%27&sql_mode=%27ANSI_QUOTES,STRICT_ALL_TABLES%27",
		} {
			t.Run(server.Name+"/"+name, func(t *testing.T) {
				segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture {
					db := pool(t, server.Database(t), params)
					return segmenttest.Fixture{
						Store: allocStore(t, db, "leaf_alloc"),
						Put: func(row segment.Row) error {
							return commit(db, "REPLACE INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, ?, ?)", row.Tag, row.MaxID, row.Step)
						},
						Delete: func(tag string) error { return commit(db, "DELETE FROM leaf_alloc WHERE biz_tag = ?", tag) },
					}
				})
			})
		}
	}
}

func commit(db *sqlx.DB, text string, args ...any) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(text, args...); err != nil {
		return err
	}
	return tx.Commit()
}

func TestAllocStoreRows(t *testing.T) {
	ctx := t.Context()
	dsn := mysqltest.Database(t)
	db := pool(t, dsn, "")
	var name string
	if err := db.Get(&name, "SELECT DATABASE()"); err != nil {
		t.Fatal(err)
	}
	s := allocStore(t, db, name+".odd `table`")
	if err := s.Create(ctx); err != nil {
		t.Fatalf("a second Create: %v", err)
	}
	if _, err := s.Row(ctx, "a"); !is[*segment.UnknownTagError](err) {
		t.Fatal(err)
	}
	if err := s.Ensure(ctx, "a", 500, 1000); err != nil {
		t.Fatal(err)
	}
	for _, maxID := range []int64{1, 9999} { // neither lowers nor raises
		if err := s.Ensure(ctx, "a", maxID, 7); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ensure(ctx, "b", 1, 0); !is[*segment.StepError](err) {
		t.Fatal(err)
	}
	if err := s.Ensure(ctx, strings.Repeat("x", 129), 1, 1); err == nil {
		t.Fatal("a tag that does not fit the column")
	}
	if err := s.Ensure(ctx, strings.Repeat("é", 128), 1, 1); err != nil {
		t.Fatal(err)
	}
	if row, err := s.Row(ctx, "a"); err != nil || row != (segment.Row{Tag: "a", MaxID: 500, Step: 1000}) {
		t.Fatal(row, err)
	}
	if r, err := s.Fetch(ctx, "a", 1, 0); err != nil || r != (segment.Range{Start: 500, End: 1500, Step: 1000}) {
		t.Fatal(r, err)
	}
	rows, err := s.Tags(ctx)
	if err != nil || len(rows) != 2 || rows[0] != (segment.Row{Tag: "a", MaxID: 1500, Step: 1000}) {
		t.Fatal(rows, err)
	}
	var stamped bool
	if err := db.Get(&stamped, "SELECT update_time > '2000-01-01' AND description IS NULL FROM `odd ``table``` WHERE biz_tag='a'"); err != nil || !stamped {
		t.Fatal(stamped, err)
	}
}

var statement = regexp.MustCompile("(INSERT|UPDATE) .*")

// The errors carry SQL that mends the row; it must run.
func TestAllocStoreWayOut(t *testing.T) {
	ctx := t.Context()
	db := pool(t, mysqltest.Database(t), "")
	s := allocStore(t, db, "leaf_alloc")
	mend := func(err error) {
		t.Helper()
		msg := err.Error()
		text := strings.ReplaceAll(statement.FindString(msg), "<highest id + 1>", "1")
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", msg, err)
		}
	}
	const tag = "o'clock"
	_, err := s.Fetch(ctx, tag, 1, 0)
	mend(err)
	if _, err := s.Fetch(ctx, tag, 1, 0); err != nil {
		t.Fatal(err)
	}
	_, err = s.Fetch(ctx, tag, 1, 123456)
	mend(err)
	if r, err := s.Fetch(ctx, tag, 1, 123456); err != nil || r.Start != 123456 {
		t.Fatal(r, err)
	}
	db.MustExec("UPDATE leaf_alloc SET max_id = -123456")
	_, err = s.Fetch(ctx, tag, 1, 0)
	mend(err)
	if r, err := s.Fetch(ctx, tag, 1, 0); err != nil || r.Start != 1 {
		t.Fatal(r, err)
	}
	db.MustExec("UPDATE leaf_alloc SET step = -3")
	_, err = s.Fetch(ctx, tag, 1, 0)
	mend(err)
	if _, err = s.Fetch(ctx, tag, 1, 0); err != nil {
		t.Fatal(err)
	}
}

// Tables as people have altered them.
func TestAllocStoreOddTables(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		columns string
		maxID   uint64
		step    int64
		want    string
	}{
		"unsigned end":  {"biz_tag varchar(128) PRIMARY KEY, max_id bigint unsigned, step int", math.MaxInt64 - 5, 10, "used up"},
		"unsigned gone": {"biz_tag varchar(128) PRIMARY KEY, max_id bigint unsigned, step int", math.MaxUint64 - 5, 10, "used up"},
		"unsigned":      {"biz_tag varchar(128) PRIMARY KEY, max_id bigint unsigned, step int unsigned", 5, 10, ""},
		"huge step":     {"biz_tag varchar(128) PRIMARY KEY, max_id bigint, step bigint", 5, segment.MaxRowStep + 1, "step 2147483648"},
		"int max_id":    {"biz_tag varchar(128) PRIMARY KEY, max_id int, step int", math.MaxInt32 - 5, 10, "Out of range"},
		"null step":     {"biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int", 5, 0, "NULL"},
		"no key":        {"biz_tag varchar(128), max_id bigint, step int", 5, 10, "2 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			db := pool(t, mysqltest.Database(t), "")
			db.MustExec("CREATE TABLE leaf_alloc (" + c.columns + ")")
			step := fmt.Sprint(c.step)
			if c.step == 0 {
				step = "NULL"
			}
			db.MustExec("INSERT INTO leaf_alloc VALUES ('a', ?, "+step+")", c.maxID)
			if name == "no key" {
				db.MustExec("INSERT INTO leaf_alloc VALUES ('a', 99, 10)")
			}
			r, err := segment.NewAllocStore(db, "leaf_alloc").Fetch(ctx, "a", 1, 0)
			switch {
			case c.want == "" && (err != nil || r != (segment.Range{Start: 5, End: 15, Step: 10})):
				t.Fatal(r, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatal(r, err)
			}
			var maxID uint64
			if err := db.Get(&maxID, "SELECT MIN(max_id) FROM leaf_alloc"); err != nil || c.want != "" && maxID != c.maxID {
				t.Fatalf("a refused fetch left max_id %d, %v", maxID, err)
			}
		})
	}
}

// On a table without transactions a fetch reads what others wrote meanwhile: it must
// notice, since such a range is somebody else's.
func TestAllocStoreWithoutTransactions(t *testing.T) {
	db := pool(t, mysqltest.Database(t), "")
	db.MustExec("CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int) ENGINE=MyISAM")
	s := segment.NewAllocStore(db, "leaf_alloc")
	if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
		t.Fatal(err)
	}
	var ids idcheck.Collector
	var wg sync.WaitGroup
	for range 16 {
		r := ids.Recorder()
		wg.Go(func() {
			for range 100 {
				got, err := s.Fetch(t.Context(), "a", 1, 0)
				switch {
				case err == nil:
					r.Add(got.Start, int(got.End-got.Start))
				case !strings.Contains(err.Error(), "InnoDB"):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ids.Verify(t)
}

// A row that is locked by somebody else makes a fetch wait, no longer than its context.
func TestAllocStoreLocked(t *testing.T) {
	db := pool(t, mysqltest.Database(t), "")
	s := allocStore(t, db, "leaf_alloc")
	if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
		t.Fatal(err)
	}
	tx := db.MustBegin()
	tx.MustExec("UPDATE leaf_alloc SET max_id = max_id + 100")
	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		r   segment.Range
		err error
	}
	given, patient := make(chan result, 1), make(chan result, 1)
	go func() { r, err := s.Fetch(ctx, "a", 1, 0); given <- result{r, err} }()
	go func() { r, err := s.Fetch(t.Context(), "a", 1, 0); patient <- result{r, err} }()
	cancel()
	if got := <-given; got.err == nil {
		t.Fatal(got)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	// Whether the one that gave up had taken its range is open.
	if got := <-patient; got.err != nil || got.r.Start != 101 && got.r.Start != 111 {
		t.Fatal(got)
	}
}
