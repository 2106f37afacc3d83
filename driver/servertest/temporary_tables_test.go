package servertest

import (
	"cmp"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	makeT  = "CREATE TEMPORARY TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)"
	dropT  = "DROP TEMPORARY TABLE t"
	intoT  = "INSERT INTO t (a) VALUES (1), (2)"
	idsOfT = "SELECT id, a FROM t ORDER BY id"
)

// TestServerGeneratesKeysOfTemporaryTables: the server generates the keys of temporary tables, under exact rules and patterns.
func TestServerGeneratesKeysOfTemporaryTables(t *testing.T) {
	for _, rules := range []string{"leafTables=t:id", "leafTables=*&leafCreate=true"} {
		t.Run(rules[len("leafTables="):][:1], func(t *testing.T) {
			scripts := readScripts(t, "temporary_tables")
			for i, sc := range scripts {
				scripts[i].rules = cmp.Or(sc.rules, rules)
			}
			playScripts(t, scripts)
		})
	}
}

// TestTemporaryTableLikeMigratedOneNeedsKeys: such a table has neither AUTO_INCREMENT nor a default, so
// a row without a key is refused, whatever the name of the table.
func TestTemporaryTableLikeMigratedOneNeedsKeys(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, rules := range []string{"t", "*"} {
			_, leaf := openOn(t, target.Database(t), "leafTables="+rules+"&sql_mode=%27%27", allocTable, row("t", 1000, 10),
				"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
			c := onOne(t, leaf)
			mustExec(t, c, "INSERT INTO t (a) VALUES (1)", "CREATE TEMPORARY TABLE x LIKE t", "INSERT INTO x (id, a) VALUES (5, 1)", "INSERT INTO x SELECT * FROM t")
			for _, text := range []string{"INSERT INTO x (a) VALUES (1)", "INSERT IGNORE INTO x (a) VALUES (1)", "INSERT INTO x VALUES (0, 1)",
				"REPLACE INTO x SET a = 1", "INSERT INTO x (a) SELECT a FROM s"} {
				_, err := c.ExecContext(t.Context(), text)
				var refused *driver.RefusedError
				if !errors.As(err, &refused) || !strings.Contains(refused.Fix, "MODIFY `id` bigint") || !strings.Contains(refused.Fix, "AUTO_INCREMENT") {
					t.Errorf("%s, %s: %s: error %v, want a refusal with SQL that adds AUTO_INCREMENT", target.Name, rules, text, err)
				} else {
					_, fix, _ := strings.Cut(refused.Fix, ": ")
					mustExec(t, c, "SELECT 1", "DROP TEMPORARY TABLE x", "CREATE TEMPORARY TABLE x LIKE t", fix, strings.Replace(text, "VALUES (0, 1)", "VALUES (NULL, 1)", 1),
						"DROP TEMPORARY TABLE x", "CREATE TEMPORARY TABLE x LIKE t")
				}
			}
			if _, err := c.ExecContext(t.Context(), "INSERT INTO x (id, a) VALUES (?, 1)", nil); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s, %s: NULL argument: error %v, want a refusal", target.Name, rules, err)
			}
			var n int
			if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM x").Scan(&n); err != nil || n != 0 {
				t.Errorf("%s, %s: %d rows, error %v; want 0", target.Name, rules, n, err)
			}
		}
	}
}

// TestChangedTemporaryTableNeedsKeys: the same is true if the table was renamed, altered, or created
// like another temporary table.
func TestChangedTemporaryTableNeedsKeys(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t&sql_mode=%27%27", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		for name, texts := range map[string][]string{
			"renamed":    {"CREATE TEMPORARY TABLE x LIKE t", "ALTER TABLE x RENAME TO y"},
			"altered":    {"CREATE TEMPORARY TABLE y LIKE t", "ALTER TABLE y ADD b INT"},
			"made twice": {"CREATE TEMPORARY TABLE y LIKE t", "CREATE TEMPORARY TABLE IF NOT EXISTS y (id INT AUTO_INCREMENT PRIMARY KEY, a INT)"},
			"like it":    {"CREATE TEMPORARY TABLE x LIKE t", "CREATE TEMPORARY TABLE y LIKE x"},
		} {
			c := onOne(t, leaf)
			mustExec(t, c, append([]string{"DROP TEMPORARY TABLE IF EXISTS x, y"}, texts...)...)
			if _, err := c.ExecContext(t.Context(), "INSERT IGNORE INTO y (a) VALUES (1)"); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %s: error %v, want a refusal", target.Name, name, err)
			}
			c.Close()
		}
	}
}

// TestAlteredTemporaryTableKeepsColumnOrder: values without a column list are stored in the temporary table's columns.
func TestAlteredTemporaryTableKeepsColumnOrder(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT, b INT)")
		c := onOne(t, leaf)
		mustExec(t, c, "CREATE TEMPORARY TABLE x LIKE t", "INSERT INTO x VALUES (4, 1, 2)", "ALTER TABLE x MODIFY b INT AFTER id", "INSERT INTO x VALUES (5, 2, 1)")
		var n int
		if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM x WHERE a = 1 AND b = 2").Scan(&n); err != nil || n != 2 {
			t.Errorf("%s: %d rows with values in their columns, error %v; want 2", target.Name, n, err)
		}
		if _, err := c.ExecContext(t.Context(), "INSERT INTO x VALUES (0, 2, 1)"); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: error %v, want a refusal", target.Name, err)
		}
	}
}

// preparedBehind runs a statement on a new connection, and then prepares an INSERT into t there.
func preparedBehind(t *testing.T, leaf *sql.DB, first string) (*sql.Conn, *sql.Stmt) {
	t.Helper()
	c := onOne(t, leaf)
	mustExec(t, c, first)
	st, err := c.PrepareContext(t.Context(), "INSERT INTO t (a) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return c, st
}

// TestPreparedStatementFindsTemporaryTable: each execution of a prepared statement finds its
// table again, also if there was nothing to fill when it was prepared.
func TestPreparedStatementFindsTemporaryTable(t *testing.T) {
	type step struct {
		before string
		id     int64
	}
	for _, target := range mysqltest.Targets(t) {
		for first, steps := range map[string][]step{
			"DO 1": {{"DO 1", 1000}, {makeT, 1}, {"DO 1", 2}, {dropT, 1001}, {makeT, 1}},
			makeT:  {{"DO 1", 1}, {dropT, 1000}, {makeT, 1}, {dropT, 1001}},
		} {
			_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
			c, st := preparedBehind(t, leaf, first)
			for i, tt := range steps {
				mustExec(t, c, tt.before)
				res, err := st.Exec(i)
				if err != nil {
					t.Fatalf("%s, %s first, step %d: error %v, want none", target.Name, first, i, err)
				}
				if id, _ := res.LastInsertId(); id != tt.id {
					t.Errorf("%s, %s first, step %d: LastInsertId() = %d, want %d", target.Name, first, i, id, tt.id)
				}
			}
		}
	}
}

// TestPreparedStatementOfHiddenTableIsRefused: a statement that was prepared under another database in use is refused if a
// temporary table now hides its table, or no longer hides it. Otherwise it still works.
func TestPreparedStatementOfHiddenTableIsRefused(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		dsn := target.Database(t)
		name := databaseOf(t, dsn)
		for first, then := range map[string]string{"DO 1": "CREATE TEMPORARY TABLE " + name + ".t (id INT NOT NULL DEFAULT 5, a INT)", makeT: "DROP TEMPORARY TABLE " + name + ".t"} {
			_, leaf := openOn(t, dsn, "leafTables=t&sql_mode=%27%27", "DROP TABLE IF EXISTS leaf_alloc, t", allocTable, row("t", 1000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
			c, st := preparedBehind(t, leaf, first)
			mustExec(t, c, "USE information_schema")
			if _, err := st.Exec(1); err != nil {
				t.Errorf("%s, %s first: error %v, want none", target.Name, first, err)
			}
			mustExec(t, c, then)
			if _, err := st.Exec(2); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s, %s first: error %v, want a refusal", target.Name, first, err)
			}
			if n := 0; c.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+name+".t WHERE a = 2").Scan(&n) != nil || n != 0 {
				t.Errorf("%s, %s first: %d rows, want 0", target.Name, first, n)
			}
		}
	}
}

// TestRenamedTemporaryTablesAreNoticed: temporary tables are noticed if a list of changes renames one, and if one is created
// while the database in use is unknown.
func TestRenamedTemporaryTablesAreNoticed(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		other := target.Database(t)
		openOn(t, other, "leafTables=none", "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT)")
		name := databaseOf(t, other)
		_, leaf := openOn(t, target.Database(t), "leafTables=t,"+name+".t&multiStatements=true&leafCreate=true",
			allocTable, row("t", 3_000_000_000, 10), "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		c := onOne(t, leaf)
		for i, texts := range [][]string{
			{"CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "ALTER TABLE x ADD b INT, RENAME t"},
			{dropT, "CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)", "USE " + name, makeT},
		} {
			mustExec(t, c, texts...)
			res, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)")
			if err != nil {
				t.Errorf("%s, step %d: error %v, want none", target.Name, i, err)
			} else if id, _ := res.LastInsertId(); id != 1 {
				t.Errorf("%s, step %d: LastInsertId() = %d, want 1", target.Name, i, id)
			}
		}
		mustExec(t, c, dropT, "USE "+databaseOf(t, target.Database(t)))
		if _, err := c.ExecContext(t.Context(), "USE "+name+"; SELECT nosuch"); err == nil {
			t.Error("SELECT of a missing column: no error, want one")
		}
		mustExec(t, c, makeT)
		if res, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)"); err != nil {
			t.Errorf("%s: error %v, want none", target.Name, err)
		} else if id, _ := res.LastInsertId(); id != 1 {
			t.Errorf("%s: LastInsertId() = %d, want 1", target.Name, id)
		}
	}
}
