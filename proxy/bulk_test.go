package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The capabilities of clients that execute in bulk. MariaDB 11.5 also offers the last one, which the proxy does
// not.
const bulkCapabilities = proxytest.Common | proxytest.Bulk | proxytest.BulkUnitResults

type row = []proxytest.Param

var (
	defaulted = proxytest.Param{Type: 8, Indicator: 2}
	ignored   = proxytest.Param{Type: 8, Indicator: 3}
)

// withType returns a value with another type than its column, whose type is that of the first row.
func withType(typ byte, p proxytest.Param) proxytest.Param {
	p.Type = typ
	return p
}

// TestUnfilledBulkIsRelayed: a bulk execution of a statement that is not filled is relayed.
func TestUnfilledBulkIsRelayed(t *testing.T) {
	p := newTestDatabase(t, mysqltest.TargetOf(t, mysqltest.MariaDB))
	o := p.rootOptions()
	o.Capabilities = bulkCapabilities
	p.newRelayTwin(o, "CREATE TABLE items (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), n INT UNIQUE)").Run(t, func(c *proxytest.Client) {
		s, i := proxytest.String, proxytest.Int
		insert := c.Prepare("INSERT INTO items (name, n) VALUES (?, ?)")
		insert.Bulk(0, row{s("a"), i(1)}, row{s("b"), i(2)}, row{s("c"), i(3)})
		insert.Bulk(0, row{s("a"), i(1)})
		insert.Execute(s("d"), i(4))
		c.Prepare("UPDATE items SET name = ? WHERE n = ?").Bulk(0, row{s("x"), i(1)}, row{s("y"), i(2)})
		c.Prepare("DELETE FROM items WHERE n = ?").Bulk(0, row{i(1)}, row{i(7)})
		c.Prepare("SELECT ?").Bulk(0, row{i(1)}, row{i(7)})
		c.Prepare("INSERT INTO items (name) VALUES (?) RETURNING id").Bulk(0, row{s("a")}, row{s("b")})
		c.Query("SELECT * FROM items ORDER BY id")
	})
}

// TestFilledBulkAnswersLikeAutoIncrement: the answer to a filled INSERT that is executed in bulk is the server's answer to one with
// AUTO_INCREMENT, except for the keys. This holds for all kinds of missing keys, and together with rows that
// have one.
func TestFilledBulkAnswersLikeAutoIncrement(t *testing.T) {
	each := map[string]uint64{"EOF": 0, "no EOF": proxytest.DeprecateEOF, "metadata": proxytest.CacheMetadata | proxytest.ExtendedMetadata}
	for way, capabilities := range each {
		t.Run(way, func(t *testing.T) {
			p := newTestDatabase(t, mysqltest.TargetOf(t, mysqltest.MariaDB))
			o := p.rootOptions()
			o.Capabilities = bulkCapabilities | capabilities
			p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
				s, i, null := proxytest.String, proxytest.Int, proxytest.Null
				shown := func() {
					c.Query("SHOW WARNINGS")
					c.Query("SELECT LAST_INSERT_ID(), ROW_COUNT()")
				}
				lacking := c.Prepare("INSERT INTO items (name, n) VALUES (?, ?)")
				lacking.Bulk(0, row{s("a"), i(1)}, row{s("b"), i(2)}, row{s("c"), null()})
				shown()
				lacking.Bulk(0, row{s("one"), i(4)})
				lacking.ExecuteAs(0, false, s("d"), i(5)) // with the types of the bulk
				lacking.Bulk(0, row{s("e"), i(6)}, row{s("taken"), i(1)}, row{s("f"), i(7)})
				lacking.Bulk(0, row{s("e"), i(6)}, row{s("a name that is longer than the forty characters of an item"), i(8)})
				c.Query("START TRANSACTION")
				lacking.Bulk(0, row{s("e"), i(6)}, row{s("f"), i(7)})
				c.Query("ROLLBACK")
				many := make([]row, 3000)
				for n := range many {
					many[n] = row{s(fmt.Sprint("many", n)), null()}
				}
				lacking.Bulk(0, many...)
				shown()
				c.Query("DELETE FROM items WHERE name LIKE 'many%'")

				key := c.Prepare("INSERT INTO items (name, id, n) VALUES (?, ?, ?)")
				key.Bulk(0, row{s("g"), withType(8, null()), i(10)}, row{s("h"), defaulted, i(11)}, row{s("i"), ignored, i(12)}, row{s("j"), i(0), i(13)})
				shown()
				key.Bulk(0, row{s("own"), i(9), i(14)}, row{s("l"), null(), i(15)}, row{s("own"), i(11), i(16)}, row{s("m"), i(0), defaulted})
				shown()
				key.Bulk(0, row{s("own"), s("12"), i(20)}, row{s("n"), null(), i(21)}, row{s("own"), s(" 13"), i(22)})
				key.Bulk(0, row{s("own"), proxytest.Float(14), i(23)}, row{s("o"), null(), i(24)})
				key.Bulk(0, row{withType(6, null()), withType(6, null()), withType(6, null())}, row{null(), null(), null()})
				key.Execute(s("p"), null(), null())
				key.Bulk(0, row{s("own"), i(17), null()})
				key.Bulk(0, row{s("g"), i(0), defaulted})
				upsert := c.Prepare("INSERT INTO items (name, id) VALUES (?, ?) ON DUPLICATE KEY UPDATE name = 'updated'")
				upsert.Bulk(0, row{s("own"), i(19)})
				upsert.Bulk(0, row{s("own"), i(19)})
				upsert.Bulk(0, row{s("own"), i(19)})
				shown()
				c.Prepare("INSERT INTO items VALUES (?, ?, ?, ?)").Bulk(0, row{withType(8, null()), s("q"), i(30), withType(0xFC, null())}, row{withType(8, null()), s("r"), i(31), withType(0xFC, s("body"))})
				c.Prepare("INSERT INTO items VALUES (?, 'literal', ?, NULL), (NULL, ?, ?, ?)").Bulk(0,
					row{i(15), i(32), s("s"), i(33), s("body")}, row{i(0), i(34), s("t"), i(35), s("body")})
				shown()
				c.Prepare("INSERT INTO items SET name = ?, n = ?").Bulk(0, row{s("u"), i(36)}, row{s("v"), i(37)})
				c.Prepare("REPLACE INTO items (name, n) VALUES (?, ?)").Bulk(0, row{s("replaced"), i(1)}, row{s("w"), i(40)}, row{s("replaced"), i(40)})
				shown()
				back := c.Prepare("INSERT INTO items (name, n) VALUES (?, ?) RETURNING id, name, n + 1")
				back.Bulk(0, row{s("back"), i(50)}, row{s("back"), i(51)}, row{s("back"), i(52)})
				shown()
				back.Bulk(0, row{s("back"), i(53)}, row{s("back"), i(51)})

				c.Query("SELECT LAST_INSERT_ID(7)")
				c.Prepare("INSERT INTO items (name, n, id) VALUES (CONCAT(LAST_INSERT_ID(), ' and ', ?), ?, NULL)").Bulk(0, row{s("x"), i(54)}, row{s("y"), i(55)})
				c.Query("SELECT LAST_INSERT_ID()")
				c.Query("SELECT name FROM items WHERE n IN (54, 55) ORDER BY n")
				counts := c.Prepare("INSERT INTO items (name, n) VALUES (CONCAT(ROW_COUNT(), ?), ?)")
				c.Query("UPDATE items SET name = 'counted' WHERE n IN (54, 55)")
				counts.Bulk(0, row{s("x"), i(56)}, row{s("y"), i(57)})
				c.Query("SELECT LAST_INSERT_ID()")
				c.Query("SELECT name FROM items WHERE n IN (56, 57) ORDER BY n")

				notes := c.Prepare("INSERT INTO notes (note) VALUES (?)") // is not filled
				notes.Bulk(0, row{s("a")}, row{s("b")})
				c.Query("SELECT LAST_INSERT_ID()")
				temporary := c.Prepare("INSERT INTO items (n, name) VALUES (?, ?)")
				temporary.Bulk(0, row{i(62), s("filled")})
				c.Query("CREATE TEMPORARY TABLE items (n INT, name VARCHAR(40))")
				untyped := append(binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint32(nil, temporary.ID), 0), 0)
				c.Do(proxytest.BulkExecute, append(append(append(untyped, i(3).Value...), 0), s("with the types of before").Value...))
				temporary.Bulk(0, row{i(1), s("temporary")}, row{i(2), s("temporary")})
				c.Query("SELECT * FROM items")
				c.Query("DROP TEMPORARY TABLE items")
				temporary.Bulk(0, row{i(60), s("x")}, row{i(61), s("y")})
				c.Query("SELECT id, name, n FROM items ORDER BY id")
			})
		})
	}
}

// TestFilledBulkAnswersDocumentedIDs: the ids in answers if the server's would belong to no row or to one of several, and the
// refused statements.
func TestFilledBulkAnswersDocumentedIDs(t *testing.T) {
	p := newTestDatabase(t, mysqltest.TargetOf(t, mysqltest.MariaDB))
	p.createTables(true, append(filledItems, "CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, n INT)", "CREATE TABLE codes (id CHAR(36) NOT NULL PRIMARY KEY, n INT)")...)
	addr := proxytest.Start(t, p.dsn+"?leafTables=items,events:id:snowflake,codes:id:uuid7&leafWorker=static(7)")
	o := p.rootOptions()
	o.Capabilities = bulkCapabilities
	c := p.dial(addr, o)
	s, i := proxytest.String, proxytest.Int
	first := c.Prepare("INSERT INTO items (name, n) VALUES (?, ?)").Bulk(0, row{s("a"), i(1)}, row{s("b"), i(2)}).OK().ID
	for _, tt := range []struct {
		text     string
		rows     []row
		affected uint64
		id       uint64
	}{
		{"INSERT IGNORE INTO items (name, n) VALUES (?, ?)", []row{{s("taken"), i(1)}, {s("c"), i(3)}}, 1, 0},
		{"INSERT INTO items (name, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE name = VALUES(name)", []row{{s("d"), i(1)}, {s("e"), i(4)}, {s("b"), i(2)}}, 3, 0},
		{"INSERT INTO items (id, name, n) VALUES (?, ?, ?)", []row{{i(7), s("own"), i(5)}, {i(8), s("own"), i(6)}}, 2, 0},
	} {
		if ok := c.Prepare(tt.text).Bulk(0, tt.rows...).OK(); ok.Affected != tt.affected || ok.ID != tt.id {
			t.Errorf("%s: OK = %+v, want %d affected rows and id %d", tt.text, ok, tt.affected, tt.id)
		}
	}
	if got := c.Query(fmt.Sprintf("SELECT name, id = %d FROM items WHERE n < 3 ORDER BY n", first)).Rows(); fmt.Sprint(got) != "[[d 1] [b 0]]" {
		t.Errorf("rows after upserts = %q, want d with the first id and b with another one", got)
	}

	c.Prepare("INSERT INTO items (id, name) VALUES (?, ?)").Bulk(0, row{i(3_000_000), s("own")}, row{i(2_000_000), s("own")})
	if ok := c.Prepare("INSERT INTO items (name) VALUES (?)").Bulk(0, row{s("a")}).OK(); ok.ID <= 3_000_000 {
		t.Errorf("id after the key 3,000,000 = %d, want a higher one", ok.ID)
	}
	if ok := c.Prepare("INSERT INTO items (id, name) VALUES (?, ?)").Bulk(0, row{i(5_000_000), s("own")}, row{i(0), s("a")}).OK(); ok.ID <= 5_000_000 {
		t.Errorf("id in a bulk with the key 5,000,000 = %d, want a higher one", ok.ID)
	}

	many := make([]row, 10_000)
	for n := range many {
		many[n] = row{i(int64(n)), i(int64(n))}
	}
	for _, table := range []string{"events", "codes"} {
		a := c.Prepare("INSERT INTO "+table+" (n) VALUES (? + 0 * ?)").Bulk(0, many...)
		if ok := a.OK(); ok.Affected != 10_000 {
			number, text := a.Err()
			t.Errorf("%s: OK = %+v, error %d %s, want 10,000 affected rows", table, ok, number, text)
		}
		if got := c.Query("SELECT COUNT(*) FROM (SELECT n, LAG(n) OVER (ORDER BY id) l FROM " + table + ") AS r WHERE n <> l + 1").Rows(); got[0][0] != "0" {
			t.Errorf("%s: keys that are not in the rows' order = %s, want none", table, got[0][0])
		}
	}

	before := p.queryValue("SELECT COUNT(*) FROM " + p.name + ".items")
	for text, rows := range map[string][]row{
		"INSERT INTO items (name, n) SELECT name, n + ? FROM source": {{i(100)}, {i(200)}},
		"INSERT INTO items (name, n) SELECT ?, 100":                  {{s("a")}, {s("b")}},
		"INSERT INTO items (name, id) VALUES (?, ?)":                 {{s("a"), s("7")}, {s("b"), s("seven")}},
	} {
		number, message := c.Prepare(text).Bulk(0, rows...).Err()
		if number != 1235 && number != 1295 || number == 1235 && !strings.Contains(message, "leafsql: ") {
			t.Errorf("%s: error %d %s, want 1235 of leafsql or 1295", text, number, message)
		}
	}
	short := proxytest.Param{Type: 0xFD, Value: []byte("\x09short")}
	for _, rows := range [][]row{{{short}}, {{s("a")}, {short}}} {
		if number, _ := c.Prepare("INSERT INTO items (name) VALUES (?)").Bulk(0, rows...).Err(); number != 1210 {
			t.Errorf("bulk without its values: error %d, want 1210", number)
		}
	}
	if after := p.queryValue("SELECT COUNT(*) FROM " + p.name + ".items"); after != before {
		t.Errorf("rows = %s, want %s as before", after, before)
	}
}

// TestBulkTooLongIsRefused: a bulk that becomes too long for the server by its ids does not run, and the connection can
// still be used.
func TestBulkTooLongIsRefused(t *testing.T) {
	mysqltest.TargetOf(t, mysqltest.MariaDB)
	p := newTestDatabase(t, mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--max-allowed-packet=1M"}}).Target())
	p.createTables(true, filledItems...)
	o := p.rootOptions()
	o.Capabilities = bulkCapabilities
	c := p.dial(p.startProxy(), o)
	large := make([]row, 1000)
	for n := range large {
		large[n] = row{proxytest.String(strings.Repeat("x", 38)), proxytest.String(strings.Repeat("y", 1000))}
	}
	insert := c.Prepare("INSERT INTO items (name, body) VALUES (?, ?)")
	if number, text := insert.Bulk(0, large...).Err(); number != 1153 {
		t.Errorf("bulk that is too long: error %d %s, want 1153", number, text)
	}
	if ok := insert.Bulk(0, large[:900]...).OK(); ok.Affected != 900 {
		t.Errorf("shorter bulk: OK = %+v, want 900 affected rows", ok)
	}
	if rows := p.queryValue("SELECT COUNT(*) FROM items"); rows != "900" {
		t.Errorf("rows = %s, want 900", rows)
	}
	// The length is known before ids are drawn.
	nulls := make([]row, 200_000)
	for n := range nulls {
		nulls[n] = row{proxytest.Null()}
	}
	before := c.Query("INSERT INTO items (name) VALUES ('before')").OK().ID
	if number, text := c.Prepare("INSERT INTO items (id) VALUES (?)").Bulk(0, nulls...).Err(); number != 1153 {
		t.Errorf("error %d %s, want 1153", number, text)
	}
	if after := c.Query("INSERT INTO items (name) VALUES ('after')").OK().ID; after != before+1 {
		t.Errorf("ids that the refused bulk took = %d, want 0", after-before-1)
	}
}
