package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/selfsigned"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestOwnServers runs tests that need servers with special options.
func TestOwnServers(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			cert, certFile, keyFile := selfsigned.Files(t)
			own := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.Kind(target.Name), Args: []string{
				"--log-bin=log", "--init-connect=SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "--ssl-cert=" + certFile, "--ssl-key=" + keyFile,
			}}).Target()
			t.Run("TLS", func(t *testing.T) { testTLS(t, newTestDatabase(t, own), cert) })
			t.Run("request for TLS", func(t *testing.T) { testTLSCapabilities(t, newTestDatabase(t, own), cert) })
			t.Run("denied DDL", func(t *testing.T) { testDeniedDDL(t, newTestDatabase(t, own)) })
			t.Run("no prepared statements", func(t *testing.T) { testPreparedLimit(t, newTestDatabase(t, own)) })
			t.Run("lower max_connect_errors", func(t *testing.T) { testLoweredConnectErrors(t, newTestDatabase(t, own)) })
			t.Run("shared permission", func(t *testing.T) { testSharedPermission(t, newTestDatabase(t, own)) })
			t.Run("init_connect", func(t *testing.T) { testInitConnect(t, newTestDatabase(t, own)) })
			if target.Name == string(mysqltest.MariaDB) {
				t.Run("binlog", func(t *testing.T) { testBinlogStream(t, newTestDatabase(t, own)) })
			} else {
				t.Run("transactions", func(t *testing.T) { testTrackedTransactions(t, newTestDatabase(t, own)) })
			}
		})
	}
}

// testInitConnect: a text is read like the server reads it. This includes the first text of a session, whose
// sql_mode is set after the answer to the login.
func testInitConnect(t *testing.T, p *testDatabase) {
	w := p.newFillTwin(p.rootOptions(), filledItems...)
	setup := w.Setup
	w.Setup = func(through bool) {
		setup(through)
		w.Options = p.createUser("a", "secret")
	}
	w.Options = p.createUser("a", "secret")
	for _, text := range []string{
		`INSERT INTO items (name, n) VALUES ('a\', 1), ('b', 2)`,
		`INSERT INTO items (name, n) VALUES ('it\'s', 3), ('b', 4)`,
		`SELECT 1`,
	} {
		w.Run(t, func(c *proxytest.Client) {
			c.Query(text)
			c.Query(`INSERT INTO items (name, n) VALUES ('c\', 5), ('d', 6)`)
			c.ChangeUser(w.Options.User, "secret", p.name)
			c.Query(`INSERT INTO items (name, n) VALUES ('e\', 7), ('f', 8)`)
			c.Prepare(`INSERT INTO items (name, n) VALUES ('g\', 9), ('h', ?)`).Execute(proxytest.Int(10))
			c.Query("SELECT id, name, n FROM items ORDER BY id")
		})
	}
}

// testBinlogStream: a replica's stream of events is relayed, and ends with the proxy.
func testBinlogStream(t *testing.T, p *testDatabase) {
	stream := func(c *proxytest.Client) {
		c.Query("SET @master_binlog_checksum = 'NONE'")
		c.Send(0x12, append([]byte{4, 0, 0, 0, 0, 0, 77, 0, 0, 0}, "log.000001"...))
		c.Packets("events", 3)
	}
	p.newRelayTwin(p.rootOptions()).Run(t, stream)
	server, addr := proxytest.Serve(t, p.dsn+"?leafTables=none")
	c := p.dial(addr, p.rootOptions())
	stream(c)
	ctx, cancel := context.WithTimeout(context.Background(), proxytest.Timeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if a := c.ReadRest(); a.Closed != nil {
		t.Errorf("end of the stream: connection ended with %v, want nil", a.Closed)
	}
}

// testTrackedTransactions: a client that tracks its transactions receives the one that stored the rows, even if
// an internal statement of leafsql committed it.
func testTrackedTransactions(t *testing.T, p *testDatabase) {
	p.createTables(true, filledItems...)
	o := p.rootOptions()
	o.Capabilities = proxytest.Common | proxytest.SessionTrack | proxytest.DeprecateEOF | proxytest.MultiStatements
	c := p.dial(p.startProxy(), o)
	c.Query("SET session_track_gtids = OWN_GTID")
	uuid := c.Query("SELECT @@server_uuid").Rows()[0][0]
	before := "none"
	for _, text := range []string{
		"INSERT INTO notes (note) VALUES ('relayed')",
		"INSERT INTO items (name, n) VALUES ('a', 1)",
		"INSERT INTO items (name, n) SELECT name, n FROM source ORDER BY n",
	} {
		a := c.Query(text)
		told := a.OK().Rest
		if strings.Count(told, uuid) != 1 || told == before {
			number, failure := a.Err()
			t.Errorf("%s: session changes = %q after %q, error %d %s, want a new GTID", text, told, before, number, failure)
		}
		before = told
	}
	// The second one stores no rows.
	told := c.Query("INSERT INTO items (name, n) SELECT name, n + 10 FROM source; INSERT INTO items (name, n) SELECT name, n FROM source WHERE n < 0").OKs()
	if len(told) != 2 || strings.Count(told[0].Rest, uuid) != 1 || strings.Contains(told[1].Rest, uuid) {
		t.Errorf("answers to two statements, of which the first stores rows = %+v, want a GTID in the first alone", told)
	}
}

// testTLSCapabilities: the capabilities in a client's request for TLS apply, and not those in the login that
// follows.
func testTLSCapabilities(t *testing.T, p *testDatabase, cert *selfsigned.Certificate) {
	const (
		common  = proxytest.Common | proxytest.SSL | proxytest.ConnectWithDB
		several = proxytest.MultiStatements
		noEOF   = proxytest.DeprecateEOF
	)
	for name, capabilities := range map[string][2]uint64{
		"several statements in the login only":   {0, several},
		"several statements in the request only": {several, 0},
		"no EOF in the login only":               {several, several | noEOF},
		"no EOF in the request only":             {several | noEOF, several},
	} {
		t.Run(name, func(t *testing.T) {
			o := p.rootOptions()
			o.TLS = &tls.Config{RootCAs: cert.Client().RootCAs, ServerName: "127.0.0.1"}
			o.Capabilities, o.AfterTLS = common|capabilities[0], common|capabilities[1]
			w := p.newFillTwin(o, filledItems...)
			setup := w.Setup
			w.Setup = func(through bool) {
				if setup(through); through {
					w.Through = p.startProxy(func(cfg *proxy.Config) {
						cfg.TLS = &tls.Config{Certificates: cert.Client().Certificates}
						cfg.ServerTLS = o.TLS
					})
				}
			}
			w.Run(t, func(c *proxytest.Client) {
				c.Query("INSERT INTO items (name, n) VALUES ('a', 1); INSERT INTO items (name, n) VALUES ('b', 2)")
				c.Query("INSERT INTO items (name, n) VALUES ('c', 3)")
				c.Query("SELECT id, name FROM items ORDER BY n")
			})
		})
	}
}

// testTLS: a client with TLS has TLS on both connections. Its login has the server's result, whether its
// handshake arrives with the request for TLS or after it, and it is notified immediately when the server ends
// its connection. A client without TLS has none on either connection. No log contains its password.
func testTLS(t *testing.T, p *testDatabase, cert *selfsigned.Certificate) {
	client := &tls.Config{RootCAs: cert.Client().RootCAs, ServerName: "127.0.0.1"}
	var log logBuffer
	encrypted := func(cfg *proxy.Config) {
		cfg.TLS, cfg.ServerTLS = &tls.Config{Certificates: cert.Client().Certificates}, client
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w := p.newRelayTwin(p.rootOptions(), items...)
	setup := w.Setup
	w.Through = proxytest.Start(t, p.dsn+"?leafTables=none", encrypted)
	w.Setup = func(through bool) { // MySQL has not cached the password
		setup(through)
		p.createUser("a", "secret")
	}
	for name, change := range map[string]func(o *proxytest.Options){
		"plain":           func(o *proxytest.Options) { o.TLS = nil },
		"TLS":             func(*proxytest.Options) {},
		"compressed":      func(o *proxytest.Options) { o.Capabilities = proxytest.Common | proxytest.Compress },
		"hello at once":   func(o *proxytest.Options) { o.EarlyHello = true },
		"wrong password":  func(o *proxytest.Options) { o.Password = "wrong" },
		"no password":     func(o *proxytest.Options) { o.Password = "" },
		"another plugin":  func(o *proxytest.Options) { o.Plugin = "mysql_clear_password" },
		"several results": func(o *proxytest.Options) { o.Capabilities = proxytest.Common | proxytest.DeprecateEOF },
	} {
		t.Run(name, func(t *testing.T) {
			w.Options = p.createUser("a", "secret")
			w.Options.TLS = client
			change(&w.Options)
			played := 0
			for range 2 { // in the second iteration MySQL has cached the password
				w.Run(t, func(c *proxytest.Client) {
					played++
					c.Query("SHOW SESSION STATUS LIKE 'Ssl_version'")
					c.Query("CALL two(3)")
					c.Query("SELECT LENGTH('" + strings.Repeat("a", 100_000) + "'), REPEAT('b', 300000)")
					c.ChangeUser(w.Options.User, "secret", p.name)
					c.Query("SELECT CURRENT_USER()")
				})
				w.Setup = nil
			}
			if letIn := w.Options.Password == "secret"; letIn != (played == 4) {
				t.Errorf("logins with the password %q = %d, want 4 with the right one and fewer otherwise", w.Options.Password, played)
			}
			w.Setup = func(through bool) { setup(through); p.createUser("a", "secret") }
		})
	}
	if text := log.String(); strings.Contains(text, "secret") { // MySQL's clients send it in clear text through TLS
		t.Errorf("log contains the password:\n%s", text)
	}
	t.Run("filled", func(t *testing.T) {
		p.createTables(true, filledItems...)
		o := p.rootOptions()
		o.TLS = client
		c := p.dial(p.startProxy(encrypted), o)
		c.Query("INSERT INTO items (name, n) VALUES ('a', 1), ('b', 2)")
		c.Query("INSERT INTO items (name, n) SELECT name, n FROM source")
		c.Prepare("INSERT INTO items (name, n) VALUES (?, 3)").Execute(proxytest.String("c"))
		p.waitForValue("SELECT CONCAT(COUNT(*), ' ', COUNT(DISTINCT id)) FROM items", "6 6")
	})
	t.Run("hang up", func(t *testing.T) {
		o := p.rootOptions()
		o.TLS = client
		c := p.dial(w.Through, o)
		p.exec(fmt.Sprintf("KILL %d", c.Thread))
		took := stopwatch.Start(t)
		if c.ReadRest(); took() > 2*time.Second {
			t.Errorf("error arrived after %v, want at most 2s", took())
		}
	})
	t.Run("required", func(t *testing.T) {
		addr := proxytest.Start(t, p.dsn+"?leafTables=none", encrypted, func(cfg *proxy.Config) { cfg.RequireTLS = true })
		o := p.rootOptions()
		c, err := proxytest.Dial(addr, o)
		if number, text := c.Answers[0].Err(); number != 3159 {
			t.Errorf("client without TLS: error %d %s (%v), want 3159", number, text, err)
		}
		o.TLS = client
		p.dial(addr, o)
	})
}
