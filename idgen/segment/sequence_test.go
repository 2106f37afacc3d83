package segment_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The store passes the tests of leaf_alloc, on the table that Create creates and on the table of most schemas,
// with three columns.
func TestSequenceStore(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for name, c := range map[string]struct{ table, params string }{
			"created":       {},
			"found rows":    {params: "clientFoundRows=true&sql_mode=%27%27"},
			"no autocommit": {params: "autocommit=0"},
			"three columns": {table: "CREATE TABLE t_sequence (name VARCHAR(128) PRIMARY KEY, current_value BIGINT NOT NULL, increment INT NOT NULL DEFAULT 1) CHARSET=utf8mb4"},
		} {
			t.Run(server.Name+"/"+name, func(t *testing.T) {
				t.Parallel() // rows that went back are read again for a while
				dsn := server.Database(t)
				segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture {
					db := pool(t, dsn, "")
					db.MustExec("DROP TABLE IF EXISTS t_sequence")
					least := ", 0" // ids begin at 1, even if the row's least is lower
					columns := "name, current_value, increment, min_value"
					if c.table != "" {
						db.MustExec(c.table)
						least, columns = "", "name, current_value, increment"
					} else if err := segment.OpenSequences(db, "t_sequence").Create(t.Context()); err != nil {
						t.Fatal(err)
					}
					return segmenttest.Fixture{
						Moves: true,
						Open:  func() segment.Store { return segment.OpenSequences(pool(t, dsn, c.params), "t_sequence") },
						Put: func(row segmenttest.Row) error {
							_, err := db.Exec("REPLACE INTO t_sequence ("+columns+") VALUES (?, ?, ?"+least+")", row.Tag, max(row.MaxID, math.MinInt64+1)-1, row.Step)
							return err
						},
						Delete: func(tag string) error {
							_, err := db.Exec("DELETE FROM t_sequence WHERE name = ?", tag)
							return err
						},
					}
				})
			})
		}
	}
}

// sequences creates the table with one row. values are its min_value, max_value and cycle.
func sequences(t *testing.T, dsn string, current, increment int64, values string) (*sqlx.DB, *segment.Sequences) {
	t.Helper()
	db := pool(t, dsn, "")
	s := segment.OpenSequences(db, "t_sequence")
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.MustExec(fmt.Sprintf("INSERT INTO t_sequence VALUES ('a', %d, %d, %s)", current, increment, values))
	return db, s
}

// Tables with unusual definitions.
func TestSequenceStoreRefusesUnsafeTables(t *testing.T) {
	const key = "name varchar(50) PRIMARY KEY, current_value bigint, increment int"
	for name, c := range map[string]struct {
		columns, values string
		want            string // text in the error; "" if the ranges are [6, 16) and [16, 26)
	}{
		"unsigned":         {columns: "name varchar(50) PRIMARY KEY, current_value bigint unsigned, increment int unsigned"},
		"more columns":     {columns: "id bigint AUTO_INCREMENT UNIQUE, " + key + ", remarks text, update_time timestamp NULL"},
		"capitals":         {columns: "NAME varchar(50) PRIMARY KEY, CURRENT_VALUE bigint, INCREMENT int, MAX_VALUE int", values: "MAX_VALUE = 99"},
		"null limits":      {columns: key + ", min_value int, max_value int, cycle char(1)"},
		"decimal limits":   {columns: key + ", min_value decimal(30), max_value decimal(30)", values: "min_value = 1, max_value = 999999999999999999999999999999"},
		"bit":              {columns: key + ", cycle bit(1)", values: "cycle = b'0'"},
		"bit set":          {columns: key + ", cycle bit(1)", values: "cycle = b'1'", want: "cycle is 1"},
		"cycle":            {columns: key + ", cycle boolean", values: "cycle = true", want: "cycle is 1"},
		"cycle in letters": {columns: key + ", cycle char(1)", values: "cycle = 'Y'", want: "cycle is Y, which is not a whole number"},
		"int":              {columns: "name varchar(50) PRIMARY KEY, current_value int, increment int", want: "current_value is of type INT"},
		"descending":       {columns: key, values: "increment = -1", want: "descending"},
		"end":              {columns: key + ", max_value int", values: "max_value = 14", want: "used up"},
		"no room":          {columns: key + ", min_value int, max_value int", values: "min_value = 9, max_value = 8", want: "not above min_value"},
		"null":             {columns: key, values: "current_value = NULL", want: "current_value is NULL"},
		"no such column":   {columns: "name varchar(50) PRIMARY KEY, current_value bigint, step int", want: "increment"},
	} {
		for _, server := range mysqltest.Targets(t) {
			t.Run(name+"/"+server.Name, func(t *testing.T) {
				db := pool(t, server.Database(t), "")
				db.MustExec("CREATE TABLE t_sequence (" + c.columns + ")")
				increment := ", increment = 10"
				if strings.Contains(c.columns, "step") {
					increment = ""
				}
				db.MustExec("INSERT INTO t_sequence SET name = 'a', current_value = 5" + increment)
				if c.values != "" {
					db.MustExec("UPDATE t_sequence SET " + c.values)
				}
				s := segment.OpenSequences(db, "t_sequence")
				for i := range int64(2) {
					r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10, Floor: 1})
					switch {
					case c.want == "" && (err != nil || r != segment.Range{Start: 6 + 10*i, End: 16 + 10*i, Step: 10}):
						t.Fatal(r, err)
					case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || r != segment.Range{}):
						t.Fatal(r, err)
					}
				}
			})
		}
	}
}

// A table with other column names is read through a view.
func TestSequenceStoreReadsAView(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		db := pool(t, server.Database(t), "")
		db.MustExec("CREATE TABLE tb_sequence (seq_name varchar(50) PRIMARY KEY, current_val bigint, increment_val int)")
		db.MustExec("INSERT INTO tb_sequence VALUES ('a', 41, 10)")
		db.MustExec("CREATE VIEW t_sequence AS SELECT seq_name AS name, current_val AS current_value, increment_val AS increment FROM tb_sequence")
		s := segment.OpenSequences(db, "t_sequence")
		for i := range int64(3) {
			if r := fetch(t, s, segment.Request{Tag: "a", N: 10}); r.Start != 42+10*i || r.Step != 10 {
				t.Fatalf("%v: fetch(s, segment.Request{Tag: \"a\", N: 10}) = %+v, want Start = %v and Step = 10", server.Name, r, 42+10*i)
			}
		}
	}
}

// The common nextval function may use the same row.
func TestSequenceStoreSharesRowsWithNextval(t *testing.T) {
	db, s := sequences(t, mysqltest.Database(t), 0, 7, "1, 9223372036854775806, 0")
	var ids idcheck.Collector
	var wg sync.WaitGroup
	for range 4 {
		r, g := ids.Recorder(), segment.New(s, "a", nil)
		defer g.Close()
		wg.Go(func() {
			for range 300 {
				first, err := g.Next(t.Context(), 3)
				if err != nil {
					t.Error(err)
					return
				}
				r.Add(first, 3)
			}
		})
		others := ids.Recorder()
		wg.Go(func() {
			for range 100 {
				tx := db.MustBegin()
				var id int64
				tx.MustExec("UPDATE t_sequence SET current_value = current_value + increment WHERE name = 'a'")
				if err := tx.Get(&id, "SELECT current_value FROM t_sequence WHERE name = 'a'"); err != nil {
					t.Error(err)
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				others.Add(id, 1)
			}
		})
	}
	wg.Wait()
	ids.Verify(t)
}

// A sequence begins high in a small column, and its row does not show this.
func TestSequenceFitsASmallColumn(t *testing.T) {
	_, s := sequences(t, mysqltest.Database(t), 0, 1000, "250, 1000, 0")
	g := segment.New(s, "a", nil)
	defer g.Close()
	g.Fit(255)
	for want := int64(250); want <= 255; want++ {
		if id, err := g.Next(t.Context(), 1); err != nil || id != want {
			t.Fatalf("Next(1) = %v, %v, want %v and no error", id, err, want)
		}
	}
	if id, err := g.Next(t.Context(), 1); !isError[*segment.FullError](err) {
		t.Errorf("Next(1) = %v, %v, want a *segment.FullError", id, err)
	}
}

// With min_value, max_value and an increment of 1, the ids of one call are consecutive, and the end is an
// error.
func TestSequenceKeepsItsLimits(t *testing.T) {
	db, s := sequences(t, mysqltest.Database(t), 0, 1, "1000, 1040, 0")
	if row, err := s.Row(t.Context(), "a"); err != nil || row != (segmenttest.Row{Tag: "a", MaxID: 1000, Step: 1}) {
		t.Fatalf("Row(\"a\") = %+v, %v, want segmenttest.Row{Tag: \"a\", MaxID: 1000, Step: 1} and no error", row, err)
	}
	g := segment.New(s, "a", nil)
	defer g.Close()
	var ids idcheck.Collector
	r := ids.Recorder()
	for range 8 {
		first, err := g.Next(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		r.Add(first, 3)
	}
	if report := ids.Verify(t); report.Min != 1000 {
		t.Fatalf("Verify() = %+v, want Min = 1000", report)
	}
	for {
		first, err := g.Next(t.Context(), 1)
		if errors.Is(err, idgen.ErrExhausted) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Add(first, 1)
	}
	if report := ids.Verify(t); report.Max != 1040 {
		t.Fatalf("Verify() = %+v, want Max = 1040", report)
	}
	db.MustExec("UPDATE t_sequence SET max_value = 2000") // found immediately
	if id, err := g.Next(t.Context(), 10); err != nil || id != 1041 {
		t.Fatalf("Next(10) = %v, %v, want 1041 and no error", id, err)
	}
}

func TestSequenceStoreReadsAndAddsRows(t *testing.T) {
	ctx := t.Context()
	for _, server := range mysqltest.Targets(t) {
		db := pool(t, server.Database(t), "")
		s := segment.OpenSequences(db, "t_sequence")
		for range 2 {
			if err := s.Create(ctx); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Row(ctx, "it's")
		if !isError[*segment.UnknownTagError](err) {
			t.Fatal(err)
		}
		db.MustExec(strings.ReplaceAll(statement.FindString(err.Error()), "<highest id>", "4711"))
		if row, err := s.Row(ctx, "it's"); err != nil || row != (segmenttest.Row{Tag: "it's", MaxID: 4712, Step: 1000}) {
			t.Fatalf("Row(\"it's\") = %+v, %v, want segmenttest.Row{Tag: \"it's\", MaxID: 4712, Step: 1000} and no error", row, err)
		}
		for _, next := range []int64{500, 1, 9999} { // only the first call has an effect
			if err := s.Ensure(ctx, "a", next, 10); err != nil {
				t.Fatal(err)
			}
		}
		if r := fetch(t, s, segment.Request{Tag: "a", N: 10}); r.Start != 500 {
			t.Fatalf("fetch(s, segment.Request{Tag: \"a\", N: 10}) = %+v, want Start = 500", r)
		}
		db.MustExec("UPDATE t_sequence SET current_value = 7 WHERE name = 'a'")
		again := segment.OpenSequences(db, "t_sequence") // has fetched nothing, so it cannot detect that a node is behind
		_, err = again.Fetch(ctx, segment.Request{Tag: "a", N: 10, Seen: 510})
		if !isError[*segment.RolledBackError](err) {
			t.Fatal(err)
		}
		db.MustExec(strings.ReplaceAll(statement.FindString(err.Error()), "<highest id in all tables and shards of this tag>", "600"))
		if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Seen: 510}); r.Start < 601+1<<36 {
			t.Fatalf("fetch(s, segment.Request{Tag: \"a\", N: 10, Seen: 510}) = %+v, want Start at least 601+1<<36", r)
		}
	}
}

// TestSequenceBehindMovesUpByAMargin: a row below the fetched ids moves up by a margin that fits the column, and other rows
// do not change.
func TestSequenceBehindMovesUpByAMargin(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			db, s := sequences(t, server.Database(t), 0, 10, "1, 9223372036854775806, 0")
			db.MustExec("INSERT INTO t_sequence VALUES ('b', 5, 10, 1, 1000, 0)")
			q := segment.Request{Tag: "a", N: 10, Step: 10}
			for _, c := range []struct{ highest, least, most int64 }{{0, 1 << 36, 1 << 37}, {math.MaxInt32, 33_000_000, 68_000_000}} {
				db.MustExec("UPDATE t_sequence SET current_value = 500 WHERE name = 'a'")
				q.Seen, q.Highest = 0, c.highest
				before := fetch(t, s, q)
				db.MustExec("UPDATE t_sequence SET current_value = 7 WHERE name = 'a'")
				q.Seen = before.End
				r := fetch(t, s, q)
				if gap := r.Start - before.End; gap != r.Jumped || gap < c.least || gap > c.most {
					t.Errorf("Fetch() = %+v after %+v, want a margin of %d to %d", r, before, c.least, c.most)
				}
				q.Seen = r.End
				if next := fetch(t, s, q); next != (segment.Range{Start: r.End, End: r.End + 10, Step: 10}) {
					t.Errorf("Fetch() = %+v after %+v, want next = %+v", next, r, segment.Range{Start: r.End, End: r.End + 10, Step: 10})
				}
			}
			if row, err := s.Row(t.Context(), "b"); err != nil || row.MaxID != 6 {
				t.Errorf("the other row is at %d, %v, want row.MaxID = 6 and no error", row.MaxID, err)
			}
		})
	}
}
