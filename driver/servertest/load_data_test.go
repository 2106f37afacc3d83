package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// loadFiles are the files that LOAD DATA reads.
var loadFiles = []string{
	"1,x,3\n2,y,4\n",
	"7,11,x,3\n0,12,y,4\n\\N,13,z,5\n",
	"1\n2,y\n\n",
	",,\n,x,\n5,,9,,,,\n",
	"\\N,\\N,\\N,\\N\n1,\\N\n",
	"abc,x,y\n1,x,3\n",
	"1,x,3\n1,y,4\n2,x,3\n",
	"99999999999,averyverylongstring,3.7\n-1,x,2024-02-29\n",
	"",
	"1,x,3",
	"a,b,c\n1,ä,3\n",
	"900000000000,1,k\n-5,2,m\n",
}

// loadForms follow INTO TABLE t.
var loadForms = []string{
	"FIELDS TERMINATED BY ','",
	"FIELDS TERMINATED BY ',' (a, b, c)",
	"FIELDS TERMINATED BY ',' (id, a, b, c)",
	"FIELDS TERMINATED BY ',' (a, id)",
	"FIELDS TERMINATED BY ',' (@x, a, @`y`, b)",
	"FIELDS TERMINATED BY ',' IGNORE 1 LINES (a, b)",
	"CHARACTER SET latin1 FIELDS TERMINATED BY ',' (a, b)",
}

const loadTable = "CREATE TABLE t (id BIGINT NOT NULL %s PRIMARY KEY, a INT NOT NULL, b VARCHAR(10) NOT NULL DEFAULT 'none', c INT DEFAULT 5, " +
	"d DATE, ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, e ENUM('x','y') NOT NULL, f DECIMAL(5,2), UNIQUE (a, b))"

// TestLoadData plays LOAD DATA on twins: the plain driver with AUTO_INCREMENT,
// and mysql-leaf.
func TestLoadData(t *testing.T) {
	seed := *twinSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for _, target := range mysqltest.Targets(t) {
		for _, mode := range []string{"STRICT_TRANS_TABLES", ""} {
			t.Run(target.Name+"/"+mode, func(t *testing.T) {
				t.Logf("-twin.seed=%d", seed)
				rng := rand.New(rand.NewPCG(seed, 2))
				native, leaf := loader(t, target, "mysql", mode), loader(t, target, driver.Name, mode)
				file := filepath.Join(t.TempDir(), "file")
				os.Chmod(filepath.Dir(file), 0o755)
				n := 0
				for i, content := range loadFiles {
					if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
						t.Fatal(err)
					}
					name := fmt.Sprint(strings.ReplaceAll(t.Name(), "/", "_"), i)
					mysql.RegisterReaderHandler(name, func() io.Reader { return strings.NewReader(content) })
					defer mysql.DeregisterReaderHandler(name)
					for _, form := range loadForms {
						for _, how := range []string{"", "IGNORE ", "REPLACE "} {
							for _, from := range []string{"LOCAL INFILE 'Reader::" + name + "' ", "INFILE '" + file + "' "} {
								if from[0] == 'I' && target.Name == "mysql" || !*twinFull && rng.IntN(4) > 0 {
									continue // MySQL reads no files on the server here
								}
								n++
								text := "LOAD DATA " + from + how + "INTO TABLE t " + form
								want, got := load(t, native, text), load(t, leaf, text)
								if strings.HasPrefix(got, "error 126") && want == "error 1062" {
									continue // a later line has an error, and all lines are read before a row is written
								}
								if got != want {
									t.Errorf("%s of %q:\n%s\nwant\n%s", text, content, got, want)
								}
							}
						}
					}
				}
				t.Logf("%d statements", n)
			})
		}
	}
}

func loader(t *testing.T, target mysqltest.Target, name, mode string) *sql.DB {
	auto, params := "AUTO_INCREMENT", ""
	if name == driver.Name {
		auto, params = "", "&leafTables=t:id"
	}
	dsn := target.Database(t)
	setup := []string{allocTable, row("t", generatedFrom, 1_000_000), fmt.Sprintf(loadTable, auto), "CREATE TABLE s (a INT)"}
	if auto != "" {
		setup = append(setup, fmt.Sprintf("ALTER TABLE t AUTO_INCREMENT = %d", int64(generatedFrom)))
	}
	openOn(t, dsn, "leafTables=none", setup...)
	db, err := sql.Open(name, dsn+"?timestamp=1709172000&sql_mode="+url.QueryEscape("'"+mode+"'")+params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

// load runs a LOAD and returns a description of the outcome.
func load(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	res, err := db.Exec(text)
	o := reply{err: err}
	told := fmt.Sprint("error ", o.number())
	if o.number() == 1 {
		told = err.Error()
	}
	if err == nil {
		affected, _ := res.RowsAffected()
		told = fmt.Sprint("affected ", affected)
	}
	rows, err := db.Query("SELECT id, CONCAT_WS('|', a, HEX(b), COALESCE(c, 'NULL'), COALESCE(d, 'NULL'), ts, e, COALESCE(f, 'NULL')) FROM t ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var content string
		if err := rows.Scan(&id, &content); err != nil {
			t.Fatal(err)
		}
		told += "\n" + keyName(id) + " " + content
	}
	if _, err := db.Exec("DELETE FROM t"); err != nil {
		t.Fatal(err)
	}
	return told
}

// TestLoadDataQueryReturnsNoRows: a LOAD that is sent with Query returns no rows, also
// if its file is empty.
func TestLoadDataQueryReturnsNoRows(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		for i, content := range []string{"", "1\n2\n"} {
			name := fmt.Sprint(strings.ReplaceAll(t.Name(), "/", "_"), target.Name, i)
			mysql.RegisterReaderHandler(name, func() io.Reader { return strings.NewReader(content) })
			defer mysql.DeregisterReaderHandler(name)
			rows, err := leaf.Query("LOAD DATA LOCAL INFILE 'Reader::" + name + "' INTO TABLE t (a)")
			if err != nil {
				t.Fatalf("%s: %v", target.Name, err)
			}
			if rows.Next() || rows.Err() != nil || rows.Close() != nil {
				t.Errorf("%s: %q returned a row or error %v, want neither", target.Name, content, rows.Err())
			}
		}
		var n int
		if err := plain.QueryRow("SELECT COUNT(*) FROM t WHERE id >= 100").Scan(&n); err != nil || n != 2 {
			t.Errorf("%s: %d rows, error %v; want 2", target.Name, n, err)
		}
	}
}

// TestUnreadableLoadIsRefused: a LOAD with syntax that the driver does not read is refused, and no row is stored.
func TestUnreadableLoadIsRefused(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, target.Database(t), "leafTables=t&allowAllFiles=true", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("1\n2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"LOAD DATA LOCAL INFILE '%s' INTO TABLE t (@a) SET a = @a * 2", "LOAD DATA LOCAL INFILE '%s' INTO TABLE t (t.a)",
			"LOAD DATA LOCAL INFILE '%s' INTO TABLE t ()", "LOAD XML LOCAL INFILE '%s' INTO TABLE t"} {
			var refused *driver.RefusedError
			if _, err := leaf.Exec(fmt.Sprintf(text, file)); !errors.As(err, &refused) || refused.Fix == "" {
				t.Errorf("%s, %s: error %v, want a RefusedError with Fix", target.Name, text, err)
			}
		}
		var n int
		if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d rows, error %v; want 0", target.Name, n, err)
		}
	}
}
