package segment_test

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
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
