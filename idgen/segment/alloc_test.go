package segment_test

import (
	"context"
	"errors"
	"math"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// A fetch is one round trip, a single message to the server, after the row was read once.
func TestAllocStoreFetchesInOneRoundTrip(t *testing.T) {
	through, _, proxy := storeOverProxy(t, 10)
	var sent atomic.Int64
	fetch(t, through, segment.Request{Tag: "a", N: 10, Step: 10})
	proxy.Filter(func(dir netfault.Direction, chunk []byte) netfault.Verdict {
		if dir == netfault.ToServer {
			sent.Add(1)
		}
		return netfault.Pass
	})
	var r segment.Range
	for i := range int64(20) {
		q := segment.Request{Tag: "a", N: 10, Step: 10, Seen: r.End}
		if i%2 > 0 { // with Raise too
			q.Raise, q.Floor = true, q.Seen+1
		}
		r = fetch(t, through, q)
		if n := sent.Load(); n != i+1 {
			t.Fatalf("%d messages for %d fetches, want n = %v", n, i+1, i+1)
		}
	}
}

// Tables with unusual definitions. A table is refused with each setting of the connection or with none, and a
// refused fetch moves no row.
func TestAllocStoreRefusesUnsafeTables(t *testing.T) {
	const key = "biz_tag varchar(128) PRIMARY KEY, "
	type oddTable struct {
		columns string
		options string // options of the table
		maxID   string
		step    string
		want    string // text in the error; "" if ranges are expected
		only    string // name of the only server for the case
	}
	cases := map[string]oddTable{
		"unsigned":         {columns: key + "max_id bigint unsigned, step int unsigned"},
		"unsigned end":     {columns: key + "max_id bigint unsigned, step int", maxID: "9223372036854775800", want: "used up"},
		"unsigned beyond":  {columns: key + "max_id bigint unsigned, step int", maxID: "18446744073709551610", want: "used up"},
		"end":              {columns: key + "max_id bigint, step int", maxID: "9223372036854775800", want: "used up"},
		"huge step":        {columns: key + "max_id bigint, step bigint", step: "2147483648", want: "step is 2147483648"},
		"step 0":           {columns: key + "max_id bigint, step int", step: "0", want: "step is 0"},
		"no step":          {columns: key + "max_id bigint, step int", step: "NULL", want: "step is NULL"},
		"no max_id":        {columns: key + "max_id bigint, step int", maxID: "NULL", want: "max_id is NULL"},
		"negative":         {columns: key + "max_id bigint, step int", maxID: "-5", want: "max_id is -5"},
		"far below":        {columns: key + "max_id bigint, step int", maxID: "-9223372036854775808", want: "max_id is -9223372036854775808"},
		"int":              {columns: key + "max_id int, step int", maxID: "2147483640", want: "of type INT"},
		"unsigned int":     {columns: key + "max_id int unsigned, step int", want: "INT"},
		"float":            {columns: key + "max_id float, step int", maxID: "16777217", want: "of type FLOAT"},
		"double":           {columns: key + "max_id double, step int", want: "of type DOUBLE"},
		"text":             {columns: key + "max_id varchar(20), step int", want: "of type VARCHAR"},
		"decimal":          {columns: key + "max_id decimal(20,2), step int", want: "of type DECIMAL"},
		"check":            {columns: key + "max_id bigint CHECK (max_id < 8), step int", want: "Error "},
		"case":             {columns: "BIZ_TAG varchar(128) PRIMARY KEY, MAX_ID bigint, STEP int"},
		"not transactions": {columns: key + "max_id bigint, step int", options: "ENGINE=MyISAM"},
		"aria":             {columns: key + "max_id bigint, step int", options: "ENGINE=Aria", only: "mariadb"},
		"versioned":        {columns: key + "max_id bigint, step int", options: "WITH SYSTEM VERSIONING", only: "mariadb"},
		"partitioned":      {columns: key + "max_id bigint, step int", options: "PARTITION BY KEY (biz_tag) PARTITIONS 4"},
		"latin1":           {columns: key + "max_id bigint, step int", options: "CHARSET=latin1"},
		"binary":           {columns: "biz_tag varbinary(128) PRIMARY KEY, max_id bigint, step int"},
	}
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"", "sql_mode=%27%27", "sql_mode=%27%27&clientFoundRows=true", "autocommit=0"} {
			db := pool(t, server.Database(t), params)
			plain := pool(t, mysqltest.WithDatabase(server.DSN(), databaseOf(t, db)), "")
			for name, c := range cases {
				t.Run(server.Name+"/"+params+"/"+name, func(t *testing.T) {
					if c.only != "" && c.only != server.Name {
						return
					}
					if name == "versioned" {
						server.SkipUnless(t, "WITH SYSTEM VERSIONING", 100304, 0)
					}
					maxID, step := c.maxID, c.step
					if maxID == "" {
						maxID = "5"
					}
					if step == "" {
						step = "10"
					}
					for _, text := range []string{"DROP TABLE IF EXISTS leaf_alloc", "CREATE TABLE leaf_alloc (" + c.columns + ") " + c.options,
						"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', " + maxID + ", " + step + "), ('b', 1, 1)"} {
						if _, err := plain.Exec(text); err != nil {
							t.Fatal(text, err)
						}
					}
					s := segment.NewAllocStore(db, "leaf_alloc")
					before := rowText(t, plain)
					for i := range int64(3) {
						r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10, Floor: 1})
						switch {
						case c.want == "" && (err != nil || r != (segment.Range{Start: 5 + 10*i, End: 15 + 10*i, Step: 10})):
							t.Fatal(r, err)
						case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || r != segment.Range{}):
							t.Fatal(r, err)
						case c.want != "" && strings.Contains(err.Error(), "1690"):
							t.Fatal(err)
						}
					}
					if after := rowText(t, plain); c.want != "" && after != before {
						t.Fatalf("row after a refused fetch = %s, want %s", after, before)
					}
				})
			}
		}
	}
}

func databaseOf(t *testing.T, db interface {
	Get(any, string, ...any) error
}) (name string) {
	t.Helper()
	if err := db.Get(&name, "SELECT DATABASE()"); err != nil {
		t.Fatal(err)
	}
	return name
}

func rowText(t *testing.T, db interface {
	Get(any, string, ...any) error
}) (text string) {
	t.Helper()
	if err := db.Get(&text, "SELECT COALESCE(GROUP_CONCAT(CONCAT(biz_tag, ' ', COALESCE(max_id, 'NULL')) ORDER BY biz_tag), '') FROM leaf_alloc"); err != nil {
		t.Fatal(err)
	}
	return text
}

// A tag with two rows, which is possible only without a key.
func TestAllocStoreRefusesTwoRowsOfATag(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"", "sql_select_limit=1"} {
			db := pool(t, server.Database(t), params)
			db.MustExec("CREATE TABLE leaf_alloc (biz_tag varchar(128), max_id bigint, step int)")
			db.MustExec("INSERT INTO leaf_alloc VALUES ('a', 5, 10), ('a', 99, 20)")
			s := segment.NewAllocStore(db, "leaf_alloc")
			for range 2 {
				if r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 20}); !isError[*segment.RowError](err) || r != (segment.Range{}) {
					t.Fatalf("%v %v: Fetch(segment.Request{Tag: \"a\", N: 20}) = %+v, %v, want a *segment.RowError and segment.Range{}", server.Name, params, r, err)
				}
			}
		}
	}
}

// No id is issued twice, whatever a trigger on the table does: the insert id of the UPDATE is 0 then, and the
// written number is read in a transaction.
func TestAllocStoreIsUniqueDespiteTriggers(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for name, c := range map[string]struct {
			trigger string
			refused bool
		}{
			"before":        {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO log (a) VALUES (1)", false},
			"after":         {"AFTER UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO log (a) VALUES (1), (2)", false},
			"insert id":     {"AFTER UPDATE ON leaf_alloc FOR EACH ROW SET @x = LAST_INSERT_ID(99)", false},
			"insert id old": {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET @x = LAST_INSERT_ID(OLD.max_id)", false},
			"other value":   {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET NEW.max_id = NEW.max_id + 5", true},
			"old value":     {"BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET NEW.max_id = OLD.max_id", true},
		} {
			t.Run(server.Name+"/"+name, func(t *testing.T) {
				for _, params := range []string{"", "clientFoundRows=true&sql_mode=%27%27"} {
					db := pool(t, server.Database(t), params)
					s := allocStore(t, db, "leaf_alloc")
					for _, text := range []string{"CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT=7", "CREATE TRIGGER tr " + c.trigger} {
						db.MustExec(text)
					}
					if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
						t.Fatal(err)
					}
					var ids idcheck.Collector
					r := ids.Recorder()
					times := 20
					if c.refused {
						times = 2
					}
					for range times {
						got, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10, Floor: 1})
						if c.refused != (err != nil) {
							t.Fatalf("Fetch(segment.Request{Tag: \"a\", N: 10, Step: 10, Floor: 1}) = %+v, %v, want c.refused = %v", got, err, err != nil)
						}
						if err == nil {
							r.Add(got.Start, int(got.End-got.Start))
						}
					}
					if c.refused {
						continue
					}
					report := ids.Verify(t)
					row, err := s.Row(t.Context(), "a")
					if err != nil || row.MaxID != report.Max+1 || report.Missing > 10 { // the first range is lost
						t.Fatalf("Row(\"a\") = %+v, %v with report = %v, want MaxID = %v, report.Missing at most 10 and no error", row, err, report, report.Max+1)
					}
				}
			})
		}
	}
}

func TestAllocStoreReadsAndAddsRows(t *testing.T) {
	ctx := t.Context()
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			db := pool(t, server.Database(t), "")
			s := allocStore(t, db, databaseOf(t, db)+".odd `table`")
			if err := s.Create(ctx); err != nil {
				t.Fatalf("a second Create: %v", err)
			}
			if _, err := s.Row(ctx, "a"); !isError[*segment.UnknownTagError](err) {
				t.Fatal(err)
			}
			if err := s.Ensure(ctx, "a", 500, 1000); err != nil {
				t.Fatal(err)
			}
			for _, maxID := range []int64{1, 9999} { // neither lowers nor raises the row
				if err := s.Ensure(ctx, "a", maxID, 7); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Ensure(ctx, "b", 1, 0); !isError[*segment.RowError](err) {
				t.Fatal(err)
			}
			if err := s.Ensure(ctx, strings.Repeat("x", 129), 1, 1); err == nil || !strings.HasPrefix(err.Error(), "leafsql: ") {
				t.Fatalf("a tag that does not fit the column: %v, want an error with prefix \"leafsql: \"", err)
			}
			if err := s.Ensure(ctx, strings.Repeat("é", 128), 1, 1); err != nil {
				t.Fatal(err)
			}
			if row, err := s.Row(ctx, "a"); err != nil || row != (segmenttest.Row{Tag: "a", MaxID: 500, Step: 1000}) {
				t.Fatalf("Row(\"a\") = %+v, %v, want segmenttest.Row{Tag: \"a\", MaxID: 500, Step: 1000} and no error", row, err)
			}
			if r := fetch(t, s, segment.Request{Tag: "a", N: 1000}); r != (segment.Range{Start: 500, End: 1500, Step: 1000}) {
				t.Fatalf("fetch(s, segment.Request{Tag: \"a\", N: 1000}) = %+v, want segment.Range{Start: 500, End: 1500, Step: 1000}", r)
			}
			rows, err := s.Tags(ctx)
			if err != nil || len(rows) != 2 || rows[0] != (segmenttest.Row{Tag: "a", MaxID: 1500, Step: 1000}) {
				t.Fatalf("Tags() = %+v, %v, want 2 rows, rows[0] = segmenttest.Row{Tag: \"a\", MaxID: 1500, Step: 1000} and no error", rows, err)
			}
			var stamped bool
			if err := db.Get(&stamped, "SELECT update_time > '2000-01-01' AND description LIKE 'leafsql@________________ 0 0' FROM `odd ``table``` WHERE biz_tag='a'"); err != nil || !stamped {
				t.Fatalf("%v: Get(…) = %v, want stamped = true and no error", stamped, err)
			}
		})
	}
}

// The table can store tags with any letters, independently of the database's character set. It is queried
// before it is created: the right to CREATE is needed only once.
func TestAllocStoreCreatesItsTable(t *testing.T) {
	ctx := t.Context()
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			dsn := server.Database(t)
			db := pool(t, dsn, "multiStatements=true")
			name := databaseOf(t, db)
			db.MustExec("ALTER DATABASE " + name + " CHARACTER SET latin1")
			s := allocStore(t, db, "leaf_alloc")
			for _, tag := range []string{"订单", "😀", "Orders"} {
				if err := s.Ensure(ctx, tag, 1, 10); err != nil {
					t.Fatal(err)
				}
				fetch(t, s, segment.Request{Tag: tag, N: 10})
			}
			// On most servers, Leaf's own table treats these tags as equal too. They share a row.
			if err := s.Ensure(ctx, "ORDERS", 1, 10); err != nil {
				t.Fatal(err)
			}
			if r := fetch(t, s, segment.Request{Tag: "ORDERS", N: 10}); r.Start != 11 {
				t.Fatalf("fetch(s, segment.Request{Tag: \"ORDERS\", N: 10}) = %+v, want Start = 11", r)
			}

			user := "u" + name[len(name)-12:]
			db.MustExec("CREATE USER " + user + "; GRANT SELECT, UPDATE ON " + name + ".leaf_alloc TO " + user)
			t.Cleanup(func() { db.Exec("DROP USER " + user) })
			poor := segment.NewAllocStore(pool(t, strings.Replace(dsn, "root@", user+"@", 1), ""), "leaf_alloc")
			if err := poor.Create(ctx); err != nil {
				t.Fatal(err)
			}
			fetch(t, poor, segment.Request{Tag: "订单", N: 10})
			db.MustExec("DROP TABLE leaf_alloc")
			if err := poor.Create(ctx); err == nil || !strings.HasPrefix(err.Error(), "leafsql: create `leaf_alloc`: ") || !strings.Contains(err.Error(), "1142") {
				t.Fatal(err)
			}
		})
	}
}

// TestLookReturnsTheMovedRow: Look on a row that was just added returns the row as other processes have moved it
// since.
func TestLookReturnsTheMovedRow(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		s, other := allocStore(t, pool(t, dsn, ""), "leaf_alloc"), segment.NewAllocStore(pool(t, dsn, ""), "leaf_alloc")
		if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
			t.Fatal(err)
		}
		taken := fetch(t, other, segment.Request{Tag: "a", N: 10, Step: 10})
		if r := fetch(t, s, segment.Request{Tag: "a"}); r.Start != taken.End {
			t.Errorf("%s: Fetch() = %+v without ids after another process has fetched %+v, want r.Start = %v", server.Name, r, taken, taken.End)
		}
	}
}

// Many processes start concurrently.
func TestAllocStoreIsCreatedConcurrently(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		var wg sync.WaitGroup
		for range 12 {
			s := segment.NewAllocStore(pool(t, dsn, ""), "leaf_alloc")
			wg.Go(func() {
				if err := errors.Join(s.Create(t.Context()), s.Ensure(t.Context(), "a", 1, 10)); err != nil {
					t.Error(server.Name, err)
				}
			})
		}
		wg.Wait()
	}
}

var statement = regexp.MustCompile("(INSERT|UPDATE|ALTER) .*")

// The SQL in the errors fixes the row, so it must run.
func TestAllocStoreHintsFixTheRow(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			db := pool(t, server.Database(t), "")
			s := allocStore(t, db, "leaf_alloc")
			const tag = "o'clock"
			q := segment.Request{Tag: tag, N: 10}
			mend := func(q segment.Request) {
				t.Helper()
				r, err := s.Fetch(t.Context(), q)
				if err == nil {
					t.Fatalf("Fetch(q) = %+v, want an error", r)
				}
				text := statement.FindString(err.Error())
				text = strings.ReplaceAll(strings.ReplaceAll(text, "<highest id + 1>", "1"), "<highest id in all tables and shards of this tag>", "200000")
				if _, err := db.Exec(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
			mend(q)
			if r := fetch(t, s, q); r.Start != 1 {
				t.Fatalf("fetch(s, q) = %+v, want Start = 1", r)
			}
			q.Seen = 123456
			db.MustExec("UPDATE leaf_alloc SET description = 'leafsql@off'") // otherwise the row moves up by itself
			mend(q)
			if r := fetch(t, s, q); r.Start < 200_000+1<<36 { // above the ids that others may hold
				t.Fatalf("fetch(s, q) = %+v, want Start at least 200_000+1<<36", r)
			}
			q.Seen = 0
			for _, spoil := range []string{
				"UPDATE leaf_alloc SET max_id = -123456", "UPDATE leaf_alloc SET step = -3",
				"ALTER TABLE leaf_alloc MODIFY max_id INT", "ALTER TABLE leaf_alloc MODIFY max_id DOUBLE",
			} {
				db.MustExec(spoil)
				mend(segment.Request{Tag: tag})
				fetch(t, s, q)
			}
			db.MustExec("ALTER TABLE leaf_alloc CONVERT TO CHARACTER SET latin1")
			q.Tag = "订单"
			mend(q)
			mend(q)
			fetch(t, s, q)
		})
	}
}

// A row that another session has locked makes a fetch wait, but not longer than its context.
func TestAllocStoreWaitsForALockedRow(t *testing.T) {
	db := pool(t, mysqltest.Database(t), "")
	s := allocStore(t, db, "leaf_alloc")
	if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
		t.Fatal(err)
	}
	fetch(t, s, segment.Request{Tag: "a", N: 100})
	tx := db.MustBegin()
	tx.MustExec("UPDATE leaf_alloc SET max_id = max_id + 100")
	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		r   segment.Range
		err error
	}
	given, patient := make(chan result, 1), make(chan result, 1)
	go func() { r, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 10}); given <- result{r, err} }()
	go func() { r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10}); patient <- result{r, err} }()
	cancel()
	if got := <-given; got.err == nil {
		t.Fatalf("got = %+v, want an error", got)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	// The canceled fetch may have taken its range or not.
	if got := <-patient; got.err != nil || got.r.Start != 201 && got.r.Start != 211 {
		t.Fatalf("got = %+v, want no error and (got.r.Start = 201 or got.r.Start = 211)", got)
	}
}

// If the server gives up waiting for a lock, the fetch waits for it again.
func TestAllocStoreRetriesAfterALockTimeout(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db := pool(t, server.Database(t), "innodb_lock_wait_timeout=1")
			s := allocStore(t, db, "waited_for")
			if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
				t.Fatal(err)
			}
			fetch(t, s, segment.Request{Tag: "a", N: 10})
			tx := db.MustBegin()
			defer tx.Rollback()
			tx.MustExec("UPDATE waited_for SET step = 20")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := make(chan error)
			go func() {
				_, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 20})
				done <- err
			}()
			waits := map[string]bool{} // key: beginning of the wait
			for len(waits) < 2 {
				var began []string
				if err := db.SelectContext(ctx, &began, "SELECT CONCAT(trx_wait_started) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE 'UPDATE `waited_for`%'"); err != nil {
					t.Fatal(err)
				}
				for _, at := range began {
					waits[at] = true
				}
				time.Sleep(150 * time.Millisecond) // the server updates the table only if it was not read for 100 ms
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A pool without connections and a missing table cause an immediate error.
func TestAllocStoreFailsImmediately(t *testing.T) {
	took := stopwatch.Start(t)
	db := pool(t, "root@tcp(127.0.0.1:1)/shop", "")
	if _, err := segment.NewAllocStore(db, "leaf_alloc").Fetch(t.Context(), segment.Request{Tag: "a", N: 1}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Fatal(err)
	}
	db = pool(t, mysqltest.Database(t), "")
	if _, err := segment.NewAllocStore(db, "leaf_alloc").Fetch(t.Context(), segment.Request{Tag: "a", N: 1}); err == nil || !strings.Contains(err.Error(), "1146") {
		t.Fatal(err)
	}
	if took() > 4*time.Second { // less than another attempt would take
		t.Fatalf("took() = %v, want at most 4*time.Second", took())
	}
}

// Numbers above 2^53 and 2^62 are exact, whatever type the server uses to add them.
func TestAllocStoreAddsLargeNumbersExactly(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := pool(t, server.Database(t), "")
		for _, column := range []string{"BIGINT", "BIGINT UNSIGNED"} {
			db.MustExec("DROP TABLE IF EXISTS leaf_alloc")
			db.MustExec("CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id " + column + ", step INT)")
			db.MustExec("INSERT INTO leaf_alloc VALUES ('a', 1, 10)")
			s := segment.NewAllocStore(db, "leaf_alloc")
			seen := int64(0)
			for _, floor := range []int64{1<<53 + 1, 1<<62 + 1, math.MaxInt64 - 31} {
				for _, q := range []segment.Request{{N: 10, Floor: floor, Raise: true}, {N: 11, Floor: floor}} {
					q.Tag, q.Seen = "a", seen
					want := segment.Range{Start: max(floor, seen), Step: 10}
					want.End = want.Start + q.N
					r, err := s.Fetch(t.Context(), q)
					row, rerr := s.Row(t.Context(), "a")
					if err != nil || rerr != nil || r != want || row.MaxID != want.End {
						t.Fatalf("%v %v %v %v %v: Row(\"a\") = %+v, %+v, want no error, r = %v, MaxID = %v and no error", server.Name, column, q, r, err, row, rerr, want, want.End)
					}
					seen = r.End
				}
			}
		}
	}
}

// Exhausted, with the largest possible request.
func TestAllocStoreReturnsErrExhausted(t *testing.T) {
	db := pool(t, mysqltest.Database(t), "")
	s := allocStore(t, db, "leaf_alloc")
	if err := s.Ensure(t.Context(), "a", math.MaxInt64-math.MaxInt32, 10); err != nil {
		t.Fatal(err)
	}
	for _, q := range []segment.Request{{Tag: "a", N: math.MaxInt32, Floor: math.MaxInt64}, {Tag: "a", N: math.MaxInt32, Floor: math.MaxInt64 - math.MaxInt32 + 1}} {
		if r, err := s.Fetch(t.Context(), q); !errors.Is(err, idgen.ErrExhausted) {
			t.Fatalf("Fetch(q) = %+v, %v, want idgen.ErrExhausted", r, err)
		}
	}
	if r := fetch(t, s, segment.Request{Tag: "a", N: math.MaxInt32}); r.End != math.MaxInt64 {
		t.Fatalf("fetch(s, segment.Request{Tag: \"a\", N: math.MaxInt32}) = %+v, want End = math.MaxInt64", r)
	}
	if r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 1}); !errors.Is(err, idgen.ErrExhausted) {
		t.Fatalf("Fetch(segment.Request{Tag: \"a\", N: 1}) = %+v, %v, want idgen.ErrExhausted", r, err)
	}
}

// TestAllocStoreRefusesARowOfSeveralStores: a row of one store of several gives no ids, even if it has a step, and
// even to a process that drew from it before.
func TestAllocStoreRefusesARowOfSeveralStores(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			db := pool(t, server.Database(t), "")
			db.MustExec("CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int, description varchar(256))")
			db.MustExec("INSERT INTO leaf_alloc VALUES ('a', 5, 10, 'mine')")
			s := segment.NewAllocStore(db, "leaf_alloc")
			fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10})
			db.MustExec("UPDATE leaf_alloc SET step = 0, max_id = 100000001, description = 'leafsql: store 2 of 3, blocks of 100000000, step 10, life ab, set cd'")
			for range 2 {
				if r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err == nil || !strings.Contains(err.Error(), "store 2 of 3") {
					t.Errorf("Fetch(segment.Request{Tag: \"a\", N: 10, Step: 10}) = %+v, %v, want an error with \"store 2 of 3\"", r, err)
				}
				db.MustExec("UPDATE leaf_alloc SET step = 10")
			}
		})
	}
}

// A user may have rights only on the columns that ids need.
func TestAllocStoreWorksWithColumnRights(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			dsn := server.Database(t)
			db := pool(t, dsn, "")
			name := databaseOf(t, db)
			user := "c" + name[len(name)-12:]
			for _, text := range []string{
				"CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int, description varchar(256))",
				"INSERT INTO leaf_alloc VALUES ('a', 5, 10, 'mine')",
				"CREATE USER " + user,
				"GRANT SELECT (biz_tag, max_id, step), UPDATE (max_id) ON " + name + ".leaf_alloc TO " + user,
			} {
				db.MustExec(text)
			}
			t.Cleanup(func() { db.Exec("DROP USER " + user) })
			s := segment.NewAllocStore(pool(t, strings.Replace(dsn, "root@", user+"@", 1), ""), "leaf_alloc")
			if r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err != nil || r.Start != 5 {
				t.Errorf("Fetch(segment.Request{Tag: \"a\", N: 10, Step: 10}) = %+v, %v, want Start = 5 and no error", r, err)
			}
			if m, err := s.Marks(t.Context()); len(m.Broken) > 0 || err != nil {
				t.Errorf("Marks() = %+v, %v, want no m.Broken and no error", m, err)
			}
		})
	}
}
