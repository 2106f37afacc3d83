package servertest

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestStatsOfListsTablesAndTags(t *testing.T) {
	_, leaf := open(t, "leafTables=t,missing", allocTable, row("t", 100, 1000), tableT)
	mustExec(t, leaf, "INSERT INTO t (a) VALUES (1), (2)", "INSERT INTO t (a) VALUES (3)")
	refused(t, leaf, "unknown form", "WITH x AS (SELECT 1) INSERT INTO t (a) VALUES (4)")
	s, err := driver.StatsOf(leaf)
	if err != nil || len(s.Tables) != 1 || len(s.Tags) != 1 {
		t.Fatalf("StatsOf() = %+v, %v; want one table and one tag", s, err)
	}
	table, tag := s.Tables[0], s.Tags[0]
	if !strings.HasSuffix(table.Name, ".t") || table.Generator != string(driver.Segment) || table.Tag != "t" || table.Statements != 2 || table.IDs != 3 ||
		table.Refused != 1 || !strings.Contains(table.LastRefusal, "unknown form") || table.LastRefused.IsZero() {
		t.Errorf("table = %+v, want t with 2 statements, 3 ids and 1 refusal", table)
	}
	if tag.Tag != "t" || tag.IDs != 3 || tag.Fetches != 1 || tag.Current.Start != 100 || tag.Current.End != 116 || tag.Remaining != 13 || tag.Left != 13 || tag.Err != nil {
		t.Errorf("tag = %+v, want t with 3 ids of a range from 100 to 116", tag)
	}
}

// TestUnreadableRowsAreFailedFetches: INSERTs that fail because the row of their tag cannot be read are counted as failed
// fetches, each once.
func TestUnreadableRowsAreFailedFetches(t *testing.T) {
	const addRow = "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 100, 1000)"
	for _, target := range mysqltest.Targets(t) {
		for _, tt := range []struct {
			name, params string
			setup, fix   []string
		}{
			{"no row", "leafTables=t", []string{allocTable}, []string{addRow}},
			{"no table", "leafTables=t", nil, []string{allocTable, addRow}},
			{"bad step", "leafTables=t", []string{allocTable, row("t", 100, 0)}, []string{"UPDATE leaf_alloc SET step = 10"}},
			{"no column", "leafTables=t&leafCreate=true", []string{"CREATE TABLE leaf_alloc (a INT)"}, []string{"DROP TABLE leaf_alloc"}},
			{"no sequence", "leafTables=t:id:sequence(s)", []string{seqTable}, []string{"INSERT INTO t_sequence VALUES ('s', 1, 10, 1, NULL, 0)"}},
		} {
			t.Run(target.Name+"/"+tt.name, func(t *testing.T) {
				plain, leaf := openOn(t, target.Database(t), tt.params, append(tt.setup, tableT)...)
				tag := func() driver.TagStats {
					t.Helper()
					s, err := driver.StatsOf(leaf)
					if err != nil || len(s.Tags) != 1 {
						t.Fatalf("StatsOf() = %+v, %v; want one tag", s, err)
					}
					return s.Tags[0]
				}
				for n := int64(1); n <= 2; n++ {
					if _, err := leaf.Exec("INSERT INTO t (a) VALUES (1)"); err == nil {
						t.Fatal("INSERT = nil, want an error")
					}
					if s := tag(); s.Failures != n {
						t.Errorf("after INSERT %d: %d failed fetches, want %[1]d", n, s.Failures)
					}
				}
				mustExec(t, plain, tt.fix...)
				mustExec(t, leaf, "INSERT INTO t (a) VALUES (2)")
				if s := tag(); s.Failures != 2 || s.Err != nil {
					t.Errorf("after the fix: %d failed fetches and error %v, want 2 and no error", s.Failures, s.Err)
				}
			})
		}
	}
}

// TestDeadlinesAreNoFailedFetches: an INSERT whose context ends while the row of its tag is read is not counted as a failed
// fetch, because it is no failure of the store.
func TestDeadlinesAreNoFailedFetches(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 100, 1000), tableT)
			locker, err := plain.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer locker.Close()
			if _, err := locker.ExecContext(t.Context(), "LOCK TABLES leaf_alloc WRITE"); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := leaf.ExecContext(short, "INSERT INTO t (a) VALUES (1)"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("INSERT = %v, want context.DeadlineExceeded", err)
			}
			if s, err := driver.StatsOf(leaf); err != nil || len(s.Tags) != 1 || s.Tags[0].Failures != 0 {
				t.Errorf("StatsOf() = %+v, %v; want one tag without failed fetches", s, err)
			}
			if _, err := locker.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
				t.Fatal(err)
			}
			mustExec(t, leaf, "INSERT INTO t (a) VALUES (1)")
		})
	}
}

// TestStatsOfFindsWrappedConnector: for a pool with a wrapped driver, the Connector is found through a
// connection. For a pool with another driver, the error names the driver.
func TestStatsOfFindsWrappedConnector(t *testing.T) {
	dsn := mysqltest.Database(t)
	plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 1000), tableT)
	if _, err := driver.StatsOf(plain); err == nil || !strings.Contains(err.Error(), `open it as "mysql-leaf"`) {
		t.Errorf("StatsOf(): error %v, want the hint open it as \"mysql-leaf\"", err)
	}
	cfg, err := driver.ParseDSN(dsn + "?leafTables=t")
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	wrapped := sql.OpenDB(tracing{c})
	defer wrapped.Close()
	mustExec(t, wrapped, "INSERT INTO t (a) VALUES (2)")
	if s, err := driver.StatsOf(wrapped); err != nil || len(s.Tables) != 1 || s.Tables[0].IDs != 1 {
		t.Errorf("StatsOf() = %+v, %v; want one table with 1 id", s, err)
	}
}

// tracing wraps another connector's connections, as tracing packages do.
type tracing struct{ sqldriver.Connector }

func (c tracing) Connect(ctx context.Context) (sqldriver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	return traced{dc}, err
}

func (c tracing) Driver() sqldriver.Driver { return nil }

func (c tracing) Close() error { return c.Connector.(io.Closer).Close() }

type traced struct{ sqldriver.Conn }

func (c traced) Raw() sqldriver.Conn { return c.Conn }
