package proxy_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// createAccount creates an account with only these grants: %[1]s is the database, %[2]s the account.
func (p *testDatabase) createAccount(name string, grants ...string) proxytest.Options {
	p.t.Helper()
	o := p.createUser(name, "secret")
	p.exec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + o.User)
	for _, g := range grants {
		p.exec(fmt.Sprintf(g, p.name, o.User))
	}
	o.Database = ""
	o.Capabilities = proxytest.Common | proxytest.LocalFiles | proxytest.MultiStatements
	return o
}

// createOwnDatabase creates a database for the account of a test.
func (p *testDatabase) createOwnDatabase() string {
	db := p.name + "_own"
	p.exec("DROP DATABASE IF EXISTS "+db, "CREATE DATABASE "+db)
	p.t.Cleanup(func() { p.db.Exec("DROP DATABASE IF EXISTS " + db) })
	return db
}

// Steps of the scripts below that are not texts: they prepare the rest of the step, execute the prepared
// statement, or use a database.
const (
	prepareStep = "prepare: "
	executeStep = "execute"
	useStep     = "use: "
)

// TestHiddenTemporaryTablesMoveNoCounter lets a client create a temporary table that leafsql has not seen, with the name of
// a table that the client may not write: the counter of the real table does not move.
func TestHiddenTemporaryTablesMoveNoCounter(t *testing.T) {
	const (
		temp   = "CREATE TEMPORARY TABLE DB.items (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), n INT)"
		bare   = "CREATE TEMPORARY TABLE items (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), n INT)"
		other  = "CREATE TEMPORARY TABLE DB.zz (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), n INT)"
		fn     = "CREATE FUNCTION OWN.f() RETURNS INT NOT DETERMINISTIC MODIFIES SQL DATA BEGIN " + temp + "; RETURN 1; END"
		far    = "INSERT INTO DB.items (id, name, n) VALUES (9223372036854775000, 'x', 1)"
		counts = "INSERT INTO DB.items (id, name, n) VALUES (9223372036854775000, 'x', ROW_COUNT())"
	)
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		trust := p.queryValue("SELECT @@global.log_bin_trust_function_creators")
		p.exec("SET GLOBAL log_bin_trust_function_creators = 1")
		t.Cleanup(func() { p.db.Exec("SET GLOBAL log_bin_trust_function_creators = " + trust) })
		for name, script := range map[string][]string{
			"selected function":  {fn, "SELECT OWN.f()", far},
			"assigned function":  {fn, "SET @a = OWN.f()", far},
			"prepared function":  {fn, prepareStep + "SELECT OWN.f()", executeStep, far},
			"view":               {fn, "CREATE VIEW OWN.v AS SELECT OWN.f() a", "SELECT * FROM OWN.v", far},
			"trigger":            {"CREATE TABLE OWN.t (a INT)", "CREATE TRIGGER OWN.tr BEFORE INSERT ON OWN.t FOR EACH ROW BEGIN " + temp + "; END", "INSERT INTO OWN.t VALUES (1)", far},
			"EXECUTE":            {"PREPARE s FROM '" + temp + "'", "EXECUTE s", far},
			"counts":             {fn, "SELECT OWN.f()", counts},
			"counts, several":    {fn, "SELECT OWN.f()", "INSERT INTO DB.items (name) VALUES (ROW_COUNT()), " + strings.Repeat("('x'), ", 50) + "('x')"},
			"counts, prepared":   {fn, "SELECT OWN.f()", prepareStep + counts, executeStep},
			"counting trigger":   {fn, "SELECT OWN.f()", far, "INSERT INTO DB.items (id, name) SELECT 9000000, 'x' FROM OWN.t", far},
			"EXECUTE and counts": {"PREPARE s FROM '" + temp + "'", "EXECUTE s", counts},
			"CALL":               {"CREATE PROCEDURE OWN.f() BEGIN " + temp + "; END", "CALL OWN.f()", far},
			"compound":           {"BEGIN NOT ATOMIC " + temp + "; END", counts},
			"renamed":            {other, "ALTER TABLE DB.zz ADD q INT, RENAME DB.items, COMMENT 'x'", far},
			"version comment":    {strings.Replace(temp, "TEMPORARY", "/*!50000 TEMPORARY */", 1), far},
			"a failing text":     {temp + "; SELECT nope", far},
			"database in use":    {useStep + "DB", prepareStep + bare, useStep + "OWN", executeStep, far},
			"USE":                {"USE DB", prepareStep + bare, "USE OWN", executeStep, far},
			"file names":         {fn, "SELECT OWN.f()", "SET character_set_results = filename", far}, // only on MariaDB
			"DROP of two":        {temp, "DROP TEMPORARY TABLE DB.items, OWN.nope", far},
		} {
			t.Run(name, func(t *testing.T) {
				p := newTestDatabase(t, p.Target)
				p.createTables(true, privilegesSetup...)
				own := p.createOwnDatabase()
				if name == "counting trigger" {
					p.exec("CREATE TRIGGER items_count BEFORE INSERT ON items FOR EACH ROW SET NEW.name = ROW_COUNT()", "CREATE TABLE "+own+".t (a INT)", "INSERT INTO "+own+".t VALUES (1)")
				}
				before := p.readCounters()
				c := p.dial(p.startProxy(), p.createAccount("h", "GRANT CREATE TEMPORARY TABLES ON %[1]s.* TO %[2]s", "GRANT ALL ON "+own+".* TO %[2]s"))
				p.play(c, script, strings.NewReplacer("DB", p.name, "OWN", own))
				if after := p.readCounters(); after != before {
					t.Errorf("leaf_alloc = %s, want %s as before", after, before)
				}
			})
		}
	})
}

// TestTemporaryTableLikeFilledOneGetsKeys inserts into a temporary table that is created LIKE a filled one, under its
// name and under another one: its rows have keys, or are refused, and an account with the right to do so has no
// other effect on the filled table.
func TestTemporaryTableLikeFilledOneGetsKeys(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for _, name := range []string{"copy", "items"} {
			t.Run(name, func(t *testing.T) {
				p := newTestDatabase(t, p.Target)
				p.createTables(true, privilegesSetup...)
				own, before := p.createOwnDatabase(), p.readCounters()
				p.exec("CREATE TABLE " + own + ".items LIKE items")
				through := proxytest.Start(t, p.dsn+"?leafTables=items,"+own+".items")
				o := p.createAccount("l", "GRANT SELECT, CREATE TEMPORARY TABLES ON %[1]s.* TO %[2]s", "GRANT SELECT ON "+own+".* TO %[2]s")
				c, other := p.dial(through, o), p.dial(through, o)
				c.Query("CREATE TEMPORARY TABLE " + p.name + "." + name + " LIKE " + own + ".items")
				for _, step := range []struct {
					text string
					want int
				}{
					{"INSERT INTO DB." + name + " (id, name) VALUES (5, 'a')", 0},
					{"INSERT INTO DB." + name + " (id, name) SELECT n, name FROM DB.source", 0},
					{"INSERT INTO DB." + name + " (name) VALUES ('a')", 1235},
					{"INSERT INTO DB." + name + " (name) SELECT name FROM DB.source", 1235},
				} {
					text := strings.ReplaceAll(step.text, "DB", p.name)
					for mode, run := range sendModes {
						text := strings.ReplaceAll(text, "(5,", fmt.Sprintf("(%d,", len(mode)))
						if mode != "text" && strings.Contains(text, "SELECT n") {
							continue
						}
						if number, message := run(c, text).Err(); number != step.want {
							t.Errorf("%s, %s: error %d %s, want %d", mode, text, number, message, step.want)
						}
					}
				}
				for _, columns := range []string{"(id, name) VALUES (9000000, 'a')", "(name) VALUES ('a')", "(id, name) SELECT n, name FROM " + p.name + ".source"} {
					if number, message := other.Query("INSERT INTO " + p.name + ".items " + columns).Err(); number != 1142 {
						t.Errorf("another session, INSERT INTO items %s: error %d %s, want 1142", columns, number, message)
					}
				}
				if after := p.readCounters(); after != before {
					t.Errorf("leaf_alloc = %s, want %s as before", after, before)
				}
			})
		}
	})
}

// TestPreparedInsertKeepsItsDatabase executes prepared INSERTs that name their table without its database in
// other databases than that of their PREPARE: the server runs them, or denies them, for the table of the
// PREPARE.
func TestPreparedInsertKeepsItsDatabase(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for _, text := range []string{"INSERT INTO items (name) VALUES (?)", "INSERT INTO items SET name = ?", "INSERT INTO items (name, n) VALUES (?, 7) ON DUPLICATE KEY UPDATE name = 'y'",
			"INSERT INTO items (name) SELECT ?", "INSERT INTO items VALUES (DEFAULT, ?, NULL)", "INSERT INTO items (name, n) VALUES (?, 7) ON DUPLICATE KEY UPDATE name = VALUES(name)",
			"INSERT INTO items (name, n) VALUES (?, 7) AS new ON DUPLICATE KEY UPDATE name = new.name", "INSERT INTO items (name, n) VALUES (?, 7) AS new (a, b) ON DUPLICATE KEY UPDATE name = a"} {
			if p.Name == string(mysqltest.MariaDB) && strings.Contains(text, "AS new") {
				continue
			}
			for name, there := range map[string]string{"without a table": "CREATE TABLE OWN.none (a INT)", "with another one": "CREATE TABLE OWN.items (id INT, name INT)", "with an equal one": "CREATE TABLE OWN.items LIKE items"} {
				t.Run(name, func(t *testing.T) {
					p := newTestDatabase(t, p.Target)
					p.createTables(true, privilegesSetup...)
					own := p.createOwnDatabase()
					p.exec(strings.ReplaceAll(there, "OWN", own))
					o := p.createAccount("e", "GRANT ALL ON %[1]s.items TO %[2]s", "GRANT ALL ON "+own+".* TO %[2]s")
					c := p.dial(p.startProxy(), o)
					c.Query("USE " + p.name)
					st := c.Prepare(text)
					c.Query("USE " + own)
					if number, message := st.Execute(proxytest.String("a")).Err(); number != 0 {
						t.Errorf("%s: error %d %s, want none", text, number, message)
					}
					p.exec("REVOKE ALL ON items FROM " + o.User)
					before := p.readCounters()
					for range 40 { // the first one draws an id
						if number, message := st.Execute(proxytest.String("a")).Err(); number != 1142 {
							t.Fatalf("%s after the REVOKE: error %d %s, want 1142", text, number, message)
						}
					}
					if after := p.readCounters(); after != before {
						t.Errorf("%s: leaf_alloc = %s, want %s as before", text, after, before)
					}
				})
			}
		}
	})
}

// play runs the steps of a script on a connection.
func (p *testDatabase) play(c *proxytest.Client, script []string, names *strings.Replacer) {
	var st *proxytest.Stmt
	for _, step := range script {
		step = names.Replace(step)
		if text, ok := strings.CutPrefix(step, prepareStep); ok {
			st = c.Prepare(text)
		} else if db, ok := strings.CutPrefix(step, useStep); ok {
			c.Do(proxytest.InitDB, []byte(db))
		} else if step == executeStep {
			st.Execute()
		} else {
			c.Query(step)
		}
	}
}

// TestPreparedChangesRunWhereServersRunThem executes prepared DDL in another database than that of its PREPARE,
// where servers run it, through the proxy and through the driver.
func TestPreparedChangesRunWhereServersRunThem(t *testing.T) {
	const (
		temp  = "CREATE TEMPORARY TABLE items (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40))"
		alter = "ALTER TABLE rowless ADD n INT FIRST"
	)
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		var own string
		setup := func() string {
			p.createTables(true, privilegesSetup...)
			own = p.createOwnDatabase()
			p.exec("CREATE TABLE "+own+".items (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), n INT)",
				"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('"+own+".items', 5000, 1000), ('rowless', 1, 1000)")
			return p.dsn + "?leafTables=" + p.name + ".items,rowless," + own + ".items"
		}
		check := func(t *testing.T) {
			t.Helper()
			if n := p.queryValue("SELECT COUNT(*) FROM " + own + ".items WHERE id > 0"); n != "2" {
				t.Errorf("rows with a generated key = %s, want 2", n)
			}
			if n := p.queryValue("SELECT COUNT(*) FROM rowless WHERE n = 7 AND name = '8'"); n != "1" {
				t.Errorf("rows with their values in the named columns = %s, want 1", n)
			}
		}
		t.Run("proxy", func(t *testing.T) {
			through := proxytest.Start(t, setup())
			c, other := p.dial(through, p.rootOptions()), p.dial(through, p.rootOptions())
			other.Query("INSERT INTO rowless VALUES (NULL, 'first')")
			p.play(c, []string{"SET sql_mode = ''", "INSERT INTO OWN.items (name) VALUES ('a')",
				prepareStep + temp, "USE OWN", executeStep, "INSERT INTO items (name) VALUES ('b')",
				"USE DB", prepareStep + alter, "USE OWN", executeStep}, strings.NewReplacer("DB", p.name, "OWN", own))
			other.Query("INSERT INTO rowless VALUES (7, NULL, '8')")
			check(t)
		})
		t.Run("driver", func(t *testing.T) {
			db, err := sql.Open("mysql-leaf", setup())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			exec := func(texts ...string) {
				t.Helper()
				for _, text := range texts {
					if _, err := c.ExecContext(t.Context(), text); err != nil {
						t.Errorf("%s: %v", text, err)
					}
				}
			}
			prepared := func(text string) {
				t.Helper()
				exec("USE " + p.name)
				st, err := c.PrepareContext(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
				exec("USE " + own)
				if _, err := st.ExecContext(t.Context()); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
			exec("SET sql_mode = ''", "INSERT INTO rowless VALUES (NULL, 'first')", "INSERT INTO "+own+".items (name) VALUES ('a')")
			prepared(temp)
			exec("INSERT INTO items (name) VALUES ('b')")
			prepared(alter)
			exec("INSERT INTO " + p.name + ".rowless VALUES (7, NULL, '8')")
			check(t)
		})
	})
}

// TestInsertsOfOneShapeArePreparedOnce counts the server's statements for INSERTs of a client that differ only in their
// values.
func TestInsertsOfOneShapeArePreparedOnce(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		p.createTables(true, privilegesSetup...)
		c := p.dial(p.startProxy(), p.createUser("v", "secret"))
		for name, texts := range map[string][]string{
			"SET":    {"INSERT INTO items SET name = 'a', n = -1", "INSERT INTO items SET name = NULL, n = -2", "INSERT INTO items SET name = TRUE, n = DEFAULT"},
			"upsert": {"INSERT INTO items (n) VALUES (1) ON DUPLICATE KEY UPDATE n = n + 5", "INSERT INTO items (n) VALUES (?) ON DUPLICATE KEY UPDATE n = n - 7"},
			"VALUES": {"INSERT INTO items (name) VALUES ('a')", "INSERT /* trace */ INTO items (name) VALUES (NULL), (UPPER('b'))"},
		} {
			for i, text := range texts {
				text = strings.ReplaceAll(text, "?", fmt.Sprint(100+i))
				before := countPrepared(t, c)
				if number, message := c.Query(text).Err(); number != 0 {
					t.Fatalf("%s: error %d %s, want none", text, number, message)
				}
				if n := countPrepared(t, c) - before; (n > 0) != (i == 0) {
					t.Errorf("%s: %s was preceded by %d PREPAREs, want one before the first alone", name, text, n)
				}
			}
		}
		// Texts that read counts are planned each time if they take a single id, without a query that would
		// change these counts.
		for _, text := range []string{"UPDATE source SET name = 'x'", "INSERT INTO items (n, name) VALUES (5000, ROW_COUNT())", "UPDATE source SET name = 'y'",
			"INSERT INTO items (n, name) VALUES (5001, ROW_COUNT())"} {
			if number, message := c.Query(text).Err(); number != 0 {
				t.Errorf("%s: error %d %s, want none", text, number, message)
			}
		}
		if got := p.queryValue("SELECT GROUP_CONCAT(name ORDER BY n) FROM items WHERE n >= 5000"); got != "2,2" {
			t.Errorf("the counts are %s, want 2,2", got)
		}
		for _, text := range []string{"INSERT INTO items (id, name) VALUES (5000, ROW_COUNT())", "INSERT INTO items (n, name) VALUES (5002, FOUND_ROWS ()), (5003, 'x')"} {
			if number, message := c.Query(text).Err(); number != 1235 {
				t.Errorf("%s: error %d %s, want 1235", text, number, message)
			}
		}
		if number, message := c.Query("INSERT INTO items (id, name) VALUES (5000, `ROW_COUNT`())").Err(); number != 1235 && number != 1630 { // MySQL: there is no such function
			t.Errorf("quoted call of ROW_COUNT: error %d %s, want 1235 or 1630", number, message)
		}
		p.exec("ALTER TABLE source ADD row_count INT", "ALTER TABLE items ADD found_rows INT")
		if number, message := c.Query("INSERT INTO items (id, found_rows) VALUES (5000, 1), (5001, (SELECT MAX(row_count) FROM source))").Err(); number != 0 {
			t.Errorf("columns with the names of counts: error %d %s, want none", number, message)
		}
		// MySQL resets these counts with each PREPARE, and MariaDB with each statement.
		c.Query("SELECT CAST('a' AS SIGNED)")
		number, message := c.Query("INSERT INTO items (id, name) VALUES (5002, @@warning_count)").Err()
		if refused := number == 1235; refused != (p.Name == string(mysqltest.MySQL)) || !refused && p.queryValue("SELECT name FROM items WHERE id = 5002") != "0" {
			t.Errorf("@@warning_count on %s: error %d %s, want 1235 on MySQL, and the value 0 on MariaDB", p.Name, number, message)
		}
		p.exec("CREATE TRIGGER items_count BEFORE INSERT ON items FOR EACH ROW SET NEW.name = ROW_COUNT()")
		fresh := p.dial(p.startProxy(), p.createUser("w", "secret"))
		fresh.Query("INSERT INTO items (id) VALUES (5004)") // after an internal query
		fresh.Query("UPDATE source SET name = 'z'")
		fresh.Query("INSERT INTO items (id) VALUES (5003)")
		if got := p.queryValue("SELECT name FROM items WHERE id = 5003"); got != "2" {
			t.Errorf("the count in a trigger is %s, want 2", got)
		}
	})
}

// countPrepared returns the number of statements that a session has prepared.
func countPrepared(t *testing.T, c *proxytest.Client) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(c.Query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'").Rows()[0][1], &n); err != nil {
		t.Fatal(err)
	}
	return n
}
