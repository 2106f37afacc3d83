package shop_test

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	leaf "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/examples/internal/shopdb"
	shop "github.com/leafsql/leafsql/examples/otelsql"
)

func TestShop(t *testing.T) {
	for name, open := range map[string]func(string, ...otelsql.Option) (*sql.DB, error){"outside": shop.OpenOutside, "inside": shop.OpenInside} {
		for _, params := range []string{"", "&interpolateParams=true", "&multiStatements=true"} {
			t.Run(name+params, func(t *testing.T) {
				shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
					spans := tracetest.NewSpanRecorder()
					provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
					db, err := open(dsn+params, otelsql.WithTracerProvider(provider))
					if err != nil {
						t.Fatal(err)
					}
					defer db.Close()
					run(t, dsn, db)
					checkSpans(t, spans, name)
				})
			})
		}
	}
}

// run executes statements in every possible way: an option of go-sql-driver or
// of otelsql that changes the way must not change the stored rows.
func run(t *testing.T, dsn string, db *sql.DB) {
	ctx := t.Context()
	id := func(res sql.Result, err error) int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		id, err := res.LastInsertId()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	defer func() {
		stats, err := leaf.StatsOf(db)
		if err != nil || len(stats.Tags) == 0 {
			t.Errorf("StatsOf() = %+v, %v, want at least one tag", stats, err)
		}
	}()
	const one = "INSERT INTO customers (email, name) VALUES (?, ?)"
	ann := id(db.ExecContext(ctx, one, "ann", "Ann"))
	if ann != shopdb.FirstCustomer {
		t.Errorf("id = %d, want %d", ann, shopdb.FirstCustomer)
	}
	if batch := id(db.ExecContext(ctx, one+", (?, ?)", "bob", "Bob", "cy", "Cy")); batch != ann+1 {
		t.Errorf("id of a batch = %d, want %d", batch, ann+1)
	}
	for range 2 {
		if got := id(db.ExecContext(ctx, one+" ON DUPLICATE KEY UPDATE name = VALUES(name)", "bob", "Bobby")); got != ann+1 {
			t.Errorf("id of an upsert of an existing row = %d, want %d", got, ann+1)
		}
	}
	next := id(db.ExecContext(ctx, "INSERT INTO customers SET email = 'di', name = 'Di'"))
	st, err := db.PrepareContext(ctx, "INSERT INTO customers (id, email, name) VALUES (?, ?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if got := id(st.ExecContext(ctx, nil, "eve", "Eve")); got != next+1 {
		t.Errorf("id of a prepared INSERT = %d, want %d", got, next+1)
	}
	id(st.ExecContext(ctx, 7, "own", "Own"))
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	last := id(tx.ExecContext(ctx, one, "flo", "Flo"))
	var sqlID int64
	if err := tx.QueryRowContext(ctx, "SELECT LAST_INSERT_ID()").Scan(&sqlID); err != nil || sqlID != last {
		t.Errorf("LAST_INSERT_ID() is %d, %v; want %d", sqlID, err, last)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	// The Result is still go-sql-driver's.
	sc, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	err = sc.Raw(func(dc any) error {
		res, err := dc.(driver.ExecerContext).ExecContext(ctx, "INSERT INTO customers (email, name) VALUES ('raw', 'Raw')", nil)
		if err != nil {
			return err
		}
		if ids := res.(mysql.Result).AllLastInsertIds(); !slices.Equal(ids, []int64{last + 1}) {
			t.Errorf("AllLastInsertIds() = %v, want [%d]", ids, last+1)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email, name, IF(email IN ('di', 'eve', 'flo', 'raw'), '-', id - %d) FROM customers ORDER BY email", ann),
		"ann Ann 0", "bob Bobby 1", "cy Cy 2", "di Di -", "eve Eve -", "flo Flo -", fmt.Sprint("own Own ", 7-ann), "raw Raw -")
}

// checkSpans checks the SQL in the spans.
func checkSpans(t *testing.T, spans *tracetest.SpanRecorder, where string) {
	inserts := 0
	for _, s := range spans.Ended() {
		if s.Status().Code == codes.Error || s.Name() == "sql.conn.reset_session" {
			t.Errorf("%s: span %s has the status %v, want no reset_session and no error", where, s.Name(), s.Status())
		}
		for _, a := range s.Attributes() {
			if !strings.HasPrefix(string(a.Key), "db.") || a.Value.Type() != attribute.STRING || !strings.HasPrefix(a.Value.AsString(), "INSERT") {
				continue
			}
			inserts++
			text := a.Value.AsString()
			if filled := strings.Contains(text, "LAST_INSERT_ID("); filled != (where == "inside") && !strings.Contains(text, "(id,") {
				t.Errorf("%s: a span shows %s", where, text)
			}
		}
	}
	if inserts == 0 {
		t.Error("no span shows an INSERT")
	}
}
