package proxy_test

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
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

// TestOwnServers: what only a server shows that is started with options of its own.
func TestOwnServers(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			p := newPlace(t, mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.Kind(target.Name), Args: []string{
				"--log-bin=log", "--init-connect=SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
			}}).Target())
			t.Run("init_connect", func(t *testing.T) { initConnect(t, p) })
			if target.Name == string(mysqltest.MariaDB) {
				t.Run("binlog", func(t *testing.T) { binlog(t, p) })
			} else {
				t.Run("transactions", func(t *testing.T) { namedTransactions(t, p) })
			}
		})
	}
}

// initConnect: a text is read as the server reads it, also the first of a session, whose sql_mode is set after the login was
// answered.
func initConnect(t *testing.T, p *place) {
	w := p.filled(p.root(), filledItems...)
	setup := w.Setup
	w.Setup = func(through bool) {
		setup(through)
		w.Options = p.user("a", "secret")
	}
	w.Options = p.user("a", "secret")
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

// binlog: a replica's stream of events is relayed.
func binlog(t *testing.T, p *place) {
	p.relayed(p.root()).Run(t, func(c *proxytest.Client) {
		c.Query("SET @master_binlog_checksum = 'NONE'")
		c.Send(0x12, append([]byte{4, 0, 0, 0, 0, 0, 77, 0, 0, 0}, "log.000001"...))
		c.Packets("events", 3)
	})
}

// namedTransactions: a client that tracks its transactions is told the one that stored the rows, though leafsql committed it
// with a statement of its own.
func namedTransactions(t *testing.T, p *place) {
	p.configured(true, filledItems...)
	o := p.root()
	o.Capabilities = proxytest.Common | proxytest.SessionTrack | proxytest.DeprecateEOF
	c := p.dial(p.proxy(), o)
	c.Query("SET session_track_gtids = OWN_GTID")
	uuid := c.Query("SELECT @@server_uuid").Rows()[0][0]
	before := "none"
	for _, text := range []string{
		"INSERT INTO notes (note) VALUES ('relayed')",
		"INSERT INTO items (name, n) VALUES ('a', 1)",
		"INSERT INTO items (name, n) SELECT name, n FROM source ORDER BY n",
	} {
		told := c.Query(text).OK().Rest
		if strings.Count(told, uuid) != 1 || told == before {
			t.Errorf("%s: told %q, before %q", text, told, before)
		}
		before = told
	}
}
