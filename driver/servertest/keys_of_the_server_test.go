package servertest

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	tableAI  = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(100))"
	notByUs  = 1_000_000 // leaf_alloc starts here: the server generated any lower key that no case wrote
	otherAI  = "CREATE DATABASE OTHER; CREATE TABLE OTHER.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"
	withMult = "&multiStatements=true"
)

// A regression is a sequence of statements on one connection.
type regression struct {
	name   string
	only   string // name of the only server to run on; empty for both
	params string
	setup  []string
	steps  []step
	query  bool // the first step is sent with Query
}

// TestServerGeneratesNoKey: a statement must not leave a row with a key that the
// server generated, whether it is filled, refused or fails.
func TestServerGeneratesNoKey(t *testing.T) {
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
			t.Errorf("row a=%d has key %d of the server, want a key of leafsql", a.Int64, id)
		}
	}
}
