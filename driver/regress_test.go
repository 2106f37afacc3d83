package driver_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	tableAI  = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(100))"
	notByUs  = 1_000_000 // leaf_alloc starts here: a lower key that no case wrote is the server's own
	otherAI  = "CREATE DATABASE OTHER; CREATE TABLE OTHER.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"
	withMult = "&multiStatements=true"
)

// A regression is a sequence of statements on one connection.
type regression struct {
	name   string
	only   string // a server's name, "" for both
	params string
	setup  []string
	steps  []step
	query  bool // the first step through Query
}

// TestNoRowWithoutAKeyOfOurs: whether it is filled, refused or in error, a
// statement must not leave a row whose key the server made.
func TestNoRowWithoutAKeyOfOurs(t *testing.T) {
	cases := []regression{
		{name: "string argument outside strict mode", params: "&sql_mode=''", steps: []step{
			ex("INSERT INTO t (id, a) VALUES (?, 1)", ""), ex("INSERT INTO t (id, a) VALUES (?, 2)", "abc"),
			ex("INSERT INTO t (id, a) VALUES (?, 3)", "0abc"), ex("INSERT INTO t (id, a) VALUES (?, 4)", []byte{})}},
		{name: "string argument under IGNORE", steps: []step{
			ex("INSERT IGNORE INTO t (id, a) VALUES (?, 1)", ""), ex("INSERT IGNORE INTO t (id, a) VALUES (?, 2)", "abc")}},
		{name: "string argument interpolated", params: "&sql_mode=''&interpolateParams=true", steps: []step{
			ex("INSERT INTO t (id, a) VALUES (?, 1)", ""), ex("INSERT INTO t (id, a) VALUES (?, 2)", "abc")}},
		{name: "a half rounds to even", steps: []step{
			ex("INSERT INTO t (id, a) VALUES (?, 1)", 0.5), ex("INSERT INTO t (id, a) VALUES (?, 2)", -0.5)}},
		{name: "almost a half", steps: []step{
			ex("INSERT INTO t (id, a) VALUES (?, 1)", "0.49999999999999999999"), ex("INSERT INTO t (id, a) VALUES (0.49999999999999999999, 2)"),
			ex("INSERT INTO t (id, a) VALUES ('0.49999999999999999999', 3)")}},
		{name: "expression below a half", steps: []step{
			ex("INSERT INTO t (id, a) VALUES (1/4, 1)"), ex("INSERT INTO t (id, a) VALUES (?/4, 2)", 1), ex("INSERT INTO t (id, a) VALUES (RAND()*0.4, 3)"),
			ex("INSERT INTO t (id, a) SELECT 0.25, 4"), ex("INSERT INTO t (id, a) SELECT RAND()*0.4, 5")}},
		{name: "gbk", params: "&charset=gbk", steps: []step{
			ex("INSERT INTO t (a, b) VALUES (1, '\xbf\\')"), ex("INSERT INTO t (b, a) VALUES ('\xbf\\', 2), ('x', 3)")}},
		{name: "SET NAMES sjis", steps: []step{
			ex("SET NAMES sjis"), ex("INSERT INTO t (a, b) VALUES (1, '\x83\\')"), ex("INSERT INTO t (b, a) VALUES ('\x83\\', 2), ('x', 3)")}},
		{name: "latin1 no-break space", params: "&charset=latin1", steps: []step{
			ex("INSERT\xa0INTO t (a) VALUES (1)"), ex("INSERT INTO t\xa0(a) VALUES (2)")}},
		{name: "USE after an error behind the first result", params: withMult, query: true, setup: []string{otherAI}, steps: []step{
			ex("SELECT 1; SELECT nocol FROM t; USE OTHER"), ex("INSERT INTO t (a) VALUES (1)")}},
		{name: "text behind a routine", params: withMult, setup: []string{"CREATE TABLE x (a INT)"}, steps: []step{
			ex("CREATE PROCEDURE p1() SELECT * FROM x FOR UPDATE; INSERT INTO t (a) VALUES (1)"),
			ex("CREATE PROCEDURE p2() SELECT NOT IF(1, 2, 3); INSERT INTO t (a) VALUES (2)"),
			ex("CREATE PROCEDURE p3() SELECT DISTINCT IF(1, 2, 3); INSERT INTO t (a) VALUES (3)")}},
		{name: "stored text in a compound statement", only: "mariadb", steps: []step{
			ex("BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'; END"),
			ex("BEGIN NOT ATOMIC PREPARE s FROM 'INSERT INTO t (a) VALUES (2)'; EXECUTE s; END"),
			ex("IF 1 THEN EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (3)'; END IF")}},
		{name: "stored text in sql_mode ORACLE", only: "mariadb", steps: []step{
			ex("SET sql_mode = 'ORACLE'"), ex("BEGIN EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'; END;")}},
		{name: "stored text put together", only: "mariadb", steps: []step{
			ex("EXECUTE IMMEDIATE CONCAT('INSERT INTO ', 't (a) VALUES (1)')"),
			ex("EXECUTE IMMEDIATE x'494e5345525420494e544f2074202861292056414c554553202832290a'")}},
		{name: "names in brackets", only: "mariadb", steps: []step{
			ex("SET sql_mode = 'MSSQL'"), ex("INSERT INTO [t] (a) VALUES (1)")}},
		{name: "sql_select_limit", params: "&leafTables=auto&sql_select_limit=1", setup: []string{row("a", 1, 10), row("zz", 1, 10)}, steps: []step{
			ex("INSERT INTO t (a) VALUES (1)"), ex("INSERT INTO t VALUES (NULL, 2, 'x')")}},
	}
	for _, tt := range cases {
		for _, server := range mysqltest.Targets(t) {
			if tt.only != "" && tt.only != server.Name {
				continue
			}
			t.Run(tt.name+"/"+server.Name, func(t *testing.T) { tt.run(t, server) })
		}
	}
}

func (r regression) run(t *testing.T, server mysqltest.Target) {
	dsn := server.Database(t)
	self := databaseOf(t, dsn)
	name := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "OTHER", self+"x"), "SELF", self)
	}
	params := "leafTables=t" + r.params
	if strings.Contains(r.params, "leafTables") {
		params = strings.TrimPrefix(r.params, "&")
	}
	setup := []string{allocTable, row("t", notByUs, 1000), tableAI}
	for _, s := range r.setup {
		setup = append(setup, strings.Split(name(s), "; ")...)
	}
	plain, leaf := openOn(t, dsn, params, setup...)
	t.Cleanup(func() { plain.Exec("DROP DATABASE IF EXISTS " + self + "x") })
	leaf.SetMaxOpenConns(1)
	c, err := leaf.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []driver.GeneratedIDs
	ctx := driver.WithGeneratedIDs(t.Context(), &ids)
	for i, s := range r.steps {
		if r.query && i == 0 {
			rows, err := c.QueryContext(ctx, name(s.sql))
			if err != nil {
				t.Fatal(err)
			}
			for rows.NextResultSet() {
			}
			rows.Close()
			continue
		}
		_, err := c.ExecContext(ctx, name(s.sql), s.args...)
		t.Logf("%q %v: %v", s.sql, s.args, err)
	}
	c.Close()
	rows, err := plain.Query("SELECT id, a FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var a sql.NullInt64
		if err := rows.Scan(&id, &a); err != nil {
			t.Fatal(err)
		}
		ours := slices.ContainsFunc(ids, func(g driver.GeneratedIDs) bool { return id >= g.First && id < g.First+int64(g.N) })
		if !ours {
			t.Errorf("row a=%d has key %d, which the server made", a.Int64, id)
		}
	}
}

// TestKeysThatAreNotZero: what is no 0 in the key's own type is a key.
func TestKeysThatAreNotZero(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for typ, keys := range map[string][]any{
			"VARCHAR(40)":   {"00", "0.1", "0e12345", "-0", "1e-9", "000"},
			"DECIMAL(30,2)": {"0.25", 0.35},
		} {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), "CREATE TABLE t (id "+typ+" PRIMARY KEY, a INT)")
			for i, key := range keys {
				if _, err := leaf.Exec("INSERT INTO t (id, a) VALUES (?, ?)", key, i); err != nil {
					t.Error(err)
				}
				var got string
				if err := plain.QueryRow("SELECT id FROM t WHERE a = ?", i).Scan(&got); err != nil || got != fmt.Sprint(key) {
					t.Errorf("%s, %s: key %v became %s, %v", server.Name, typ, key, got, err)
				}
			}
		}
	}
}

// TestKeyExpressionsRunOnce: the guard around an expression must not run it
// twice, or refuse it.
func TestKeyExpressionsRunOnce(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
		leaf.SetMaxOpenConns(1)
		texts := []string{"INSERT INTO t (id, a) VALUES ((@i := @i + 1), 1)"}
		if server.Name == "mariadb" {
			if _, err := plain.Exec("CREATE SEQUENCE s"); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, "INSERT INTO t (id, a) VALUES (NEXTVAL(s), 2)")
		}
		if _, err := leaf.Exec("SET @i := 100"); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			_, err := leaf.Exec(text)
			if errors.Is(err, driver.ErrRefused) {
				continue
			}
			want, got := []int64{101, 1}[i], int64(0)
			if err := plain.QueryRow("SELECT id FROM t WHERE a = ?", i+1).Scan(&got); err != nil || got != want {
				t.Errorf("%s, %s: key %d, want %d, %v", server.Name, text, got, want, err)
			}
		}
	}
}

// TestRoutinesAreLeftAlone: what a stored program writes is not written now.
func TestRoutinesAreLeftAlone(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableAI, "CREATE TABLE x (start INT, end INT)",
			"CREATE EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DISABLE DO DELETE FROM t")
		for _, text := range []string{
			"CREATE PROCEDURE p1() BEGIN SELECT start, end FROM x; INSERT INTO t (a) VALUES (1); END",
			"CREATE PROCEDURE p2() BEGIN SELECT 1 end; INSERT INTO t (a) VALUES (1); END",
			"ALTER EVENT e DO BEGIN DELETE FROM t; INSERT INTO t (a) VALUES (1); END",
		} {
			if _, err := leaf.Exec(text); err != nil && !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %v", text, err)
			}
		}
		var changed int
		if err := plain.QueryRow("SELECT (SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_definition LIKE '%LAST_INSERT_ID%')" +
			" + (SELECT COUNT(*) FROM information_schema.events WHERE event_schema = DATABASE() AND event_definition LIKE '%LAST_INSERT_ID%')").Scan(&changed); err != nil || changed > 0 {
			t.Errorf("%s: %d stored programs hold an id of ours for good, %v", server.Name, changed, err)
		}
	}
}

// TestLockedTable: an application that locked the table must not wait for a
// query of ours that waits for its lock (a mysqldump begins so).
func TestLockedTable(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
		leaf.SetMaxOpenConns(1)
		if _, err := leaf.Exec("LOCK TABLES t WRITE"); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"INSERT INTO t (id, a) VALUES (7, 1)", "INSERT INTO t (a) VALUES (2)"} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := leaf.ExecContext(ctx, text)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %s waits for its own lock", server.Name, text)
			}
		}
		leaf.Exec("UNLOCK TABLES")
	}
}

// TestStartsAboveTheHighestKey: also where MAX compares as text, or lies above
// the ids' range.
func TestStartsAboveTheHighestKey(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, setup := range [][]string{
			{"CREATE TABLE t (id VARCHAR(40) PRIMARY KEY, a INT)", "INSERT INTO t VALUES ('9', 0), ('10', 0), ('11', 0)"},
			{"CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a INT)", "INSERT INTO t VALUES (18446744073709551615, 0), (1, 0), (11, 0)"},
		} {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true", append([]string{allocTable}, setup...)...)
			if _, err := leaf.Exec("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 666"); err != nil {
				t.Log(err)
			}
			var overwritten int
			if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE a = 666").Scan(&overwritten); err != nil || overwritten > 0 {
				t.Errorf("%s, %s: a row was overwritten, %v", server.Name, setup[0], err)
			}
		}
	}
}

// TestUpsertNamesNoIDThatWasNotStored: where the update list says nothing of
// the key's id, a row that was updated gives 0 rather than the unused id.
func TestUpsertNamesNoIDThatWasNotStored(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, tt := range []struct{ table, text string }{
			{"CREATE TABLE t (id VARCHAR(40) PRIMARY KEY, a INT UNIQUE, b VARCHAR(20))", "INSERT INTO t (a, b) VALUES (1, ?) ON DUPLICATE KEY UPDATE b = VALUES(b)"},
			{tableT, "INSERT INTO t (a, b) VALUES (1, ?) ON DUPLICATE KEY UPDATE id = 777, b = VALUES(b)"},
			{tableT, "INSERT INTO t (a, b) VALUES (1, ?) ON DUPLICATE KEY UPDATE id = id + 0, b = VALUES(b)"},
		} {
			plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tt.table, "INSERT INTO t VALUES (7, 1, 'x')")
			for _, b := range []string{"updated", "updated"} { // the second leaves the row as it is
				id := insertID(t, leaf, tt.text, b)
				var n int
				if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE id = ?", fmt.Sprint(id)).Scan(&n); err != nil || id != 0 && n == 0 {
					t.Errorf("%s, %s: LastInsertId %d is no row, %v", server.Name, tt.text, id, err)
				}
			}
		}
	}
}

// TestOrderOfASelectInParentheses: ids follow the select's order.
func TestOrderOfASelectInParentheses(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT,
			"CREATE TABLE src (a INT)", "INSERT INTO src VALUES (1), (2), (3), (4)")
		if _, err := leaf.Exec("INSERT INTO t (a) ((SELECT a FROM src ORDER BY a DESC))"); err != nil {
			t.Error(err)
		}
		var list string
		if err := plain.QueryRow("SELECT GROUP_CONCAT(a ORDER BY id) FROM t").Scan(&list); err != nil || list != "4,3,2,1" {
			t.Errorf("%s: %s, %v", server.Name, list, err)
		}
	}
}

// TestSelectWithOffsetOnly is a form of MariaDB's.
func TestSelectWithOffsetOnly(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", notByUs, 1000), tableT, "CREATE TABLE src (a INT)", "INSERT INTO src VALUES (1), (2), (3)")
	if id := insertID(t, leaf, "INSERT INTO t (a) SELECT a FROM src ORDER BY a OFFSET 1 ROWS"); id != notByUs {
		t.Errorf("id %d", id)
	}
}

// TestTableMadeInTheSameText: a migration file is one text.
func TestTableMadeInTheSameText(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t:id"+withMult, allocTable, row("t", notByUs, 1000))
		_, err := leaf.Exec("CREATE TABLE t (id BIGINT PRIMARY KEY, a INT); INSERT INTO t (a) VALUES (1)")
		if err != nil && !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %v is neither the server's error nor a refusal", server.Name, err)
		}
	}
}

// TestResultOnlyBehindACall: the Result is the only one that knows the id.
func TestResultOnlyBehindACall(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t&leafLastInsertID=result"+withMult, allocTable, row("t", notByUs, 1000), tableT,
			"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END")
		if id := insertID(t, leaf, "CALL p(); INSERT INTO t (a) VALUES (1)"); id != notByUs {
			t.Errorf("%s: id %d", server.Name, id)
		}
	}
}

// TestRawStatementWithTooFewArguments must be an error, as the inner driver's.
func TestRawStatementWithTooFewArguments(t *testing.T) {
	_, leaf := open(t, "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
	sc, err := leaf.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	sc.Raw(func(dc any) error {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v", p)
			}
		}()
		st, err := dc.(sqldriver.Conn).Prepare("INSERT INTO t (a, b) VALUES (?, ?)")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		//lint:ignore SA1019 the point
		if _, err := st.Exec([]sqldriver.Value{int64(1)}); err == nil {
			t.Error("accepted")
		}
		return nil
	})
}

// TestPreparedVariantsAreBounded: a batch whose rows have keys or not in every
// mix must not use up the server's prepared statements.
func TestPreparedVariantsAreBounded(t *testing.T) {
	const n = 200
	plain, leaf := open(t, "leafTables=t", allocTable, row("t", notByUs, 1_000_000), tableT)
	st, err := leaf.Prepare("INSERT IGNORE INTO t (id, a) VALUES (?, NULL)" + strings.Repeat(", (?, NULL)", n-1))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	count := func() (n int) {
		if err := plain.QueryRow("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Scan(new(string), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	for i := range n {
		args := make([]any, n)
		for r := range args {
			if r != i {
				args[r] = 10 + r
			}
		}
		if _, err := st.Exec(args...); err != nil {
			t.Fatal(err)
		}
	}
	if made := count() - before; made > 64 {
		t.Errorf("%d statements stay prepared on the server for one", made)
	}
}

// TestInsertOnlyAccount: an application that may only insert could before.
func TestInsertOnlyAccount(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		db := databaseOf(t, dsn)
		user := "u" + db[len(db)-12:]
		plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", notByUs, 1000), tableT,
			"CREATE USER "+user+" IDENTIFIED BY 'pw'", "GRANT INSERT ON "+db+".t TO "+user, "GRANT SELECT, UPDATE ON "+db+".leaf_alloc TO "+user)
		t.Cleanup(func() { plain.Exec("DROP USER " + user) })
		leaf := openLeaf(t, strings.Replace(dsn, "root", user+":pw", 1), "leafTables=t")
		if _, err := leaf.Exec("INSERT INTO t (a) VALUES (1)"); err != nil {
			t.Errorf("%s: %v", server.Name, err)
		}
	}
}

// TestResultOnlyWithTheUsersOwnMark: id = LAST_INSERT_ID(id) asks for the
// existing row's id, and the server gives it.
func TestResultOnlyWithTheUsersOwnMark(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t&leafLastInsertID=result", allocTable, row("t", notByUs, 1000), tableT, "INSERT INTO t VALUES (7, 1, 'x')")
		if id := insertID(t, leaf, "INSERT INTO t (a, b) VALUES (1, 'y') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), b = VALUES(b)"); id != 7 {
			t.Errorf("%s: id %d", server.Name, id)
		}
	}
}
