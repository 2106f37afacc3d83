package segment

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestMarkIsTriedAgain: a store that could not mark its rows tries again some minutes later, without a restart. Until
// then a fetch is one statement.
func TestMarkIsTriedAgain(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for name, c := range map[string]struct{ spoil, mend string }{
			"rights on columns": {"GRANT SELECT, UPDATE (max_id) ON OURS TO USER", "GRANT UPDATE ON OURS TO USER"},
			"no right to read":  {"GRANT SELECT (biz_tag, max_id, step), UPDATE (max_id) ON OURS TO USER", "GRANT SELECT, UPDATE ON OURS TO USER"},
			"a short column":    {"ALTER TABLE leaf_alloc MODIFY description varchar(20)", "ALTER TABLE leaf_alloc MODIFY description varchar(256)"},
			"no column":         {"ALTER TABLE leaf_alloc DROP COLUMN description", "ALTER TABLE leaf_alloc ADD COLUMN description varchar(256)"},
		} {
			t.Run(server.Name+" "+name, func(t *testing.T) {
				cfg, err := mysql.ParseDSN(server.Database(t))
				if err != nil {
					t.Fatal(err)
				}
				open := func(cfg *mysql.Config) *sqlx.DB {
					db := sqlx.MustOpen("mysql", cfg.FormatDSN())
					t.Cleanup(func() { db.Close() })
					return db
				}
				admin, user := open(cfg), "a"+cfg.DBName[len(cfg.DBName)-12:]
				if err := NewAllocStore(admin, "leaf_alloc").Create(t.Context()); err != nil {
					t.Fatal(err)
				}
				run := func(text string) {
					admin.MustExec(strings.NewReplacer("USER", user, "OURS", cfg.DBName+".leaf_alloc").Replace(text))
				}
				admin.MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 1, 10)")
				admin.MustExec("CREATE USER " + user)
				t.Cleanup(func() { admin.Exec("DROP USER " + user) })
				if strings.HasPrefix(c.spoil, "ALTER") {
					run("GRANT SELECT, UPDATE ON OURS TO USER")
				}
				run(c.spoil)

				theirs := cfg.Clone()
				theirs.User, theirs.Params = user, map[string]string{"sql_mode": "'STRICT_TRANS_TABLES'"}
				db := open(theirs)
				db.SetMaxOpenConns(1)
				questions := func() (n int64) {
					if err := db.QueryRow("SHOW SESSION STATUS LIKE 'Questions'").Scan(new(string), &n); err != nil {
						t.Fatal(err)
					}
					return n
				}
				s := NewAllocStore(db, "leaf_alloc")
				s.Logger = slog.New(slog.DiscardHandler)
				next := int64(1)
				take := func() {
					t.Helper()
					if r, err := s.Fetch(t.Context(), Request{Tag: "a", N: 10, Step: 10}); err != nil || r.Start != next {
						t.Fatalf("Fetch() = %+v, %v, want a range from %d on", r, err, next)
					}
					next += 10
				}
				later := func() {
					v, _ := s.knownRows.Load("a")
					r := v.(row)
					r.read = r.read.Add(-markRetryInterval - time.Second)
					s.knownRows.Store("a", r)
				}
				take()
				take()
				later()
				take() // the attempt fails
				run(c.mend)
				before := questions()
				take()
				if n := questions() - before - 1; n != 1 {
					t.Errorf("%d statements for a fetch without a mark, want 1", n)
				}
				later()
				take()
				var description string
				if err := admin.Get(&description, "SELECT COALESCE(description, '') FROM leaf_alloc"); err != nil || !strings.HasPrefix(description, "leafsql@") {
					t.Errorf("the description is %q, %v, want prefix \"leafsql@\" and no error", description, err)
				}
			})
		}
	}
}
