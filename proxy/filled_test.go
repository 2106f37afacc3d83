package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// filledItems creates the tables of the scripts; items is filled.
var filledItems = []string{
	"CREATE TABLE items (id BIGINT NOT NULL {AUTO} PRIMARY KEY, name VARCHAR(40), n INT, body LONGBLOB, UNIQUE (n)) STATS_AUTO_RECALC = 0",
	"CREATE TABLE source (n INT NOT NULL PRIMARY KEY, name VARCHAR(60))",
	"INSERT INTO source VALUES (50, 'fifty'), (51, 'fifty-one'), (52, 'fifty-two')",
	"CREATE TABLE notes (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40))",
	"CREATE PROCEDURE two(IN k INT) BEGIN SELECT id, name FROM items WHERE n <= k; SELECT COUNT(*) FROM items; END",
}

// filledTexts returns texts that fill items, each followed by queries for its effects on the session.
func filledTexts(p *testDatabase) []string {
	const (
		shown = "SELECT LAST_INSERT_ID(), ROW_COUNT()"
		count = "SELECT ROW_COUNT(), LAST_INSERT_ID(1)" // if LAST_INSERT_ID() changes, as documented
		id    = "SELECT LAST_INSERT_ID()"               // if ROW_COUNT() does not describe the statement, as documented
	)
	texts := []string{
		"INSERT INTO items (name, n) VALUES ('a', 1)", shown,
		"INSERT INTO items (name, n) VALUES ('b', 2), ('it''s \\' and \\\\', 3), ('c', 4)", shown,
		"INSERT INTO items SET name = 'd', n = 5", shown,
		"INSERT INTO items VALUES (NULL, 'e', 6, 'body')", shown,
		"INSERT INTO items VALUES (0, 'f', 7, NULL), (DEFAULT, 'g', 8, NULL)", shown,
		"INSERT INTO items (id, name, n) VALUES (9, 'own', 9)", shown,
		"INSERT INTO items (id, name, n) VALUES (NULL, 'h', 10), (11, 'own', 11), (NULL, 'i', 12)", shown,
		"INSERT INTO items (name, n) VALUES ('taken', 1)", count,
		"INSERT INTO items (name, n) VALUES ('new', 13), ('taken', 1)", count,
		"INSERT IGNORE INTO items (name, n) VALUES ('taken', 1)", count,
		"INSERT IGNORE INTO items (name, n) VALUES ('a name that is longer than the forty characters of an item', 15)", "SHOW WARNINGS", count,
		"REPLACE INTO items (name, n) VALUES ('replaced', 2)", shown,
		"INSERT INTO items (name, n) VALUES ('upsert', 3) ON DUPLICATE KEY UPDATE name = 'updated'", count,
		"INSERT INTO items (name, n) VALUES ('upsert', 16) ON DUPLICATE KEY UPDATE name = 'updated'", count,
		"INSERT INTO items (name, n) VALUES ('upsert', 16) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), name = 'told'", shown,
		"INSERT INTO items (missing) VALUES (1)", count,
		"INSERT INTO items (name) VALUES ('a', 'b')",
		"INSERT INTO items (n) VALUES ('no number')",
		"INSERT INTO items (name, n) VALUES", count,
		"INSERT INTO items (name, n) SELECT name, n FROM source WHERE n < 52 ORDER BY n", id,
		"INSERT INTO items (name, n) SELECT name, n FROM source ORDER BY n", "SELECT LAST_INSERT_ID(1)",
		"INSERT INTO items (name, n) SELECT REPEAT(name, 10), n + 10 FROM source WHERE n = 51", "SELECT LAST_INSERT_ID(1)",
		"INSERT IGNORE INTO items (name, n) SELECT REPEAT(name, 10), n + 10 FROM source WHERE n = 51", id,
		"INSERT INTO items (name, n) SELECT name, n FROM source WHERE n < 0", id,
		"INSERT INTO notes (note) VALUES ('a note')", shown,
		"START TRANSACTION",
		"INSERT INTO items (name, n) VALUES ('rolled back', 60)", shown,
		"INSERT INTO items (name, n) SELECT 'rolled back', 90", id,
		"ROLLBACK", shown,
		"SET autocommit = 0",
		"INSERT INTO items (name, n) VALUES ('no autocommit', 62)",
		"INSERT INTO items (name, n) SELECT 'no autocommit', 63",
		"COMMIT",
		"SET autocommit = 1",
		"INSERT INTO items (name, n) VALUES ('autocommit', 64)",
		"CREATE TEMPORARY TABLE items (a INT)",
		"INSERT INTO items (a) VALUES (1)", shown,
		"SELECT * FROM items",
		"DROP TEMPORARY TABLE items",
		"INSERT INTO " + p.name + ".items (name, n) VALUES ('named', 65)", shown,
		"USE mysql",
		"INSERT INTO " + p.name + ".items (name, n) VALUES ('named', 66)", shown,
		"INSERT INTO items (name, n) VALUES ('not here', 67)",
		"USE " + p.name,
		"INSERT INTO items (name, n) VALUES ('here', 67)", shown,
		"SET NAMES latin1",
		"INSERT INTO items (name, n) VALUES ('\xE4', 68)", shown,
		"SET NAMES utf8mb4",
		"TRUNCATE missing",
		"SELECT id, name, n, body FROM items ORDER BY id",
	}
	if p.Name == "mariadb" {
		texts = append(texts, "INSERT INTO items (name, n) VALUES ('r', 80), ('s', 81) RETURNING id, name, n + 1", shown,
			"INSERT INTO items (id, name, n) VALUES (82, 'own', 82), (NULL, 't', 83) RETURNING id, name", shown,
			"INSERT INTO items (name, n) VALUES ('r', 80) RETURNING id", count,
			"REPLACE INTO items (name, n) VALUES ('r', 80) RETURNING id", shown)
	} else {
		texts = append(texts, "INSERT INTO items (id, name, n) VALUES (NULL, 'r', 80), (84, 'own', 84), (NULL, 's', 81) AS new ON DUPLICATE KEY UPDATE name = new.name", "SHOW WARNINGS", shown)
	}
	return texts
}

// TestFilledTextsAnswerLikeAutoIncrement: the answer to a filled statement is the server's answer to one with AUTO_INCREMENT, except
// for the keys.
func TestFilledTextsAnswerLikeAutoIncrement(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for way, capabilities := range map[string]uint64{"EOF": 0, "no EOF": proxytest.DeprecateEOF, "session changes": proxytest.SessionTrack | proxytest.DeprecateEOF, "found rows": proxytest.FoundRows} {
			t.Run(way, func(t *testing.T) {
				p := newTestDatabase(t, p.Target)
				o := p.rootOptions()
				o.Capabilities = proxytest.Common | capabilities
				p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
					for _, text := range filledTexts(p) {
						c.Query(text)
					}
				})
			})
		}
	})
}

// TestEachStatementOfATextGetsItsAnswer: each statement of a text gets its answer, including those before one that fails.
func TestEachStatementOfATextGetsItsAnswer(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for way, capabilities := range map[string]uint64{"EOF": 0, "no EOF": proxytest.DeprecateEOF} {
			t.Run(way, func(t *testing.T) {
				p := newTestDatabase(t, p.Target)
				o := p.rootOptions()
				o.Capabilities = proxytest.Common | proxytest.MultiStatements | capabilities
				p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
					for _, text := range []string{
						"INSERT INTO items (name, n) VALUES ('a', 1); INSERT INTO items (name, n) VALUES ('b', 2), ('c', 3)",
						"SELECT 1; INSERT INTO items (name, n) VALUES ('d', 4); SELECT LAST_INSERT_ID(); SELECT * FROM source; UPDATE items SET name = 'x' WHERE n = 1;",
						"INSERT INTO items (name, n) VALUES ('e', 5); SELECT missing; INSERT INTO items (name, n) VALUES ('f', 6)",
						"INSERT INTO items (name, n) VALUES ('g', 7); INSERT INTO items (name, n) VALUES ('taken', 7); INSERT INTO items (name, n) VALUES ('h', 8)",
						"INSERT IGNORE INTO items (name, n) VALUES ('taken', 7); SHOW WARNINGS; SELECT ROW_COUNT()",
						"INSERT INTO items (name, n) SELECT name, n FROM source WHERE n < 52 ORDER BY n; SELECT LAST_INSERT_ID()",
						"CALL two(100); INSERT INTO items (name, n) VALUES ('i', 9); CALL two(2)",
						"START TRANSACTION; INSERT INTO items (name, n) VALUES ('j', 10); ROLLBACK",
						"SET autocommit = 0; INSERT INTO items (name, n) VALUES ('k', 11); COMMIT; SET autocommit = 1",
						"CREATE TABLE other (a INT); INSERT INTO items (name, n) VALUES ('l', 12); DROP TABLE other; INSERT INTO other VALUES (1)",
						"USE mysql; INSERT INTO " + p.name + ".items (name, n) VALUES ('o', 15); USE " + p.name,
						"INSERT INTO items (name, n) VALUES ('p', 16);",
						"INSERT INTO items (name, n) VALUES ('q', 17); -- done",
						"INSERT INTO items (name, n) VALUES ('r', 18); ",
						"INSERT INTO items (name, n) VALUES ('v', 24);; ;",
						"INSERT INTO items (name, n) VALUES ('w', 25); SELECT 1; /* c */;",
						"INSERT INTO items (name, n) VALUES ('x', 26); ; INSERT INTO items (name, n) VALUES ('y', 27)",
						"; INSERT INTO items (name, n) VALUES ('z', 28)",
						"SELECT id, name, n FROM items ORDER BY id",
					} {
						c.Query(text)
					}
					if p.Name == "mariadb" {
						c.Query("INSERT INTO items (name, n) VALUES ('s', 20) RETURNING id, name; INSERT INTO items (name, n) VALUES ('t', 21), ('u', 22) RETURNING id; SELECT LAST_INSERT_ID()")
						c.Query("INSERT INTO items (name, n) VALUES ('s', 23) RETURNING id, name; INSERT INTO items (name, n) VALUES ('s', 23) RETURNING id, name; SELECT 1")
					}
				})
			})
		}
	})
}

// TestFilledLoadDataRequestsTheFile: LOAD DATA LOCAL into a filled table requests the file from the client, and reports the
// result of its lines.
func TestFilledLoadDataRequestsTheFile(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.MultiStatements | proxytest.LocalFiles
		p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
			c.File = fileFrames
			c.Query("LOAD DATA LOCAL INFILE 'first' INTO TABLE items (n, body)")
			c.Query("SELECT LAST_INSERT_ID()")
			playFiles(c, " INTO TABLE items (n, body)", "SELECT LAST_INSERT_ID(1)") // SHOW WARNINGS does not include it
		})
	})
}

// TestFilledPreparedAnswersLikeAutoIncrement: executions of a prepared INSERT are answered like those of one with AUTO_INCREMENT: with
// every argument NULL in turn, with types that change and types that are not sent again, and with values in
// pieces.
func TestFilledPreparedAnswersLikeAutoIncrement(t *testing.T) {
	const columns = 9
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for way, capabilities := range map[string]uint64{"EOF": 0, "no EOF": proxytest.DeprecateEOF, "attributes": proxytest.QueryAttributes | proxytest.DeprecateEOF, "metadata": proxytest.CacheMetadata | proxytest.ExtendedMetadata} {
			t.Run(way, func(t *testing.T) {
				p := newTestDatabase(t, p.Target)
				o := p.rootOptions()
				o.Capabilities = proxytest.Common | capabilities
				var defined strings.Builder
				for i := range columns {
					fmt.Fprintf(&defined, ", c%d LONGTEXT", i)
				}
				w := p.newFillTwin(o, "CREATE TABLE items (id BIGINT NOT NULL {AUTO} PRIMARY KEY"+defined.String()+", n INT UNIQUE)")
				w.Run(t, func(c *proxytest.Client) {
					some := c.Prepare("INSERT INTO items (c0, c1, c2, c3, c4, c5, c6, c7, c8) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?), (1, ?, ?, ?, ?, ?, ?, ?, ?)")
					for null := range columns {
						params := make([]proxytest.Param, 2*columns-1)
						for i := range params {
							params[i] = proxytest.String(fmt.Sprint(i))
							if i == null || i == null+columns {
								params[i] = proxytest.Null()
							}
						}
						some.Execute(params...)
					}
					key := c.Prepare("INSERT INTO items (c0, id, c1) VALUES (?, ?, ?)")
					key.Execute(proxytest.String("drawn"), proxytest.Null(), proxytest.Float(1.5))
					key.Execute(proxytest.String("own"), proxytest.Int(7), proxytest.Int(-1))
					key.Execute(proxytest.String("own"), proxytest.String("8"), proxytest.Int(-1))
					key.ExecuteAs(0, false, proxytest.String("types of before"), proxytest.String("9"), proxytest.Int(-2))
					key.Execute(proxytest.String("zero"), proxytest.Int(0), proxytest.Null())
					key.ExecuteAs(0, false, proxytest.String("types of before"), proxytest.Int(0), proxytest.Null())
					key.Execute(proxytest.String("taken"), proxytest.Int(7), proxytest.Null())
					c.Query("SELECT LAST_INSERT_ID()")
					pieces := c.Prepare("INSERT INTO items (c0, id, c1) VALUES (?, ?, ?)")
					for _, id := range []proxytest.Param{proxytest.Null(), proxytest.Int(10), proxytest.Int(0)} {
						pieces.SendLongData(0, "in ")
						pieces.SendLongData(2, "and this")
						pieces.SendLongData(0, "pieces")
						pieces.Execute(proxytest.Long(), id, proxytest.Long())
						pieces.Execute(proxytest.String("no pieces"), proxytest.Null(), proxytest.String("one"))
					}
					if p.Name == "mariadb" { // MySQL has another error number for it
						pieces.SendLongData(1, "20")
						pieces.Execute(proxytest.String("a key in pieces"), proxytest.Param{Type: 0x06, Long: true}, proxytest.Null())
						pieces.Execute(proxytest.String("not NULL"), proxytest.Param{Type: 0x06}, proxytest.Null())
					}
					pieces.SendLongData(0, "forgotten")
					pieces.Reset()
					pieces.Execute(proxytest.String("reset"), proxytest.Null(), proxytest.Null())
					pieces.SendLongData(0, "")
					pieces.Execute(proxytest.Long(), proxytest.Null(), proxytest.Null())
					long := 70_000
					if way == "EOF" {
						long = frame
					}
					pieces.SendLongData(0, strings.Repeat("l", long))
					pieces.SendLongData(0, "ong")
					pieces.Execute(proxytest.Long(), proxytest.Null(), proxytest.Null())
					c.Query("UPDATE items SET c0 = MD5(c0) WHERE LENGTH(c0) > 1000")
					upsert := c.Prepare("INSERT INTO items (n, c0) VALUES (?, ?) ON DUPLICATE KEY UPDATE c0 = VALUES(c0), id = LAST_INSERT_ID(id)")
					upsert.Execute(proxytest.Int(1), proxytest.String("a"))
					upsert.Execute(proxytest.Int(1), proxytest.String("b"))
					upsert.Execute(proxytest.Int(1), proxytest.String("b"))
					all := c.Prepare("INSERT INTO items (c0, c1) SELECT c0, ? FROM items WHERE id < ? ORDER BY id")
					all.Execute(proxytest.String("copied"), proxytest.Int(10))
					all.Execute(proxytest.String("copied"), proxytest.Int(0))
					c.Query("SELECT LAST_INSERT_ID()")
					some.Close()
					c.Hide("the statement's id in the error")
					some.Execute(make([]proxytest.Param, 2*columns-1)...)
					c.Hide("")
					c.Prepare("INSERT INTO items (missing) VALUES (?)")
					c.Prepare("INSERT INTO items (c0) VALUES (?, ?)")
					c.Prepare("INSERT INTO items (c0) VALUES (?); SELECT 1")
					if p.Name == "mariadb" {
						back := c.Prepare("INSERT INTO items (c0, id, n) VALUES (?, ?, 70), ('own', 11, 71) RETURNING id, c0, n")
						back.Execute(proxytest.String("r"), proxytest.Null())
						back.Execute(proxytest.String("r"), proxytest.Null())
						c.Query("DELETE FROM items WHERE n >= 70")
						back.ExecuteAs(proxytest.ReadOnlyCursor, true, proxytest.String("r"), proxytest.Null())
						c.Hide("the statement's id in the error")
						back.Fetch(1)
						back.Fetch(5)
						c.Hide("")
					}
					c.Query("SELECT id, c0, c1, c2, c3, c4, c5, c6, c7, c8, n FROM items ORDER BY id")
				})
			})
		}
	})
}

// TestClientWithoutRightToStageIsRefused: a client without the right to create the temporary table for an INSERT … SELECT gets
// an error, and keeps its connection and transaction.
func TestClientWithoutRightToStageIsRefused(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, filledItems...)
		o := p.createUser("a", "secret")
		p.exec("REVOKE CREATE TEMPORARY TABLES ON " + p.name + ".* FROM " + o.User)
		c := p.dial(p.startProxy(), o)
		c.Query("BEGIN")
		c.Query("INSERT INTO items (name, n) VALUES ('before', 100)")
		for range 2 {
			if number, text := c.Query("INSERT INTO items (name, n) SELECT name, n FROM source").Err(); number != 1235 {
				t.Errorf("error %d %s, want 1235", number, text)
			}
		}
		c.Query("COMMIT")
		if rows := p.queryValue("SELECT COUNT(*) FROM items"); rows != "1" {
			t.Errorf("rows = %s, want 1, the one inserted before", rows)
		}
	})
}
