package proxy_test

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestMain(m *testing.M) {
	flag.DurationVar(&proxytest.Timeout, "patience", proxytest.Timeout, "how long a client waits for a packet")
	flag.BoolVar(&proxytest.Compressed, "compressed", false, "all clients ask for compression")
	mysql.SetLogger(&mysql.NopLogger{})
	status := m.Run()
	fmt.Printf("%d payloads compared, %d different\n", proxytest.Compared.Load(), proxytest.Different.Load())
	os.Exit(status)
}

// A testDatabase is a new database for a test.
type testDatabase struct {
	mysqltest.Target
	t    testing.TB
	dsn  string
	addr string // address of the server
	name string // name of the database
	db   *sql.DB
}

func newTestDatabase(t testing.TB, target mysqltest.Target) *testDatabase {
	t.Helper()
	p := &testDatabase{Target: target, t: t, dsn: target.Database(t)}
	cfg, err := mysql.ParseDSN(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	p.addr, p.name = cfg.Addr, cfg.DBName
	if p.db, err = sql.Open("mysql", target.DSN()); err != nil {
		t.Fatal(err)
	}
	p.db.SetMaxOpenConns(1)
	t.Cleanup(func() { p.db.Close() })
	return p
}

// exec runs statements in the database, directly on the server.
func (p *testDatabase) exec(texts ...string) {
	p.t.Helper()
	for _, text := range append([]string{"USE " + p.name}, texts...) {
		if _, err := p.db.Exec(text); err != nil {
			p.t.Fatalf("%.200s: %v", text, err)
		}
	}
}

// recreate drops the database and creates it again.
func (p *testDatabase) recreate(texts ...string) {
	p.t.Helper()
	p.exec(append([]string{"DROP DATABASE " + p.name, "CREATE DATABASE " + p.name + " CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE " + p.name}, texts...)...)
}

// queryValue returns the single value that a statement selects, directly on the server.
func (p *testDatabase) queryValue(text string, args ...any) (value string) {
	p.t.Helper()
	if err := p.db.QueryRow(text, args...).Scan(&value); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	return value
}

// createUser creates a user with all rights on the database, and returns the options for its login.
func (p *testDatabase) createUser(name, password string) proxytest.Options {
	p.t.Helper()
	name = name + "_" + strings.TrimPrefix(p.name, "leafsql_")
	p.exec("DROP USER IF EXISTS "+name, "CREATE USER "+name+" IDENTIFIED BY '"+password+"'", "GRANT ALL ON "+p.name+".* TO "+name)
	p.t.Cleanup(func() { p.db.Exec("DROP USER IF EXISTS " + name) })
	o := proxytest.Options{User: name, Password: password, Database: p.name}
	if p.Name == string(mysqltest.MySQL) {
		o.Plugin = "caching_sha2_password"
	}
	return o
}

// rootOptions returns the options for the login of the tests' own user.
func (p *testDatabase) rootOptions() proxytest.Options {
	return proxytest.Options{User: "root", Database: p.name}
}

// runOnServers runs a test on both servers.
func runOnServers(t *testing.T, test func(t *testing.T, p *testDatabase)) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			p := newTestDatabase(t, target)
			before := p.queryValue("SELECT @@global.long_query_time")
			p.exec("SET GLOBAL long_query_time = 10000") // servers flag slow statements
			t.Cleanup(func() { p.db.Exec("SET GLOBAL long_query_time = " + before) })
			test(t, p)
		})
	}
}

// newRelayTwin returns a twin with a proxy that fills no tables.
func (p *testDatabase) newRelayTwin(o proxytest.Options, setup ...string) *proxytest.Twin {
	return &proxytest.Twin{
		Direct: p.addr, Through: proxytest.Start(p.t, p.dsn+"?leafTables=none"), Options: o,
		Setup: func(bool) { p.recreate(setup...) },
	}
}

// firstGenerated is the first key that either side of a filled twin generates.
const firstGenerated = 1000

const allocTable = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL," +
	" description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"

// createTables creates the database with tables to be filled. If through is set, {AUTO} in the texts is removed;
// otherwise it means AUTO_INCREMENT.
func (p *testDatabase) createTables(through bool, texts ...string) {
	p.t.Helper()
	auto, end := "AUTO_INCREMENT", fmt.Sprintf(" AUTO_INCREMENT=%d", firstGenerated)
	if through {
		auto, end = "", ""
	}
	all := []string{allocTable, fmt.Sprintf("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('items', %d, 100000)", firstGenerated)}
	for _, text := range texts {
		if strings.Contains(text, "{AUTO}") {
			text = strings.ReplaceAll(text, "{AUTO}", auto) + end
		}
		all = append(all, text)
	}
	p.recreate(all...)
}

// newFillTwin returns a twin with AUTO_INCREMENT on the server, and a proxy that fills items.
func (p *testDatabase) newFillTwin(o proxytest.Options, setup ...string) *proxytest.Twin {
	w := &proxytest.Twin{Direct: p.addr, Options: o, IDs: firstGenerated, Keys: []string{"id", "LAST_INSERT_ID()"}}
	w.Setup = func(through bool) {
		p.createTables(through, setup...)
		if through {
			w.Through = p.startProxy()
		}
	}
	return w
}

// startProxy starts a proxy that fills items.
func (p *testDatabase) startProxy(settings ...func(*proxy.Config)) (addr string) {
	return proxytest.Start(p.t, p.dsn+"?leafTables=items", settings...)
}

// dial logs in at an address. The connection ends with the test.
func (p *testDatabase) dial(addr string, o proxytest.Options) *proxytest.Client {
	p.t.Helper()
	c, err := proxytest.Dial(addr, o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Conn.Close() })
	return c
}
