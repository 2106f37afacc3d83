package docs

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/nacos-group/nacos-sdk-go/v2/clients/config_client" // the pages' programs import these packages
	_ "github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	_ "go.opentelemetry.io/otel"

	_ "github.com/leafsql/leafsql/metrics"
	_ "github.com/leafsql/leafsql/otelmetrics"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A scenario is a section of a page. Its SQL and Go run in their order on the page.
type scenario struct {
	page, section string // no section: the whole page
	setup         string // SQL that runs first, for the requirements of the page
	commands      bool   // blocks of sh run as well
	// probe is a statement of a writer without leafsql. It runs after each block, and probes are the numbers of the
	// expected server errors, 0 for none.
	probe  string
	probes []uint16
}

const (
	orders = `CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT NOT NULL PRIMARY KEY %s, customer VARCHAR(64) NOT NULL, total INT NOT NULL);
`
	app = `CREATE USER app IDENTIFIED BY 'secret';
GRANT ALL ON shop.* TO app;
`
	admin = `CREATE USER admin IDENTIFIED BY 'secret';
GRANT ALL PRIVILEGES ON *.* TO admin WITH GRANT OPTION;
`
	customers = `CREATE TABLE shop.customers (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'customer number');
CREATE TABLE shop.invoices (id BIGINT NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL,
  CONSTRAINT invoices_customer FOREIGN KEY (customer_id) REFERENCES shop.customers (id));
CREATE TABLE shop.visits (id BIGINT NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL);
`
	leaf = `CREATE TABLE %s.leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '' PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,
  description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
INSERT INTO %[1]s.leaf_alloc (biz_tag, max_id, step) VALUES ('%s', 1, 1000);
`
	plainInsert = "INSERT INTO shop.orders (customer, total) VALUES ('plain', 1)"
)

var (
	counted   = strings.Replace(fmt.Sprintf(orders, "AUTO_INCREMENT"), "BIGINT", "INT", 1) + app + "INSERT INTO shop.orders (id, customer, total) VALUES (7, 'old', 1);\n"
	scenarios = []scenario{
		{page: "../README.md"},
		{page: "setup.md", setup: fmt.Sprintf(orders, "")},
		{page: "migration.md", section: "From AUTO_INCREMENT", commands: true, setup: counted + admin + customers, probe: plainInsert,
			probes: []uint16{0, 0, 0, 0, 0, 0, 0, 0, 1644, 1644, 0, 1644, 1644, 1364, 0}},
		{page: "migration.md", section: "From AUTO_INCREMENT by hand", setup: counted, probe: plainInsert,
			probes: []uint16{0, 0, 1644, 0, 1644, 1364}},
		{page: "migration.md", section: "From AUTO_INCREMENT on several shards", commands: true,
			setup: fmt.Sprintf(orders, "AUTO_INCREMENT") + app + admin + "-- on ids\nDROP USER app;\n-- on db1\nINSERT INTO shop.orders VALUES (4710, 'old', 1);\n", probe: plainInsert,
			probes: []uint16{0, 0, 0, 1644, 1644, 1364}},
		{page: "migration.md", section: "From a Java Leaf",
			setup: fmt.Sprintf(orders, "") + app + "-- on ids\nDROP USER app;\nCREATE DATABASE leaf;\n" + fmt.Sprintf(leaf, "leaf", "leaf-order")},
		{page: "migration.md", section: "From UUIDs",
			setup: "CREATE DATABASE shop;\nCREATE TABLE shop.files (id CHAR(36) NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL);\n" + app +
				"INSERT INTO shop.files VALUES (UUID(), 'a'), (UUID(), 'b'), (UUID(), 'c');\n"},
		{page: "operations.md", setup: fmt.Sprintf(orders, "") + fmt.Sprintf(leaf, "shop", "orders") +
			"CREATE TABLE shop.events (id BIGINT NOT NULL PRIMARY KEY, what VARCHAR(64) NOT NULL);\n"},
		{page: "worker-ids.md", setup: "CREATE DATABASE shop;\nCREATE TABLE shop.events (id BIGINT NOT NULL PRIMARY KEY, what VARCHAR(64) NOT NULL);\n" +
			"CREATE USER app IDENTIFIED BY 'secret';\n" + fmt.Sprintf(leaf, "shop", "orders")},
		{page: "serve.md", setup: fmt.Sprintf(orders, "") + app + fmt.Sprintf(leaf, "shop", "orders")},
		{page: "read-write-splitting.md", setup: fmt.Sprintf(orders, "") + app + fmt.Sprintf(leaf, "shop", "orders")},
		{page: "kubernetes.md", setup: fmt.Sprintf(orders, "") + app + fmt.Sprintf(leaf, "shop", "orders") + "CREATE TABLE shop.leaf_worker (id INT);\n"},
		{page: "faq.md", commands: true, setup: fmt.Sprintf(orders, "") + app + admin + fmt.Sprintf(leaf, "shop", "orders")},
	}
)

// TestPagesRun runs the code of the pages, on servers with the names on the pages.
func TestPagesRun(t *testing.T) {
	kinds := mysqltest.Kinds()
	if testing.Short() {
		kinds = kinds[:1]
	}
	programs := map[string]string{}
	for _, s := range scenarios {
		if programs[s.page] == "" {
			programs[s.page] = build(t, readPage(t, s.page))
		}
	}
	for _, kind := range kinds {
		hosts := serversOf(t, kind)
		for _, s := range scenarios {
			t.Run(string(kind)+"/"+filepath.Base(s.page)+"/"+s.section, func(t *testing.T) { s.run(t, hosts, programs[s.page]) })
		}
	}
}

// durableOptions make servers flush their commits, as leafsql check requires.
var durableOptions = []string{"--innodb-flush-log-at-trx-commit=1"}

var startedServers = map[mysqltest.Kind]map[string]*mysqltest.Server{}

// serversOf returns servers of a kind by their names on the pages. All tests use the same ones, which end with the
// process.
func serversOf(t *testing.T, kind mysqltest.Kind) map[string]*mysqltest.Server {
	t.Helper()
	if startedServers[kind] == nil {
		var starting sync.WaitGroup
		var servers [3]*mysqltest.Server
		var errs [3]error
		for i := range servers {
			starting.Go(func() { servers[i], errs[i] = mysqltest.Start(mysqltest.Config{Kind: kind, Args: durableOptions}) })
		}
		starting.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		startedServers[kind] = map[string]*mysqltest.Server{"db0": servers[0], "db1": servers[1], "ids": servers[2], "127.0.0.1": servers[0]}
	}
	return startedServers[kind]
}

func (s scenario) run(t *testing.T, hosts map[string]*mysqltest.Server, program string) {
	if s.page == "faq.md" {
		hosts["db0"].Target().SkipUnless(t, "SKIP LOCKED", 100600, 80000)
	}
	for _, name := range []string{"db0", "db1", "ids"} {
		runSQL(t, hosts, "-- on "+name+"\nDROP DATABASE IF EXISTS shop;\nDROP DATABASE IF EXISTS leaf;\nDROP USER IF EXISTS app, admin;\n")
	}
	for _, part := range regexp.MustCompile(`(?m)^-- on `).Split(s.setup, -1) {
		if name, _, ok := strings.Cut(part, "\n"); ok && hosts[name] != nil {
			runSQL(t, hosts, "-- on "+part)
		} else {
			runSQL(t, hosts, "-- on db0 and db1 and ids\n"+part)
		}
	}
	var probes []uint16
	var output string
	commands := shell{hosts: hosts}
	for i, b := range readPage(t, s.page).blocks {
		if s.section != "" && s.section != b.section {
			continue
		}
		t.Logf("%s:%d", s.page, b.line)
		switch b.lang {
		case "sql":
			runSQL(t, hosts, b.code)
		case "sh":
			if s.commands {
				commands.run(t, b.code)
			}
		case "go":
			output = runGo(t, hosts, program, i)
		case "text output":
			if output != b.code {
				t.Errorf("%s:%d: output of the program before it differs, want this block; got\n%s", s.page, b.line, output)
			}
		}
		if s.probe != "" && b.lang != "text output" {
			probes = append(probes, probe(t, hosts["db0"], s.probe))
		}
	}
	if !slices.Equal(probes, s.probes) {
		t.Errorf("a writer without leafsql gets the errors %v after the blocks, want %v", probes, s.probes)
	}
}

// probe runs a statement and returns the number of the server's error, 0 if there is none.
func probe(t *testing.T, server *mysqltest.Server, statement string) uint16 {
	t.Helper()
	db := open(t, server)
	defer db.Close()
	_, err := db.Exec(statement)
	var refused *mysql.MySQLError
	if err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if refused == nil {
		return 0
	}
	return refused.Number
}

func open(t *testing.T, server *mysqltest.Server) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// runSQL runs a block as an administrator's client does: on the servers in its first line, in the database shop if it
// exists, with DELIMITER.
func runSQL(t *testing.T, hosts map[string]*mysqltest.Server, code string) {
	t.Helper()
	names := []string{"db0"}
	if first, rest, _ := strings.Cut(code, "\n"); strings.HasPrefix(first, "-- on ") {
		names, code = strings.Split(strings.TrimPrefix(first, "-- on "), " and "), rest
	}
	for _, name := range names {
		db := open(t, hosts[name])
		defer db.Close()
		session, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		session.ExecContext(context.Background(), "USE shop")
		for _, statement := range statements(code) {
			rows, err := session.QueryContext(context.Background(), statement)
			if err == nil {
				for rows.Next() {
				}
				err = cmp.Or(rows.Err(), rows.Close())
			}
			if err != nil {
				t.Fatalf("on %s: %s: %v", name, statement, err)
			}
		}
	}
}

// statements splits a script as the clients mysql and mariadb do.
func statements(script string) []string {
	var all []string
	var current strings.Builder
	delimiter := ";"
	for line := range strings.Lines(script) {
		if d, ok := strings.CutPrefix(line, "DELIMITER "); ok {
			delimiter = strings.TrimSpace(d)
			continue
		}
		code, _, _ := strings.Cut(line, "-- ")
		code = strings.TrimSpace(code)
		last, ends := strings.CutSuffix(code, delimiter)
		current.WriteString(last + "\n")
		if ends {
			all = append(all, strings.TrimSpace(current.String()))
			current.Reset()
		}
	}
	return all
}

// build compiles a page's blocks of Go into one program. Its argument selects the block to run.
func build(t *testing.T, p page) string {
	t.Helper()
	dir := t.TempDir()
	// The files are in the module only for the compiler.
	where, err := filepath.Abs("steps")
	if err != nil {
		t.Fatal(err)
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	add := func(name, source string) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(where, name)] = file
	}
	cases := ""
	for i, b := range p.blocks {
		if b.lang != "go" {
			continue
		}
		name := fmt.Sprintf("step%d", i)
		cases += fmt.Sprintf("\tcase %q:\n\t\t%s()\n", fmt.Sprint(i), name)
		add(name+".go", wrapFunction(name, b.code))
	}
	if cases == "" {
		return "none"
	}
	add("main.go", fmt.Sprintf(mainFile, cases))
	list, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, where).CombinedOutput(); err != nil {
		t.Fatalf("%s: its Go does not compile: %v\n%s", p.file, err, out)
	}
	return program
}

const mainFile = `package main

import (
	"context"
	"net"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

func main() {
	mysql.RegisterDialContext("tcp", func(ctx context.Context, name string) (net.Conn, error) {
		for _, host := range strings.Split(os.Getenv("HOSTS"), " ") {
			if address, ok := strings.CutPrefix(host, name+"="); ok {
				name = address
			}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", name)
	})
	switch os.Args[1] {
%s	}
}
`

var importNamed = regexp.MustCompile(`import _ "(.*)"`)

// wrapFunction returns a function with the code of a block, which is a whole program or the body
// of a function.
func wrapFunction(name, code string) string {
	if strings.HasPrefix(code, "package main") {
		return strings.Replace(code, "func main()", "func "+name+"()", 1)
	}
	source := "package main\n\nimport (\n\t_ \"github.com/leafsql/leafsql/driver\"\n"
	for _, m := range importNamed.FindAllStringSubmatch(code, -1) { // as a comment
		source += "\t_ \"" + m[1] + "\"\n"
	}
	for _, path := range []string{"context", "database/sql", "errors", "fmt", "log", "log/slog", "net/http", "net/url", "time",
		"github.com/leafsql/leafsql/driver", "github.com/leafsql/leafsql/idgen/worker", "github.com/leafsql/leafsql/nacos",
		"github.com/nacos-group/nacos-sdk-go/v2/clients/config_client", "github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client", "github.com/leafsql/leafsql/metrics", "github.com/leafsql/leafsql/otelmetrics", "github.com/leafsql/leafsql/statuspage", "go.opentelemetry.io/otel",
		"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_golang/prometheus/promhttp"} {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.[A-Z]`).MatchString(code) {
			source += "\t\"" + path + "\"\n"
		}
	}
	return source + ")\n\nfunc " + name + "() {\n" + code + "}\n"
}

func runGo(t *testing.T, hosts map[string]*mysqltest.Server, program string, step int) string {
	t.Helper()
	env := "HOSTS="
	for name, server := range hosts {
		env += name + ":3306=" + server.Addr() + " "
	}
	cmd := exec.Command(program, fmt.Sprint(step))
	cmd.Env = append(os.Environ(), env)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return stdout.String()
}
