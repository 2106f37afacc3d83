package segment_test

import (
	"context"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestMemoryPassesTheKit(t *testing.T) {
	segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture {
		m := new(segmenttest.Memory)
		return segmenttest.Fixture{
			Open:   func() segment.Store { return m },
			Put:    func(row segmenttest.Row) error { m.Put(row); return nil },
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

// allocStore creates a table for the test.
func allocStore(t testing.TB, db *sqlx.DB, table string) *segment.AllocStore {
	t.Helper()
	s := segment.NewAllocStore(db, table)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAllocStore: the store passes with every setting that a DSN can contain.
func TestAllocStore(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		isolation, snapshots := "transaction_isolation", ""
		if server.Name == "mariadb" {
			isolation = "tx_isolation"
			if server.Has(t, 100618, 0) {
				snapshots = "&innodb_snapshot_isolation=1" // the default from 11.6 on
			}
		}
		for name, params := range map[string]string{
			"default":         "",
			"found rows":      "clientFoundRows=true&interpolateParams=true",
			"read committed":  isolation + "=%27READ-COMMITTED%27&sql_mode=%27%27",
			"no autocommit":   isolation + "=%27REPEATABLE-READ%27&autocommit=0",
			"serializable":    isolation + "=%27SERIALIZABLE%27&sql_mode=%27ANSI_QUOTES,STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES%27",
			"no serializable": isolation + "=%27SERIALIZABLE%27&autocommit=0",
			"snapshots":       isolation + "=%27SERIALIZABLE%27" + snapshots,
			"safe updates":    "sql_safe_updates=1&charset=latin1",
		} {
			t.Run(server.Name+"/"+name, func(t *testing.T) {
				t.Parallel() // rows that went back are read again for a while
				testAllocStore(t, server.Database(t), params)
			})
		}
	}
}

func testAllocStore(t *testing.T, dsn, params string) {
	segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture {
		db := pool(t, dsn, "")
		if _, err := db.Exec("DROP TABLE IF EXISTS leaf_alloc"); err != nil {
			t.Fatal(err)
		}
		allocStore(t, db, "leaf_alloc")
		return segmenttest.Fixture{
			Open: func() segment.Store { return segment.NewAllocStore(pool(t, dsn, params), "leaf_alloc") },
			Put: func(row segmenttest.Row) error {
				_, err := db.Exec("REPLACE INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, ?, ?)", row.Tag, row.MaxID, row.Step)
				return err
			},
			Delete: func(tag string) error {
				_, err := db.Exec("DELETE FROM leaf_alloc WHERE biz_tag = ?", tag)
				return err
			},
		}
	})
}

// Servers open every session without autocommit: by their default, and by a statement that they run for users
// without special rights. A range must be committed when it is handed out, and its row unlocked.
func TestAllocStoreCommitsWithoutAutocommit(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind})
			root := pool(t, server.DSN(""), "multiStatements=true")
			if _, err := root.Exec("CREATE USER app@'%'; GRANT ALL ON shop.* TO app@'%'; CREATE DATABASE shop; SET GLOBAL init_connect = 'SET autocommit = 0'"); err != nil {
				t.Fatal(err)
			}
			app := strings.Replace(server.DSN("shop"), "root@", "app@", 1)
			t.Run("init_connect", func(t *testing.T) { withoutAutocommit(t, root, app) })
			if _, err := root.Exec("SET GLOBAL init_connect = '', GLOBAL autocommit = 0"); err != nil {
				t.Fatal(err)
			}
			t.Run("default", func(t *testing.T) { withoutAutocommit(t, root, app) })
		})
	}
}

func withoutAutocommit(t *testing.T, root *sqlx.DB, dsn string) {
	ctx := t.Context()
	for _, text := range []string{"DROP TABLE IF EXISTS shop.leaf_alloc", "COMMIT"} {
		if _, err := root.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	db := pool(t, dsn, "")
	s := allocStore(t, db, "leaf_alloc")
	if err := s.Ensure(ctx, "a", 1, 10); err != nil {
		t.Fatal(err)
	}
	for i := range int64(5) {
		if r, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 10}); err != nil || r.Start != 10*i+1 {
			t.Fatalf("Fetch(segment.Request{Tag: \"a\", N: 10}) = %+v, %v, want Start = %v and no error", r, err, 10*i+1)
		}
	}
	db.Close() // uncommitted writes are rolled back
	other := segment.NewAllocStore(pool(t, dsn, ""), "leaf_alloc")
	if row, err := other.Row(ctx, "a"); err != nil || row.MaxID != 51 {
		t.Fatalf("Row(\"a\") = %+v, %v, want MaxID = 51 and no error", row, err)
	}
	if r, err := other.Fetch(ctx, segment.Request{Tag: "a", N: 10}); err != nil || r.Start != 51 {
		t.Fatalf("Fetch(segment.Request{Tag: \"a\", N: 10}) = %+v, %v, want Start = 51 and no error", r, err)
	}
}

// TestAllocStoreWorksUnderCompletionType looks for a tag without a row, on a caller's pool with a server that opens a
// transaction, or closes the connection, after each COMMIT and ROLLBACK. All later writes are committed
// nevertheless.
func TestAllocStoreWorksUnderCompletionType(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"completion_type=CHAIN", "completion_type=RELEASE", "completion_type=CHAIN&autocommit=0", "completion_type=RELEASE&autocommit=0"} {
			t.Run(server.Name+" "+params, func(t *testing.T) {
				ctx, dsn := t.Context(), server.Database(t)
				db := pool(t, dsn, strings.NewReplacer("CHAIN", "'CHAIN'", "RELEASE", "'RELEASE'").Replace(params))
				db.SetMaxOpenConns(1)
				s := allocStore(t, db, "leaf_alloc")
				if _, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 10}); !isError[*segment.UnknownTagError](err) {
					t.Fatalf("Fetch() = %v, want an UnknownTagError", err)
				}
				if err := s.Ensure(ctx, "a", 1, 10); err != nil {
					t.Fatal(err)
				}
				if r := fetch(t, s, segment.Request{Tag: "a", N: 10}); r.Start != 1 {
					t.Errorf("Start = %d, want 1", r.Start)
				}
				if r := fetch(t, s, segment.Request{Tag: "a", N: 10, Floor: 50}); r.Start != 50 {
					t.Errorf("Start = %d, want 50", r.Start)
				}
				if row, err := segment.NewAllocStore(pool(t, dsn, ""), "leaf_alloc").Row(ctx, "a"); err != nil || row.MaxID != 60 {
					t.Errorf("another pool reads max_id %d, %v, want 60", row.MaxID, err)
				}
			})
		}
	}
}

func fetch(t *testing.T, s segment.Store, q segment.Request) segment.Range {
	t.Helper()
	r, err := s.Fetch(context.WithoutCancel(t.Context()), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStoresWorkWithColumnAliases: the stores read their tables on a caller's pool with column names that include their
// table's name.
func TestStoresWorkWithColumnAliases(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		ctx := t.Context()
		db := pool(t, server.Database(t), "columnsWithAlias=true")
		s := allocStore(t, db, "leaf_alloc")
		if err := s.Ensure(ctx, "a", 7, 10); err != nil {
			t.Fatal(err)
		}
		if r := fetch(t, s, segment.Request{Tag: "a", N: 10}); r.Start != 7 {
			t.Errorf("%s: Start = %d, want 7", server.Name, r.Start)
		}
		tags, err := s.Tags(ctx)
		if want := (segmenttest.Row{Tag: "a", MaxID: 17, Step: 10}); err != nil || len(tags) != 1 || tags[0] != want {
			t.Errorf("%s: Tags() = %v, %v, want %v", server.Name, tags, err, want)
		}
		if _, err := db.Exec("UPDATE leaf_alloc SET description = 'leafsql: store 1 of 2'"); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Marks(ctx); err != nil || len(m.Broken) != 1 || m.Broken[0].(*segment.RowError).Tag != "a" {
			t.Errorf("%s: Marks() = %+v, %v, want one broken row, of tag a", server.Name, m, err)
		}
		sequences := segment.OpenSequences(db, "t_sequence")
		if err := sequences.Create(ctx); err != nil {
			t.Fatal(err)
		}
		if err := sequences.Ensure(ctx, "s", 5, 10); err != nil {
			t.Fatal(err)
		}
		if r := fetch(t, sequences, segment.Request{Tag: "s", N: 10}); r.Start != 5 {
			t.Errorf("%s: Start = %d of a sequence, want 5", server.Name, r.Start)
		}
	}
}
