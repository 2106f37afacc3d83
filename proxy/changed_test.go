package proxy_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestDatabaseBeforeTableNameCounts: a row is stored in the table that its statement names, even if the client
// has the capability to make servers ignore the database.
func TestDatabaseBeforeTableNameCounts(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		other := p.name + "_b"
		p.exec("CREATE DATABASE "+other, "CREATE TABLE "+other+".items LIKE items")
		t.Cleanup(func() { p.db.Exec("DROP DATABASE " + other) })
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.NoSchema
		c := p.dial(p.startProxy(), o)
		c.Query("SET sql_mode = ''")
		c.Query("INSERT INTO " + other + ".items (n) VALUES (1)")
		c.Query("USE " + other)
		c.Query("INSERT INTO " + p.name + ".items (n) VALUES (2)")
		got := p.queryValue("SELECT CONCAT((SELECT GROUP_CONCAT(n, '/', id > 0) FROM " + p.name + ".items), ' ', (SELECT GROUP_CONCAT(n) FROM " + other + ".items))")
		if want := "2/1 1"; got != want {
			t.Errorf("rows %s, want %s", got, want)
		}
	})
}

// TestSessionFillsAfterRefusedStream: the session continues after the server has refused a stream, and its statements
// are filled.
func TestSessionFillsAfterRefusedStream(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for _, command := range []byte{0x12, 0x1E, 0x20} { // COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, COM_CLONE
			t.Run(fmt.Sprintf("%#x", command), func(t *testing.T) {
				w := p.newFillTwin(p.createUser("a", "secret"), filledItems...)
				setup := w.Setup
				w.Setup = func(through bool) {
					setup(through)
					w.Options = p.createUser("a", "secret")
				}
				w.Run(t, func(c *proxytest.Client) {
					c.Query("SET sql_mode = ''")
					c.Do(command, make([]byte, 40))
					c.Query("INSERT INTO items (name, n) VALUES ('a', 1), ('b', 2)")
					c.Query("SELECT id, name FROM items ORDER BY n")
				})
			})
		}
	})
}

// TestServerHangupInFileReachesClient: a client that stops in the middle of a file gets the error with which the server has
// ended its connection, and the proxy frees the session.
func TestServerHangupInFileReachesClient(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		pr, addr := proxytest.Serve(t, p.dsn+"?leafTables=items")
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.LocalFiles
		for _, table := range []string{"items", "source"} {
			for _, sent := range []string{"", "\x64\x00\x00\x02", "\x64\x00\x00\x021\tone\n"} {
				c := p.dial(addr, o)
				c.Send(proxytest.QueryText, []byte("LOAD DATA LOCAL INFILE 'a' INTO TABLE "+table+" (n, name)"))
				c.Packets("the file's name", 1)
				if _, err := c.Conn.Write([]byte(sent)); err != nil {
					t.Fatal(err)
				}
				p.exec(fmt.Sprintf("KILL %d", c.Thread))
				took := stopwatch.Start(t)
				if c.ReadRest(); took() > 2*time.Second {
					t.Errorf("%s after %q: error arrived after %v, want at most 2s", table, sent, took())
				}
			}
		}
		took := stopwatch.Start(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := pr.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown() = %v after %v, want nil", err, took())
		}
	})
}

// TestFileTimesOut: a client that stops in the middle of a file gets the server's error after the server's
// timeout.
func TestFileTimesOut(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.LocalFiles
		p.newRelayTwin(o, items...).Run(t, func(c *proxytest.Client) {
			c.Query("SET net_read_timeout = 1")
			c.Send(proxytest.QueryText, []byte("LOAD DATA LOCAL INFILE 'a' INTO TABLE items (n, name)"))
			c.Packets("the file's name", 1)
			c.ReadRest()
		})
	})
}

// TestUnreadableAttributesAreRefused: a text with malformed attributes does not run, although MySQL would run
// it, and the session continues.
func TestUnreadableAttributesAreRefused(t *testing.T) {
	p := newTestDatabase(t, mysqltest.TargetOf(t, mysqltest.MySQL))
	p.createTables(true, filledItems...)
	o := p.rootOptions()
	o.Capabilities = proxytest.Common | proxytest.QueryAttributes
	c := p.dial(p.startProxy(), o)
	c.Query("SET sql_mode = ''")
	const nullWithoutItsBit = "\x01\x01\x00\x01\x06\x00\x01k"
	for _, attributes := range []string{nullWithoutItsBit, "\x01\x01\x00\x01\xfd\x00\x01k\xff", "\xff"} {
		number, text := c.Do(proxytest.QueryText, []byte(attributes+"INSERT INTO items (name, n) VALUES ('a', 1)")).Err()
		if number != 1835 {
			t.Errorf("%q: error %d %s, want 1835", attributes, number, text)
		}
	}
	c.Query("INSERT INTO items (name, n) VALUES ('b', 2)")
	if got := p.queryValue("SELECT GROUP_CONCAT(name, id > 0) FROM items"); got != "b1" {
		t.Errorf("rows %s, want b1", got)
	}
}

// TestKilledClientStopsWaitingForIDs: a client that waits for ids immediately gets the error if the server has ended
// its connection.
func TestKilledClientStopsWaitingForIDs(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		addr := p.startProxy(func(cfg *proxy.Config) { cfg.FillTimeout = proxytest.Timeout })
		p.exec("BEGIN", "SELECT * FROM leaf_alloc FOR UPDATE")
		defer p.exec("ROLLBACK")
		for name, send := range map[string]func(c *proxytest.Client){
			"text":     func(c *proxytest.Client) { c.Send(proxytest.QueryText, []byte("INSERT INTO items (n) VALUES (1)")) },
			"prepared": func(c *proxytest.Client) { c.Prepare("INSERT INTO items (n) VALUES (1)").Send() },
			"select": func(c *proxytest.Client) {
				c.Send(proxytest.QueryText, []byte("INSERT INTO items (n) SELECT n FROM source"))
			},
		} {
			c := p.dial(addr, p.rootOptions())
			c.Query("START TRANSACTION")
			send(c)
			time.Sleep(300 * time.Millisecond) // by then it waits for ids
			p.exec(fmt.Sprintf("KILL %d", c.Thread))
			took := stopwatch.Start(t)
			a := c.Answer()
			number, text := a.Err()
			if took() > 2*time.Second || number == 1205 || a.Closed == nil && number == 0 {
				t.Errorf("%s: error %d %s, %v after %v, want the end of the connection at once", name, number, text, a.Closed, took())
			}
		}
	})
}

// TestErrorsHideTheServer: no error for a client contains the name or host of leafsql's own account, or an
// address of a server. The log contains them.
func TestErrorsHideTheServer(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, append(filledItems, "CREATE TABLE later (id BIGINT NOT NULL PRIMARY KEY, n INT)", "CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY, n INT)",
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('later', 1, 10)")...)
		own := p.createUser("own", "secret")
		cfg, err := mysql.ParseDSN(p.dsn)
		if err != nil {
			t.Fatal(err)
		}
		way := netfault.Start(t, p.addr)
		cfg.User, cfg.Passwd, cfg.Addr = own.User, own.Password, way.Addr()
		var log logBuffer
		addr := proxytest.Start(t, cfg.FormatDSN()+"?leafTables=items,later,other", func(cfg *proxy.Config) {
			cfg.Server, cfg.FillTimeout = p.addr, time.Second
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		c := p.dial(addr, p.rootOptions())
		fails := func(how string) {
			t.Helper()
			for _, text := range []string{"INSERT INTO items (n) VALUES (1)", "INSERT INTO later (n) VALUES (1)", "INSERT INTO other (n) VALUES (1)", "INSERT INTO items (n) SELECT n FROM source"} {
				for _, answer := range []*proxytest.Answer{c.Query(text), c.Prepare(text).Execute()} {
					number, said := answer.Err()
					for _, hidden := range []string{own.User, "127.0.0.1", "localhost", way.Addr(), p.addr} {
						if strings.Contains(said, hidden) {
							t.Errorf("%s, %s: error %d %s, want one without %s", how, text, number, said, hidden)
						}
					}
				}
			}
		}
		c.Query("INSERT INTO items (n) VALUES (0)")
		p.exec("REVOKE ALL ON " + p.name + ".* FROM " + own.User)
		fails("without privileges")
		p.exec("DROP USER " + own.User)
		fails("without account")
		way.Down()
		fails("without server")
		if err := way.Up(); err != nil {
			t.Fatal(err)
		}
		if text := log.String(); !strings.Contains(text, own.User) && !strings.Contains(text, way.Addr()) {
			t.Errorf("log = %q, want the user or the address %s", text, way.Addr())
		}
		gone := proxytest.Start(t, p.dsn+"?leafTables=none", func(cfg *proxy.Config) {
			cfg.Server, cfg.Logger = "127.0.0.1:1", slog.New(slog.NewTextHandler(&log, nil))
		})
		lost, _ := proxytest.Dial(gone, p.rootOptions())
		number, said := lost.Answers[0].Err()
		if number != 2003 || strings.Contains(said, "127.0.0.1") {
			t.Errorf("without a server: error %d %s, want 2003 without its address", number, said)
		}
		if text := log.String(); !strings.Contains(text, "127.0.0.1:1") {
			t.Errorf("log = %q, want the address of the server", text)
		}
	})
}
