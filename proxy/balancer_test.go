package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/haproxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/selfsigned"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// trustBalancers makes these networks those of balancers.
func trustBalancers(networks ...string) func(*proxy.Config) {
	return func(cfg *proxy.Config) {
		for _, n := range networks {
			cfg.ProxyProtocol = append(cfg.ProxyProtocol, netip.MustParsePrefix(n))
		}
	}
}

// freeAddr returns an address that is not in use.
func freeAddr(t testing.TB) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// The kinds of headers with a client's address, as options of a server in HAProxy.
var headers = map[string]string{"version 1": "send-proxy", "version 2": "send-proxy-v2", "version 2 with additions": "send-proxy-v2 proxy-v2-options unique-id"}

// TestServerSeesClients: a server with PROXY headers sees each client's own address, from which the account may
// log in, both for clients that connect to the proxy and for those that connect through HAProxy. Their rows are
// filled.
func TestServerSeesClients(t *testing.T) {
	mysqltest.TargetOf(t, mysqltest.MariaDB)
	certificate, cert, key := selfsigned.Files(t)
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--proxy-protocol-networks=127.0.0.1", "--ssl-cert=" + cert, "--ssl-key=" + key}})
	p := newTestDatabase(t, server.Target())
	p.createTables(true, filledItems...)
	p.exec("CREATE USER app@'127.0.0.9' IDENTIFIED BY 'secret'", "GRANT ALL ON *.* TO app@'127.0.0.9'")
	app := proxytest.Options{User: "app", Password: "secret", Database: p.name, From: "127.0.0.9"}
	tells := func(cfg *proxy.Config) {
		cfg.ServerProxyProtocol, cfg.TLS = true, &tls.Config{Certificates: certificate.Client().Certificates}
	}
	sees := func(p *testDatabase, addr string, o proxytest.Options, want string) {
		t := p.t
		t.Helper()
		c := p.dial(addr, o)
		if got := c.Query("SELECT USER(), CURRENT_USER()").Rows(); len(got) != 1 || got[0][0] != want || got[0][1] != want {
			t.Errorf("USER(), CURRENT_USER() = %q, want %s twice", got, want)
		}
		if ok := c.Query("INSERT INTO items (name) VALUES ('a')").OK(); ok.ID < firstGenerated {
			t.Errorf("id = %d, want at least %d", ok.ID, firstGenerated)
		}
		c.Close()
	}
	t.Run("without HAProxy", func(t *testing.T) {
		p := *p
		p.t = t
		pr, addr := proxytest.Serve(t, p.dsn+"?leafTables=items", tells)
		sees(&p, addr, app, "app@127.0.0.9")
		sees(&p, addr, p.rootOptions(), "root@127.0.0.1")
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go pr.Serve(l)
		sees(&p, socket, p.rootOptions(), "root@127.0.0.1")
		other := app
		other.From = ""
		if _, err := proxytest.Dial(addr, other); err == nil || !strings.Contains(err.Error(), "1045") {
			t.Errorf("login from another address: error %v, want 1045", err)
		}
	})
	for name, option := range headers {
		t.Run(name, func(t *testing.T) {
			p := *p
			p.t = t
			addr, through := p.startProxy(tells, trustBalancers("127.0.0.1/32")), freeAddr(t)
			haproxytest.Run(t, fmt.Sprintf("listen mysql\n\tbind %s\n\tunique-id-format %%rt\n\tserver one %s %s", through, addr, option))
			sees(&p, through, app, "app@127.0.0.9")
			sees(&p, through, p.rootOptions(), "root@127.0.0.1")
			app := app
			app.TLS = certificate.Client()
			app.TLS.ServerName = "127.0.0.1"
			app.Capabilities = proxytest.Common | proxytest.SSL
			sees(&p, through, app, "app@127.0.0.9")
		})
	}
}

// TestHealthChecksAreNoBrokenLogins: HAProxy checks the proxy every 20 ms, with a header of either version and without one, by
// connecting and by a login. No check counts as a client that failed to log in, and clients can log in.
func TestHealthChecksAreNoBrokenLogins(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		var log logBuffer
		pr, addr := proxytest.Serve(t, p.dsn+"?leafTables=items", trustBalancers("127.0.0.0/8"), func(cfg *proxy.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		before := p.queryValue("SELECT @@global.max_connect_errors")
		p.exec("SET GLOBAL max_connect_errors = 20")
		t.Cleanup(func() { p.db.Exec("SET GLOBAL max_connect_errors = " + before) })
		user := p.createUser("check", "")
		config, through := "", map[string]string{}
		for _, check := range []struct{ name, listen, server string }{
			{"without", "", "check inter 20ms"},
			{"one", "", "check inter 20ms check-send-proxy send-proxy"},
			{"two", "", "check inter 20ms check-send-proxy send-proxy-v2"},
			{"greeting", "option mysql-check", "check inter 20ms check-send-proxy send-proxy-v2"},
			{"login", "option mysql-check user " + user.User, "check inter 20ms check-send-proxy send-proxy-v2"},
		} {
			if check.name == "login" && p.Name == string(mysqltest.MySQL) {
				continue // its check does not support caching_sha2_password
			}
			through[check.name] = freeAddr(t)
			config += fmt.Sprintf("listen %s\n\tbind %s\n\t%s\n\tserver one %s %s\n", check.name, through[check.name], check.listen, addr, check.server)
		}
		h := haproxytest.Run(t, config)
		took := stopwatch.Start(t)
		for pr.Stats().Accepted < 500 {
			if took() > proxytest.Timeout {
				t.Fatalf("accepted checks = %d after %v, want 500", pr.Stats().Accepted, took())
			}
			time.Sleep(5 * time.Millisecond)
		}
		for name, addr := range through {
			if name == "without" {
				continue
			}
			c := p.dial(addr, p.rootOptions())
			if ok := c.Query("INSERT INTO items (name) VALUES ('a')").OK(); ok.ID < firstGenerated {
				t.Errorf("%s: id = %d, want at least %d", name, ok.ID, firstGenerated)
			}
			c.Close()
		}
		up := 0
		for line := range strings.Lines(h.Ask(t, "show stat")) {
			if fields := strings.Split(line, ","); len(fields) > 17 && fields[1] == "one" && strings.HasPrefix(fields[17], "UP") { // "UP 2/3" after a check that timed out on a busy machine
				up++
			}
		}
		if s := pr.Stats(); up != len(through) || s.BrokenOff != 0 || s.FailedLogins != 0 || s.BrokenOffInARow >= 20 {
			t.Errorf("servers that are up = %d, want %d; stats = %+v, want no broken logins\n%s", up, len(through), s, h.Ask(t, "show stat"))
		}
		if s := log.String(); s != "" {
			t.Errorf("log = %.1000q, want it to be empty", s)
		}
	})
}

// TestHeadersAreRequiredFromBalancersOnly: connections from a balancer's address need a header, and others must not send one, in any number
// of pieces. Clients that are refused get the reason.
func TestHeadersAreRequiredFromBalancersOnly(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		addr := p.startProxy(trustBalancers("127.0.0.9/32", "127.0.0.16/28"))
		const (
			text   = "PROXY TCP4 10.0.0.1 10.0.0.2 5 6\r\n"
			local  = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
			longer = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff"
		)
		for _, tt := range []struct{ from, before, err string }{
			{"127.0.0.9", text, ""},
			{"127.0.0.17", text, ""},
			{"127.0.0.17", local, ""},
			{"127.0.0.10", "", ""},
			{"127.0.0.10", text, "error 1043: #08S01leafsql: a PROXY header came from 127.0.0.10, "},
			{"127.0.0.10", local, "error 1043: #08S01leafsql: a PROXY header came from 127.0.0.10, "},
			{"127.0.0.9", "GET / HTTP/1.1\r\n\r\n", "error 1043: leafsql: no PROXY header came from 127.0.0.9, "},
			{"127.0.0.9", longer, "error 1043: leafsql: no PROXY header came from 127.0.0.9, "},
			{"127.0.0.9", text + text, "error 1043: "},
		} {
			o := p.rootOptions()
			o.From, o.Preamble = tt.from, tt.before
			c, err := proxytest.Dial(addr, o)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("login from %s with %q: error %v, want %q", tt.from, tt.before, err, tt.err)
			}
			if err == nil {
				if ok := c.Query("INSERT INTO items (name) VALUES ('a')").OK(); ok.ID < firstGenerated {
					t.Errorf("from %s with %q: id = %d, want at least %d", tt.from, tt.before, ok.ID, firstGenerated)
				}
				c.Close()
			}
		}

		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.9")}}
		c, err := dialer.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(proxytest.Timeout))
		for _, b := range []byte(text) {
			if _, err := c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // makes it arrive separately
		}
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil || head[4] != 10 {
			t.Errorf("greeting after a header in pieces = %x, %v, want protocol version 10", head, err)
		}
	})
}

// TestClientAboveLimitBehindBalancerGetsError: a client that connects through a balancer also gets the error for too many
// clients.
func TestClientAboveLimitBehindBalancerGetsError(t *testing.T) {
	p := newTestDatabase(t, mysqltest.TargetOf(t, mysqltest.MariaDB))
	addr := p.startProxy(trustBalancers("127.0.0.1/32"), func(cfg *proxy.Config) { cfg.MaxConnections = 1 })
	o := p.rootOptions()
	o.Preamble = "PROXY UNKNOWN\r\n"
	p.createTables(true, filledItems...)
	p.dial(addr, o)
	for range 20 {
		if _, err := proxytest.Dial(addr, o); err == nil || !strings.Contains(err.Error(), "1040") {
			t.Error(err)
		}
	}
}
