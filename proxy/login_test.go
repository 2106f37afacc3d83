package proxy_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestLogins: a login through the proxy is one at the server, with the password that the server knows: right, wrong, none,
// unknown user, database that is missing or not the user's, a plugin that is not the user's.
func TestLogins(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		w := p.relayed(p.root())
		right := p.user("a", "secret")
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
			"no plugin":          change(func(o *proxytest.Options) { o.Without = proxytest.PluginAuth }),
			"short form":         change(func(o *proxytest.Options) { o.Without = proxytest.PluginAuthLenenc }),
			"attributes":         change(func(o *proxytest.Options) { o.Attributes = map[string]string{"program_name": "twin"} }),
		} {
			t.Run(name, func(t *testing.T) {
				w.Options = o
				w.Setup = func(bool) { p.user("a", "secret") } // MySQL has not seen the password
				for range 2 {                                  // and has seen it
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

// TestChangeUser: a connection that becomes another user's is told what the server tells it, and goes on or ends as the server
// wants.
func TestChangeUser(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		a := p.user("a", "secret")
		b := p.user("b", "other")
		w := p.relayed(a)
		w.Setup = func(bool) {
			p.fresh(items...)
			p.user("a", "secret")
			p.user("b", "other")
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
						if end == "wrong" { // a password
							c.ChangeUser(b.User, "wrong", p.name)
						} else { // a database
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

// TestUnprivileged: what a user may not do is refused by the server, and commands that stop or copy it are the server's to
// refuse.
func TestUnprivileged(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		w := p.relayed(p.root())
		w.Setup = func(bool) { w.Options = p.user("a", "secret") }
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

// TestNotOffered: a client that uses what it was not offered is told so at once, and one that is too old for the server too.
func TestNotOffered(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		addr := proxytest.Start(t, p.dsn+"?leafTables=none")
		for name, change := range map[string]func(o *proxytest.Options) (number int){
			"compression": func(o *proxytest.Options) int { o.Capabilities |= proxytest.Compress; return 1043 },
			"zstd":        func(o *proxytest.Options) int { o.Capabilities |= proxytest.ZSTD; return 1043 },
			"progress":    func(o *proxytest.Options) int { o.Capabilities |= proxytest.Progress; return 1043 },
			"TLS":         func(o *proxytest.Options) int { o.TLS = &tls.Config{InsecureSkipVerify: true}; return 1043 },
			"old":         func(o *proxytest.Options) int { o.Without = proxytest.Protocol41; return 1251 },
		} {
			t.Run(name, func(t *testing.T) {
				o := p.root()
				o.Capabilities, o.Insist = proxytest.Common, true
				want := change(&o)
				took := stopwatch.Start(t)
				c, err := proxytest.Dial(addr, o)
				if err == nil {
					t.Fatal("it was let in")
				}
				if c.Offered&o.Capabilities&(proxytest.Compress|proxytest.ZSTD|proxytest.Progress) != 0 {
					t.Errorf("%#x is offered", c.Offered)
				}
				if number, text := c.Answers[0].Err(); o.TLS == nil && number != want || took() > 5*time.Second { // a TLS handshake is answered in plain text
					t.Errorf("error %d %s, want %d, after %v: %v", number, text, want, took(), err)
				}
			})
		}
	})
}
