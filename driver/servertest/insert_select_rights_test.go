package servertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/versions"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// rightsColumns are the columns of a source and a target. A stage must have their types.
const rightsColumns = "a INT, e ENUM('a','b','ü'), st SET('x','y'), l VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin, " +
	"d DECIMAL(20,8), b BIT(10), ts TIMESTAMP(3) NULL, x VARBINARY(20), j JSON, n INT UNSIGNED NOT NULL DEFAULT 9"

// account returns leastRights, and adds the right TRIGGER if the version has the bug MDEV-36026, so that statements are staged.
func account(t *testing.T, target mysqltest.Target, grants ...string) (plain, leaf *sql.DB) {
	t.Helper()
	if nullsColumns(t, target) {
		grants = append(grants, "TRIGGER ON DB.t")
	}
	return leastRights(t, target, grants...)
}

// nullsColumns reports whether the server has the bug MDEV-36026.
func nullsColumns(t *testing.T, target mysqltest.Target) bool {
	t.Helper()
	db, err := sql.Open("mysql", target.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version string
	if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	_, has := versions.HasNullColumnsBug(session.ParseVersion(version))
	return has
}

// leastRights returns a database with tables, opened as root and as a user with only the given rights.
func leastRights(t *testing.T, target mysqltest.Target, grants ...string) (plain, leaf *sql.DB) {
	t.Helper()
	dsn := target.Database(t)
	db := databaseOf(t, dsn)
	user := "u" + db[len(db)-12:]
	setup := []string{allocTable, row("t", generatedFrom, 1000),
		"CREATE TABLE s (" + rightsColumns + ")", "CREATE TABLE t (" + rightsColumns + ", id BIGINT PRIMARY KEY)", "CREATE TABLE want (" + rightsColumns + ")",
		"INSERT INTO s VALUES (1, 'ü', 'x,y', 'äß', 1.23456789, 5, '2024-02-29 01:02:03.456', x'00ff', '{\"a\": 1}', 1), (2, NULL, '', '', -1, 0, NULL, '', 'null', 4294967295)",
		"CREATE USER " + user + " IDENTIFIED BY 'pw'", "GRANT SELECT ON " + db + ".s TO " + user, "GRANT SELECT, UPDATE ON " + db + ".leaf_alloc TO " + user}
	for _, g := range grants {
		setup = append(setup, "GRANT "+strings.ReplaceAll(g, "DB", db)+" TO "+user)
	}
	plain, _ = openOn(t, dsn, "leafTables=none", setup...)
	t.Cleanup(func() { plain.Exec("DROP USER " + user) })
	return plain, openLeaf(t, strings.Replace(dsn, "root", user+":pw", 1), "leafTables=t:id")
}

// TestStagingNeedsFewRights: a user that may insert into the columns of the target and read them
// can stage its rows, with the target's types.
func TestStagingNeedsFewRights(t *testing.T) {
	const temporary = "CREATE TEMPORARY TABLES ON DB.*"
	all := "a, e, st, l, d, b, ts, x, j, n"
	for _, target := range mysqltest.Targets(t) {
		for _, grants := range [][]string{
			{temporary, "INSERT (" + all + ", id), SELECT (" + all + ", id) ON DB.t"},
			{temporary, "INSERT, SELECT ON DB.t"},
		} {
			t.Run(target.Name+"/"+grants[1], func(t *testing.T) {
				plain, leaf := account(t, target, grants...)
				same := func() {
					t.Helper()
					var a, b string
					const content = "SELECT COALESCE(GROUP_CONCAT(CONCAT_WS('|', a, e, st, HEX(l), d, b + 0, ts, HEX(x), j, n) ORDER BY a SEPARATOR ';'), '') FROM "
					if err := errors.Join(plain.QueryRow(content+"t").Scan(&a), plain.QueryRow(content+"want").Scan(&b)); err != nil || a != b || a == "" {
						t.Errorf("stored %s, want %s, %v", a, b, err)
					}
				}
				for _, text := range []string{
					"INSERT INTO t (" + all + ") SELECT " + all + " FROM s ORDER BY a",
					"INSERT INTO t (a, e, l, d) SELECT 10 + a, 'b', REPEAT('ä', 20), 1/3 FROM s",
					"INSERT IGNORE INTO t (a, e, l, d) SELECT 20 + a, 'nosuch', REPEAT('ä', 30), 'abc' FROM s",
				} {
					if _, err := plain.Exec(strings.Replace(text, "INTO t", "INTO want", 1)); err != nil {
						t.Fatal(err)
					}
					if _, err := leaf.Exec(text); err != nil {
						t.Errorf("%s: error %v, want none", text, err)
					}
				}
				same()
				if _, err := plain.Exec("INSERT INTO want (a, d, n) VALUES (30, 2, DEFAULT)"); err != nil {
					t.Fatal(err)
				}
				if _, err := leaf.Exec("INSERT INTO t (id, a, d, n) VALUES (NULL, 30, 2, DEFAULT)"); err != nil {
					t.Errorf("INSERT VALUES: error %v, want none", err)
				}
				same()
			})
		}
		t.Run(target.Name+"/without SELECT", func(t *testing.T) {
			_, leaf := account(t, target, temporary, "INSERT ON DB.t")
			refused(t, leaf, "GRANT SELECT ON `leafsql_", "INSERT INTO t (a) SELECT a FROM s")
			mysql.RegisterReaderHandler("rights", func() io.Reader { return strings.NewReader("1") })
			defer mysql.DeregisterReaderHandler("rights")
			refused(t, leaf, "GRANT SELECT ON `leafsql_", "LOAD DATA LOCAL INFILE 'Reader::rights' INTO TABLE t (a)")
			healthyState(t, leaf)
		})
		t.Run(target.Name+"/no temporary tables", func(t *testing.T) {
			_, leaf := account(t, target, "INSERT, SELECT ON DB.t")
			refused(t, leaf, "GRANT CREATE TEMPORARY TABLES ON `leafsql_", "INSERT INTO t (a) SELECT a FROM s")
			if _, err := leaf.Exec("INSERT INTO t (a) SELECT 5 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM s WHERE a = 5)"); err != nil {
				t.Errorf("SELECT without a table: error %v, want none, since it needs no staging table", err)
			}
			healthyState(t, leaf)
		})
		t.Run(target.Name+"/no INSERT", func(t *testing.T) {
			_, leaf := account(t, target, temporary, "SELECT ON DB.t")
			for _, text := range []string{"INSERT INTO t (a) SELECT a FROM s", "INSERT INTO t (a) SELECT a FROM s WHERE FALSE"} {
				if _, err := leaf.Exec(text); !isNumber(err, 1142) {
					t.Errorf("%s: %v, want error 1142", text, err)
				}
			}
			healthyState(t, leaf)
		})
	}
}

func isNumber(err error, numbers ...uint16) bool {
	var me *mysql.MySQLError
	for _, n := range numbers {
		if errors.As(err, &me) && me.Number == n {
			return true
		}
	}
	return false
}

// healthyState checks the state of a pool's connection after a failure.
func healthyState(t *testing.T, db *sql.DB) {
	t.Helper()
	var auto int
	if err := db.QueryRow("SELECT @@autocommit").Scan(&auto); err != nil || auto != 1 {
		t.Errorf("autocommit = %d, error %v; want 1", auto, err)
	}
	if _, err := db.Exec("ROLLBACK TO SAVEPOINT leafsql_savepoint"); !isNumber(err, 1305) {
		t.Errorf("ROLLBACK TO SAVEPOINT: error %v, want error 1305, since no transaction is open", err)
	}
}

// TestStagingWorksOnLoggingServer: staging works with a statement-based binary log, with global
// transaction ids, and on a server that becomes read-only.
func TestStagingWorksOnLoggingServer(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			args := []string{"--log-bin=binlog", "--binlog-format=STATEMENT", "--server-id=1"}
			if kind == mysqltest.MySQL {
				args = append(args, "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
			}
			target := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: args}).Target()
			plain, leaf := account(t, target, "CREATE TEMPORARY TABLES ON DB.*", "INSERT, SELECT ON DB.t")
			count := func(want int) {
				t.Helper()
				var n int
				if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != want {
					t.Errorf("%d rows, want %d, %v", n, want, err)
				}
			}
			const text = "INSERT INTO t (a) SELECT a FROM s ORDER BY a"
			if kind == mysqltest.MySQL {
				refused(t, leaf, "binlog_format=ROW", text)
				count(0)
				return
			}
			if id := insertID(t, leaf, text); id != generatedFrom {
				t.Errorf("LastInsertId() = %d, want %d", id, generatedFrom)
			}
			count(2)
			tx, err := leaf.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err = tx.Exec(text); err != nil {
				t.Errorf("%s in a transaction: error %v, want none", text, err)
			}
			tx.Rollback()
			count(2)
			healthyState(t, leaf)

			exec := func(text string) {
				t.Helper()
				if _, err := plain.Exec(text); err != nil {
					t.Fatal(err)
				}
			}
			exec("SET GLOBAL read_only = 1")
			if _, err := leaf.Exec(text); !isNumber(err, 1290) {
				t.Errorf("read-only server: error %v, want error 1290", err)
			}
			healthyState(t, leaf)
			exec("SET GLOBAL read_only = 0")
			count(2)

			// The server becomes read-only between the copy and the commit.
			exec("CREATE TRIGGER waits AFTER INSERT ON t FOR EACH ROW DO SLEEP(2.5)")
			done := make(chan error)
			go func() {
				_, err := leaf.ExecContext(context.Background(), text)
				done <- err
			}()
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				var n int
				if err := plain.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'").Scan(&n); err != nil || n > 0 {
					break
				}
				select {
				case err := <-done:
					t.Fatalf("the copy ended before the server became read-only: error %v", err)
				default:
				}
				if time.Now().After(deadline) {
					t.Fatal("the copy did not begin before the deadline")
				}
			}
			exec("SET GLOBAL read_only = 1")
			if err = <-done; err != nil && !isNumber(err, 1290) {
				t.Errorf("server made read-only during the copy: error %v, want error 1290", err)
			}
			t.Logf("made read-only before the commit: %v", err)
			exec("SET GLOBAL read_only = 0")
			if err == nil {
				count(4)
			} else {
				count(2)
			}
			healthyState(t, leaf)
		})
	}
}

// TestTooManyColumnsAreRefusedBeforeStaging: a table may have as many columns as servers allow. A statement
// with more columns than a stage can have is refused before anything runs.
func TestTooManyColumnsAreRefusedBeforeStaging(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		list := func(n int) string {
			var names []string
			for i := range n {
				names = append(names, fmt.Sprintf("c%d", i))
			}
			return strings.Join(names, ", ")
		}
		definitions := strings.ReplaceAll(list(1015)+", ", ", ", " INT, ")
		_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", generatedFrom, 1000),
			"CREATE TABLE t ("+definitions+"id BIGINT PRIMARY KEY)", "CREATE TABLE s ("+strings.TrimSuffix(definitions, ", ")+")", "INSERT INTO s (c0) VALUES (1), (2)")
		if id := insertID(t, leaf, "INSERT INTO t ("+list(1000)+") SELECT "+list(1000)+" FROM s"); id != generatedFrom {
			t.Errorf("%s: LastInsertId() = %d, want %d", target.Name, id, generatedFrom)
		}
		if _, err := leaf.Exec("INSERT INTO t SELECT s.*, NULL FROM s"); err != nil && !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: error %v, want none or a refusal", target.Name, err)
		}
		var n, distinct int
		if err := leaf.QueryRow("SELECT COUNT(*), COUNT(DISTINCT id) FROM t").Scan(&n, &distinct); err != nil || n != 2 && n != 4 || distinct != n {
			t.Errorf("%s: %d rows with %d ids, error %v; want 2 or 4 rows with different ids", target.Name, n, distinct, err)
		}
		healthyState(t, leaf)
	}
}
