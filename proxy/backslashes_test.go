package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
)

// TestBackslashesFollowSQLMode: a text is read like the server reads it with the session's sql_mode. Changes of the mode
// have an immediate effect, wherever it is set.
func TestBackslashesFollowSQLMode(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		setup := append([]string{
			"CREATE PROCEDURE plain_backslashes() SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'",
			"CREATE PROCEDURE escapes() SET SESSION sql_mode = ''",
		}, filledItems...)
		w := p.newFillTwin(p.rootOptions(), setup...)
		w.Run(t, func(c *proxytest.Client) {
			n := 0
			insert := func() {
				n += 2
				c.Query(fmt.Sprintf(`INSERT INTO items (name, n) VALUES ('a\', %d), ('b', %d)`, n, n+1))
				c.Query(fmt.Sprintf(`INSERT INTO items (name, n) VALUES ('it\'s', %d), ('b', %d)`, n, n+1))
			}
			insert()
			c.Query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
			insert()
			c.Query("SET sql_mode = ''")
			insert()
			c.Prepare("SET sql_mode = 'NO_BACKSLASH_ESCAPES'").Execute()
			insert()
			c.Query("CALL escapes()")
			insert()
			c.Query("CALL plain_backslashes()")
			insert()
			c.Do(proxytest.ResetConnection, nil)
			insert()
			c.Query("SET sql_mode = 'ANSI_QUOTES'")
			c.Query(`INSERT INTO items ("name", "n") VALUES ('ansi', 50)`)
			c.Query(`INSERT INTO items (name, n) VALUES ("ansi", 51)`)
			c.Query("SELECT id, name, n FROM items ORDER BY id")
		})
	})
}

// TestBackslashesFollowSQLModeBehindAnotherProxy: the session's sql_mode in the status may be wrong if another proxy is in
// front of the server. ProxySQL keeps NO_BACKSLASH_ESCAPES in the status after a reset of the session, and does
// not set it if it is the server's default.
func TestBackslashesFollowSQLModeBehindAnotherProxy(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		const set, ping = "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", proxytest.Ping
		for name, test := range map[string]struct {
			status func(flag, before bool) bool // the flag that the other proxy sends instead of the server's
			begin  func(c *proxytest.Client)
			insert string
			want   string
		}{
			"it stays on": {func(flag, before bool) bool { return flag || before }, func(c *proxytest.Client) {
				c.Query(set)
				c.Do(proxytest.ResetConnection, nil)
				c.Do(ping, nil)
			}, `INSERT INTO items (name, n) VALUES ('a\'), (\'', 1)`, "a'), (' 1"},
			"it stays on for the next user": {func(flag, before bool) bool { return flag || before }, func(c *proxytest.Client) {
				c.Query(set)
				c.ChangeUser("root", "", p.name)
				c.Do(ping, nil)
			}, `INSERT INTO items (name, n) VALUES ('a\'), (\'', 1)`, "a'), (' 1"},
			"it is never on": {func(bool, bool) bool { return false }, func(c *proxytest.Client) {
				c.Query(set)
				c.Do(ping, nil)
			}, `INSERT INTO items (name, n) VALUES ('a\', 1), ('b', 2)`, `a\ 1,b 2`},
		} {
			t.Run(name, func(t *testing.T) {
				p.createTables(true, filledItems...)
				between := rewriteStatus(t, p.addr, test.status)
				c := p.dial(p.startProxy(func(cfg *proxy.Config) { cfg.Server = between }), p.rootOptions())
				test.begin(c)
				for range 2 {
					p.exec("DELETE FROM items")
					if number, text := c.Query(test.insert).Err(); number != 0 {
						t.Fatalf("%s: error %d %s, want none", test.insert, number, text)
					}
					if got := p.queryValue("SELECT GROUP_CONCAT(CONCAT(name, ' ', n) ORDER BY n) FROM items"); got != test.want {
						t.Errorf("stored %s, want %s", got, test.want)
					}
				}
			})
		}
	})
}

// rewriteStatus relays connections to a server, and replaces the flag NO_BACKSLASH_ESCAPES in the status of its
// answers by the result of flag.
func rewriteStatus(t *testing.T, server string, flag func(flag, before bool) bool) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	relay := func(client net.Conn) {
		defer client.Close()
		conn, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer conn.Close()
		go io.Copy(conn, client)
		in, before := bufio.NewReader(conn), false
		for n := 0; ; n++ {
			head := make([]byte, 4)
			if _, err := io.ReadFull(in, head); err != nil {
				return
			}
			p := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
			if _, err := io.ReadFull(in, p); err != nil {
				return
			}
			at := 0 // position of the status
			switch {
			case n == 0: // greeting
			case p[0] == 0 && len(p) >= 7 && p[1] < 251 && p[2] < 251:
				at = 3
			case p[0] == 0xFE && len(p) == 5:
				at = 3
			}
			if at > 0 {
				before = flag(p[at+1]&2 != 0, before)
				p[at+1] &^= 2
				if before {
					p[at+1] |= 2
				}
			}
			if _, err := client.Write(append(head, p...)); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client)
		}
	}()
	return l.Addr().String()
}

// TestFilledStatementIsOneStatement: a filled statement causes one statement of the session, even if it has quotes and
// backslashes.
func TestFilledStatementIsOneStatement(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		c := p.dial(p.startProxy(), p.rootOptions())
		questions := func() int {
			n, err := strconv.Atoi(c.Query("SHOW SESSION STATUS LIKE 'Questions'").Rows()[0][1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		// The first session that is queried shows that the status in answers is right.
		c.Query(`INSERT INTO items (name, n) VALUES ('it\'s', -1)`)
		n := 0
		prepared := c.Prepare("INSERT INTO items (name, n) VALUES (?, ?)")
		for form, insert := range map[string]func() *proxytest.Answer{
			"VALUES": func() *proxytest.Answer {
				return c.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a %d', %d)", n, n))
			},
			"backslashes": func() *proxytest.Answer {
				return c.Query(fmt.Sprintf(`INSERT INTO items (name, n) VALUES ('it\'s \\ %d', %d)`, n, n))
			},
			"double quotes": func() *proxytest.Answer {
				return c.Query(fmt.Sprintf(`INSERT INTO items (name, n) VALUES ("a \" %d", %d)`, n, n))
			},
			"rows": func() *proxytest.Answer {
				return c.Query(fmt.Sprintf("INSERT INTO items (n) VALUES (%d), (%d)", n, n+1000))
			},
			"SET": func() *proxytest.Answer { return c.Query(fmt.Sprintf("INSERT IGNORE items SET n = %d", n)) },
			"upsert": func() *proxytest.Answer {
				return c.Query(fmt.Sprintf("INSERT INTO items (n) VALUES (%d) ON DUPLICATE KEY UPDATE n = n", n/2*2))
			},
			"REPLACE": func() *proxytest.Answer { return c.Query(fmt.Sprintf("REPLACE INTO items (n) VALUES (%d)", n)) },
			"prepared": func() *proxytest.Answer {
				return prepared.Execute(proxytest.String("it's"), proxytest.Int(int64(n)))
			},
		} {
			const statements = 20
			insert() // its tables and settings are known
			before := questions()
			for range statements {
				n++
				if number, text := insert().Err(); number != 0 {
					t.Fatalf("%s: error %d %s, want none", form, number, text)
				}
			}
			if asked := questions() - before - 1; asked != statements {
				t.Errorf("%s: statements that the server counted = %d, want %d", form, asked, statements)
			}
			n++
		}
	})
}
