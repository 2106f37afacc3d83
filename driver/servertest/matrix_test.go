package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// firstGenerated is the first id of leaf_alloc in the matrix. Lower keys were
// written by the cases.
const firstGenerated = 1_000_000

// A step is one statement of a case. Its effects are compared between the
// plain driver with AUTO_INCREMENT and mysql-leaf.
type step struct {
	sql  string
	args []any

	// id is the row that LastInsertId names if leafsql intentionally differs from
	// AUTO_INCREMENT, and sqlID the same for SELECT LAST_INSERT_ID().
	id, sqlID string
	// plainID is the same as id, but only for a table without AUTO_INCREMENT, which
	// returns 0 for an explicit key.
	plainID string
}

type matrixCase struct {
	name    string
	seed    string // statement that runs unchanged on both sides before the steps
	steps   []step
	mariaDB bool // only MariaDB has the form
	mysql   bool // only MySQL has the form
}

func ex(sql string, args ...any) step { return step{sql: sql, args: args} }

// A mode is a way to send the same statement.
type mode struct {
	name   string
	params string
	exec   func(db *sql.DB, s step) (sql.Result, error)
}

var modes = []mode{
	{"text", "", func(db *sql.DB, s step) (sql.Result, error) { return db.Exec(inline(s)) }},
	{"args", "", func(db *sql.DB, s step) (sql.Result, error) { return db.Exec(s.sql, s.args...) }},
	{"prepared", "", func(db *sql.DB, s step) (sql.Result, error) {
		st, err := db.Prepare(s.sql)
		if err != nil {
			return nil, err
		}
		defer st.Close()
		return st.Exec(s.args...)
	}},
	{"interpolated", "&interpolateParams=true", func(db *sql.DB, s step) (sql.Result, error) { return db.Exec(s.sql, s.args...) }},
	{"multi", "&multiStatements=true", func(db *sql.DB, s step) (sql.Result, error) {
		return db.Exec("DO 1; " + strings.TrimRight(inline(s), "; \n"))
	}},
}

// inline returns the statement with the arguments as literals.
func inline(s step) string {
	text, args := s.sql, s.args
	for _, a := range args {
		i := strings.IndexByte(text, '?')
		lit := fmt.Sprint(a)
		switch a := a.(type) {
		case nil:
			lit = "NULL"
		case string:
			lit = "'" + strings.ReplaceAll(a, "'", "''") + "'"
		case []byte:
			lit = "'" + string(a) + "'"
		}
		text = text[:i] + strings.ReplaceAll(lit, "?", "\x01") + text[i+1:]
	}
	return strings.ReplaceAll(text, "\x01", "?")
}

// seen is the outcome of a step as an application sees it.
type seen struct {
	err      string
	affected int64
	id       string // the row that LastInsertId names
	sqlID    string // the row that SELECT LAST_INSERT_ID() names
}

// ownNumber matches generated ids and names of databases in errors.
var ownNumber = regexp.MustCompile(`\b\d{7,}\b|leafsql_[0-9a-f]+`)

func observe(t *testing.T, db *sql.DB, m mode, s step) seen {
	t.Helper()
	var o seen
	res, err := m.exec(db, s)
	if err != nil {
		var me *mysql.MySQLError
		if !errors.As(err, &me) {
			t.Errorf("%s: error %v, want an error of the server", s.sql, err)
		}
		o.err = ownNumber.ReplaceAllString(err.Error(), "N")
		return o
	}
	o.affected, _ = res.RowsAffected()
	id, err := res.LastInsertId()
	if err != nil {
		t.Errorf("%s: LastInsertId(): error %v, want none", s.sql, err)
	}
	var sqlID int64
	if err := db.QueryRow("SELECT LAST_INSERT_ID()").Scan(&sqlID); err != nil {
		t.Fatal(err)
	}
	o.id, o.sqlID = rowName(t, db, id), rowName(t, db, sqlID)
	return o
}

// rowName returns a name for the row with an id.
func rowName(t *testing.T, db *sql.DB, id int64) string {
	t.Helper()
	if id == 0 {
		return "0"
	}
	var k sql.NullString
	err := db.QueryRow("SELECT k FROM t WHERE id = ?", id).Scan(&k)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "no row"
	case err != nil:
		t.Fatal(err)
	case !k.Valid:
		return "row with k NULL"
	}
	return "row " + k.String
}

// dump returns a table's content, with generated ids hidden and references by name.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query("SELECT IF(t.own, t.id, 'generated'), t.k, t.n, (SELECT p.k FROM t p WHERE p.id = t.ref) FROM (SELECT *, id < 1000 AND n < 0 AS own FROM t) t ORDER BY t.k")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var id, k, n, ref sql.NullString
		if err := rows.Scan(&id, &k, &n, &ref); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, id.String, k.String, n.String, ref.String)
	}
	return b.String()
}

const matrixTable = "CREATE TABLE t (id BIGINT NOT NULL %s PRIMARY KEY, k VARCHAR(40) UNIQUE, n INT, ref BIGINT) ENGINE=InnoDB"

// A matrixSide is a database for one side of a comparison. All modes of a case use it, one after the other.
type matrixSide struct {
	name, dsn string
	plain     *sql.DB
}

// newMatrixSide creates a database for the driver of a name.
func newMatrixSide(t *testing.T, target mysqltest.Target, name, autoIncrement string) *matrixSide {
	t.Helper()
	dsn := target.Database(t)
	setup := []string{fmt.Sprintf(matrixTable, autoIncrement)}
	if name == driver.Name {
		setup = append(setup, allocTable, row("t", firstGenerated, 1000))
	}
	plain, _ := openOn(t, dsn, "leafTables=none", setup...)
	return &matrixSide{name, dsn, plain}
}

// open empties the table, runs the statement that a case begins with, and opens a pool, so that the first statement of a
// case is the first one of its pool in every mode.
func (s *matrixSide) open(t *testing.T, params, seed string) *sql.DB {
	t.Helper()
	mustExec(t, s.plain, "DELETE FROM t")
	if seed != "" {
		mustExec(t, s.plain, seed)
	}
	if s.name == driver.Name {
		params += "&leafTables=t"
	}
	db := mustOpen(t, s.name, s.dsn+"?"+strings.TrimPrefix(params, "&"))
	db.SetMaxOpenConns(1) // LAST_INSERT_ID() belongs to the connection, and a pool of one must suffice
	return db
}

// TestMatrix runs each case through the plain driver on an AUTO_INCREMENT
// table and through mysql-leaf, in every mode, on tables with and without
// AUTO_INCREMENT: an application must not see a difference.
func TestMatrix(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, c := range matrixCases {
			if c.mariaDB && target.Name != "mariadb" || c.mysql && target.Name != "mysql" {
				continue
			}
			t.Run(target.Name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				native := newMatrixSide(t, target, "mysql", "AUTO_INCREMENT")
				sides := map[string]*matrixSide{}
				for _, ai := range []string{"AUTO_INCREMENT", ""} {
					sides[ai] = newMatrixSide(t, target, driver.Name, ai)
				}
				for _, m := range modes {
					t.Run(m.name, func(t *testing.T) {
						db := native.open(t, m.params, c.seed)
						var want []seen
						for _, s := range c.steps {
							want = append(want, observe(t, db, m, s))
						}
						rows := dump(t, db)
						for ai, side := range sides {
							leaf := side.open(t, m.params, c.seed)
							for i, s := range c.steps {
								compare(t, ai, s, observe(t, leaf, m, s), want[i])
							}
							if got := dump(t, leaf); got != rows {
								t.Errorf("table %q: rows are\n%s\nwant\n%s", ai, got, rows)
							}
						}
					})
				}
			})
		}
	}
}

func compare(t *testing.T, ai string, s step, got, want seen) {
	t.Helper()
	if s.id != "" {
		want.id = s.id
	}
	if s.sqlID != "" {
		want.sqlID = s.sqlID
	}
	if ai == "" && s.plainID != "" {
		want.id = s.plainID
	}
	if got != want {
		t.Errorf("table %q: %s %v\n got %+v\nwant %+v", ai, s.sql, s.args, got, want)
	}
}
