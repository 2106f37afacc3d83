package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// items creates the tables of the scripts.
var items = []string{
	"CREATE TABLE items (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), n INT, body LONGBLOB, at DATETIME(6), UNIQUE (n)) STATS_AUTO_RECALC = 0",
	"INSERT INTO items (name, n, body, at) VALUES ('a', 1, 'x', '2024-02-29 01:02:03.000004'), ('b', 2, NULL, NULL), ('c', 3, '', '2024-01-01')",
	"CREATE PROCEDURE two(IN k INT) BEGIN SELECT id, name FROM items WHERE n <= k; SELECT COUNT(*) FROM items; END",
	"CREATE PROCEDURE gives(OUT k INT) BEGIN SELECT 1; SET k = 7; END",
}

// texts have all kinds of answers: nothing, rows, no rows, an error, warnings, an info string, several results.
var texts = []string{
	"SELECT 1, NULL, '', 'a', 1.5, NOW() IS NULL",
	"SELECT * FROM items ORDER BY id",
	"SELECT * FROM items WHERE 0",
	"DO 0",
	"",
	"SELECT",
	"SELECT * FROM missing",
	"INSERT INTO items (name, n) VALUES ('d', 4), ('e', 5)",
	"INSERT INTO items (name, n) VALUES ('d', 4)",
	"INSERT IGNORE INTO items (name, n) VALUES ('d', 4), ('f', 'six')",
	"SHOW WARNINGS",
	"UPDATE items SET n = n + 10 WHERE n > 2",
	"UPDATE items SET name = name",
	"DELETE FROM items WHERE n = 14",
	"SELECT LAST_INSERT_ID(), ROW_COUNT()",
	"SELECT 1/0",
	"CALL two(2)",
	"CALL missing()",
	"START TRANSACTION",
	"INSERT INTO items (name, n) VALUES ('g', 7)",
	"ROLLBACK",
	"SET autocommit = 0",
	"SELECT 1",
	"SET autocommit = 1",
	"USE missing",
	"SELECT DATABASE() IS NULL",
	"SET NAMES latin1",
	"SELECT 'ä'",
	"SET NAMES utf8mb4",
	"SET @a = 1, @b = 'b'",
	"SELECT @a, @b",
	"PREPARE p FROM 'SELECT ? + 1'",
	"EXECUTE p USING @a",
	"DEALLOCATE PREPARE p",
	"CREATE TEMPORARY TABLE temp SELECT 1 a",
	"SELECT * FROM temp",
	"XA RECOVER",
	"LOCK TABLES items READ",
	"UNLOCK TABLES",
	"SELECT 1; SELECT 2",
	"SELECT 1; SELECT missing; SELECT 3",
	"SELECT 1; CALL two(1); UPDATE items SET name = 'z' WHERE n = 1; SELECT name FROM items WHERE 0; ",
	"SELECT 1;",
}

func playTexts(c *proxytest.Client) {
	for _, text := range texts {
		c.Query(text)
	}
}

func playPrepared(c *proxytest.Client) {
	s := c.Prepare("SELECT ?, name, at FROM items WHERE n > ? ORDER BY id")
	s.Execute(proxytest.Int(5), proxytest.Int(1))
	s.Execute(proxytest.String("five"), proxytest.Int(1))
	s.ExecuteAs(0, false, proxytest.String("types of before"), proxytest.Int(1))
	s.Execute(proxytest.Null(), proxytest.Float(1.5))
	s.ExecuteAs(proxytest.ReadOnlyCursor, true, proxytest.Int(5), proxytest.Int(0)) // with a cursor
	s.Fetch(1)
	c.Query("SELECT 'between'")
	s.Fetch(2)
	c.Hide("the statement's id in the error")
	s.Fetch(2)
	s.Fetch(2)
	c.Hide("")
	s.ExecuteAs(proxytest.ReadOnlyCursor, true, proxytest.Int(5), proxytest.Int(0))
	s.Fetch(1)
	s.Reset()
	c.Hide("the statement's id in the error")
	s.Fetch(1) // there is no cursor
	c.Hide("")
	c.Prepare("SELECT missing")
	c.Prepare("SELECT 1; SELECT 2")
	c.Prepare("")
	none := c.Prepare("SELECT 1 FROM items WHERE 0")
	none.Execute()
	none.ExecuteAs(proxytest.ReadOnlyCursor, true)
	none.Fetch(5)
	in := c.Prepare("INSERT INTO items (name, n, body) VALUES (?, ?, ?)")
	in.Execute(proxytest.String("p"), proxytest.Int(100), proxytest.Null())
	in.Execute(proxytest.String("p"), proxytest.Int(100), proxytest.Null())
	in.SendLongData(2, "long ")
	in.SendLongData(2, "data")
	in.Execute(proxytest.String("q"), proxytest.Int(101), proxytest.Long())
	in.SendLongData(2, "forgotten")
	in.Reset()
	in.Execute(proxytest.String("r"), proxytest.Int(102), proxytest.Null())
	in.SendLongData(9, "it is not a known parameter")
	in.Execute(proxytest.String("s"), proxytest.Int(103), proxytest.Null())
	c.Query("SELECT name, n, body FROM items WHERE n >= 100 ORDER BY n")
	call := c.Prepare("CALL two(?)")
	call.Execute(proxytest.Int(2))
	call.Execute(proxytest.Int(0))
	gives := c.Prepare("CALL gives(?)")
	gives.Execute(proxytest.Null())
	in.Close()
	s.Close()
	s.Close()
	c.Hide("the statement's id in the error")
	in.Execute(proxytest.String("closed"), proxytest.Int(104), proxytest.Null())
	s.Reset()
	c.Hide("")
	c.Query("SHOW SESSION STATUS LIKE 'Com_stmt_%'")
}

func playCommands(c *proxytest.Client) {
	c.Do(proxytest.Ping, nil)
	c.Do(proxytest.InitDB, []byte("mysql"))
	c.Query("SELECT DATABASE()")
	c.Do(proxytest.InitDB, []byte("missing"))
	c.Query("SELECT DATABASE()")
	c.Do(proxytest.FieldList, []byte("user\x00U%"))
	c.Do(proxytest.FieldList, []byte("missing\x00%"))
	c.Do(proxytest.SetOption, []byte{0, 0})
	c.Query("SELECT 1; SELECT 2")
	c.Do(proxytest.SetOption, []byte{1, 0})
	c.Query("SELECT 1; SELECT 2")
	c.Do(proxytest.SetOption, []byte{7, 0})
	c.Do(proxytest.Kill, []byte{0xFF, 0xFF, 0xFF, 0x7F})
	c.Hide("uptime and counters, other connections")
	c.Do(proxytest.Statistics, nil)
	c.Hide("")
	c.Query("SET @u = 1, SESSION sort_buffer_size = 300000")
	c.Query("CREATE TEMPORARY TABLE temp SELECT 1 a")
	s := c.Prepare("SELECT 1")
	c.Do(proxytest.ResetConnection, nil)
	c.Query("SELECT @u, @@sort_buffer_size = 300000, DATABASE()")
	c.Query("SELECT * FROM temp")
	c.Hide("the statement's id in the error")
	s.Execute()
	c.Hide("")
	for _, unknown := range []byte{0x00, 0x05, 0x06, 0x0B, 0x0F, 0x10, 0x13, 0x14, 0x1D, 0x22, 0x30, 0x80, 0xFE, 0xFF} {
		c.Do(unknown, []byte("x"))
		c.Query("SELECT 'goes on'")
	}
}

// TestAnswersAreRelayed: answers to statements that are not filled are the server's to the byte, for all
// commands.
func TestAnswersAreRelayed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for name, script := range map[string]func(*proxytest.Client){"texts": playTexts, "prepared": playPrepared, "commands": playCommands} {
			for way, capabilities := range map[string]uint64{"EOF": 0, "no EOF": proxytest.DeprecateEOF | proxytest.SessionTrack} {
				t.Run(name+", "+way, func(t *testing.T) {
					o := p.rootOptions()
					o.Capabilities = proxytest.Common | proxytest.MultiStatements | capabilities
					p.newRelayTwin(o, items...).Run(t, script)
				})
			}
		}
	})
}

// TestEachCapabilityGetsTheServersAnswers: a client with one capability more or less than others gets the server's answers.
func TestEachCapabilityGetsTheServersAnswers(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newRelayTwin(p.rootOptions())
		fresh := false
		w.Setup = func(bool) {
			if !fresh {
				p.recreate(items...)
			}
			fresh = true
		}
		for bit := range 38 {
			capability := uint64(1) << bit
			if capability&(proxytest.SSL|proxytest.Compress|proxytest.ZSTD|proxytest.Protocol41) != 0 { // without the last one there is no login
				continue
			}
			w.Options = p.rootOptions()
			if w.Options.Capabilities = proxytest.Common | capability; proxytest.Common&capability != 0 {
				w.Options.Capabilities = proxytest.Common &^ capability
			}
			t.Run(fmt.Sprintf("bit %d", bit), func(t *testing.T) {
				w.Run(t, func(c *proxytest.Client) {
					for _, text := range []string{
						"SELECT id, name FROM items ORDER BY id", "SELECT id FROM items WHERE 0", "SELECT", "UPDATE items SET name = name",
						"SELECT COUNT (*) FROM items", "CALL two(2)", "SELECT 1; SELECT 2", "SET @a = 1", "USE mysql", "SET autocommit = 0",
						"LOAD DATA LOCAL INFILE 'none' INTO TABLE items", "SELECT mysql.user.Host FROM mysql.user WHERE 0",
					} {
						c.Query(text)
					}
					s := c.Prepare("SELECT ? FROM DUAL")
					s.Execute(proxytest.Int(1))
					s.Execute(proxytest.Int(1))
					s.ExecuteAs(proxytest.ReadOnlyCursor, true, proxytest.Int(1))
					s.Fetch(1)
					c.Prepare("CALL " + p.name + ".gives(?)").Execute(proxytest.Null())
					c.Do(proxytest.FieldList, []byte("user\x00Host"))
					c.Do(proxytest.SetOption, []byte{0, 0})
					c.Do(proxytest.ResetConnection, nil)
				})
			})
		}
	})
}

// TestSessionChangesAreRelayed: a client that tracks its session receives the changes from the server.
func TestSessionChangesAreRelayed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		o := p.rootOptions()
		o.Capabilities = proxytest.Common | proxytest.SessionTrack | proxytest.DeprecateEOF | proxytest.MultiStatements
		p.newRelayTwin(o, items...).Run(t, func(c *proxytest.Client) {
			for _, text := range []string{
				"SET session_track_schema = 1", "SET session_track_state_change = 1", "SET session_track_system_variables = 'autocommit,character_set_client,sql_mode'",
				"SET session_track_transaction_info = 'CHARACTERISTICS'", "SET autocommit = 0", "SET autocommit = 1", "USE mysql", "USE " + p.name,
				"START TRANSACTION READ ONLY", "SELECT * FROM items", "COMMIT", "SET @a = 1", "BEGIN", "UPDATE items SET name = 'y'", "ROLLBACK",
				"SET NAMES latin1", "SELECT 1; USE mysql; SELECT 2", "SET session_track_system_variables = ''",
			} {
				c.Query(text)
			}
			c.Do(proxytest.InitDB, []byte(p.name))
			c.Do(proxytest.ResetConnection, nil)
		})
	})
}

// TestPipelinedCommandsAreAnsweredInOrder: commands that are sent without waiting for answers are answered in their order.
func TestPipelinedCommandsAreAnsweredInOrder(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.newRelayTwin(p.rootOptions(), items...).Run(t, func(c *proxytest.Client) {
			for i := range 40 {
				switch i % 5 {
				case 0:
					c.Send(proxytest.QueryText, fmt.Appendf(nil, "SELECT %d, '%s'", i, strings.Repeat("x", i*100)))
				case 1:
					c.Send(proxytest.QueryText, []byte("SELECT missing"))
				case 2:
					c.Send(proxytest.Prepare, fmt.Appendf(nil, "SELECT ? + %d", i))
				case 3:
					c.Send(proxytest.QueryText, []byte("CALL two(3)"))
				case 4:
					c.Send(proxytest.Ping, nil)
				}
			}
			for range 40 {
				c.Answer()
			}
			if p.Name == "mariadb" { // its clients do not wait for a statement's id
				c.Send(proxytest.Prepare, []byte("SELECT ? + 1"))
				last := binary.LittleEndian.AppendUint32(nil, 0xFFFFFFFF)
				c.Send(proxytest.Execute, append(last, 0, 1, 0, 0, 0, 0, 1, 0x08, 0, 5, 0, 0, 0, 0, 0, 0, 0))
				c.Send(proxytest.StmtClose, last)
				c.Answer()
				c.Answer()
			}
		})
	})
}

// TestMalformedCommandsGetTheServersAnswer: commands with more or fewer bytes than they declare get the server's answer. A command that is
// too short for a statement's id gets MySQL's answer on MariaDB too: MariaDB reads past its end, and uses the
// bytes there as the id of a statement, possibly of a filled one.
func TestMalformedCommandsGetTheServersAnswer(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		w := p.newRelayTwin(p.rootOptions(), items...)
		w.Setup(false)
		w.Setup = nil
		arguments := [][]byte{nil, {0}, {0, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 1, 0xFD, 0, 0xFD, 0xFF}}
		for _, command := range []byte{proxytest.Execute, proxytest.StmtReset, proxytest.Fetch} {
			for _, argument := range arguments {
				t.Run(fmt.Sprintf("%#x %x", command, argument), func(t *testing.T) {
					w.Run(t, func(c *proxytest.Client) {
						s := c.Prepare("SELECT ?")
						c.Hide("the statement's id in the error")
						c.Do(command, append(binary.LittleEndian.AppendUint32(nil, s.ID), argument...))
						c.Hide("")
						c.Query("SELECT 1")
					})
				})
			}
		}
		for _, command := range []byte{proxytest.Execute, proxytest.StmtReset, proxytest.Fetch, proxytest.StmtClose, proxytest.SendLongData} {
			for length := range 6 {
				if length > 3 && command != proxytest.SendLongData { // it contains a parameter's number too
					continue
				}
				t.Run(fmt.Sprintf("%d bytes of %#x", length, command), func(t *testing.T) {
					script := func(c *proxytest.Client) {
						s := c.Prepare("INSERT INTO items (n) VALUES (1000)")
						c.Do(command, binary.LittleEndian.AppendUint64(nil, uint64(s.ID))[:length])
						c.Query("SELECT 1")
					}
					if p.Name == "mysql" {
						w.Run(t, script)
						return
					}
					c := p.dial(w.Through, p.rootOptions())
					script(c)
					if number, text := c.Answers[2].Err(); number != 1835 {
						t.Errorf("error %d %s, want 1835", number, text)
					}
				})
			}
		}
		for _, command := range []byte{proxytest.SetOption, proxytest.FieldList} {
			for _, argument := range append(arguments, []byte{1}, []byte{1, 0, 0, 0}) {
				t.Run(fmt.Sprintf("%#x %x", command, argument), func(t *testing.T) {
					w.Run(t, func(c *proxytest.Client) {
						c.Do(command, argument)
						c.Query("SELECT 1")
					})
				})
			}
		}
		if n := p.queryValue("SELECT COUNT(*) FROM " + p.name + ".items WHERE n = 1000"); n != "0" {
			t.Errorf("rows of malformed commands = %s, want 0", n)
		}
	})
}
