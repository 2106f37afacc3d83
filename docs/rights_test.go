package docs

import (
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A feature is one use of the driver, with the rights that it needs according to operations.md.
type feature struct {
	name, parameters string
	rights           []string // RIGHT ON table, or * for the database
	setup            []string
	run              string // an INSERT
}

const (
	leafAlloc  = "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 100, 10)"
	insertRow  = "INSERT INTO t (a) VALUES (1)"
	tSequence  = "CREATE TABLE t_sequence (name VARCHAR(64) NOT NULL PRIMARY KEY, current_value BIGINT NOT NULL, increment INT NOT NULL)"
	sequenceOf = "INSERT INTO t_sequence VALUES ('seq', 100, 10)"
)

var (
	alloc    = schema.LeafAlloc("leaf_alloc")
	leases   = schema.LeafWorker("leaf_worker")
	features = []feature{
		{"segments", "leafTables=t", []string{"INSERT ON t", "SELECT ON leaf_alloc", "UPDATE ON leaf_alloc"}, []string{alloc, leafAlloc}, insertRow},
		{"tags of leaf_alloc", "leafTables=auto", []string{"INSERT ON t", "SELECT ON leaf_alloc", "UPDATE ON leaf_alloc"}, []string{alloc, leafAlloc}, insertRow},
		{"a row that is created", "leafTables=t&leafCreate=true", []string{"INSERT ON t", "SELECT ON t", "SELECT ON leaf_alloc", "UPDATE ON leaf_alloc", "INSERT ON leaf_alloc"},
			[]string{alloc}, insertRow},
		{"a table that is created", "leafTables=t&leafCreate=true", []string{"INSERT ON t", "SELECT ON t", "SELECT ON leaf_alloc", "UPDATE ON leaf_alloc", "INSERT ON leaf_alloc",
			"CREATE ON leaf_alloc"}, nil, insertRow},
		{"leafCreate left in", "leafTables=t&leafCreate=true", []string{"INSERT ON t", "SELECT ON leaf_alloc", "UPDATE ON leaf_alloc"}, []string{alloc, leafAlloc}, insertRow},
		{"snowflakes", "leafTables=t:id:snowflake&leafNewRegistry=true", []string{"INSERT ON t", "SELECT ON leaf_worker", "INSERT ON leaf_worker", "UPDATE ON leaf_worker"}, []string{leases}, insertRow},
		{"snowflakes, the table is created", "leafTables=t:id:snowflake&leafNewRegistry=true&leafCreate=true",
			[]string{"INSERT ON t", "SELECT ON leaf_worker", "INSERT ON leaf_worker", "UPDATE ON leaf_worker", "CREATE ON leaf_worker"}, nil, insertRow},
		{"sequences", "leafTables=t:id:sequence(seq)", []string{"INSERT ON t", "SELECT ON t_sequence", "UPDATE ON t_sequence"}, []string{tSequence, sequenceOf}, insertRow},
		{"UUIDs", "leafTables=u:id:uuid7", []string{"INSERT ON u"}, nil, "INSERT INTO u (a) VALUES (1)"},
		{"INSERT … SELECT", "leafTables=t", []string{"INSERT ON t", "SELECT ON t", "SELECT ON s", "SELECT ON leaf_alloc", "UPDATE ON leaf_alloc", "CREATE TEMPORARY TABLES ON *"},
			[]string{alloc, leafAlloc}, "INSERT INTO t (a) SELECT a FROM s"},
	}
)

// TestListedRightsSuffice: each feature runs with the rights that operations.md lists for it, and fails without any of them.
func TestListedRightsSuffice(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, f := range features {
			t.Run(target.Name+"/"+f.name, func(t *testing.T) { f.testRights(t, target) })
		}
	}
}

func (f feature) testRights(t *testing.T, target mysqltest.Target) {
	dsn := target.Database(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(text string) {
		t.Helper()
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	name := cfg.DBName
	leaf := mustParse(t, strings.ReplaceAll(f.parameters, "leafTables=u:id:uuid7", "leafTables=u:id:uuid7"))
	leaf.MySQL, leaf.Logger = cfg.Clone(), slog.New(slog.NewTextHandler(io.Discard, nil))
	leaf.MySQL.User, leaf.MySQL.Passwd = "u"+name[len(name)-12:], "Right-9.word"
	user := leaf.MySQL.User
	t.Cleanup(func() { db.Exec("DROP USER " + user) })
	do("CREATE USER " + user + " IDENTIFIED BY 'Right-9.word'")
	insert := func(rights []string) error {
		for _, table := range []string{"t", "s", "u", "leaf_alloc", "leaf_worker", "t_sequence"} {
			do("DROP TABLE IF EXISTS " + table)
		}
		do("REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + user)
		do("CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		do("CREATE TABLE u (id BINARY(16) PRIMARY KEY, a INT)")
		do("CREATE TABLE s (a INT)")
		do("INSERT INTO s VALUES (1), (2)")
		for _, text := range f.setup {
			do(text)
		}
		grants := map[string][]string{}
		for _, r := range rights {
			right, table, _ := strings.Cut(r, " ON ")
			grants[table] = append(grants[table], right)
		}
		for table, rights := range grants {
			text := fmt.Sprintf("GRANT %s ON %s.%s TO %s", strings.Join(rights, ", "), name, table, user)
			if _, err := db.Exec(text); err != nil && (table == "leaf_alloc" || table == "leaf_worker") {
				return err // without CREATE, rights on a missing table cannot be granted
			} else if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		connector, err := driver.NewConnector(leaf)
		if err != nil {
			t.Fatal(err)
		}
		filled := sql.OpenDB(connector)
		defer filled.Close()
		_, err = filled.ExecContext(t.Context(), f.run)
		return err
	}
	if err := insert(f.rights); err != nil {
		t.Fatalf("with %q: %v", f.rights, err)
	}
	for i, right := range f.rights {
		if err := insert(slices.Delete(slices.Clone(f.rights), i, i+1)); err == nil {
			t.Errorf("INSERT without %s: error = nil, want one", right)
		}
	}
}

func mustParse(t *testing.T, parameters string) *driver.Config {
	t.Helper()
	cfg, err := driver.ParseDSN("/shop?" + parameters)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
