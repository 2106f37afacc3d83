package proxy_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// countOpenStatements returns the number of open prepared statements of the client's session on the server.
func countOpenStatements(t *testing.T, c *proxytest.Client) (n int) {
	t.Helper()
	for _, row := range c.Query("SHOW SESSION STATUS WHERE Variable_name IN ('Com_stmt_prepare', 'Com_stmt_close')").Rows() {
		count, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if row[0] == "Com_stmt_close" {
			count = -count
		}
		n += count
	}
	return n
}

// TestManyPreparedStatementsAreExecuted: each of many prepared statements, filled or not, is executed correctly, in any order of
// preparing and closing. The server keeps no statement that the client has closed.
func TestManyPreparedStatementsAreExecuted(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		c := p.dial(p.startProxy(), p.rootOptions())
		var open []*proxytest.Stmt
		for i := range 200 {
			text := fmt.Sprintf("SELECT 'selected %d'", i)
			if i%3 > 0 {
				text = fmt.Sprintf("INSERT INTO items (name, n) VALUES ('inserted %d', ?)", i)
			}
			s := c.Prepare(text)
			for _, other := range open {
				if other.ID == s.ID {
					t.Fatalf("Prepare() returned the id %d of another open statement", s.ID)
				}
			}
			open = append(open, s)
			if i%4 == 3 {
				at := i * 7 % len(open)
				open[at].Close()
				open = append(open[:at], open[at+1:]...)
			}
		}
		for n, s := range open {
			if s.Params > 0 {
				s.Execute(proxytest.Int(int64(n)))
				want := strings.TrimSuffix(strings.SplitN(s.Answer.Name, "'", 3)[1], "'")
				if got := c.Query(fmt.Sprintf("SELECT name FROM items WHERE n = %d", n)).Rows(); len(got) != 1 || got[0][0] != want {
					t.Errorf("%s: stored %q, want %q", s.Answer.Name, got, want)
				}
			} else if got := s.Execute().Rows(); len(got) != 1 || !strings.Contains(s.Answer.Name, got[0][0]) {
				t.Errorf("%s: rows = %q, want one with the value in the text", s.Answer.Name, got)
			}
		}
		for _, s := range open {
			s.Close()
		}
		if n := countOpenStatements(t, c); n != 0 {
			t.Errorf("statements that stay prepared = %d, want none", n)
		}
	})
}

// TestCloseWithoutIDClosesLastPrepared: a client that closes its last prepared statement without its id, as MariaDB's may,
// closes this statement.
func TestCloseWithoutIDClosesLastPrepared(t *testing.T) {
	p := newTestDatabase(t, mysqltest.TargetOf(t, mysqltest.MariaDB))
	p.createTables(true, filledItems...)
	c := p.dial(p.startProxy(), p.rootOptions())
	last := []byte{255, 255, 255, 255}
	for _, text := range []string{"INSERT INTO items (name) VALUES ('a')", "SELECT 1"} {
		before := countOpenStatements(t, c)
		kept := c.Prepare(text)
		c.Prepare(text)
		c.Send(proxytest.StmtClose, last)
		if number, message := c.Do(proxytest.Execute, append(last, 0, 1, 0, 0, 0)).Err(); number != 1243 {
			t.Errorf("%s: execution of the closed statement: error %d %s, want 1243", text, number, message)
		}
		c.Send(proxytest.StmtClose, last)
		if number, message := kept.Execute().Err(); number != 0 {
			t.Errorf("%s: execution of the other statement: error %d %s, want none", text, number, message)
		}
		kept.Close()
		if n := countOpenStatements(t, c) - before; n != 0 {
			t.Errorf("%s: statements that stay prepared = %d, want none", text, n)
		}
	}
}

// TestRefusedStatementLeavesConnectionUsable: the error of a statement that cannot be filled does not suggest a retry, and the connection can
// still be used. Statements that were prepared to check it are closed.
func TestRefusedStatementLeavesConnectionUsable(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		c := p.dial(p.startProxy(), p.rootOptions())
		const refused = "INSERT INTO items (id, name) VALUES (@id, 'a')"
		before := countOpenStatements(t, c)
		for range 20 {
			for _, a := range []*proxytest.Answer{c.Query(refused), c.Prepare(refused).Answer} {
				if number, text := a.Err(); number != 1235 || !strings.HasPrefix(text, "#42000leafsql: ") {
					t.Errorf("error %d %s, want 1235", number, text)
				}
			}
			s := c.Prepare("INSERT INTO items (id, name) VALUES (?, 'a')")
			if number, text := s.Execute(proxytest.String("no number")).Err(); number == 0 {
				t.Errorf("key that is not a number: error %d %s, want one", number, text)
			}
			s.Close()
		}
		if n := countOpenStatements(t, c) - before; n != 0 {
			t.Errorf("statements that stay prepared = %d, want none", n)
		}
		if number, text := c.Query("INSERT INTO items (name) VALUES ('goes on')").Err(); number != 0 {
			t.Errorf("INSERT after the errors: error %d %s, want none", number, text)
		}
	})
}

// TestStatementWithoutIDsTimesOut: a statement without ids within the time limit does not run, and its transaction stays open.
func TestStatementWithoutIDsTimesOut(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		c := p.dial(p.startProxy(func(cfg *proxy.Config) { cfg.FillTimeout = 300 * time.Millisecond }), p.rootOptions())
		p.exec("BEGIN", "SELECT * FROM leaf_alloc FOR UPDATE")
		c.Query("START TRANSACTION")
		c.Query("INSERT INTO notes (note) VALUES ('stands')")
		for _, rows := range []string{"VALUES ('no id')", "SELECT name FROM source LIMIT 1"} {
			took := stopwatch.Start(t)
			number, text := c.Query("INSERT INTO items (name) " + rows).Err()
			if number != 1205 || !strings.HasPrefix(text, "#HY000leafsql: ") || took() > 10*time.Second {
				t.Errorf("%s: error %d %s after %v, want 1205 of leafsql within 10s", rows, number, text, took())
			}
		}
		p.exec("ROLLBACK")
		if ok := c.Query("INSERT INTO items (name) VALUES ('an id')").OK(); ok.Affected != 1 || ok.Status&proxytest.InTransaction == 0 {
			t.Errorf("INSERT afterwards: OK = %+v, want 1 affected row in the transaction", ok)
		}
		c.Query("COMMIT")
		if rows := p.queryValue("SELECT CONCAT((SELECT COUNT(*) FROM items), ' ', (SELECT COUNT(*) FROM notes))"); rows != "1 1" {
			t.Errorf("stored %s rows, want 1 1", rows)
		}
	})
}

// TestSlowStatementsGetIDs: the time limit is only for the wait for ids, and not for the time that the server takes to run the
// source of the rows, or an earlier statement of the query.
func TestSlowStatementsGetIDs(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		modes := map[string]func(c *proxytest.Client, table string){
			"text": func(c *proxytest.Client, table string) {
				c.SendQuery("INSERT INTO " + table + " (n) SELECT SLEEP(7) FROM one")
			},
			"prepared": func(c *proxytest.Client, table string) {
				c.Prepare("INSERT INTO " + table + " (n) SELECT SLEEP(?) FROM one").Send(proxytest.Int(7))
			},
			"transaction": func(c *proxytest.Client, table string) {
				c.Query("START TRANSACTION")
				c.SendQuery("INSERT INTO " + table + " (n) SELECT SLEEP(7) FROM one")
			},
			"several": func(c *proxytest.Client, table string) {
				c.SendQuery("SELECT SLEEP(7); INSERT INTO " + table + " (n) SELECT n FROM one")
			},
		}
		p.createTables(true, "CREATE TABLE one (n INT)", "INSERT INTO one VALUES (1)")
		for mode := range modes {
			p.exec("CREATE TABLE " + mode + "_rows (id BIGINT NOT NULL PRIMARY KEY, n INT)")
		}
		addr := proxytest.Start(t, p.dsn+"?leafTables=*_rows&leafCreate=true", func(cfg *proxy.Config) { cfg.FillTimeout = 6 * time.Second })
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.MultiStatements
		clients := make(map[string]*proxytest.Client)
		for mode, send := range modes {
			clients[mode] = p.dial(addr, o)
			send(clients[mode], mode+"_rows")
		}
		for mode, c := range clients {
			answer := c.Answer()
			number, text := answer.Err()
			if oks := answer.OKs(); number != 0 || len(oks) == 0 || oks[len(oks)-1].Affected != 1 || oks[len(oks)-1].ID == 0 {
				t.Errorf("%s: OKs = %+v, error %d %s, want 1 affected row with an id", mode, oks, number, text)
			}
		}
	})
}

// TestStatementTimesOutIfOwnAccountIsCutOff: the same holds if leafsql's own account cannot reach the server, whatever it has read
// before.
func TestStatementTimesOutIfOwnAccountIsCutOff(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, append(filledItems, "CREATE TABLE later (id BIGINT NOT NULL PRIMARY KEY, n INT)")...)
		way := netfault.Start(t, p.addr)
		addr := proxytest.Start(t, strings.Replace(p.dsn, p.addr, way.Addr(), 1)+"?leafTables=items,later&leafCreate=true", func(cfg *proxy.Config) {
			cfg.Server, cfg.FillTimeout = p.addr, time.Second
		})
		c := p.dial(addr, p.rootOptions())
		c.Query("START TRANSACTION")
		c.Query("INSERT INTO notes (note) VALUES ('stands')")
		for _, table := range []string{"items", "later"} {
			insert := "INSERT INTO " + table + " (n) VALUES (1)"
			way.Down()
			if number, text := c.Query(insert).Err(); number != 1205 || !strings.HasPrefix(text, "#HY000leafsql: ") {
				t.Errorf("%s: error %d %s, want 1205", insert, number, text)
			}
			if err := way.Up(); err != nil {
				t.Fatal(err)
			}
			answer := c.Query(insert)
			if ok := answer.OK(); ok.Affected != 1 || ok.Status&proxytest.InTransaction == 0 {
				number, text := answer.Err()
				t.Errorf("%s afterwards: OK = %+v, error %d %s, want 1 affected row in the transaction", insert, ok, number, text)
			}
		}
		c.Query("COMMIT")
		if rows := p.queryValue("SELECT CONCAT((SELECT COUNT(*) FROM items), ' ', (SELECT COUNT(*) FROM later), ' ', (SELECT COUNT(*) FROM notes))"); rows != "1 1 1" {
			t.Errorf("stored %s rows, want 1 1 1", rows)
		}
	})
}

// TestStatementTimesOutIfOwnAccountIsKilled: the same holds if leafsql's own account loses its connection.
func TestStatementTimesOutIfOwnAccountIsKilled(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		addr := proxytest.Start(t, p.dsn+"?leafTables=items&leafCreate=true")
		p.dial(addr, p.rootOptions()).Query("INSERT INTO items (n) VALUES (1)").OK()
		addr = proxytest.Start(t, p.dsn+"?leafTables=items")
		c := p.dial(addr, p.rootOptions())
		st := c.Prepare("INSERT INTO items (n) VALUES (?)") // makes it permitted before the table is locked
		c.Query("START TRANSACTION")
		other := p.dial(p.addr, p.rootOptions())
		other.Query("LOCK TABLES items WRITE, notes WRITE")
		other.Query("FLUSH TABLES")
		st.Send(proxytest.Int(2))
		answered := make(chan *proxytest.Answer, 1)
		go func() { answered <- c.Answer() }()
		for waits := true; waits; {
			select {
			case answer := <-answered:
				if number, text := answer.Err(); number != 1205 {
					t.Errorf("error %d %s, want 1205", number, text)
				}
				waits = false
			default: // database/sql retries some times
				p.db.Exec("KILL " + p.queryValue("SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist WHERE info LIKE 'SELECT (SELECT MAX(%' AND db = DATABASE()"))
			}
		}
		other.Query("UNLOCK TABLES")
		c.Query("INSERT INTO items (n) VALUES (3)").OK()
	})
}

// TestAnswersNameTheDocumentedIDs: the ids in answers if AUTO_INCREMENT's id would not belong to exactly one row.
func TestAnswersNameTheDocumentedIDs(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		c := p.dial(p.startProxy(), p.rootOptions())
		first := c.Query("INSERT INTO items (name, n) VALUES ('a', 1)").OK().ID
		for _, told := range []struct {
			text string
			id   uint64
		}{
			{"INSERT IGNORE INTO items (name, n) VALUES ('taken', 1), ('new', 2)", 0},
			{"INSERT INTO items (name, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE name = 'a'", first},
			{"INSERT INTO items (name, n) VALUES ('a', 1), ('b', 3) ON DUPLICATE KEY UPDATE name = 'a'", 0},
			{"INSERT IGNORE INTO items (name, n) SELECT 'taken', 1 UNION ALL SELECT 'new', 4 ORDER BY 2", 0},
			{"INSERT INTO items (id, name, n) VALUES (77, 'own', 5)", 77},
			{"INSERT INTO items (id, name, n) VALUES (78, 'own', 6), (79, 'own', 7)", 0},
			{"UPDATE items SET name = 'b' WHERE n = 1", 0},
			{"INSERT INTO items (name, n) SELECT 'none', 1 FROM source WHERE n < 0", 0},
			{"INSERT INTO items (id, name, n) SELECT 80, 'own', 8", 80},
			{"INSERT INTO items (name, n) VALUES ('c', 1) ON DUPLICATE KEY UPDATE name = 'c', n = n + 100", first},
		} {
			if ok := c.Query(told.text).OK(); ok.ID != told.id {
				t.Errorf("%s: id = %d, want %d", told.text, ok.ID, told.id)
			}
		}
	})
}
