package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// noop is an inner driver that returns immediately, so that measurements show only
// leafsql. Its catalog has one table.
type noop struct{}

func (noop) Connect(context.Context) (driver.Conn, error) { return &noopConn{}, nil }
func (noop) Driver() driver.Driver                        { return mysql.MySQLDriver{} }

type noopConn struct{ last string }

var noopColumns = [][]driver.Value{
	{int64(0), int64(0), "shop", "t", int64(1), "id", "bigint(20)", "PRI", nil, "", "insert,update"},
	{int64(0), int64(0), "shop", "t", int64(2), "a", "int(11)", "", nil, "", "insert,update"},
	{int64(0), int64(0), "shop", "t", int64(3), "b", "int(11)", "", nil, "", "insert,update"},
}

func (c *noopConn) Prepare(string) (driver.Stmt, error) { return noopStmt{}, nil }
func (c *noopConn) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return noopStmt{}, nil
}
func (c *noopConn) Close() error              { return nil }
func (c *noopConn) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }
func (c *noopConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, driver.ErrSkip
}
func (c *noopConn) Ping(context.Context) error                  { return nil }
func (c *noopConn) ResetSession(context.Context) error          { return nil }
func (c *noopConn) IsValid() bool                               { return true }
func (c *noopConn) CheckNamedValue(nv *driver.NamedValue) error { return nil }

func (c *noopConn) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.last = text
	return noopResult{}, nil
}

func (c *noopConn) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(text, "information_schema.columns") {
		return &noopRows{width: 11, rows: noopColumns}, nil
	}
	return &noopRows{width: 1, rows: [][]driver.Value{{int64(0)}}}, nil
}

type noopStmt struct{}

func (noopStmt) Close() error                                { return nil }
func (noopStmt) NumInput() int                               { return -1 }
func (noopStmt) CheckNamedValue(nv *driver.NamedValue) error { return nil }
func (noopStmt) Exec([]driver.Value) (driver.Result, error)  { return noopResult{}, nil }
func (noopStmt) Query([]driver.Value) (driver.Rows, error)   { return nil, driver.ErrSkip }
func (noopStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}
func (noopStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return noopResult{}, nil
}

type noopResult struct{}

func (noopResult) LastInsertId() (int64, error) { return 1, nil }
func (noopResult) RowsAffected() (int64, error) { return 1, nil }
func (noopResult) AllLastInsertIds() []int64    { return []int64{1} }
func (noopResult) AllRowsAffected() []int64     { return []int64{1} }

type noopRows struct {
	width int
	rows  [][]driver.Value
}

func (r *noopRows) Columns() []string { return make([]string, r.width) }
func (r *noopRows) Close() error      { return nil }
func (r *noopRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

// counter is a generator that counts up.
type counter struct{ n atomic.Int64 }

func (c *counter) Next(_ context.Context, n int) (int64, error) {
	return c.n.Add(int64(n)) - int64(n) + 1, nil
}

// openNoop returns the bare pool and the one with leafsql around it.
func openNoop(tb testing.TB) (bare, leaf *sql.DB) {
	tb.Helper()
	cfg := NewConfig()
	cfg.MySQL.DBName = "shop"
	cfg.Tables = []Rule{{Table: "t", Generator: &counter{}}}
	c, err := Wrap(noop{}, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	bare, leaf = sql.OpenDB(noop{}), sql.OpenDB(c)
	tb.Cleanup(func() { bare.Close(); leaf.Close() })
	return bare, leaf
}

var overheads = []struct {
	name string
	text string
	args []any
	// maximum number of allocations in addition to the bare driver's
	allocs float64
}{
	{"insert with arguments", "INSERT INTO t (a, b) VALUES (?, ?)", []any{int64(1), int64(2)}, 2},
	{"insert text", "INSERT INTO t (a, b) VALUES (1, 2)", nil, 2},
	{"upsert", "INSERT INTO t (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE b = b + 1", []any{int64(1), int64(2)}, 2},
	{"update", "UPDATE t SET a = ? WHERE b = ?", []any{int64(1), int64(2)}, 0},
	{"insert elsewhere", "INSERT INTO other (a, b) VALUES (?, ?)", []any{int64(1), int64(2)}, 0},
}

// BenchmarkOverhead measures db.ExecContext with an inner driver that does nothing,
// alternately without and with leafsql, so that both see the same noise. It reports
// the medians, their difference and their ratio. TestFillingAllocatesLittle limits the
// allocations.
func BenchmarkOverhead(b *testing.B) {
	bare, leaf := openNoop(b)
	ctx := b.Context()
	for _, o := range overheads {
		direct := func(db *sql.DB) func() error {
			return func() error {
				_, err := db.ExecContext(ctx, o.text, o.args...)
				return err
			}
		}
		b.Run(o.name, func(b *testing.B) { inTurns(b, direct(bare), direct(leaf)) })
		b.Run(o.name+" prepared", func(b *testing.B) {
			prepared := func(db *sql.DB) func() error {
				st, err := db.PrepareContext(ctx, o.text)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { st.Close() })
				return func() error {
					_, err := st.ExecContext(ctx, o.args...)
					return err
				}
			}
			inTurns(b, prepared(bare), prepared(leaf))
		})
	}
}

// inTurns measures two calls in alternating runs of 1,000.
func inTurns(b *testing.B, bare, leaf func() error) {
	const run = 1000
	took := [2][]float64{}
	for b.Loop() {
		for i, call := range []func() error{bare, leaf} {
			start := time.Now()
			for range run {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/run)
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	x, y := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(x, "bare-ns")
	b.ReportMetric(y, "leaf-ns")
	b.ReportMetric(y-x, "added-ns")
	b.ReportMetric(y/x, "ratio")
	b.ReportMetric(0, "ns/op") // hides the meaningless time of both together
}

func TestFillingAllocatesLittle(t *testing.T) {
	bare, leaf := openNoop(t)
	ctx := t.Context()
	for _, o := range overheads {
		per := func(db *sql.DB) float64 {
			return testing.AllocsPerRun(200, func() {
				if _, err := db.ExecContext(ctx, o.text, o.args...); err != nil {
					t.Fatal(err)
				}
			})
		}
		if b, l := per(bare), per(leaf); l-b > o.allocs {
			t.Errorf("%s: %v allocations, want at most %v, the bare driver's %v and %v", o.name, l, b+o.allocs, b, o.allocs)
		}
	}
}

// TestScratchSpaceKeepsNoArguments: the connection's scratch space keeps no arguments of a
// statement alive.
func TestScratchSpaceKeepsNoArguments(t *testing.T) {
	_, leaf := openNoop(t)
	leaf.SetMaxOpenConns(1)
	if _, err := leaf.Exec("INSERT INTO t (a, b) VALUES (?, ?)", "a secret", time.Now()); err != nil {
		t.Fatal(err)
	}
	sc, err := leaf.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	sc.Raw(func(dc any) error {
		for _, a := range dc.(*conn).args[:cap(dc.(*conn).args)] {
			if a.Value != nil {
				t.Errorf("scratch space still has the argument %v, want nil", a.Value)
			}
		}
		return nil
	})
}

// TestUsedTablesStayCached: cached tables that no statement uses are evicted after a while. An
// INSERT with explicit keys uses its table, too.
func TestUsedTablesStayCached(t *testing.T) {
	_, leaf := openNoop(t)
	c, err := connectorOf(t.Context(), leaf)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"INSERT INTO t (a, b) VALUES (1, 2)", "INSERT INTO t (id, a) VALUES (7, 1)"} {
		c.tables.Used.Store(false)
		if _, err := leaf.Exec(text); err != nil {
			t.Fatal(err)
		}
		if !c.tables.Used.Load() {
			t.Errorf("%s: Used = false, want true", text)
		}
	}
}
