//go:build unix

package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A proxyProcess is a running leafsql proxy.
type proxyProcess struct {
	*osexec.Cmd
	addresses []string // addresses of its listeners
	metrics   string
	log       *bufio.Scanner
	output    strings.Builder // its log so far
}

// startProxy starts leafsql proxy and waits until it has n listeners.
func startProxy(t *testing.T, n int, args ...string) *proxyProcess {
	t.Helper()
	p := &proxyProcess{Cmd: leafsqlCommand(t, append([]string{"proxy"}, args...)...)}
	log, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	p.log = lines
	for len(p.addresses) < n && lines.Scan() {
		p.output.WriteString(lines.Text() + "\n")
		if m := regexp.MustCompile(`serving clients" address=(\S+)|serving clients address=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			p.addresses = append(p.addresses, m[1]+m[2])
		}
		if m := regexp.MustCompile(`page and metrics"? address=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			p.metrics = m[1]
		}
	}
	if len(p.addresses) < n {
		p.Wait()
		t.Fatalf("proxy ended after %d of %d addresses:\n%s", len(p.addresses), n, p.output.String())
	}
	return p
}

// end ends the process with SIGTERM.
func (p *proxyProcess) end(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	p.wait(t)
}

// wait waits for the end of the process.
func (p *proxyProcess) wait(t *testing.T) {
	t.Helper()
	for p.log.Scan() {
		p.output.WriteString(p.log.Text() + "\n")
	}
	if err := p.Wait(); err != nil {
		t.Errorf("end of the proxy: %v, want nil\n%s", err, p.output.String())
	}
}

// withAddress returns a DSN with another address.
func withAddress(dsn, network, address string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(err)
	}
	cfg.Net, cfg.Addr = network, address
	return cfg.FormatDSN()
}

func getPage(t *testing.T, address string) (status int, body string) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestProxyFillsAndEndsCleanly: the process fills INSERTs of clients on TCP and on a unix socket, and reports its statistics. On
// SIGTERM it ends cleanly: idle clients are disconnected, and a transaction can be finished.
func TestProxyFillsAndEndsCleanly(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		direct := open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1000, 100)",
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, name VARCHAR(20))")
		socket := filepath.Join(t.TempDir(), "leafsql.sock")
		p := startProxy(t, 2, "-dsn", dsn, "-listen", "127.0.0.1:0", "-listen", socket, "-metrics", "127.0.0.1:0")
		idle := open(t, withAddress(dsn, "tcp", p.addresses[0]), "INSERT INTO orders (name) VALUES ('tcp')")
		busy := open(t, withAddress(dsn, "unix", socket), "INSERT INTO orders (name) VALUES ('unix')")
		if ids := queryNumber(t, direct, "SELECT SUM(id) FROM orders"); ids != 2001 {
			t.Errorf("sum of the ids = %d, want 2001", ids)
		}
		for path, want := range map[string]string{
			"/healthz": "ok", "/readyz": "ready", "/": "Statements filled",
			"/metrics": `leafsql_proxy_statements_filled_total{db_name="proxy"} 2`,
		} {
			if status, body := getPage(t, p.metrics+path); status != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: status %d, want 200 and %q\n%s", path, status, want, body)
			}
		}

		tx, err := busy.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.Exec("INSERT INTO orders (name) VALUES ('last')"); err != nil {
			t.Fatal(err)
		}
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		idle.SetMaxIdleConns(0)
		for idle.Ping() == nil { // until it accepts no more clients
		}
		if status, _ := getPage(t, p.metrics+"/readyz"); status != 503 {
			t.Errorf("/readyz during the shutdown: status %d, want 503", status)
		}
		if _, err := tx.Exec("INSERT INTO orders (name) VALUES ('very last')"); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		p.wait(t)
		if n := queryNumber(t, direct, "SELECT COUNT(*) FROM orders"); n != 4 {
			t.Errorf("rows = %d, want 4", n)
		}
	})
}

// TestProxyReportsMissingRightsAtStart: if leafsql's account may not read the required tables, the process reports that and ends; it
// waits for a server that is unreachable.
func TestProxyReportsMissingRightsAtStart(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, "CREATE USER IF NOT EXISTS proxy_start IDENTIFIED BY 's3cret'")
	t.Cleanup(func() { db.Exec("DROP USER proxy_start") })
	name := databaseName(dsn)
	exec(t, db, "GRANT INSERT ON "+name+".* TO proxy_start")
	of := withUser(dsn, "proxy_start", "s3cret")
	fails := func(want string, args ...string) {
		t.Helper()
		out, _ := leafsqlCommand(t, append([]string{"proxy"}, args...)...).CombinedOutput()
		if text := string(out); !strings.Contains(text, want) || strings.Contains(text, "s3cret") {
			t.Errorf("leafsql proxy %q: want %q\n%s", args, want, text)
		}
	}
	local := []string{"-listen", "127.0.0.1:0", "-dsn"}
	fails("add leafCreate=true to create it", append(local, dsn)...)
	startProxy(t, 1, append(local, dsn+"?leafTables=*&leafCreate=true")...).end(t)
	exec(t, db, allocTable)
	fails("GRANT SELECT, UPDATE on it", append(local, of)...)
	fails("correct the user and password", append(local, withUser(dsn, "proxy_start", "wrong"))...)
	fails("-insecure", "-dsn", dsn, "-listen", "0.0.0.0:0")
	fails("-insecure", "-dsn", dsn, "-listen", ":0")
	fails("-drain is negative", "-dsn", dsn, "-drain", "-1s")
	fails("-require-tls needs a certificate", "-dsn", dsn, "-require-tls")
	fails(`"10.0.0.0/33" is neither a network`, "-dsn", dsn, "-proxy-protocol", "127.0.0.1, ::1,10.0.0.0/33")
	fails("-server: address db: missing port in address; write host:port", "-dsn", dsn, "-server", "db")
	for _, listen := range []string{"127.0.0.1:3399", "localhost:3399", ":3399", "[::]:3399"} {
		fails("connect to itself", "-dsn", dsn, "-insecure", "-listen", listen, "-server", "127.0.0.1:3399")
	}
	fails("connect to itself", "-dsn", withAddress(dsn, "tcp", "127.0.0.1:3307"))
	fails("-listen: address 3307: missing port in address; write host:port", "-dsn", dsn, "-listen", "3307")
	exec(t, db, "GRANT SELECT, UPDATE ON "+name+".leaf_alloc TO proxy_start")

	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	away := "127.0.0.1:" + strconv.Itoa(port)
	p := startProxy(t, 1, "-dsn", of, "-listen", "127.0.0.1:0", "-metrics", "127.0.0.1:0", "-server", away)
	client, err := sql.Open("mysql", withAddress(of, "tcp", p.addresses[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var told *mysql.MySQLError
	if err := client.Ping(); !errors.As(err, &told) || told.Number != 2003 || strings.Contains(told.Message, away) {
		t.Errorf("Ping() without a server: error %v, want 2003 without the address", err)
	}
	if status, text := getPage(t, p.metrics+"/readyz"); status != 503 {
		t.Errorf("/readyz without a server: status %d %s, want 503", status, text)
	}
	p.end(t)
	if said := p.output.String(); !strings.Contains(said, away) || !strings.Contains(said, "the address of -server") || strings.Contains(said, "s3cret") {
		t.Errorf("log = %s\nwant the server's failure, without the password", said)
	}
	for _, target := range mysqltest.Targets(t) { // the account does not exist on one of them
		cfg, err := mysql.ParseDSN(target.DSN())
		if err != nil {
			t.Fatal(err)
		}
		server := strings.Replace(cfg.Addr, "127.0.0.1", "localhost", 1)
		p = startProxy(t, 1, "-dsn", of, "-listen", "127.0.0.1:0", "-metrics", "127.0.0.1:0", "-server", server)
		if status, text := getPage(t, p.metrics+"/readyz"); status != 200 {
			t.Errorf("%s: /readyz: status %d %s, want 200", target.Name, status, text)
		}
		p.end(t)
		if said := p.output.String(); strings.Contains(said, "does not answer") {
			t.Errorf("%s: log = %s\nwant none of \"does not answer\"", target.Name, said)
		}
	}
	p = startProxy(t, 1, "-dsn", withAddress(of, "tcp", away), "-listen", "127.0.0.1:0")
	if said := p.output.String(); !strings.Contains(said, "does not answer leafsql's account") || strings.Contains(said, "s3cret") {
		t.Errorf("log = %s\nwant the server's failure, without the password", said)
	}
	p.end(t)
}

// TestProxyLogsInAfterBrokenLogins: if clients break off their logins, leafsql's account logs in at the clients' server. Here it
// may only log in at the DSN's address, so the log shows the server that was used.
func TestProxyLogsInAfterBrokenLogins(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable, "CREATE USER IF NOT EXISTS proxy_guard@localhost IDENTIFIED BY 's3cret'")
		t.Cleanup(func() { db.Exec("DROP USER proxy_guard@localhost") })
		exec(t, db, "GRANT SELECT, UPDATE ON "+databaseName(dsn)+".* TO proxy_guard@localhost")
		var socket string
		var before int
		if err := db.QueryRow("SELECT @@socket, @@global.max_connect_errors").Scan(&socket, &before); err != nil {
			t.Fatal(err)
		}
		exec(t, db, "SET GLOBAL max_connect_errors = 4")
		t.Cleanup(func() { db.Exec(fmt.Sprint("SET GLOBAL max_connect_errors = ", before)) })
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		p := startProxy(t, 1, "-dsn", withAddress(withUser(dsn, "proxy_guard", "s3cret"), "unix", socket), "-listen", "127.0.0.1:0", "-server", cfg.Addr)
		for range 2 {
			c, err := net.Dial("tcp", p.addresses[0])
			if err != nil {
				t.Fatal(err)
			}
			c.Read(make([]byte, 1)) // first byte of the greeting
			c.Close()
		}
		for !strings.Contains(p.output.String(), "disconnected during the login") && p.log.Scan() {
			p.output.WriteString(p.log.Text() + "\n")
		}
		if said := p.output.String(); !strings.Contains(said, "Access denied for user 'proxy_guard'@'127.0.0.1'") {
			t.Errorf("log = %s\nwant the server's failure, without the password", said)
		}
		p.end(t)
	})
}

// TestProxyBehindSocketNeedsCertificate: with MySQL's unix socket, clients without TLS could not log in, so the proxy does not
// start without a certificate. MariaDB accepts such clients.
func TestProxyBehindSocketNeedsCertificate(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable)
		var socket string
		if err := db.QueryRow("SELECT @@socket").Scan(&socket); err != nil {
			t.Fatal(err)
		}
		if target.Name == string(mysqltest.MariaDB) {
			p := startProxy(t, 1, "-dsn", dsn, "-listen", "127.0.0.1:0", "-server", socket)
			p.end(t)
			return
		}
		for _, of := range []string{dsn, withAddress(dsn, "unix", socket)} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			status, _, errs := runLeafsql(ctx, "proxy", "-dsn", of, "-listen", "127.0.0.1:0", "-server", socket)
			if cancel(); status == 0 || !strings.Contains(errs, "set -cert and -key") {
				t.Errorf("-dsn %s: status %d, %s, want an error that names -cert", of, status, errs)
			}
		}
	})
}

// TestProxyProtocolFlagsDecideHeaders: the flags determine which connections begin with a PROXY header: the clients' and those to
// the server.
func TestProxyProtocolFlagsDecideHeaders(t *testing.T) {
	dsn := mysqltest.TargetOf(t, mysqltest.MariaDB).Database(t)
	open(t, dsn, allocTable)
	answer := func(to, send string) string {
		t.Helper()
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, send)
		text, _ := io.ReadAll(c)
		return string(text)
	}
	const header, junk = "PROXY TCP4 10.0.0.1 10.0.0.2 5 6\r\n", "GET / HTTP/1.1\r\n"
	p := startProxy(t, 1, "-dsn", dsn, "-listen", "127.0.0.1:0", "-proxy-protocol", "10.0.0.0/8, 127.0.0.1", "-server-proxy-protocol")
	if got := answer(p.addresses[0], junk); !strings.Contains(got, "no PROXY header came from 127.0.0.1") {
		t.Errorf("answer without a header = %q, want that no PROXY header came", got)
	}
	cfg, err := mysql.ParseDSN(withAddress(dsn, "tcp", p.addresses[0]))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = &mysql.NopLogger{}
	cfg.DialFunc = func(_ context.Context, network, address string) (net.Conn, error) {
		c, err := net.Dial(network, address)
		if err == nil {
			_, err = io.WriteString(c, header)
		}
		return c, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	client := sql.OpenDB(connector)
	defer client.Close()
	if client.Ping() == nil { // the server refuses it and disconnects, possibly before its error is read
		t.Error("Ping() error = nil, want one, because the server expects no PROXY header")
	}
	p.end(t)
	p = startProxy(t, 1, "-dsn", dsn, "-listen", "127.0.0.1:0", "-proxy-protocol", "10.0.0.0/8")
	if got := answer(p.addresses[0], header); !strings.Contains(got, "a PROXY header came from 127.0.0.1") {
		t.Errorf("answer to a header from another address = %q, want that a PROXY header came", got)
	}
	p.end(t)
}
