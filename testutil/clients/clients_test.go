//go:build unix

// Package clients runs programs in PHP, Python, Java, Node, Ruby, Perl and Rust, and the command line through the proxy. Each is one
// script in testdata, which prints everything that its client returns. A run through the proxy has to print and store
// the same as a run without it on tables with AUTO_INCREMENT.
package clients

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A program prints, line by line, everything that its client returns, on the server that the environment names.
type program struct {
	name    string
	command func(t *testing.T) *exec.Cmd
}

//go:embed testdata/schema.sql
var schema string

// runPrograms runs programs directly on tables with AUTO_INCREMENT, and through the proxy on the same tables
// without it. It compares the outputs and the stored rows.
func runPrograms(t *testing.T, programs ...program) {
	for _, target := range mysqltest.Targets(t) {
		for _, p := range programs {
			t.Run(target.Name+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				runProgramOn(t, target, p)
			})
		}
	}
}

func runProgramOn(t *testing.T, target mysqltest.Target, p program) {
	t.Helper()
	direct, through := target.Database(t), target.Database(t)
	createTables(t, direct, "AUTO_INCREMENT")
	createTables(t, through, "")
	user := createAccount(t, target, direct, through)
	want := p.run(t, direct, address(t, direct), user)
	got := p.run(t, through, startProxy(t, through, "*"), user)
	compare(t, want, got)
	for _, table := range tables() {
		if want, got := readStored(t, direct, table), readStored(t, through, table); want != got {
			t.Errorf("rows of %s\ndirect:\n%s\nthrough the proxy:\n%s", table, want, got)
		}
	}
}

func compare(t *testing.T, want, got []string) {
	t.Helper()
	different := 0
	for i, j := 0, 0; i < len(want) || j < len(got); {
		direct, through := lineAt(want, i), lineAt(got, j)
		switch {
		case direct == through || isExpected(direct, through):
			i, j = i+1, j+1
		case slices.Contains(proxyOnly, through):
			j++
		default:
			if different++; different <= 10 {
				t.Errorf("line %d through the proxy\n got: %s\nwant: %s", i+1, shorten(through), shorten(direct))
			}
			i, j = i+1, j+1
		}
	}
	t.Logf("%d lines, %d different beyond those expected", len(want), different)
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(ended)"
}

func shorten(line string) string {
	if len(line) > 2000 {
		return line[:2000] + "…"
	}
	return line
}

// A user is an account of the test, with a password.
type user struct{ name, password string }

func createAccount(t *testing.T, target mysqltest.Target, dsns ...string) user {
	t.Helper()
	var suffix [4]byte
	rand.Read(suffix[:])
	u := user{"app_" + hex.EncodeToString(suffix[:]), "a secret"}
	execute(t, target.DSN(), fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", u.name, u.password))
	t.Cleanup(func() { execute(t, target.DSN(), "DROP USER "+u.name+"@'%'") })
	for _, dsn := range dsns {
		execute(t, target.DSN(), fmt.Sprintf("GRANT ALL ON %s.* TO %s@'%%'", parseDSN(t, dsn).DBName, u.name))
	}
	return u
}

func createTables(t *testing.T, dsn, key string) {
	t.Helper()
	for statement := range strings.SplitSeq(strings.TrimSpace(schema), ";\n") {
		execute(t, dsn, strings.TrimSuffix(strings.ReplaceAll(statement, "{KEY}", key), ";"))
	}
}

// tables returns the names of the schema's tables.
func tables() (names []string) {
	for _, match := range regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllStringSubmatch(schema, -1) {
		names = append(names, match[1])
	}
	return names
}

// readStored returns the rows of a table, with large values replaced by their hashes.
func readStored(t *testing.T, dsn, table string) string {
	t.Helper()
	var all strings.Builder
	db := open(t, dsn)
	defer db.Close()
	columns := "*"
	if table == "failing" { // whether a row that cannot be stored uses up an id depends on the server
		columns = "a"
	}
	for _, row := range query(t, db, "SELECT "+columns+" FROM "+table+" ORDER BY id") {
		for _, v := range row {
			if len(v) > 300 {
				v = fmt.Sprintf("%d bytes", len(v))
			}
			fmt.Fprintf(&all, " %q", v)
		}
		all.WriteByte('\n')
	}
	return all.String()
}

// query returns the rows of a query, with NULL as "".
func query(t *testing.T, db *sql.DB, text string) (all [][]string) {
	t.Helper()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]sql.RawBytes, len(names))
	scanned := make([]any, len(names))
	for i := range values {
		scanned[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(scanned...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = string(v)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// run returns the lines that the program prints. Names that differ between two runs are replaced.
func (p program) run(t *testing.T, dsn, addr string, u user) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	name := parseDSN(t, dsn).DBName
	cmd := p.command(t)
	cmd.Env = append(os.Environ(), append(cmd.Env, "DB_HOST="+host, "DB_PORT="+port, "DB_USER="+u.name, "DB_PASSWORD="+u.password,
		"DB_NAME="+name, "LC_ALL=C.UTF-8", "TZ=UTC")...)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })()
	err = cmd.Wait()
	if err != nil {
		t.Errorf("%s at %s: %v\n%s", p.name, addr, err, shorten(errors.String()))
	}
	text := strings.NewReplacer(name, "DB", port, "PORT").Replace(out.String())
	return strings.Split(strings.TrimSpace(text), "\n")
}

func address(t *testing.T, dsn string) string { return parseDSN(t, dsn).Addr }

func parseDSN(t *testing.T, dsn string) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// addParameters adds parameters to a DSN.
func addParameters(dsn, more string) string {
	if strings.Contains(dsn, "?") {
		return dsn + "&" + more
	}
	return dsn + "?" + more
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func execute(t *testing.T, dsn, statement string) {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// command returns a function that returns a command which runs in a folder of
// testdata.
func command(folder, program string, args ...string) func(t *testing.T) *exec.Cmd {
	return func(t *testing.T) *exec.Cmd {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatalf("%v; run testutil/clients/install.sh", err)
		}
		cmd := exec.Command(path, args...)
		cmd.Dir = filepath.Join("testdata", folder)
		return cmd
	}
}

// installedFolder returns the folder that install.sh has created for a name.
func installedFolder(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "leafsql", "clients", name)
	if _, err := os.Stat(folder); err != nil {
		t.Fatalf("%v; run testutil/clients/install.sh, or make clients", err)
	}
	return folder
}

func jdbc(parameters ...string) func(t *testing.T) *exec.Cmd {
	return java("java", "Client", parameters...)
}

// java returns a function that returns the command for a class in a folder of
// testdata.
func java(folder, class string, args ...string) func(t *testing.T) *exec.Cmd {
	return func(t *testing.T) *exec.Cmd {
		made := installedFolder(t, folder)
		return command(folder, "java", slices.Concat([]string{"-XX:TieredStopAtLevel=1", "-cp", made + "/*:" + made, class}, args)...)(t)
	}
}

// TestClients has the programs with clients that are packages of the distribution, and
// those in Java.
func TestClients(t *testing.T) {
	runPrograms(t,
		program{name: "PHP mysqli", command: command("php", "php", "mysqli.php")},
		program{name: "PHP mysqli, compressed", command: command("php", "php", "mysqli.php", "compressed")},
		program{name: "PHP PDO", command: command("php", "php", "pdo.php", "emulated")},
		program{name: "PHP PDO, prepared", command: command("php", "php", "pdo.php", "prepared")},
		program{name: "Python PyMySQL", command: command("python", "/usr/bin/python3", "dbapi.py", "pymysql")},
		program{name: "MariaDB Connector/J", command: jdbc("mariadb")},
		program{name: "MySQL Connector/J, rewritten batches", command: jdbc("mysql", "rewriteBatchedStatements=true&useLocalTransactionState=true&useLocalSessionState=true")},
		program{name: "mariadb", command: commandLine("")},
		program{name: "mariadb, compressed", command: commandLine("--compress")},
	)
}

func commandLine(options string) func(t *testing.T) *exec.Cmd {
	return command("mariadb", "bash", "-c", `exec mariadb --no-defaults `+options+` -vv -f --unbuffered --show-warnings --local-infile -h "$DB_HOST" -P "$DB_PORT" -u "$DB_USER" -p"$DB_PASSWORD" "$DB_NAME" 2>&1 <statements.sql |
		sed -E 's/ \([0-9.]+ sec\)//'`)
}
