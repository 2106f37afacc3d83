//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// findFinding returns the finding of a kind on a table of the database. It fails the test if there is none.
func findFinding(t *testing.T, report check.Report, code, table string) check.Finding {
	t.Helper()
	for _, f := range report.Findings {
		if f.Code == code && strings.HasSuffix(f.Table, "."+table) {
			return f
		}
	}
	t.Fatalf("found %v, want %s %s", listFindings(report), code, table)
	return check.Finding{}
}

// TestCheckKeepsAutoIncrement: the SQL of check, executed in its order until nothing is found, starts
// leaf_alloc above the AUTO_INCREMENT of an empty table.
func TestCheckKeepsAutoIncrement(t *testing.T) {
	for name, setUp := range map[string][]string{
		"no leaf_alloc":     nil,
		"no row":            {allocTable},
		"a low row":         {allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 10, 1000)"},
		"no room for a row": {allocTable, "ALTER TABLE t MODIFY id INT NOT NULL AUTO_INCREMENT", "INSERT INTO t VALUES (2147483646)"},
	} {
		t.Run(name, func(t *testing.T) {
			runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
				db := open(t, dsn, append([]string{"CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 500"}, setUp...)...)
				full := name == "no room for a row"
				for range 4 {
					report := runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=t")
					ran := false
					for _, f := range report.Findings {
						exec(t, db, f.SQL...)
						ran = ran || len(f.SQL) > 0
					}
					if !ran {
						if f := findFinding(t, report, "auto-increment", "t"); !full || !strings.Contains(f.Fix, "leafsql init") {
							t.Errorf("no SQL, and the hint %q, want one that names leafsql init", f.Fix)
						}
						return
					}
					if status, _, _ := runLeafsql(t.Context(), "check", "-dsn", dsn+"?leafTables=t"); status == exitOK {
						break
					}
				}
				if got := queryNumber(t, db, "SELECT max_id FROM leaf_alloc"); got < 500 || full {
					t.Errorf("max_id = %d, want 500 or above", got)
				}
				mustRun(t, exitOK, "check", "-dsn", dsn+"?leafTables=t")
			})
		})
	}
}

// TestCheckAltersForeignKeys: the SQL of check drops the AUTO_INCREMENT of keys that are in foreign keys. For a
// wider type, which no server accepts, there is no SQL, and the hint names the foreign keys.
func TestCheckAltersForeignKeys(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		far := target.Database(t)
		db := open(t, dsn, allocTable, "CREATE TABLE parent (id INT AUTO_INCREMENT PRIMARY KEY, top INT, CONSTRAINT own FOREIGN KEY (top) REFERENCES parent (id))",
			"CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, p INT, CONSTRAINT of_parent FOREIGN KEY (p) REFERENCES parent (id), CONSTRAINT of_key FOREIGN KEY (id) REFERENCES parent (id))",
			"CREATE TABLE alone (id INT AUTO_INCREMENT PRIMARY KEY)",
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('parent', 2000000000, 10), ('child', 2000000000, 10), ('alone', 2000000000, 10)")
		open(t, far, "CREATE TABLE far (p INT, CONSTRAINT from_far FOREIGN KEY (p) REFERENCES "+databaseName(dsn)+".parent (id))")
		args := []string{"check", "-dsn", dsn + "?leafTables=parent,child,alone"}
		report := runJSON[check.Report](t, exitProblems, args...)
		for table, want := range map[string][]string{"parent": {"parent.own", "child.of_parent", "child.of_key", "far.from_far"}, "child": {"child.of_key"}} {
			f := findFinding(t, report, "key-filling", table)
			if len(f.SQL) > 0 {
				t.Errorf("%s: SQL %q, want none", table, f.SQL)
			}
			for _, key := range want {
				if !strings.Contains(f.Fix, key) {
					t.Errorf("%s: hint %q, want one with %s", table, f.Fix, key)
				}
			}
		}
		for _, f := range report.Findings {
			for _, sql := range f.SQL { // like a person, line by line
				exec(t, db, sql)
			}
		}
		if got, want := listFindings(runJSON[check.Report](t, exitProblems, args...)), []string{"key-filling child", "key-filling parent"}; !slices.Equal(got, want) {
			t.Errorf("after the SQL: %v, want %v", got, want)
		}
	})
}

// TestCheckAltersInvisibleKeys: check shows no ALTER that the server refuses because the key is invisible, but
// a hint with the statement that makes it visible.
func TestCheckAltersInvisibleKeys(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		target.SkipUnless(t, "invisible columns", 100303, 80023)
		db := open(t, dsn, allocTable, "CREATE TABLE t (id INT INVISIBLE AUTO_INCREMENT PRIMARY KEY, n INT)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 1, 10)")
		args := []string{"check", "-dsn", dsn + "?leafTables=t"}
		f := findFinding(t, runJSON[check.Report](t, exitProblems, args...), "auto-increment", "t")
		if target.Name == string(mysqltest.MariaDB) {
			_, statement, _ := strings.Cut(f.Fix, "visible first: ")
			if len(f.SQL) > 0 || statement == "" {
				t.Fatalf("SQL %q, hint %q, want no SQL, and a hint with the statement that makes the key visible", f.SQL, f.Fix)
			}
			exec(t, db, statement)
			f = findFinding(t, runJSON[check.Report](t, exitProblems, args...), "auto-increment", "t")
		}
		exec(t, db, f.SQL...)
		mustRun(t, exitOK, args...)
	})
}

// TestCheckAltersAfterPrograms: while a trigger, routine or event writes a table, check shows no ALTER that
// would make the program fail.
func TestCheckAltersAfterPrograms(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable, "CREATE TABLE other (id BIGINT PRIMARY KEY)", "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)",
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 1, 10)")
		args := []string{"check", "-dsn", dsn + "?leafTables=t"}
		for code, create := range map[string]string{
			"trigger-inserts": "CREATE TRIGGER copied AFTER INSERT ON other FOR EACH ROW INSERT INTO t (n) VALUES (1)",
			"routine-inserts": "CREATE PROCEDURE fill() INSERT INTO t (n) VALUES (1)",
			"event-inserts":   "CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY DISABLE DO INSERT INTO t (n) VALUES (1)",
		} {
			exec(t, db, create)
			report := runJSON[check.Report](t, exitProblems, args...)
			if f := findFinding(t, report, "auto-increment", "t"); len(f.SQL) > 0 || !strings.Contains(f.Fix, code) {
				t.Errorf("%s: SQL %q, hint %q, want no SQL, and a hint with the finding", code, f.SQL, f.Fix)
			}
			exec(t, db, findFinding(t, report, code, "t").SQL...)
		}
		exec(t, db, findFinding(t, runJSON[check.Report](t, exitProblems, args...), "auto-increment", "t").SQL...)
		mustRun(t, exitOK, args...)
		if target.Name == string(mysqltest.MariaDB) && target.Has(t, 100300, 0) {
			exec(t, db, "CREATE SEQUENCE numbers", "ALTER TABLE t MODIFY id BIGINT NOT NULL DEFAULT NEXTVAL(numbers)", "CREATE TRIGGER copied AFTER INSERT ON other FOR EACH ROW INSERT INTO t (n) VALUES (1)")
			if f := findFinding(t, runJSON[check.Report](t, exitProblems, args...), "default-sequence", "t"); len(f.SQL) > 0 || !strings.Contains(f.Fix, "trigger-inserts") {
				t.Errorf("default-sequence: SQL %q, hint %q, want no SQL, and a hint with the finding", f.SQL, f.Fix)
			}
		}
	})
}
