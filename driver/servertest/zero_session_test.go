package servertest

import (
	"database/sql"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const zeroMode = "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"

// TestZeroFollowsModeOfSession writes a 0 as a key in every form and way. The 0 is stored if the session's sql_mode or
// leafZero keeps it. Otherwise the row gets an id.
func TestZeroFollowsModeOfSession(t *testing.T) {
	mysql.RegisterReaderHandler("zero", func() io.Reader { return strings.NewReader("0,1\n") })
	t.Cleanup(func() { mysql.DeregisterReaderHandler("zero") })
	texts := []struct {
		text string
		args []any
	}{
		{"INSERT INTO t (id, a) VALUES (0, 1)", nil},
		{"REPLACE INTO t VALUES ('0', 1)", nil},
		{"INSERT INTO t SET a = 1, id = (0)", nil},
		{"INSERT INTO t SELECT 0, 1", nil},
		{"INSERT INTO t SELECT 0, 1 FROM (SELECT 1) x", nil},
		{"INSERT INTO t VALUES (0, 1) ON DUPLICATE KEY UPDATE a = 2", nil},
		{"INSERT INTO t (a, id) VALUES (1, ?)", []any{0}},
		{"INSERT INTO t SELECT ?, ? FROM (SELECT 1) x", []any{"0", 1}},
		{"LOAD DATA LOCAL INFILE 'Reader::zero' INTO TABLE t FIELDS TERMINATED BY ','", nil},
	}
	for _, target := range mysqltest.Targets(t) {
		for _, auto := range []bool{true, false} {
			for _, leafZero := range []string{"", "fill", "keep"} {
				for _, mode := range []bool{true, false} {
					kept := leafZero == "keep" && !auto || leafZero != "fill" && mode
					t.Run(fmt.Sprintf("%s/AUTO_INCREMENT=%v/leafZero=%s/mode=%v", target.Name, auto, leafZero, mode), func(t *testing.T) {
						column := ""
						if auto {
							column = "AUTO_INCREMENT"
						}
						params := "leafTables=t&multiStatements=true"
						if leafZero != "" {
							params += "&leafZero=" + leafZero
						}
						dsn := target.Database(t)
						_, leaf := openOn(t, dsn, params, allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT "+column+" PRIMARY KEY, a INT)")
						interpolated := onOne(t, openLeaf(t, dsn, params+"&interpolateParams=true"))
						c := onOne(t, leaf)
						set := "SET sql_mode = ''"
						if mode {
							set = zeroMode
						}
						mustExec(t, c, set)
						mustExec(t, interpolated, set)
						check := func(way, text string, res sql.Result, err error) {
							t.Helper()
							var id, said int64
							if err == nil {
								err = c.QueryRowContext(t.Context(), "SELECT id FROM t").Scan(&id)
							}
							if err != nil {
								t.Fatalf("%s: %s: %v", way, text, err)
							}
							if !strings.HasPrefix(text, "LOAD") {
								said, _ = res.LastInsertId()
							} else {
								said = id
							}
							if (id == 0) != kept || said != id {
								t.Errorf("%s: %s: key %d, LastInsertId() = %d; want the 0 kept %v", way, text, id, said, kept)
							}
							mustExec(t, c, "DELETE FROM t")
						}
						for _, tt := range texts {
							res, err := c.ExecContext(t.Context(), tt.text, tt.args...)
							check("text", tt.text, res, err)
							res, err = interpolated.ExecContext(t.Context(), tt.text, tt.args...)
							check("interpolated", tt.text, res, err)
							if strings.HasPrefix(tt.text, "LOAD") {
								continue
							}
							st, err := c.PrepareContext(t.Context(), tt.text)
							if err != nil {
								t.Fatalf("%s: %v", tt.text, err)
							}
							res, err = st.ExecContext(t.Context(), tt.args...)
							check("prepared", tt.text, res, err)
							st.Close()
							// The query itself sets the mode.
							mustExec(t, interpolated, "SET sql_mode = 'STRICT_ALL_TABLES'")
							res, err = interpolated.ExecContext(t.Context(), set+"; "+tt.text, tt.args...)
							check("with its SET", tt.text, res, err)
						}
					})
				}
			}
		}
	}
}

// TestRestoredDumpKeepsZero: a dump that sets the mode, as mysqldump's do, keeps its row 0, sent as one query and
// statement by statement.
func TestRestoredDumpKeepsZero(t *testing.T) {
	dump := []string{"/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */", "LOCK TABLES `band` WRITE",
		"INSERT INTO `band` VALUES (0,'nobody'),(1,'plain'),(2,'whole')", "UNLOCK TABLES", "/*!40101 SET SQL_MODE=@OLD_SQL_MODE */",
		"INSERT INTO band VALUES (0, 'next')"}
	for _, target := range mysqltest.Targets(t) {
		for _, column := range []string{"", "AUTO_INCREMENT"} {
			for _, texts := range [][]string{dump, {strings.Join(dump, ";\n")}} {
				_, leaf := openOn(t, target.Database(t), "leafTables=band&leafCreate=true&multiStatements=true", "CREATE TABLE band (id INT NOT NULL "+column+" PRIMARY KEY, name VARCHAR(9))")
				c := onOne(t, leaf)
				mustExec(t, c, texts...)
				var got string
				if err := c.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(CONCAT_WS(' ', id, name) ORDER BY id SEPARATOR ', ') FROM band").Scan(&got); err != nil || got != "0 nobody, 1 plain, 2 whole, 3 next" {
					t.Errorf("%s, %d queries: rows = %q, error %v; want \"0 nobody, 1 plain, 2 whole, 3 next\"", target.Name, len(texts), got, err)
				}
			}
		}
	}
}

// TestPreparedZeroFollowsMode: the mode of the preparation or of the execution applies, as with
// the plain driver.
func TestPreparedZeroFollowsMode(t *testing.T) {
	const off = "SET sql_mode = ''"
	for _, target := range mysqltest.Targets(t) {
		for _, column := range []string{"", "AUTO_INCREMENT"} {
			for _, tt := range []struct {
				text string
				args []any
			}{
				{"INSERT INTO t (id, a) VALUES (0, ?)", []any{1}},
				{"INSERT INTO t (id, a) VALUES (?, 1)", []any{0}},
				{`INSERT INTO t (id, a) VALUES (0, "é")`, nil},
				{`INSERT INTO t (id, a) SELECT 0, "é"`, nil},
				{"INSERT INTO t (id, a) SELECT 0, ? FROM (SELECT 1) x", []any{"é"}},
				{"INSERT INTO t (id, a) VALUES (NULL, 'a'), (0, 'b'), (?, 'c')", []any{nil}},
			} {
				dsn := target.Database(t)
				var sides [2]string
				for i := range sides {
					auto := column
					if i == 0 {
						auto = "AUTO_INCREMENT"
					}
					plain, leaf := openOn(t, dsn, "leafTables=t", "DROP TABLE IF EXISTS t, leaf_alloc", allocTable, row("t", 100, 10),
						"CREATE TABLE t (id BIGINT NOT NULL "+auto+" PRIMARY KEY, a VARCHAR(9)) AUTO_INCREMENT=100")
					c := onOne(t, plain)
					if i == 1 {
						c = onOne(t, leaf)
					}
					for _, modes := range [][]string{{off, off, zeroMode, off}, {zeroMode, zeroMode, off, zeroMode}} {
						mustExec(t, c, modes[0])
						st, err := c.PrepareContext(t.Context(), tt.text)
						if err != nil {
							t.Fatalf("%s: %v", tt.text, err)
						}
						for _, mode := range modes[1:] {
							mustExec(t, c, mode)
							if _, err := st.ExecContext(t.Context(), tt.args...); err != nil {
								t.Errorf("%s: %s: error %v, want none", target.Name, tt.text, err)
							}
							var zeros, all int
							if err := c.QueryRowContext(t.Context(), "SELECT COALESCE(SUM(id = 0), 0), COUNT(*) FROM t").Scan(&zeros, &all); err != nil {
								t.Fatal(err)
							}
							sides[i] += fmt.Sprintf("%d of %d rows; ", zeros, all)
							mustExec(t, c, "DELETE FROM t")
						}
						st.Close()
					}
				}
				if sides[1] != sides[0] {
					t.Errorf("%s, %q: %s: number of 0 keys = %s, want %s", target.Name, column, tt.text, sides[1], sides[0])
				}
			}
		}
	}
}

// TestModeIsQueriedAtFirstZero: the session's sql_mode is queried at its first 0, not before, and again only after
// it may have changed.
func TestModeIsQueriedAtFirstZero(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 100, 1000), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		c := onOne(t, leaf)
		asked := func() (n int) {
			t.Helper()
			if err := c.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Com_select'").Scan(new(string), &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, step := range []struct {
			text string
			args []any
			want int
		}{
			{"INSERT INTO t (a) VALUES (1)", nil, 0},
			{"INSERT INTO t (id, a) VALUES (?, 1)", []any{nil}, 0},
			{"INSERT INTO t (id, a) VALUES (?, 1)", []any{7}, 0},
			{"INSERT INTO t (id, a) VALUES (?, 1)", []any{0}, 1},
			{"INSERT INTO t (id, a) VALUES (?, 1)", []any{0}, 0},
			{"INSERT INTO t (id, a) VALUES (0, 1)", nil, 0},
			{"SET autocommit = 1", nil, 0},
			{"INSERT INTO t (id, a) VALUES (0, 1)", nil, 0},
			{"SET sql_mode = ''", nil, 0},
			{"INSERT INTO t (id, a) VALUES (0, 1)", nil, 1},
		} {
			before := asked()
			if _, err := c.ExecContext(t.Context(), step.text, step.args...); err != nil {
				t.Fatalf("%s: %v", step.text, err)
			}
			if n := asked() - before; n != step.want {
				t.Errorf("%s: %s: sql_mode was queried %d times, want %d", target.Name, step.text, n, step.want)
			}
		}
	}
}

// TestPreparedZeroWithUnknownMeaningIsRefused: if another mode changes how the text of a prepared statement is
// read, the meaning of its 0 is unknown.
func TestPreparedZeroWithUnknownMeaningIsRefused(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 100, 10), "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(9))")
		c := onOne(t, leaf)
		st, err := c.PrepareContext(t.Context(), `INSERT INTO t (id, a) VALUES (0, "a")`)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, c, "SET sql_mode = 'ANSI_QUOTES,NO_AUTO_VALUE_ON_ZERO'")
		if _, err := st.Exec(); err == nil || !strings.Contains(err.Error(), "sql_mode decides whether the written 0 is a key") {
			t.Errorf("%s: %v, want a refusal", target.Name, err)
		}
	}
}

// TestZeroUnderModeOfStatementIsRefused: a statement that sets sql_mode for itself is refused if the meaning of its 0 depends on it.
func TestZeroUnderModeOfStatementIsRefused(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=t", allocTable, row("t", 100, 10), tableT)
		c := onOne(t, leaf)
		for text, want := range map[string]bool{
			"INSERT /*+ SET_VAR(sql_mode='') */ INTO t (id, a) VALUES (0, 1)":            true,
			"INSERT /*+ SET_VAR(sql_mode='') */ INTO t (id, a) SELECT 0, 1":              true,
			"INSERT /*+ SET_VAR(sql_mode='') */ INTO t (a) VALUES (2)":                   false,
			"INSERT /*+ SET_VAR(sort_buffer_size=65536) */ INTO t (id, a) VALUES (0, 3)": false,
			"SET STATEMENT sql_mode='' FOR INSERT INTO t (id, a) VALUES (0, 4)":          true,
			"SET STATEMENT sql_mode='' FOR INSERT INTO t (id, a) VALUES (9, 5)":          false,
		} {
			if strings.HasPrefix(text, "SET STATEMENT") && target.Name == "mysql" {
				continue
			}
			_, err := c.ExecContext(t.Context(), text)
			if refused := err != nil && strings.Contains(err.Error(), "it sets its own sql_mode"); refused != want || !want && err != nil {
				t.Errorf("%s: %s: error %v, want a refusal %v", target.Name, text, err, want)
			}
		}
	}
}
