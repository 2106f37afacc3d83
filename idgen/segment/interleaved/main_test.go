package interleaved_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/segment/interleaved"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	mysql.SetLogger(&mysql.NopLogger{})
	goleak.VerifyTestMain(m)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func pool(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// three are the databases of three members.
func three(t *testing.T) []string {
	var dsns []string
	for range 3 {
		dsns = append(dsns, mysqltest.Database(t))
	}
	return dsns
}

// interleave opens stores as one more process does, one that restores what was lost.
// Their blocks hold size ids; 0: as they are.
func interleave(t *testing.T, size int64, dsns ...string) *interleaved.Store {
	t.Helper()
	return open(t, size, true, dsns...)
}

func open(t *testing.T, size int64, restore bool, dsns ...string) *interleaved.Store {
	t.Helper()
	var tables []interleaved.Table
	for _, dsn := range dsns {
		tables = append(tables, interleaved.Table{DB: pool(t, dsn), Name: "leaf_alloc"})
	}
	s := interleaved.New(tables, restore, nil)
	if size > 0 {
		s.SetBlockSize(size)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func databases(t *testing.T, dsns []string) (dbs []*sqlx.DB) {
	for _, dsn := range dsns {
		dbs = append(dbs, pool(t, dsn))
	}
	return dbs
}

func ensure(t *testing.T, s *interleaved.Store, tag string, next, step int64) {
	t.Helper()
	if err := s.Ensure(t.Context(), tag, next, step); err != nil {
		t.Fatal(err)
	}
}
