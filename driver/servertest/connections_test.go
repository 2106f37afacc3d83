package servertest

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

const tableT = "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b VARCHAR(100))"

// TestErrSkipDrawsOnce: a query that the inner driver cannot interpolate is prepared
// internally, so ids are not drawn twice.
func TestErrSkipDrawsOnce(t *testing.T) {
	for _, params := range []string{"", "&interpolateParams=true"} {
		_, leaf := open(t, "leafTables=t"+params, allocTable, row("t", 1, 1000), tableT)
		for i := range 3 {
			if id := insertID(t, leaf, "INSERT INTO t (a, b) VALUES (?, ?)", i, json.RawMessage(`{"a":1}`)); id != int64(i+1) {
				t.Errorf("params %q: LastInsertId() = %d, want %d: ids were drawn twice", params, id, i+1)
			}
		}
	}
}

// TestWrongArgumentCountIsRefused: the error is database/sql's, as without leafsql.
func TestWrongArgumentCountIsRefused(t *testing.T) {
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", 1, 10), tableT)
	for _, args := range [][]any{{1}, {1, 2, 3}} {
		_, want := plain.Exec("INSERT INTO t (a, b) VALUES (?, ?)", args...)
		_, got := leaf.Exec("INSERT INTO t (a, b) VALUES (?, ?)", args...)
		if got == nil || got.Error() != want.Error() {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if _, err := leaf.Exec("INSERT INTO t (a, b) VALUES (?, ?)"); err == nil {
		t.Error("INSERT with placeholders and no arguments: no error, want one")
	}
}

// TestBatchWithManyPlaceholdersWorks: a batch that worked without leafsql must work, also if a key for each
// row needs more placeholders than the protocol allows.
func TestBatchWithManyPlaceholdersWorks(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", 1, 1000), tableT)
	rows := 65535 / 2
	text := "INSERT INTO t (a, b) VALUES (?, ?)" + strings.Repeat(",(?, ?)", rows-1)
	args := func(base int) []any {
		args := make([]any, 0, 2*rows)
		for i := range rows {
			args = append(args, base+i, "x")
		}
		return args
	}
	if id := insertID(t, leaf, text, args(0)...); id != 1 {
		t.Errorf("LastInsertId() = %d, want 1", id)
	}
	st, err := leaf.Prepare(text)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	res, err := st.Exec(args(rows)...)
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := res.LastInsertId(); id != int64(rows)+1 {
		t.Errorf("prepared: LastInsertId() = %d, want %d", id, rows+1)
	}
	var wrong int
	if err := leaf.QueryRow("SELECT COUNT(*) FROM t WHERE id <> a + 1").Scan(&wrong); err != nil || wrong != 0 {
		t.Errorf("%d ids are not in the order of the rows, error %v; want 0", wrong, err)
	}
}

// TestReturningReturnsRows: INSERT … RETURNING returns rows through Query.
func TestReturningReturnsRows(t *testing.T) {
	server := mysqltest.TargetOf(t, mysqltest.MariaDB)
	server.SkipUnless(t, "INSERT … RETURNING", 100500, 0)
	for _, params := range []string{"", "&interpolateParams=true"} {
		_, leaf := openOn(t, server.Database(t), "leafTables=t"+params, allocTable, row("t", 10, 1000), tableT)
		var id int64
		if err := leaf.QueryRow("INSERT INTO t (a) VALUES (1) RETURNING id").Scan(&id); err != nil || id != 10 {
			t.Errorf("text: RETURNING id = %d, error %v; want 10", id, err)
		}
		if err := leaf.QueryRow("INSERT INTO t (a) VALUES (?) RETURNING id", 2).Scan(&id); err != nil || id != 11 {
			t.Errorf("arguments: RETURNING id = %d, error %v; want 11", id, err)
		}
		st, err := leaf.Prepare("INSERT INTO t (a, id) VALUES (?, ?), (?, DEFAULT) RETURNING id")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for i, key := range []any{nil, 5000} {
			rows, err := st.Query(10*i+3, key, 10*i+4)
			if err != nil {
				t.Fatal(err)
			}
			var ids []int64
			for rows.Next() {
				if err := rows.Scan(&id); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			rows.Close()
			if want := [][]int64{{12, 13}, {5000, 5001}}[i]; !slices.Equal(ids, want) {
				t.Errorf("prepared, key %v: ids %v, want %v", key, ids, want)
			}
		}
	}
}

// TestRawConnectionFillsKeys: keys are also filled for callers that bypass database/sql.
func TestRawConnectionFillsKeys(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", 1, 1000), tableT)
	sc, err := leaf.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	err = sc.Raw(func(dc any) error {
		//lint:ignore SA1019 that is the point
		if _, err := dc.(sqldriver.Execer).Exec("INSERT INTO t (a) VALUES (1)", nil); err != nil {
			return err
		}
		st, err := dc.(sqldriver.Conn).Prepare("INSERT INTO t (a) VALUES (?)")
		if err != nil {
			return err
		}
		defer st.Close()
		//lint:ignore SA1019 that is the point
		res, err := st.Exec([]sqldriver.Value{int64(2)})
		if err != nil {
			return err
		}
		if id, _ := res.LastInsertId(); id != 2 {
			t.Errorf("LastInsertId() = %d, want 2", id)
		}
		if _, ok := dc.(interface{ Raw() sqldriver.Conn }).Raw().(sqldriver.Pinger); !ok {
			t.Errorf("Raw() = %T, want a connection of the inner driver", dc.(interface{ Raw() sqldriver.Conn }).Raw())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPreparedVariantUnderAnotherDatabaseIsRefused: a query that is prepared after USE would write another
// table than the original statement.
func TestPreparedVariantUnderAnotherDatabaseIsRefused(t *testing.T) {
	dsn := mysqltest.Database(t)
	other := mysqltest.Database(t)
	_, leaf := openOn(t, dsn, "leafTables=t", allocTable, row("t", 1, 1000), tableT)
	openOn(t, other, "leafTables=none", tableT)
	leaf.SetMaxOpenConns(1)
	st, err := leaf.Prepare("INSERT INTO t (id, a) VALUES (?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := leaf.Exec("USE " + databaseOf(t, other)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Exec(nil, 1); err != nil {
		t.Errorf("original query after USE: error %v, want none", err)
	}
	if _, err := st.Exec(77, 2); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("changed query after USE: error %v, want a refusal", err)
	}
}

func TestKeysAreFilledInEverySQLMode(t *testing.T) {
	for _, tables := range []string{"t", "*"} { // with *, any word may be a table's name
		t.Run(tables, func(t *testing.T) { testSQLModes(t, tables) })
	}
}

func testSQLModes(t *testing.T, tables string) {
	_, leaf := open(t, "leafTables="+tables, allocTable, row("t", 1, 1000), tableT)
	leaf.SetMaxOpenConns(1)
	for i, tt := range []struct{ mode, text, want string }{
		{"", `INSERT INTO t (a, b) VALUES (0, 'x\'), (9, y')`, `x'), (9, y`},
		{"NO_BACKSLASH_ESCAPES", `INSERT INTO t (a, b) VALUES (1, 'x\')`, `x\`},
		{"ANSI_QUOTES", `INSERT INTO "t" ("a", "b") VALUES (2, 'x')`, "x"},
		{"", `INSERT INTO t (a, b) VALUES (3, "t (a) VALUES (?)")`, "t (a) VALUES (?)"},
	} {
		if _, err := leaf.Exec("SET sql_mode = '" + tt.mode + "'"); err != nil {
			t.Fatal(err)
		}
		id := insertID(t, leaf, tt.text)
		var b string
		if err := leaf.QueryRow("SELECT b FROM t WHERE id = ?", id).Scan(&b); err != nil || b != tt.want || id != int64(i+1) {
			t.Errorf("sql_mode %q: %s: id %d, b = %q, error %v; want id %d, b = %q", tt.mode, tt.text, id, b, err, i+1, tt.want)
		}
	}
}

// TestUpsertNeedsNoUpdateRightOnKey: the upsert's marker writes the key column, which requires
// a right that the application's statement does not need. MariaDB requires
// that right for every column that an upsert inserts, so there it has to be granted.
func TestUpsertNeedsNoUpdateRightOnKey(t *testing.T) {
	dsn := mysqltest.TargetOf(t, mysqltest.MySQL).Database(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 1000), tableT)
	user := fmt.Sprintf("leaf%d", time.Now().UnixNano()%1e9)
	for _, s := range []string{
		"CREATE USER " + user + "@'%' IDENTIFIED BY 'pw'",
		"GRANT SELECT, INSERT, UPDATE (b) ON " + cfg.DBName + ".t TO " + user + "@'%'",
		"GRANT SELECT, UPDATE ON " + cfg.DBName + ".leaf_alloc TO " + user + "@'%'",
	} {
		if _, err := plain.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { plain.Exec("DROP USER " + user + "@'%'") })
	cfg.User, cfg.Passwd = user, "pw"
	leaf := openLeaf(t, cfg.FormatDSN(), "leafTables=t")
	for i, text := range []string{
		"INSERT INTO t (a, b) VALUES (1, 'x') ON DUPLICATE KEY UPDATE b = 'y'",
		"INSERT INTO t (a, b) VALUES (1, 'x') ON DUPLICATE KEY UPDATE b = 'y'",
	} {
		res, err := leaf.Exec(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := res.RowsAffected(); n != int64(i+1) {
			t.Errorf("RowsAffected() = %d, want %d", n, i+1)
		}
	}
}

func openLeaf(t *testing.T, dsn, params string) *sql.DB {
	t.Helper()
	leaf, err := sql.Open(driver.Name, dsn+"?"+params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leaf.Close() })
	return leaf
}

func TestOnlyResultReturnsID(t *testing.T) {
	plain, leaf := open(t, "leafTables=t&leafLastInsertID=result", allocTable, row("t", 1, 1000), tableT)
	leaf.SetMaxOpenConns(1)
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1), (2)"); id != 1 {
		t.Errorf("LastInsertId() = %d, want 1", id)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE b = 'x'", 3); id != 3 {
		t.Errorf("upsert that inserts: LastInsertId() = %d, want 3", id)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE b = 'y'", 3); id != 0 {
		t.Errorf("upsert that updates: LastInsertId() = %d, want 0", id)
	}
	var id int64
	if err := leaf.QueryRow("SELECT LAST_INSERT_ID()").Scan(&id); err != nil || id != 0 {
		t.Errorf("LAST_INSERT_ID() = %d, error %v; want 0, since the statement has no mark", id, err)
	}
	_ = plain
}

// TestUnreachableStoreFailsInBoundedTime: while the store is unreachable, statements get ids from memory, then
// fail with the cause in bounded time. They work again when the store is back.
func TestUnreachableStoreFailsInBoundedTime(t *testing.T) {
	ids := mysqltest.Database(t)
	openOn(t, ids, "leafTables=none", allocTable, row("t", 1, 4))
	cfg, err := mysql.ParseDSN(ids)
	if err != nil {
		t.Fatal(err)
	}
	proxy := netfault.Start(t, cfg.Addr)
	cfg.Addr = proxy.Addr()
	_, leaf := open(t, "leafTables=t&leafStore="+strings.ReplaceAll(cfg.FormatDSN(), "/", "%2F"), tableT)
	a := 0
	insert := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		a++
		_, err := leaf.ExecContext(ctx, "INSERT INTO t (a) VALUES (?)", a)
		return err
	}
	if err := insert(); err != nil {
		t.Fatal(err)
	}
	proxy.Down()
	served := 0
	for err = insert(); err == nil && served < 100; err = insert() {
		served++
	}
	if served < 2 {
		t.Errorf("%d statements got ids from memory, want at least 2", served)
	}
	var fe *driver.FillError
	if !errors.As(err, &fe) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error with an unreachable store = %v, want a FillError other than the context's", err)
	}
	if err := proxy.Up(); err != nil {
		t.Fatal(err)
	}
	if err := insert(); err != nil {
		if err = insert(); err != nil { // the attempt after the back-off may have been in progress
			t.Errorf("error after the store is back = %v, want none", err)
		}
	}
}

// TestKilledConnectionsRepeatNoID: database/sql retries on bad connections. Retries may lose
// ids, but never repeat them.
func TestKilledConnectionsRepeatNoID(t *testing.T) {
	dsn := mysqltest.Database(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 10), tableT)
	proxy := netfault.Start(t, cfg.Addr)
	cfg.Addr = proxy.Addr()
	leaf := openLeaf(t, cfg.FormatDSN(), "leafTables=t&leafStore="+strings.ReplaceAll(dsn, "/", "%2F"))
	stored, told := 0, 0
	for i := range 200 {
		if i%10 == 5 {
			proxy.Cut()
		}
		if _, err := leaf.Exec("INSERT INTO t (a) VALUES (?)", i); err == nil {
			told++
		} else if me := (*mysql.MySQLError)(nil); errors.As(err, &me) {
			t.Errorf("statement %d: error of the server %v, want none", i, err)
		}
	}
	if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&stored); err != nil || stored < told || told < 150 {
		t.Errorf("%d rows stored, %d acknowledged, error %v; want at least 150 acknowledged, and all of them stored", stored, told, err)
	}
}

func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.DBName
}

// TestNameInAnotherCharsetIsRefused: a name that cannot be compared must not bypass
// the rules.
func TestNameInAnotherCharsetIsRefused(t *testing.T) {
	_, leaf := open(t, "leafTables=größe&charset=latin1", allocTable, row("größe", 1, 10), "CREATE TABLE größe (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
	if _, err := leaf.Exec("INSERT INTO gr\xf6\xdfe (a) VALUES (1)"); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("error %v, want a refusal", err)
	}
}

// TestPartOfQueryMayReturnRows: a statement that needs its own query may be followed by
// one that returns rows.
func TestPartOfQueryMayReturnRows(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t&multiStatements=true&interpolateParams=true", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		leaf.SetMaxOpenConns(1)
		var id, n int64
		for i, text := range []string{
			"INSERT INTO t (id, a) SELECT 0, ? FROM (SELECT 1) s; SELECT LAST_INSERT_ID(), ?",
			"INSERT INTO t (id, a) VALUES (NULL, LAST_INSERT_ID()); SELECT LAST_INSERT_ID() + ? - ?, 2",
			"INSERT INTO t (id, a) SELECT 0, ? FROM t LIMIT 1; SELECT LAST_INSERT_ID(), ?",
			"INSERT INTO t (id, a) SELECT 0, ? FROM t LIMIT 1; INSERT INTO t (id, a) SELECT 0, ? FROM t LIMIT 1; SELECT LAST_INSERT_ID() - 1, 2",
		} {
			if err := leaf.QueryRow(text, 1, 2).Scan(&id, &n); err != nil || id != 100+int64(i) && i != 1 || n != 2 {
				t.Errorf("%s: %s: id %d, count %d, error %v; want id %d, count 2", server.Name, text, id, n, err, 100+i)
			}
		}
		for _, text := range []string{"SELECT 1; INSERT INTO t (id, a) VALUES (NULL, LAST_INSERT_ID())", "SELECT 1; CREATE TABLE u (id INT); INSERT INTO t (id, a) SELECT 0, 1 FROM t"} {
			if rows, err := leaf.Query(text); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %s: error %v, want a refusal", server.Name, text, err)
				if err == nil {
					rows.Close()
				}
			}
		}
	}
}
