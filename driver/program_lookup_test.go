package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/versions"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

type textLog struct {
	mu    sync.Mutex
	texts []string
}

func (l *textLog) note(_ context.Context, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, text)
	return nil
}

// since returns the recorded queries from index n on, and their total number.
func (l *textLog) since(n int) ([]string, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.texts[n:], len(l.texts)
}

// readsRights reports whether the server has the bug MDEV-36026. Then looking up a table takes two more queries, for
// the user's rights, and a new login for each query of the internal pool, which sends a SET more.
func readsRights(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	_, has := versions.HasNullColumnsBug(session.ParseVersion(version))
	return has
}

// TestLookupsNameTablesAndPrograms: queries for tables and stored programs name them. The text of a program is
// read only if a statement or a trigger leads to it.
func TestLookupsNameTablesAndPrograms(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		var log textLog
		leaf := openWrapped(t, target, func(inner driver.Connector) driver.Connector { return recording{Connector: inner, before: log.note} },
			"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b INT)", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)", "CREATE TABLE log (a INT)",
			"CREATE FUNCTION other() RETURNS INT RETURN 1", "CREATE FUNCTION f() RETURNS INT RETURN 1", "CREATE FUNCTION g() RETURNS INT RETURN f()",
			"CREATE PROCEDURE p() SELECT other()", "CREATE VIEW v AS SELECT other() a")
		leaf.SetMaxOpenConns(1)
		rights := readsRights(t, leaf)
		at := 0
		for _, step := range []struct{ text, reads string }{
			{"INSERT INTO t (a) VALUES (1)", ""},
			{"INSERT INTO t (a) VALUES (2) ON DUPLICATE KEY UPDATE b = b + 1", ""},
			{"INSERT INTO t (a) SELECT a + 10 FROM s", ""},
			{"INSERT INTO t (a, b) SELECT a + 20, LENGTH(NOW()) FROM s ON DUPLICATE KEY UPDATE b = VALUES(b)", ""},
			{"SELECT other() FROM v", ""},
			{"CALL p()", ""},
			{"INSERT INTO log SELECT other()", ""},
			{"CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a)", ""},
			{"INSERT INTO t (a) VALUES (30)", ""},
			{"INSERT INTO t (a) SELECT a + 40 FROM s", ""},
			{"INSERT INTO t (a, b) SELECT a + 50, g() FROM s", "f g"},
			{"DROP TRIGGER tr", ""},
			{"CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW SET @x = f()", ""},
			{"INSERT INTO t (a) VALUES (60)", "f"},
		} {
			if _, err := leaf.Exec(step.text); err != nil {
				t.Fatalf("%s: %s: %v", target.Name, step.text, err)
			}
			var texts []string
			texts, at = log.since(at)
			for _, text := range texts {
				lower := strings.ToLower(text)
				_, name, shown := strings.Cut(text, "SHOW CREATE ")
				_, name, _ = strings.Cut(name, ".`")
				name, _, _ = strings.Cut(name, "`")
				switch {
				case strings.Contains(lower, "routine") || strings.Contains(lower, "mysql.proc") || strings.Contains(lower, "parameters") || strings.Contains(lower, "event_def"):
					t.Errorf("%s: %s sent %s, want no lookup of all programs", target.Name, step.text, text)
				case rights && strings.Contains(lower, "from information_schema.user_privileges"):
				case strings.Contains(lower, "`leaf_alloc`"): // identifies the server
				case strings.Count(lower, "information_schema.") > strings.Count(lower, "table = ?")+strings.Count(lower, "table_name = ?")+strings.Count(lower, "table_name in (?"):
					t.Errorf("%s: %s sent %s, want a lookup by name", target.Name, step.text, text)
				case shown && !strings.Contains(text, "SHOW CREATE TABLE") && !strings.Contains(" "+step.reads+" ", " "+name+" "):
					t.Errorf("%s: %s read the text of another program by %s, want only %q", target.Name, step.text, text, step.reads)
				}
			}
		}
	}
}

// TestTemporaryTablesAddFewStatements: an application that works with temporary tables sends
// hardly more statements than through the plain driver.
func TestTemporaryTablesAddFewStatements(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		var sent atomic.Int64
		leaf := openWrapped(t, target, func(inner driver.Connector) driver.Connector { return counting(inner, &sent) }, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (0)")
		conn, err := leaf.Conn(t.Context()) // held, since a wrapped driver may reset connections that are returned to the pool
		if err != nil {
			t.Fatal(err)
		}
		before, inserts, own := sent.Load(), 0, 0
		for range 30 {
			texts := []string{"CREATE TEMPORARY TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT, b DATETIME(6), KEY k (a))", // it hides t
				"CREATE TEMPORARY TABLE x (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)"}
			for range 15 {
				texts = append(texts, "INSERT INTO t (a) VALUES (1)", "INSERT INTO t SET a = 2", "INSERT INTO x (a) VALUES (1), (2)")
			}
			texts = append(texts, "DROP TEMPORARY TABLE t")
			for range 15 { // a select could have dropped t, which would take a query
				texts = append(texts, "INSERT INTO x (a) VALUES (1)", "SELECT COUNT(*), NOW(6) FROM x", "INSERT INTO t (a) VALUES (1)")
			}
			for _, text := range append(texts, "DROP TEMPORARY TABLE x", "INSERT INTO t (a) VALUES (1)") {
				if _, err := conn.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
				if own++; strings.HasPrefix(text, "INSERT") {
					inserts++
				}
			}
		}
		conn.Close()
		plain, through := float64(own)/float64(inserts), float64(sent.Load()-before)/float64(inserts)
		t.Logf("%s: %.3f statements an INSERT, %.3f without leafsql", target.Name, through, plain)
		if through > plain+0.01 {
			t.Errorf("%s: %.3f statements for an INSERT, want at most %.3f, as many as the application sends", target.Name, through, plain+0.01)
		}
	}
}
