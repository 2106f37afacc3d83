package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestServerHangupReachesClient: a waiting client immediately gets the server's own error if the server has ended its
// connection.
func TestServerHangupReachesClient(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.newRelayTwin(p.rootOptions()).Run(t, func(c *proxytest.Client) {
			c.Query("SELECT 'before'")
			p.exec(fmt.Sprintf("KILL %d", c.Thread))
			took := stopwatch.Start(t)
			c.ReadRest()
			if took() > 2*time.Second {
				t.Errorf("error arrived after %v, want at most 2s", took())
			}
		})
		p.newRelayTwin(p.rootOptions()).Run(t, func(c *proxytest.Client) {
			c.Query("SET wait_timeout = 1")
			c.ReadRest()
		})
		p.newRelayTwin(p.rootOptions()).Run(t, func(c *proxytest.Client) {
			c.Send(proxytest.QueryText, []byte("SELECT SLEEP(30)"))
			p.waitForValue(fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d AND info LIKE 'SELECT SLEEP%%'", c.Thread), "1")
			p.exec(fmt.Sprintf("KILL QUERY %d", c.Thread))
			c.Answer()
			c.Query("SELECT 'goes on'")
		})
	})
}

// waitForValue waits until a statement, directly on the server, returns the wanted value.
func (p *testDatabase) waitForValue(text, want string) {
	p.t.Helper()
	took := stopwatch.Start(p.t)
	for {
		var got string
		err := p.db.QueryRow(text).Scan(&got)
		var server *mysql.MySQLError
		if errors.As(err, &server) && server.Number == 3854 {
			err = nil // MySQL cannot show the statement of another test's session with another character set
		}
		switch {
		case err != nil:
			p.t.Fatalf("%s: %v", text, err)
		case got == want:
			return
		case took() > proxytest.Timeout:
			p.t.Fatalf("%s: %s, want %s", text, got, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// waitDisconnected waits until the server has ended a client's connection.
func (p *testDatabase) waitDisconnected(how string, c *proxytest.Client) {
	p.t.Helper()
	p.waitForValue(fmt.Sprintf("SELECT COUNT(*) /* %s */ FROM information_schema.processlist WHERE id = %d", how, c.Thread), "0")
}

// TestClientHangupStopsStatement: the statement of a client that has disconnected is stopped, and its connection to the
// server ends, with and without rows in transit.
func TestClientHangupStopsStatement(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		addr := proxytest.Start(t, p.dsn+"?leafTables=none")
		p.recreate("CREATE TABLE many (a CHAR(200))", "INSERT INTO many VALUES ('a'), ('b'), ('c'), ('d'), ('e'), ('f'), ('g'), ('h'), ('i'), ('j')")
		for name, leave := range map[string]func(c *proxytest.Client){
			"idle":           func(*proxytest.Client) {},
			"in transaction": func(c *proxytest.Client) { c.Query("BEGIN") },
			"rows": func(c *proxytest.Client) {
				c.Send(proxytest.QueryText, []byte("SELECT /*+ NO_BNL() */ * FROM many a, many b, many c, many d, many e, many f, many g, many h"))
				if _, err := io.ReadFull(c.Conn, make([]byte, 100_000)); err != nil {
					t.Error(err)
				}
			},
			"half a command": func(c *proxytest.Client) { c.Conn.Write([]byte{100, 0, 0, 0, proxytest.QueryText, 'S'}) },
		} {
			c := p.dial(addr, p.rootOptions())
			leave(c)
			c.Conn.Close()
			p.waitDisconnected(name, c)
		}
	})
}

// TestShutdownWaitsForTransactions: the proxy ends connections that are in no transaction, waits for the others, and accepts no new
// ones.
func TestShutdownWaitsForTransactions(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		server, addr := proxytest.Serve(t, p.dsn+"?leafTables=items")
		idle, busy, never, reads := p.dial(addr, p.rootOptions()), p.dial(addr, p.rootOptions()), p.dial(addr, p.rootOptions()), p.dial(addr, p.rootOptions())
		for _, c := range []*proxytest.Client{busy, never} {
			c.Query("START TRANSACTION")
			c.Query("INSERT INTO items (name) VALUES ('in a transaction')")
		}
		rows := reads.Prepare("SELECT 1 UNION SELECT 2")
		rows.ExecuteAs(1, true) // with a cursor
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- server.Shutdown(ctx) }()
		if a := idle.ReadRest(); a.Closed != nil {
			t.Errorf("idle connection: ended with %v, want nil", a.Closed)
		}
		reads.Prepare("SELECT 3").Close()
		if a := rows.Fetch(1); a.Closed != nil {
			t.Errorf("cursor: connection ended with %v, want nil", a.Closed)
		}
		rows.Close()
		if a := reads.ReadRest(); a.Closed != nil {
			t.Errorf("after the cursor's statement was closed: connection ended with %v, want nil", a.Closed)
		}
		if ok := busy.Query("INSERT INTO items (name) VALUES ('still')").OK(); ok.Affected != 1 {
			t.Errorf("INSERT in a transaction: OK = %+v, want 1 affected row", ok)
		}
		if ok := busy.Query("COMMIT").OK(); ok.Status&proxytest.InTransaction != 0 {
			t.Errorf("COMMIT: OK = %+v, want a status without a transaction", ok)
		}
		if a := busy.ReadRest(); a.Closed != nil {
			t.Errorf("after COMMIT: connection ended with %v, want nil", a.Closed)
		}
		if _, err := proxytest.Dial(addr, p.rootOptions()); err == nil {
			t.Error("login during the shutdown succeeded, want an error")
		}
		select {
		case err := <-ended:
			t.Fatalf("Shutdown() = %v before the end of the last transaction, want it to wait", err)
		default:
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		never.ReadRest()
		p.waitForValue("SELECT COUNT(*) FROM items", "2")
	})
}

// TestClientAboveLimitGetsError: a client above the limit gets the error for it, and causes no connection to the server.
func TestClientAboveLimitGetsError(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		addr := proxytest.Start(t, p.dsn+"?leafTables=none", func(cfg *proxy.Config) { cfg.MaxConnections = 1 })
		first := p.dial(addr, p.rootOptions())
		if c, err := proxytest.Dial(addr, p.rootOptions()); err == nil {
			t.Error("login of a second client succeeded, want an error")
		} else if number, _ := c.Answers[0].Err(); number != 1040 {
			t.Error(err)
		}
		first.Close()
		took := stopwatch.Start(t)
		for {
			if c, err := proxytest.Dial(addr, p.rootOptions()); err == nil {
				c.Close()
				return
			} else if took() > proxytest.Timeout {
				t.Fatal(err)
			}
		}
	})
}

// TestLogsContainNothingOfClients: logs never contain a password, a row, or an error's values, whatever fails.
func TestLogsContainNothingOfClients(t *testing.T) {
	const canary = "canary_7261"
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		var log logBuffer
		addr := p.startProxy(func(cfg *proxy.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		o := p.createUser("a", canary)
		c := p.dial(addr, o)
		o.Password = canary + "wrong"
		proxytest.Dial(addr, o)
		o.User = canary
		proxytest.Dial(addr, o)
		for _, text := range []string{
			"INSERT INTO items (name, n) VALUES ('" + canary + "', 1)", "INSERT INTO items (name, n) VALUES ('" + canary + "', 1)",
			"INSERT INTO items (name, n) VALUES ('" + canary + "', '" + canary + "')", "INSERT INTO items (id, name) VALUES (@" + canary + ", '')",
			"INSERT INTO items (" + canary + ") VALUES (1)", "INSERT INTO items (name) VALUES (\"" + canary, "SELECT '" + canary + "', " + canary,
		} {
			c.Query(text)
			c.Prepare(text).Execute()
		}
		c.ChangeUser(c.Answers[0].Name, canary, canary)
		c.Conn.Write([]byte(canary + canary))
		c.Conn.Close()
		p.waitDisconnected("wrong bytes", c)
		if text := log.String(); strings.Contains(text, canary) {
			t.Errorf("log contains %q, want none of it:\n%s", canary, text)
		}
	})
}

// logBuffer is a log that is safe for concurrent use.
type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}
