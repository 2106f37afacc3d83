package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestServerChecksLogins: the server checks logins through the proxy: a right, wrong or missing password, an unknown user,
// a database that is missing or forbidden, another plugin than the user's.
func TestServerChecksLogins(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newRelayTwin(p.rootOptions())
		right := p.createUser("a", "secret")
		change := func(of func(o *proxytest.Options)) proxytest.Options {
			o := right
			of(&o)
			return o
		}
		for name, o := range map[string]proxytest.Options{
			"password":           right,
			"wrong password":     change(func(o *proxytest.Options) { o.Password = "wrong" }),
			"no password":        change(func(o *proxytest.Options) { o.Password = "" }),
			"unknown user":       change(func(o *proxytest.Options) { o.User = "nobody" }),
			"no database":        change(func(o *proxytest.Options) { o.Database = "" }),
			"missing database":   change(func(o *proxytest.Options) { o.Database = "missing" }),
			"another's database": change(func(o *proxytest.Options) { o.Database = "mysql" }),
			"another plugin":     change(func(o *proxytest.Options) { o.Plugin = "mysql_clear_password" }),
			"native password":    change(func(o *proxytest.Options) { o.Plugin = "mysql_native_password" }),
			"no plugin":          change(func(o *proxytest.Options) { o.Unrequested = proxytest.PluginAuth }),
			"short form":         change(func(o *proxytest.Options) { o.Unrequested = proxytest.PluginAuthLenenc }),
			"attributes":         change(func(o *proxytest.Options) { o.Attributes = map[string]string{"program_name": "twin"} }),
			"long attributes":    change(func(o *proxytest.Options) { o.Attributes = map[string]string{"a": strings.Repeat("a", 60_000)} }),
			"too long":           change(func(o *proxytest.Options) { o.Attributes = map[string]string{"a": strings.Repeat("a", 70_000)} }),
			"far too long":       change(func(o *proxytest.Options) { o.Attributes = map[string]string{"a": strings.Repeat("a", 1_000_000)} }),
		} {
			t.Run(name, func(t *testing.T) {
				w.Options = o
				w.Setup = func(bool) { p.createUser("a", "secret") } // MySQL has not cached the password
				for range 2 {                                        // and then it has
					w.Run(t, func(c *proxytest.Client) {
						c.Query("SELECT CURRENT_USER(), DATABASE()")
						c.Query("SELECT COUNT(*) FROM performance_schema.session_connect_attrs WHERE ATTR_VALUE = 'twin'")
					})
					w.Setup = nil
				}
			})
		}
	})
}

// TestChangeUserGetsTheServersAnswer: a connection that changes its user gets the server's answer, and continues or ends as the
// server determines.
func TestChangeUserGetsTheServersAnswer(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		a := p.createUser("a", "secret")
		b := p.createUser("b", "other")
		w := p.newRelayTwin(a)
		w.Setup = func(bool) {
			p.recreate(items...)
			p.createUser("a", "secret")
			p.createUser("b", "other")
		}
		for way, capabilities := range map[string]uint64{"plain": 0, "attributes": proxytest.ConnectAttrs | proxytest.DeprecateEOF | proxytest.SessionTrack} {
			w.Options.Capabilities = proxytest.Common | capabilities
			t.Run(way, func(t *testing.T) {
				for _, end := range []string{"wrong", "missing"} {
					w.Run(t, func(c *proxytest.Client) {
						c.Query("CREATE TEMPORARY TABLE temp SELECT 1 a")
						s := c.Prepare("SELECT 1")
						c.Query("SET @u = 1")
						c.ChangeUser(b.User, "other", "")
						c.Query("SELECT CURRENT_USER(), DATABASE(), @u")
						c.Query("SELECT * FROM temp")
						c.Hide("the statement's id in the error")
						s.Execute()
						c.Hide("")
						c.ChangeUser(a.User, "secret", p.name)
						c.ChangeUser(a.User, "secret", p.name)
						c.Query("SELECT CURRENT_USER(), DATABASE()")
						if end == "wrong" { // a wrong password
							c.ChangeUser(b.User, "wrong", p.name)
						} else { // a wrong database
							c.ChangeUser(b.User, "other", "missing")
						}
						c.Query("SELECT CURRENT_USER(), DATABASE()")
						c.Do(proxytest.Ping, nil)
					})
				}
			})
		}
	})
}

// TestServerRefusesWhatAUserMayNotDo: the server refuses what a user may not do, including commands that stop or copy the server.
func TestServerRefusesWhatAUserMayNotDo(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newRelayTwin(p.rootOptions())
		w.Setup = func(bool) { w.Options = p.createUser("a", "secret") }
		w.Setup(false)
		w.Run(t, func(c *proxytest.Client) {
			for _, command := range []byte{0x07, 0x08, proxytest.Debug, 0x12, 0x15, 0x1E, 0x20} { // REFRESH, SHUTDOWN, DEBUG, BINLOG_DUMP, REGISTER_SLAVE, BINLOG_DUMP_GTID, CLONE
				c.Do(command, make([]byte, 40))
			}
			c.Hide("other connections")
			c.Do(proxytest.ProcessInfo, nil)
			c.Hide("")
			c.Query("SELECT User FROM mysql.user")
			c.Query("KILL 1")
			c.Do(proxytest.Kill, []byte{1, 0, 0, 0})
		})
	})
}

// TestCapabilityNotOfferedIsRefused: a client with a capability that it was not offered gets an error immediately, and so does a
// client that is too old for the server.
func TestCapabilityNotOfferedIsRefused(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		addr := proxytest.Start(t, p.dsn+"?leafTables=none")
		for name, change := range map[string]func(o *proxytest.Options) (number int){
			"zstd":      func(o *proxytest.Options) int { o.Capabilities |= proxytest.ZSTD; return 1043 },
			"no schema": func(o *proxytest.Options) int { o.Capabilities |= proxytest.NoSchema; return 1043 },
			"progress":  func(o *proxytest.Options) int { o.Capabilities |= proxytest.Progress; return 1043 },
			"TLS":       func(o *proxytest.Options) int { o.TLS = &tls.Config{InsecureSkipVerify: true}; return 1043 },
			"old":       func(o *proxytest.Options) int { o.Unrequested = proxytest.Protocol41; return 1251 },
		} {
			t.Run(name, func(t *testing.T) {
				o := p.rootOptions()
				o.Capabilities, o.ForceCapabilities = proxytest.Common, true
				want := change(&o)
				took := stopwatch.Start(t)
				c, err := proxytest.Dial(addr, o)
				if err == nil {
					t.Fatal("login succeeded, want an error")
				}
				if c.Offered&o.Capabilities&(proxytest.ZSTD|proxytest.Progress|proxytest.NoSchema) != 0 {
					t.Errorf("offered capabilities = %#x, want none of %#x", c.Offered, o.Capabilities&(proxytest.ZSTD|proxytest.Progress|proxytest.NoSchema))
				}
				if number, text := c.Answers[0].Err(); o.TLS == nil && number != want || took() > 5*time.Second { // a TLS handshake gets an answer in plain text
					t.Errorf("error %d %s (%v) after %v, want %d within 5s", number, text, err, took(), want)
				}
			})
		}
	})
}

// TestLoginPacketsArriveUnchanged: with some plugins a server sends several requests, or two packets in a row. All packets reach
// the other side unchanged, and a command that the client sends before the end of its login is served after the
// login.
func TestLoginPacketsArriveUnchanged(t *testing.T) {
	type step struct {
		fromServer bool
		frames     string
	}
	const (
		greeting = "\x0a5.5.5-asks\x00\x01\x00\x00\x00saltsalt\x00\xcf\xf7\x2d\x02\x00\x0f\x00\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00saltsaltsalt\x00dialog\x00"
		login    = "\x01\xa2\x08\x00\x00\x00\x00\x40\x2d" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "app\x00\x00dialog\x00"
		ok       = "\x00\x00\x00\x02\x00\x00\x00"
	)
	f := func(seq byte, payload string) string { return string([]byte{byte(len(payload)), 0, 0, seq}) + payload }
	steps := []step{
		{true, f(0, greeting)},
		{false, f(1, login)},
		{true, f(2, "\x01first?")},
		{false, f(3, "one\x00")},
		{true, f(4, "\x01wait") + f(5, "\x01second?")},
		{false, f(6, "two\x00") + f(0, "\x0e")},
		{true, f(7, ok)},
		{true, f(1, ok)}, // the answer to the early command
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	play := func(conn net.Conn, server bool) error {
		conn.SetDeadline(time.Now().Add(proxytest.Timeout))
		for i, s := range steps {
			if s.fromServer == server {
				if i == len(steps)-1 { // the early command does not reach the server before
					if err := expectBytes(conn, f(0, "\x0e")); err != nil {
						return fmt.Errorf("the early command: %w", err)
					}
				}
				if _, err := io.WriteString(conn, s.frames); err != nil {
					return err
				}
				continue
			}
			want := s.frames
			if server {
				want = strings.TrimSuffix(want, f(0, "\x0e"))
			}
			if err := expectBytes(conn, want); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	}
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			err = play(conn, true)
		}
		served <- err
	}()
	addr := proxytest.Start(t, mysqltest.Database(t)+"?leafTables=none", func(cfg *proxy.Config) { cfg.Server = l.Addr().String() })
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := play(conn, false); err != nil {
		t.Errorf("client's side of the login: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("server's side of the login: %v", err)
	}
}

// expectBytes fails unless the next bytes are those wanted.
func expectBytes(conn net.Conn, want string) error {
	got := make([]byte, len(want))
	n, err := io.ReadFull(conn, got)
	if err == nil && string(got) != want {
		err = fmt.Errorf("%q, want %q", got, want)
	} else if err != nil {
		err = fmt.Errorf("%q of %q: %w", got[:n], want, err)
	}
	return err
}
