package servertest

import (
	"database/sql"
	"errors"
	"regexp"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const before = "DO LAST_INSERT_ID(777)"

// keysThatFail are statements with a huge key, each of which fails.
var keysThatFail = []string{
	"INSERT INTO t (id, a) SELECT 5000000000000, 2000 FROM s LIMIT 1",      // violates a CHECK
	"INSERT INTO t (id, a) SELECT 5000000000000 + 0, 'x' FROM s LIMIT 1",   // not a number
	"INSERT INTO t (id, a) SELECT 99999999999999999999, 50 FROM s LIMIT 1", // out of range
}

// TestFailedKeyMovesNothing: the key of a failed statement does not move the counter.
func TestFailedKeyMovesNothing(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, name := range []string{"mysql", driver.Name} {
			auto := map[bool]string{true: "AUTO_INCREMENT"}[name == "mysql"]
			plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", generatedFrom, 1000),
				"CREATE TABLE t (id BIGINT NOT NULL "+auto+" PRIMARY KEY, a INT UNIQUE, CHECK (a < 1000))", "CREATE TABLE s (a INT)", "INSERT INTO s VALUES (1), (2)")
			db := map[bool]*sql.DB{true: plain, false: leaf}[name == "mysql"]
			for _, text := range keysThatFail {
				if res, err := db.Exec(text); err == nil {
					t.Errorf("%s, %s: %s: result %v, want an error", target.Name, name, text, res)
				}
			}
			if _, err := db.Exec("INSERT INTO t (a) SELECT a FROM s"); err != nil {
				t.Fatal(err)
			}
			var highest int64
			if err := plain.QueryRow("SELECT MAX(id) FROM t").Scan(&highest); err != nil || highest > generatedFrom+10 {
				t.Errorf("%s, %s: highest key = %d, error %v; want at most %d", target.Name, name, highest, err, generatedFrom+10)
			}
			if _, err := db.Exec("INSERT INTO t (id, a) SELECT 5000000000000, 51 FROM s LIMIT 1"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("INSERT INTO t (a) VALUES (52)"); err != nil {
				t.Fatal(err)
			}
			if err := plain.QueryRow("SELECT id FROM t WHERE a = 52").Scan(&highest); err != nil || highest <= 5000000000000 {
				t.Errorf("%s, %s: key after a stored far key = %d, error %v; want more than 5000000000000", target.Name, name, highest, err)
			}
		}
	}
}

// TestStagedErrorsNameTheTarget: errors name the target and its key, as with the plain driver.
func TestStagedErrorsNameTheTarget(t *testing.T) {
	texts := []string{"INSERT INTO t (a) SELECT b FROM s", "INSERT INTO t (id, a) SELECT b, 1 FROM s",
		"INSERT INTO t (c) SELECT c FROM s", "INSERT INTO t (d) SELECT c FROM s", "INSERT INTO t (a) SELECT nosuch FROM s",
		"INSERT INTO t (id, a) SELECT 7, a FROM s", "INSERT INTO t (a) SELECT 5000 FROM s",
		"INSERT INTO t (a, c) SELECT 1 FROM s"}
	for _, target := range mysqltest.Targets(t) {
		var told [2][]string
		for i, auto := range []string{"AUTO_INCREMENT", ""} {
			plain, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", generatedFrom, 1000),
				"CREATE TABLE t (id BIGINT NOT NULL "+auto+" PRIMARY KEY, a INT, c VARCHAR(5), d CHAR(3) CHARACTER SET latin1, CHECK (a < 1000))",
				"CREATE TABLE s (a INT, b VARCHAR(40), c VARCHAR(40))", "INSERT INTO s VALUES (1, 'x', 'longer ü😀'), (2, 'y', '')")
			for _, text := range texts {
				_, err := []*sql.DB{plain, leaf}[i].Exec(text)
				if err == nil {
					err = errors.New("none")
				}
				told[i] = append(told[i], databaseName.ReplaceAllString(err.Error(), "database"))
			}
		}
		for i, text := range texts {
			if told[0][i] != told[1][i] {
				t.Errorf("%s: %s\n\tgot %s\n\twant %s", target.Name, text, told[1][i], told[0][i])
			}
		}
	}
}

// databaseName matches the name of a test's database.
var databaseName = regexp.MustCompile(`leafsql_[0-9a-f]{12}`)

func TestStagedIDs(t *testing.T)       { playAll(t, "last_insert_id") }
func TestStagedLikePlain(t *testing.T) { playAll(t, "insert_select") }
