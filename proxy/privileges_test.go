package proxy_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// privilegesSetup creates tables of all kinds that leafsql would describe in an error or in the log.
var privilegesSetup = []string{
	"CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), n INT, UNIQUE (n))",
	"CREATE TABLE low (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40))", // its row of leaf_alloc is below its keys
	"INSERT INTO low VALUES (123456789, 'a')", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('low', 1, 1000)",
	"CREATE TABLE rowless (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40))",
	"CREATE TABLE counted (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40))",
	"CREATE TABLE words (id VARCHAR(40) NOT NULL PRIMARY KEY, name VARCHAR(40))",
	"CREATE TABLE source (n INT NOT NULL PRIMARY KEY, name VARCHAR(60))",
	"INSERT INTO source VALUES (50, 'fifty'), (51, 'fifty-one')",
	"CREATE TABLE traced (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), trace BIGINT)",
	"CREATE TRIGGER trace BEFORE INSERT ON traced FOR EACH ROW SET NEW.trace = LAST_INSERT_ID()",
	"CREATE SQL SECURITY DEFINER VIEW seen AS SELECT * FROM items",
}

// deniedTexts are statements that an account without the privilege to write the tables may not run.
var deniedTexts = []string{
	"INSERT INTO items (name, n) VALUES ('a', 1)",
	"INSERT INTO items (id, name) VALUES (9223372036854775805, 'a')",
	"INSERT INTO items VALUES (NULL, 'a', 1), (NULL, 'b', 2)",
	"INSERT INTO items SET name = 'a', n = 1",
	"INSERT INTO items () VALUES ()",
	"INSERT IGNORE INTO items (name, n) VALUES ('a', 1), ('b', 2)",
	"REPLACE INTO items (name, n) VALUES ('a', 1)",
	"INSERT INTO items (name, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE name = 'b'",
	"INSERT INTO items (name, n) SELECT name, n FROM source",
	"INSERT INTO items (name, n) SELECT 'a', 1",
	"REPLACE INTO items (name, n) SELECT name, n FROM source",
	"INSERT INTO items (id, name) VALUES (1 + 1, 'a')",
	"INSERT INTO low (name) VALUES ('a')",
	"INSERT INTO low (id, name) VALUES (7, 'a')",
	"INSERT INTO rowless (name) VALUES ('a')",
	"INSERT INTO rowless (id, name) VALUES (0, 'a')",
	"INSERT INTO counted (name) VALUES ('a')",
	"INSERT INTO words VALUES ('', 'a')",
	"INSERT INTO words (name) VALUES ('a')",
	"INSERT INTO absent (name) VALUES ('a')",
	"INSERT INTO absent (name) SELECT name FROM source",
	"INSERT INTO seen (name, n) VALUES ('a', 1)",
	"INSERT INTO traced (name) VALUES ('a') RETURNING id", // MySQL cannot parse it
	"INSERT INTO traced (name) VALUES (ROW_COUNT()), (LAST_INSERT_ID())",
	"LOAD DATA LOCAL INFILE 'file' INTO TABLE items (name, n)",
	"LOAD DATA LOCAL INFILE 'file' INTO TABLE items (name) SET n = 5",
	"BEGIN NOT ATOMIC INSERT INTO items (name) VALUES ('a'); END", // only on MariaDB
	"INSERT INTO items (id, name) VALUES (9000000, ROW_COUNT())",
	"INSERT INTO items (name) VALUES (ROW_COUNT())",
}

// TestDeniedStatementsHaveNoEffect compares accounts that may not run a statement with a direct connection: the
// client gets the server's own error, and no counter moves and no log line is written.
func TestDeniedStatementsHaveNoEffect(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		directly := map[string]string{} // results that do not depend on leafCreate
		for _, create := range []bool{false, true} {
			for name, grants := range map[string][]string{
				"nothing":          nil,
				"SELECT":           {"GRANT SELECT ON %[1]s.* TO %[2]s"},
				"other columns":    {"GRANT INSERT (n), UPDATE (name) ON %[1]s.items TO %[2]s", "GRANT SELECT ON %[1]s.source TO %[2]s"},
				"inactive role":    {"GRANT ALL ON %[1]s.* TO %[3]s", "GRANT %[3]s TO %[2]s"},
				"own database":     {"GRANT ALL ON %[1]s_own.* TO %[2]s"},
				"staging alone":    {"GRANT SELECT, CREATE TEMPORARY TABLES ON %[1]s.* TO %[2]s"},
				"INSERT elsewhere": {"GRANT INSERT, UPDATE, DELETE, SELECT ON %[1]s.source TO %[2]s"},
			} {
				t.Run(fmt.Sprintf("%s, leafCreate %v", name, create), func(t *testing.T) {
					p.createTables(true, privilegesSetup...)
					o := p.createUser("d", "secret")
					o.Capabilities = proxytest.Common | proxytest.LocalFiles | proxytest.MultiStatements
					role := "role_" + strings.TrimPrefix(p.name, "leafsql_")
					p.exec("SET GLOBAL local_infile = ON", "DROP ROLE IF EXISTS "+role, "CREATE ROLE "+role,
						"REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+o.User)
					t.Cleanup(func() { p.db.Exec("DROP ROLE IF EXISTS " + role) })
					for _, grant := range grants {
						p.exec(fmt.Sprintf(grant, p.name, o.User, role))
					}
					o.Database = ""
					var log logBuffer
					previous := slog.Default()
					slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
					t.Cleanup(func() { slog.SetDefault(previous) })
					through := proxytest.Start(t, p.dsn+"?leafTables="+p.name+".*&leafCreate="+strconv.FormatBool(create), func(cfg *proxy.Config) {
						cfg.Logger = slog.Default()
					})
					before := p.readCounters()
					for _, text := range deniedTexts {
						if name == "other columns" && (strings.Contains(text, "()") || strings.Contains(text, "SET n = 5") || strings.Contains(text, "END")) { // servers differ in the columns that these texts need
							continue
						}
						text = qualifyTables(text, p.name)
						for mode, run := range sendModes {
							key := name + mode + text
							if directly[key] == "" {
								directly[key] = p.runText(p.addr, o, text, run)
							}
							direct, proxied := directly[key], p.runText(through, o, text, run)
							if strings.HasPrefix(direct, "1064 ") && strings.HasPrefix(proxied, "1064 ") { // with another excerpt
								continue
							}
							if direct != proxied || !strings.Contains(direct, "denied") {
								t.Errorf("%s, %s:\ndirectly: %s\nproxied:  %s", mode, text, direct, proxied)
							}
						}
					}
					if after := p.readCounters(); after != before {
						t.Errorf("leaf_alloc =\n%s\nwant it as before:\n%s", after, before)
					}
					for _, table := range []string{"items", "low", "rowless", "counted", "words"} {
						if strings.Contains(log.String(), p.name+"."+table) {
							t.Errorf("log names the table %s, want no line about it:\n%s", table, log.String())
						}
					}
				})
			}
		}
	})
}

// qualifyTables adds the database to the tables of a text.
func qualifyTables(text, db string) string {
	for _, table := range []string{"items", "low", "rowless", "counted", "words", "traced", "absent", "seen", "source"} {
		text = strings.ReplaceAll(text, " "+table, " "+db+"."+table)
	}
	return text
}

// sendModes are the ways in which a client sends a text.
var sendModes = map[string]func(c *proxytest.Client, text string) *proxytest.Answer{
	"text": (*proxytest.Client).Query,
	"prepared": func(c *proxytest.Client, text string) *proxytest.Answer {
		if strings.HasPrefix(text, "LOAD") { // MySQL does not prepare it
			return c.Query(text)
		}
		st := c.Prepare(text)
		if number, _ := c.Answers[len(c.Answers)-1].Err(); number != 0 {
			return &c.Answers[len(c.Answers)-1]
		}
		return st.Execute()
	},
	"several": func(c *proxytest.Client, text string) *proxytest.Answer { return c.Query("DO 1; " + text + "; DO 2") },
}

// runText returns the result of a text on a separate connection of one client.
func (p *testDatabase) runText(addr string, o proxytest.Options, text string, run func(*proxytest.Client, string) *proxytest.Answer) string {
	c := p.dial(addr, o)
	defer c.Conn.Close()
	c.File = func(string) [][]byte { return [][]byte{[]byte("a\t1\n")} }
	number, message := run(c, text).Err()
	return fmt.Sprintf("%d %s", number, message)
}

// readCounters returns the rows of leaf_alloc.
func (p *testDatabase) readCounters() string {
	p.t.Helper()
	return p.queryValue("SELECT COALESCE(GROUP_CONCAT(biz_tag, ' ', max_id, ' ', update_time ORDER BY biz_tag), '') FROM leaf_alloc")
}

// TestMissingPrivilegeOnTheKeyIsNamed expects an error with the privilege that an account lacks: it may write the other
// columns, and leafsql adds the key.
func TestMissingPrivilegeOnTheKeyIsNamed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, privilegesSetup...)
		o := p.createUser("k", "secret")
		p.exec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+o.User, "GRANT SELECT, INSERT (name, n), UPDATE (name, n) ON items TO "+o.User,
			"GRANT SELECT ON source TO "+o.User, "GRANT CREATE TEMPORARY TABLES ON "+p.name+".* TO "+o.User)
		o.Capabilities = proxytest.Common | proxytest.MultiStatements
		through := p.startProxy()
		before := p.readCounters()
		for _, text := range []string{
			"INSERT INTO items (name, n) VALUES ('a', 1)",
			"INSERT INTO items (name, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE name = 'b'",
			"INSERT INTO items (name, n) SELECT name, n FROM source",
		} {
			for mode, run := range sendModes {
				got := p.runText(through, o, text, run)
				if !strings.HasPrefix(got, "1235 ") || !strings.Contains(got, "GRANT INSERT (`id`)") {
					t.Errorf("%s, %s: %s; want error 1235 with the GRANT", mode, text, got)
				}
			}
		}
		if after := p.readCounters(); after != before {
			t.Errorf("leaf_alloc =\n%s\nwant it as before:\n%s", after, before)
		}
		p.exec("GRANT INSERT (id), SELECT (id), UPDATE (id) ON items TO " + o.User)
		c := p.dial(through, o)
		for _, text := range []string{"INSERT INTO items (name, n) VALUES ('a', 1)", "INSERT INTO items (name, n) SELECT name, n FROM source"} {
			if number, message := c.Query(text).Err(); number != 0 {
				t.Errorf("%s after the GRANT: error %d %s, want none", text, number, message)
			}
		}
	})
}

// TestDeniedSourceGetsTheServersError compares INSERTs of an account that may write the table, as an INSERT before has shown, but
// not read their source: the error is the server's, not leafsql's for its temporary table.
func TestDeniedSourceGetsTheServersError(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, privilegesSetup...)
		o := p.createAccount("z", "GRANT INSERT, DELETE ON %[1]s.items TO %[2]s")
		through := p.startProxy()
		p.dial(through, o).Query("INSERT INTO " + p.name + ".items (name, n) VALUES ('a', 1)")
		for mode, run := range sendModes {
			text := "INSERT INTO " + p.name + ".items (name, n) SELECT name, n FROM " + p.name + ".source"
			direct, proxied := p.runText(p.addr, o, text, run), p.runText(through, o, text, run)
			if direct != proxied || !strings.Contains(direct, "denied") {
				t.Errorf("%s:\ndirectly: %s\nproxied:  %s", mode, direct, proxied)
			}
		}
		p.exec("GRANT SELECT ON source TO " + o.User)
		if number, message := p.dial(through, o).Query("INSERT INTO " + p.name + ".items (name, n) SELECT name, n FROM " + p.name + ".source").Err(); number != 1235 {
			t.Errorf("without CREATE TEMPORARY TABLES: error %d %s, want 1235", number, message)
		}
	})
}

// TestDenialInATriggerIsTheServersError compares a statement that the server denies while it runs: its error is the server's,
// not a refusal.
func TestDenialInATriggerIsTheServersError(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, append(privilegesSetup, "CREATE TABLE audit (n INT)")...)
		owner, o := p.createUser("t", "secret"), p.createUser("w", "secret")
		p.exec("CREATE DEFINER = "+owner.User+" TRIGGER after_items AFTER INSERT ON items FOR EACH ROW INSERT INTO audit VALUES (1)",
			"REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+owner.User, "GRANT TRIGGER ON items TO "+owner.User)
		through := p.startProxy()
		for mode, run := range sendModes {
			text := "INSERT INTO items (id, name, n) VALUES (5, 'a', 1)"
			if mode == "several" {
				o.Capabilities = proxytest.Common | proxytest.MultiStatements
			}
			direct, proxied := p.runText(p.addr, o, text, run), p.runText(through, o, text, run)
			if direct != proxied || !strings.Contains(direct, "denied") {
				t.Errorf("%s:\ndirectly: %s\nproxied:  %s", mode, direct, proxied)
			}
		}
	})
}

// TestPermissionIsShared counts the statements that the server receives for a client's INSERTs: the first
// INSERT of an account is prepared before it runs, and those of its other sessions are not.
func TestPermissionIsShared(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, privilegesSetup...)
		o := p.createUser("s", "secret")
		through := p.startProxy()
		count := func(c *proxytest.Client) (n int) {
			for _, row := range c.Query("SHOW SESSION STATUS WHERE Variable_name IN ('Questions', 'Com_stmt_prepare')").Rows() {
				k, err := strconv.Atoi(row[1])
				if err != nil {
					t.Fatal(err)
				}
				n += k
			}
			return n
		}
		for i, want := range []int{3 + 1, 1 + 1, 1 + 1} { // the INSERT and the query for the count
			c := p.dial(through, o)
			before := count(c)
			c.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", i))
			if n := count(c) - before; n != want {
				t.Errorf("client %d: %d statements, want %d", i, n, want)
			}
		}
		c := p.dial(through, o)
		c.Query("SET ROLE NONE") // its roles may differ from the others' now
		for i, want := range []int{3 + 1, 1 + 1} {
			before := count(c)
			c.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", 10+i))
			if n := count(c) - before; n != want {
				t.Errorf("after SET ROLE, INSERT %d: %d statements, want %d", i, n, want)
			}
		}
	})
}

// TestPermissionIsNotSharedByBytes logs in as two users with names of the same bytes in two character sets:
// permissions of one user do not apply to the other one.
func TestPermissionIsNotSharedByBytes(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, privilegesSetup...)
		for _, name := range []string{"é", "Ã©"} {
			p.exec("DROP USER IF EXISTS `"+name+"`", "CREATE USER `"+name+"` IDENTIFIED BY 'secret'")
			t.Cleanup(func() { p.db.Exec("DROP USER `" + name + "`") })
		}
		p.exec("GRANT ALL ON " + p.name + ".* TO `é`")
		through, o := p.startProxy(), p.createUser("u", "secret")
		o.User, o.Database = "é", ""
		const text = ".items (id, name) VALUES (5000, 'a')"
		if number, message := p.dial(through, o).Query("INSERT INTO " + p.name + text).Err(); number != 0 {
			t.Fatalf("first user's INSERT: error %d %s, want none", number, message)
		}
		before := p.readCounters()
		o.Collation = 8 // latin1
		if number, message := p.dial(through, o).Query("INSERT INTO " + p.name + strings.Replace(text, "5000", "9000000", 1)).Err(); number != 1142 {
			t.Errorf("error %d %s, want 1142", number, message)
		}
		if after := p.readCounters(); after != before {
			t.Errorf("leaf_alloc = %s, want %s as before", after, before)
		}
	})
}

// TestRevokedPrivilegeStopsDraws draws ids at most once after a REVOKE: then the server's denial is known.
func TestRevokedPrivilegeStopsDraws(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, privilegesSetup...)
		o := p.createUser("r", "secret")
		c := p.dial(p.startProxy(), o)
		for i := range 2 {
			if number, text := c.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", i)).Err(); number != 0 {
				t.Fatalf("INSERT before the REVOKE: error %d %s, want none", number, text)
			}
		}
		p.exec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + o.User)
		c = p.dial(c.Conn.RemoteAddr().String(), func() proxytest.Options { o.Database = ""; return o }())
		var moved []string
		for range 4 {
			before := p.readCounters()
			number, text := c.Query("INSERT INTO " + p.name + ".items (id, name) VALUES (" + strconv.Itoa(5_000_000+len(moved)*1_000_000) + ", 'a')").Err()
			if number != 1142 {
				t.Errorf("after the REVOKE: error %d %s, want 1142", number, text)
			}
			if p.readCounters() != before {
				moved = append(moved, before)
			}
		}
		if len(moved) > 1 {
			t.Errorf("the counter moved %d times after the REVOKE, want at most once", len(moved))
		}
	})
}

// testDeniedDDL counts, on a separate server, the statements of another session's INSERT after statements that
// the server denied: it is one statement, since leafsql has discarded nothing.
func testDeniedDDL(t *testing.T, p *testDatabase) {
	p.createTables(true, privilegesSetup...)
	o := p.createUser("f", "secret")
	p.exec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + o.User)
	o.Database = ""
	through := p.startProxy()
	nobody, writer := p.dial(through, o), p.dial(through, p.rootOptions())
	for i := range 200 { // then ranges are large enough for the rest
		writer.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", 1000+i))
	}
	for i, text := range []string{
		"ALTER TABLE db.items ADD d INT", "DROP TRIGGER db.nope", "CREATE PROCEDURE db.x() SELECT 1", "DROP PROCEDURE db.x", "DROP DATABASE " + p.name, "ALTER TABLE db.items ADD c INT",
		"TRUNCATE db.leaf_alloc", "CREATE VIEW db.v AS SELECT 1", "RENAME TABLE db.items TO db.x", "DROP TABLE db.items", "ALTER TABLE db.items ADD",
		"DROP TEMPORARY TABLE db.items", "DROP TEMPORARY TABLE IF EXISTS db.items", "CREATE TABLE db.items LIKE db.items",
	} {
		text = strings.ReplaceAll(text, "db.", p.name+".")
		if number, _ := nobody.Query(text).Err(); number == 0 && !strings.Contains(text, "IF EXISTS") {
			t.Errorf("%s by a user without privileges succeeded, want an error", text)
		}
		before := p.countQuestions()
		writer.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", 10+i))
		if n := p.countQuestions() - before; n != 1+1 { // and the query for the count
			t.Errorf("statements of an INSERT after %s = %d, want 1", text, n-1)
		}
	}
}

// testSharedPermission counts, on a separate server, the statements for INSERTs in many sessions of one account.
func testSharedPermission(t *testing.T, p *testDatabase) {
	p.createTables(true, privilegesSetup...)
	o := p.createUser("m", "secret")
	through := p.startProxy()
	const clients, inserts = 50, 40
	var connected [clients]*proxytest.Client
	for i := range connected {
		connected[i] = p.dial(through, o)
	}
	before := p.countQuestions()
	for n := range inserts {
		for i, c := range connected {
			c.Query(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", n*clients+i))
		}
	}
	if cost := float64(p.countQuestions()-before) / (clients * inserts); cost > 1.01 {
		t.Errorf("an INSERT takes %.3f statements, want at most 1.01", cost)
	}
}

// countQuestions returns the number of statements that the server has received and prepared.
func (p *testDatabase) countQuestions() (n int) {
	p.t.Helper()
	rows, err := p.db.Query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Com_stmt_prepare')")
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var k int
		if err := rows.Scan(&name, &k); err != nil {
			p.t.Fatal(err)
		}
		n += k
	}
	return n
}

// testPreparedLimit uses a separate server at its limit of prepared statements: an INSERT that was not
// permitted before gets the server's error, without an effect, and works once the server prepares again.
func testPreparedLimit(t *testing.T, p *testDatabase) {
	p.createTables(true, privilegesSetup...)
	c := p.dial(p.startProxy(), p.createUser("p", "secret"))
	p.exec("SET GLOBAL max_prepared_stmt_count = 0")
	before := p.readCounters()
	if number, text := c.Query("INSERT INTO items (id, name) VALUES (5000, 'a')").Err(); number != 1461 {
		t.Errorf("error %d %s, want 1461", number, text)
	}
	if after := p.readCounters(); after != before {
		t.Errorf("leaf_alloc =\n%s\nwant it as before:\n%s", after, before)
	}
	p.exec("SET GLOBAL max_prepared_stmt_count = 16382")
	if number, text := c.Query("INSERT INTO items (id, name) VALUES (5000, 'a')").Err(); number != 0 {
		t.Errorf("once statements can be prepared again: error %d %s, want none", number, text)
	}
}

// TestRevokedPrivilegeOfABulkStopsDraws counts the draws of bulk executions after a REVOKE: there is at most one.
func TestRevokedPrivilegeOfABulkStopsDraws(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		if target.Name != string(mysqltest.MariaDB) {
			continue
		}
		p := newTestDatabase(t, target)
		p.createTables(true, privilegesSetup...)
		o := p.createUser("b", "secret")
		o.Capabilities, o.Database = proxytest.Common|proxytest.Bulk, "" // for a session, servers keep the privileges on the database in use
		c := p.dial(p.startProxy(), o)
		st := c.Prepare("INSERT INTO " + p.name + ".items (name, n) VALUES (?, ?)")
		row := []proxytest.Param{proxytest.String("a"), proxytest.Int(1)}
		if number, text := st.Bulk(128, row, []proxytest.Param{proxytest.String("b"), proxytest.Int(2)}).Err(); number != 0 {
			t.Fatalf("INSERT before the REVOKE: error %d %s, want none", number, text)
		}
		p.exec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + o.User)
		rows := make([][]proxytest.Param, 500)
		moved := 0
		for range 4 {
			for i := range rows {
				rows[i] = []proxytest.Param{proxytest.String("c"), proxytest.Int(int64(1000 + i))}
			}
			before := p.readCounters()
			if number, text := st.Bulk(128, rows...).Err(); number != 1142 {
				t.Errorf("after the REVOKE: error %d %s, want 1142", number, text)
			}
			if p.readCounters() != before {
				moved++
			}
		}
		if moved > 1 {
			t.Errorf("the counter moved %d times after the REVOKE, want at most once", moved)
		}
	}
}
