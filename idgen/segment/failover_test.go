package segment_test

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/serverid"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// another is the mark of another server, on which the row was used before.
const another = "leafsql@00112233445566ff"

// description returns the description of tag a.
func description(t *testing.T, db *sqlx.DB) (text string) {
	t.Helper()
	if err := db.Get(&text, "SELECT COALESCE(description, 'NULL') FROM leaf_alloc WHERE biz_tag = 'a'"); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMarkOfAnotherServerMovesTheRow: a fetch on a server that is not the one in the mark moves the row up by a margin, once, and the
// user's text is kept. Rows of other tags do not change.
func TestMarkOfAnotherServerMovesTheRow(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			db := pool(t, server.Database(t), "")
			s := allocStore(t, db, "leaf_alloc")
			db.MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('a', 100, 10, '订单'), ('b', 100, 10, '" + another + " 0 0')")
			if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10}); r != (segment.Range{Start: 100, End: 110, Step: 10}) {
				t.Fatalf("Fetch() = %+v without a mark, want segment.Range{Start: 100, End: 110, Step: 10}", r)
			}
			first := description(t, db)
			if text, ok := strings.CutPrefix(first, "订单 leafsql@"); !ok || !strings.HasSuffix(text, " 0 0") {
				t.Fatalf("the description is %q, want ok = true and suffix \" 0 0\"", first)
			}
			if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10, Seen: 110}); r != (segment.Range{Start: 110, End: 120, Step: 10}) || description(t, db) != first {
				t.Fatalf("Fetch() = %+v with the mark of its server, %s, want r = segment.Range{Start: 110, End: 120, Step: 10} and description(t, db) = %v", r, description(t, db), first)
			}
			for _, highest := range []int64{0, math.MaxInt32, math.MaxInt16} {
				db.MustExec("UPDATE leaf_alloc SET max_id = 50, description = '订单 " + another + " 0 0' WHERE biz_tag = 'a'")
				least := map[int64]int64{0: 1 << 36, math.MaxInt32: 33_000_000, math.MaxInt16: 4078}[highest]
				r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10, Seen: 120, Highest: highest})
				if r.Start < 120+least || r.Start > 120+2*least+2_000_000 || r.End != r.Start+10 || r.Jumped < least {
					t.Errorf("Fetch() = %+v with another mark, highest %d, want r.Start at least %v, r.Start at most %v, r.End = %v and r.Jumped at least %v", r, highest, 120+least, 120+2*least+2_000_000, r.Start+10, least)
				}
				if text := description(t, db); strings.HasPrefix(text, "订单 "+another) || !strings.HasPrefix(text, first[:len(first)-4]) || !strings.Contains(text, " 1 ") {
					t.Errorf("the description is %q, want no prefix %q, prefix first[:len(first)-4] and text with \" 1 \"", text, "订单 "+another)
				}
				if next := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10, Seen: r.End}); next != (segment.Range{Start: r.End, End: r.End + 10, Step: 10}) {
					t.Errorf("Fetch() = %+v after %+v, want next = %+v", next, r, segment.Range{Start: r.End, End: r.End + 10, Step: 10})
				}
			}
			var other int64
			if err := db.Get(&other, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'b'"); err != nil || other != 100 {
				t.Errorf("the other row is at %d, %v, want other = 100 and no error", other, err)
			}
		})
	}
}

// TestRepeatedJumpsWaitLonger: a row that jumps repeatedly waits longer each time, and the error has a workaround for servers
// that share their storage.
func TestRepeatedJumpsWaitLonger(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			db := pool(t, server.Database(t), "")
			s := allocStore(t, db, "leaf_alloc")
			db.MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('a', 100, 10, '')")
			q := segment.Request{Tag: "a", N: 10, Step: 10}
			for _, c := range []struct {
				jumps int
				ago   int64 // seconds since the last jump
				moves bool
			}{{1, 3, true}, {5, 33, true}, {5, 25, false}, {11, 1900, false}, {11, 3700, true}, {5, -100, true}} {
				db.MustExec(fmt.Sprintf("UPDATE leaf_alloc SET max_id = 100, description = CONCAT('%s %d ', UNIX_TIMESTAMP() - %d)", another, c.jumps, c.ago))
				r, err := s.Fetch(t.Context(), q)
				if c.moves != (err == nil) || err == nil && r.Jumped == 0 || err != nil && !isError[*segment.RowError](err) {
					t.Errorf("after %d jumps, the last %d s ago: Fetch() = %+v, %v", c.jumps, c.ago, r, err)
				}
				if err != nil {
					var server string
					if err := db.Get(&server, "SELECT "+identity(t, db).Hash); err != nil {
						t.Fatal(err)
					}
					for _, part := range []string{another, "this server is " + server, "so it cannot be moved again for ", "stop writing to one of them", "description = 'leafsql@off'"} {
						if !strings.Contains(err.Error(), part) {
							t.Errorf("err = %q, want an error with %q", err, part)
						}
					}
					db.MustExec(statement.FindString(err.Error()))
					if r := fetch(t, s, q); r.Start != 100 {
						t.Errorf("turned off, Fetch() = %+v, want r.Start = 100", r)
					}
				}
			}
		})
	}
}

func identity(t *testing.T, db *sqlx.DB) serverid.Server {
	t.Helper()
	server, err := serverid.Query(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// TestMarksNeedSelectAndUpdate: a user with these rights writes first marks and replaces others.
func TestMarksNeedSelectAndUpdate(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			dsn := server.Database(t)
			db := pool(t, dsn, "")
			allocStore(t, db, "leaf_alloc")
			name := databaseOf(t, db)
			user := "m" + name[len(name)-12:]
			db.MustExec("CREATE USER " + user)
			t.Cleanup(func() { db.Exec("DROP USER " + user) })
			db.MustExec("GRANT SELECT, UPDATE ON " + name + ".leaf_alloc TO " + user)
			s := segment.NewAllocStore(pool(t, strings.Replace(dsn, "root@", user+"@", 1), ""), "leaf_alloc")
			db.MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 5, 10)")
			if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10}); r.Start != 5 || !strings.HasPrefix(description(t, db), "leafsql@") {
				t.Errorf("Fetch() = %+v, %s, want r.Start = 5 and prefix \"leafsql@\"", r, description(t, db))
			}
			db.MustExec("UPDATE leaf_alloc SET description = '" + another + " 0 0'")
			if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10}); r.Jumped < 1<<36 || strings.HasPrefix(description(t, db), another) {
				t.Errorf("Fetch() = %+v, %s, want r.Jumped at least 1<<36 and no prefix %q", r, description(t, db), another)
			}
		})
	}
}

// TestMarksWorkInAnyCharacterSet: Leaf's own CREATE TABLE has no character set, so its columns have the one of the database.
func TestMarksWorkInAnyCharacterSet(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"", "charset=latin1"} {
			db := pool(t, server.Database(t), params)
			for _, charset := range []string{"latin1", "gbk", "ascii", "ucs2", "utf8", "utf8mb4", "varbinary(256)", "blob"} {
				t.Run(server.Name+" "+charset+" "+params, func(t *testing.T) {
					typ, options, text := "varchar(256)", "CHARSET="+charset, "orders"
					if charset == "varbinary(256)" || charset == "blob" {
						typ, options, text = charset, "", "orders\xff\x80" // not UTF-8
					}
					db.MustExec("DROP TABLE IF EXISTS leaf_alloc")
					db.MustExec("CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL, step int NOT NULL, description " + typ + ") " + options)
					db.MustExec("INSERT INTO leaf_alloc VALUES ('a', 1, 10, ?), ('b', 1, 10, ?)", []byte(text), []byte(text+another+" 0 0"))
					var log strings.Builder
					s := segment.NewAllocStore(db, "leaf_alloc")
					s.Logger = slog.New(slog.NewTextHandler(&log, nil))
					for start := int64(1); start < 31; start += 10 {
						if r := fetch(t, s, segment.Request{Tag: "a", N: 10}); r.Start != start {
							t.Errorf("Fetch() = %+v, want r.Start = %d", r, start)
						}
					}
					if r := fetch(t, s, segment.Request{Tag: "b", N: 10}); r.Jumped < 1<<36 {
						t.Errorf("Fetch() = %+v of a row with another server's mark, want r.Jumped at least 1<<36", r)
					}
					if err := s.Ensure(t.Context(), "new", 7, 10); err != nil {
						t.Error(err)
					}
					if got := description(t, db); !strings.HasPrefix(got, text+" leafsql@") {
						t.Errorf("description = %q, want the prefix %q", got, text+" leafsql@")
					}
					if strings.Contains(log.String(), "cannot be marked") {
						t.Errorf("the log has\n%s\nwant no row that cannot be marked", log.String())
					}
				})
			}
		}
	}
}

// TestIDsAreIssuedWithoutMarks: if a row cannot be marked, ids are issued without marks, and one log line has the
// reason.
func TestIDsAreIssuedWithoutMarks(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for name, c := range map[string]struct{ spoil, want string }{
			"no column":      {"ALTER TABLE leaf_alloc DROP COLUMN description", "no column description"},
			"a short column": {"ALTER TABLE leaf_alloc MODIFY description varchar(20)", "description cannot be written"},
			"no room":        {"UPDATE leaf_alloc SET description = REPEAT('订', 201)", "too long to append"},
		} {
			t.Run(server.Name+" "+name, func(t *testing.T) {
				db := pool(t, server.Database(t), "sql_mode='STRICT_TRANS_TABLES'")
				s := allocStore(t, db, "leaf_alloc")
				var log strings.Builder
				s.Logger = slog.New(slog.NewTextHandler(&log, nil))
				db.MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 100, 10)")
				db.MustExec(c.spoil)
				for start := int64(100); start < 130; start += 10 {
					if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10}); r != (segment.Range{Start: start, End: start + 10, Step: 10}) {
						t.Errorf("Fetch() = %+v, want %+v", r, segment.Range{Start: start, End: start + 10, Step: 10})
					}
				}
				if err := s.Ensure(t.Context(), "new", 7, 10); err != nil {
					t.Error(err)
				}
				if r := fetch(t, s, segment.Request{Tag: "new", N: 10, Step: 10}); r.Start != 7 {
					t.Errorf("Fetch() = %+v of a new row, want r.Start = 7", r)
				}
				if got := log.String(); strings.Count(got, "rows cannot be marked") != 1 || !strings.Contains(got, c.want) {
					t.Errorf("the log has\n%s\nwant \"rows cannot be marked\" once and text with %q", got, c.want)
				}
			})
		}
	}
}

// TestUnreadableMarkIsRefused: such a row is refused, and the SQL in the error makes the next fetch safe.
func TestUnreadableMarkIsRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := pool(t, server.Database(t), "")
		s := allocStore(t, db, "leaf_alloc")
		db.MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('a', 100, 10, 'it''s leafsql@00112233445566')")
		_, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10})
		if !isError[*segment.RowError](err) || !strings.Contains(err.Error(), "cannot be parsed") {
			t.Fatalf("%v: Fetch(segment.Request{Tag: \"a\", N: 10, Step: 10}) = %v, want a *segment.RowError and an error with \"cannot be parsed\"", server.Name, err)
		}
		db.MustExec(statement.FindString(err.Error()))
		if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10}); r.Jumped < 1<<36 || !strings.HasPrefix(description(t, db), "it's leafsql@") {
			t.Errorf("%s: Fetch() = %+v, %s, want r.Jumped at least 1<<36 and prefix \"it's leafsql@\"", server.Name, r, description(t, db))
		}
	}
}

// TestTextReplicationWritesNoMarks: rows have no marks if a replica would evaluate the server's identity
// itself.
func TestTextReplicationWritesNoMarks(t *testing.T) {
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		server := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"}})
		db := pool(t, server.Target().Database(t), "")
		s := allocStore(t, db, "leaf_alloc")
		var log strings.Builder
		s.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if err := s.Ensure(t.Context(), "a", 5, 10); err != nil {
			t.Fatal(err)
		}
		if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10}); r.Start != 5 || description(t, db) != "NULL" || !strings.Contains(log.String(), "binlog_format is STATEMENT") {
			t.Errorf("%s: Fetch() = %+v, %s\n%s\nwant r.Start = 5, description(t, db) = \"NULL\" and text with \"binlog_format is STATEMENT\"", kind, r, description(t, db), &log)
		}
	}
}

// TestRestartChangesIdentityUnlessFlushed: a server that may lose commits has another identity after each start. A server that
// flushes them keeps its identity.
func TestRestartChangesIdentityUnlessFlushed(t *testing.T) {
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		for _, flush := range []int{1, 2} {
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{fmt.Sprint("--innodb-flush-log-at-trx-commit=", flush)}})
			db := pool(t, server.Target().Database(t), "")
			s := allocStore(t, db, "leaf_alloc")
			if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
				t.Fatal(err)
			}
			before := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10})
			time.Sleep(1100 * time.Millisecond) // starts are distinguished by their second
			if err := server.Shutdown(); err != nil {
				t.Fatal(err)
			}
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
			r := fetch(t, s, segment.Request{Tag: "a", N: 10, Step: 10, Seen: before.End})
			if jumped := r.Jumped > 0; jumped != (flush != 1) || r.Start < before.End {
				t.Errorf("%s, flush %d: Fetch() = %+v after %+v, want jumped = %v and r.Start at least %v", kind, flush, r, before, flush != 1, before.End)
			}
		}
	}
}

func TestMarginIsInRange(t *testing.T) {
	for left, want := range map[int64]int64{math.MaxInt64: 1 << 36, math.MaxInt32: math.MaxInt32 / 64, math.MaxInt16: math.MaxInt16 / 8, 127: 15, 7: 0, 0: 0, -5: 0} {
		for range 100 {
			if m := control.Margin(left); m < want || m > max(2*want-1, 0) || m > max(left/4, 0) {
				t.Errorf("Margin(%d) = %d, want %d to %d", left, m, want, 2*want-1)
			}
		}
	}
}
