package proxy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// TestUnqualifiedNamesMeanTheDatabaseInUse: an unqualified name means the table of the database in use, after all successful and
// failed ways to change it.
func TestUnqualifiedNamesMeanTheDatabaseInUse(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.MultiStatements
		w := p.newFillTwin(o, filledItems...)
		setup := w.Setup
		var a proxytest.Options
		w.Setup = func(through bool) {
			setup(through)
			a = p.createUser("a", "secret")
			p.exec("GRANT SELECT ON mysql.* TO " + a.User)
		}
		w.Run(t, func(c *proxytest.Client) {
			changes := []func(){
				func() { c.Do(proxytest.InitDB, []byte("missing")) },
				func() { c.Do(proxytest.InitDB, []byte("mysql")) },
				func() { c.Query("USE missing") },
				func() { c.Do(proxytest.InitDB, []byte(p.name)) },
				func() { c.Query("USE mysql; SELECT missing") },
				func() { c.Query("SELECT missing; USE " + p.name) },
				func() { c.Query("USE " + p.name + "; SELECT 1; USE mysql") },
				func() { c.Query("USE " + p.name + "; INSERT INTO items (name) VALUES ('between'); USE mysql") },
				func() { c.Prepare("USE " + p.name).Execute() },
				func() { c.Do(proxytest.ResetConnection, nil) },
				func() { c.Query("USE " + p.name) },
				func() { c.Do(proxytest.ResetConnection, nil) },
				func() { c.ChangeUser(a.User, "secret", "") },
				func() { c.ChangeUser(a.User, "secret", p.name) },
				func() { c.ChangeUser(a.User, "secret", "mysql") },
				func() { c.Query("USE " + p.name) },
				func() { c.Query("CREATE DATABASE missing_; USE missing_") },
			}
			for i, change := range changes {
				change()
				c.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", i))
				c.Query("SELECT LAST_INSERT_ID()")
				c.Prepare("INSERT INTO items (name, n) VALUES (?, ?)").Execute(proxytest.String("b"), proxytest.Int(int64(i+100)))
			}
			c.Query("SELECT id, name, n FROM " + p.name + ".items ORDER BY id")
		})
	})
}

// TestTemporaryTables: a temporary table that hides a filled one is not filled. The filled one is filled again
// after the temporary table is dropped, or removed by a reset of the session.
func TestTemporaryTables(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newFillTwin(p.rootOptions(), filledItems...)
		setup := w.Setup
		var a proxytest.Options
		w.Setup = func(through bool) {
			setup(through)
			a = p.createUser("a", "secret")
		}
		w.Run(t, func(c *proxytest.Client) {
			for i, gone := range []func(){
				func() { c.Query("DROP TEMPORARY TABLE items") },
				func() { c.Do(proxytest.ResetConnection, nil) },
				func() { c.ChangeUser(a.User, "secret", p.name) },
			} {
				c.Query("INSERT INTO items (name) VALUES ('filled')")
				c.Query("CREATE TEMPORARY TABLE items (id BIGINT PRIMARY KEY DEFAULT 5, name VARCHAR(40))")
				c.Query("INSERT INTO items (name) VALUES ('temporary')")
				c.Prepare("INSERT INTO items (id, name) VALUES (?, 'temporary')").Execute(proxytest.Int(7))
				c.Query("SELECT id, name FROM items ORDER BY id")
				gone()
				c.Query(fmt.Sprintf("INSERT INTO %s.items (name, n) VALUES ('filled again', %d)", p.name, i))
				c.Query("SELECT LAST_INSERT_ID()")
				c.Do(proxytest.InitDB, []byte(p.name))
				c.Query("SELECT id, name FROM items ORDER BY id")
			}
		})
	})
}

// TestFailedChangeUserResetsTheSession: MariaDB keeps the connection after a failed change of the user, but resets the session.
func TestFailedChangeUserResetsTheSession(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.MultiStatements
		w := p.newFillTwin(o, filledItems...)
		setup := w.Setup
		w.Setup = func(through bool) {
			setup(through)
			a := p.createUser("a", "secret")
			w.Options.User, w.Options.Password, w.Options.Plugin = a.User, a.Password, a.Plugin
		}
		for way, fails := range map[string]func(c *proxytest.Client){
			"password": func(c *proxytest.Client) { c.ChangeUser(w.Options.User, "wrong", "") },
			"database": func(c *proxytest.Client) { c.ChangeUser(w.Options.User, "secret", "missing") },
		} {
			t.Run(way, func(t *testing.T) {
				w.Run(t, func(c *proxytest.Client) {
					c.Query("INSERT INTO items (name) VALUES ('filled')")
					c.Query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
					prepared := c.Prepare("INSERT INTO items (name) VALUES (?)")
					c.Query("CREATE TEMPORARY TABLE items (id INT PRIMARY KEY DEFAULT 5, name VARCHAR(40), n INT)")
					fails(c)
					c.Query(`INSERT INTO items (name, n) VALUES ('it\'s', 1), ('b', 2)`)
					c.Query(`INSERT INTO items (name, n) VALUES ('a\', 3), ('b', 4)`)
					c.Hide("the statement's id in the error")
					prepared.Execute(proxytest.String("gone"))
					c.Hide("")
					c.Query("SELECT DATABASE()")
					c.Query("SELECT id, name, n FROM items ORDER BY id")
				})
			})
		}
	})
}

// TestFilledStatementsReportTheClientsChangesOnly: a client that tracks its session receives the changes by its own statements, and
// not those that leafsql makes and reverts.
func TestFilledStatementsReportTheClientsChangesOnly(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.SessionTrack | proxytest.DeprecateEOF | proxytest.MultiStatements
		p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
			for _, text := range []string{
				"SET session_track_system_variables = 'autocommit,sql_mode,character_set_client', session_track_schema = 1",
				"INSERT INTO items (name, n) VALUES ('a', 1)",
				"INSERT INTO items (name, n) SELECT name, n FROM source ORDER BY n",
				"SET autocommit = 0",
				"INSERT INTO items (name, n) SELECT name, n + 10 FROM source ORDER BY n",
				"COMMIT",
				"SET autocommit = 1; INSERT INTO items (name, n) VALUES ('b', 2); USE mysql; USE " + p.name,
				"INSERT INTO items (name, n) SELECT name, n + 20 FROM source ORDER BY n; SET autocommit = 0",
				"SELECT id, name, n FROM items ORDER BY id",
			} {
				c.Query(text)
			}
		})
	})
}

// TestSeveralStatementsNeedTheCapability: without the capability for several statements in a text, the server runs none of
// them. COM_SET_OPTION changes this.
func TestSeveralStatementsNeedTheCapability(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newFillTwin(p.rootOptions(), append(filledItems, "CREATE TABLE victim (a INT)")...)
		w.Run(t, func(c *proxytest.Client) {
			several := func() {
				for _, text := range []string{
					"INSERT INTO items (name) VALUES ('a'); INSERT INTO items (name) VALUES ('b')",
					"INSERT INTO items (name, n) SELECT name, n FROM source; DROP TABLE victim -- ')",
					"CREATE TABLE victim2 (a INT); INSERT INTO items (name) VALUES ('c'); DROP TABLE victim2",
					"SHOW TABLES LIKE 'victim%'",
					"SELECT COUNT(*) FROM items",
					"DELETE FROM items WHERE n IS NOT NULL",
					"CREATE TABLE IF NOT EXISTS victim (a INT)",
				} {
					c.Query(text)
				}
			}
			c.Query("INSERT INTO items (name) VALUES ('one'); ")
			c.Query("SELECT LAST_INSERT_ID()")
			several()
			c.Do(proxytest.SetOption, []byte{0, 0})
			several()
			c.Do(proxytest.SetOption, []byte{1, 0})
			several()
			c.Do(proxytest.SetOption, []byte{0, 0})
			c.Do(proxytest.ResetConnection, nil)
			several()
		})
	})
}

// TestEachClientChoosesFoundRows: each client determines which rows count as affected.
func TestEachClientChoosesFoundRows(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		addr := p.startProxy()
		found := p.rootOptions()
		found.Capabilities = proxytest.Common | proxytest.FoundRows
		with, without := p.dial(addr, found), p.dial(addr, p.rootOptions())
		const upsert = "INSERT INTO items (name, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE name = 'a'"
		id := with.Query(upsert).OK().ID
		for range 2 {
			for c, affected := range map[*proxytest.Client]uint64{with: 1, without: 0} {
				if ok := c.Query(upsert).OK(); ok.Affected != affected || ok.ID != id {
					t.Errorf("unchanged row: affected rows = %d, id = %d, want %d, %d", ok.Affected, ok.ID, affected, id)
				}
			}
		}
	})
}

// TestTextsOfEqualLengthAreNotMixed: texts of several clients that have the same length are each filled correctly.
func TestTextsOfEqualLengthAreNotMixed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		addr := p.startProxy()
		var all sync.WaitGroup
		for who := range 4 {
			c := p.dial(addr, p.rootOptions())
			all.Go(func() {
				for i := range 50 {
					n := 1000*(who+1) + i
					text := fmt.Sprintf("INSERT INTO items (name, n) VALUES ('%d', %d)", n, n)
					if who%2 == 0 {
						text = fmt.Sprintf("INSERT INTO items (n, name) VALUES (%d, '%d')", n, n)
					}
					if number, message := c.Query(text).Err(); number != 0 {
						t.Errorf("%s: error %d %s, want none", text, number, message)
					}
				}
			})
		}
		all.Wait()
		p.exec()
		if wrong := p.queryValue("SELECT CONCAT(COUNT(*), ' rows, ', COUNT(DISTINCT id), ' ids, ', COALESCE(SUM(name <> n), 0), ' wrong') FROM items"); wrong != "200 rows, 200 ids, 0 wrong" {
			t.Errorf("stored %s, want 200 rows, 200 ids, 0 wrong", wrong)
		}
	})
}

// TestInternalQueriesOfClientsAreNotMixed: answers to internal queries of one session are not mixed with those of others.
// The race detector would detect it.
func TestInternalQueriesOfClientsAreNotMixed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, append(filledItems, "CREATE PROCEDURE nothing() BEGIN END")...)
		addr := p.startProxy()
		var all sync.WaitGroup
		for who := range 6 {
			o := p.rootOptions()
			if who%2 == 0 {
				o.Capabilities = proxytest.Common | proxytest.DeprecateEOF
			}
			c := p.dial(addr, o)
			status := uint16(proxytest.Autocommit)
			if who%3 == 0 {
				c.Query("SET autocommit = 0")
				status = proxytest.InTransaction
			}
			all.Go(func() {
				for range 100 {
					c.Query("CALL nothing()") // leafsql queries the database in use and the tables after it
					if ok := c.Query("INSERT INTO items (name) VALUES ('a')").OK(); ok.Affected != 1 || ok.Status != status {
						t.Errorf("OK = %+v, want 1 affected row and the status %#x", ok, status)
					}
				}
			})
		}
		all.Wait()
	})
}

// TestTablePropertiesAreReadWithOwnAccount: leafsql reads the properties of tables with its own account, whichever client is
// first.
func TestTablePropertiesAreReadWithOwnAccount(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newFillTwin(p.rootOptions(), filledItems...)
		setup := w.Setup
		w.Setup = func(through bool) {
			setup(through)
			w.Options = p.createUser("r", "secret")
			p.exec("REVOKE ALL ON "+p.name+".* FROM "+w.Options.User, "GRANT SELECT ON "+p.name+".source TO "+w.Options.User)
		}
		p.exec("SELECT 1")
		w.Options = p.createUser("r", "secret")
		w.Run(t, func(c *proxytest.Client) {
			c.Query("INSERT INTO items (name) VALUES ('not allowed')")
			c.Query("SELECT * FROM source")
			c.Prepare("INSERT INTO items (name) VALUES (?)")
			app, err := proxytest.Dial(c.Conn.RemoteAddr().String(), p.rootOptions())
			if err != nil {
				t.Error(err)
				return
			}
			defer app.Close()
			a := app.Query("INSERT INTO items (name) VALUES ('allowed')")
			c.Answers = append(c.Answers, *a)
		})
	})
}

// TestAnswersEncodeIDsOfEveryWidth: an answer has the right id for all lengths of its encoding, and so have the fields after it.
func TestAnswersEncodeIDsOfEveryWidth(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newFillTwin(p.rootOptions(), "CREATE TABLE items (id BIGINT NOT NULL {AUTO} PRIMARY KEY, name VARCHAR(40))")
		w.IDs = 1 << 63 // the keys are the same on both sides
		w.Keys = nil
		setup := w.Setup
		w.Setup = func(through bool) {
			setup(through)
			p.exec("ALTER TABLE items COMMENT '' /* keys begin low */", "UPDATE leaf_alloc SET max_id = 1, step = 10")
			if !through {
				p.exec("ALTER TABLE items AUTO_INCREMENT = 1")
			}
		}
		w.Run(t, func(c *proxytest.Client) {
			for _, id := range []uint64{2, 250, 251, 252, 1<<16 - 1, 1 << 16, 1<<24 - 1, 1 << 24, 1<<32 + 7, 1 << 62} {
				c.Query(fmt.Sprintf("INSERT INTO items (id, name) VALUES (%d, 'own')", id-1))
				c.Query("INSERT INTO items (name) VALUES ('a'), ('b')")
				c.Query("SELECT LAST_INSERT_ID()")
			}
			c.Query("SELECT id, name FROM items ORDER BY id")
		})
	})
}

// TestLargeFilledTextsKeepFrameNumbers: the ids make a text longer than a frame, or the client's text has several frames. The
// numbers of answers are those that the client expects.
func TestLargeFilledTextsKeepFrameNumbers(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.newFillTwin(p.rootOptions(), filledItems...).Run(t, func(c *proxytest.Client) {
			texts := []string{"INSERT INTO items (name, n, body) VALUES ('a', %d, '%s')"}
			if p.Name == "mariadb" {
				texts = append(texts, "INSERT INTO items (name, n, body) VALUES ('a', %d, '%s') RETURNING id, name")
			}
			n := 1
			for _, text := range texts {
				for _, payload := range []int{frame - 8, frame + 8} {
					n++
					c.Query(fmt.Sprintf(text, n, strings.Repeat("x", payload-len(text))))
				}
			}
			c.Query("SELECT id, n, LENGTH(body) FROM items ORDER BY id")
			c.Query("SELECT LAST_INSERT_ID()")
		})
	})
}
