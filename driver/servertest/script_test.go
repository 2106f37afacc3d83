package servertest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A script is a list of statements on one or two connections. The outcome of each must be the
// same through the plain driver with AUTO_INCREMENT and through mysql-leaf.
//
// The files in testdata/scripts hold many each:
//
//	## name of the script
//	only: the only server to run on, mariadb or mysql; both if missing
//	since: the minimum version, such as 100500
//	params: parameters to add to the DSN
//	rules: leafTables=…, if other than leafTables=t:id
//	setup: a statement that runs unchanged before the others
//	a statement on each line; after "2:" it runs on the second connection
//		refused: a part of the message, if mysql-leaf refuses the line before, although the server would run it
//
// {AUTO} is AUTO_INCREMENT or empty, {DB} the database. After a refused line nothing is
// compared.
type script struct {
	name, only, params, rules string
	since                     int
	setup                     []string
	lines                     []line
}

type line struct{ text, refused string }

// readScripts returns the scripts in a file of testdata/scripts.
func readScripts(t *testing.T, name string) (scripts []script) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/scripts", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for at := range strings.Lines(string(text)) {
		at = strings.TrimRight(at, "\n")
		if title, ok := strings.CutPrefix(at, "## "); ok {
			scripts = append(scripts, script{name: title})
			continue
		}
		if at == "" || strings.HasPrefix(at, "# ") {
			continue
		}
		if len(scripts) == 0 {
			t.Fatalf("%s: line before the first ##: %s", name, at)
		}
		sc := &scripts[len(scripts)-1]
		key, value, _ := strings.Cut(at, ": ")
		switch key {
		case "only":
			sc.only = value
		case "since":
			sc.since, _ = strconv.Atoi(value)
		case "params":
			sc.params = value
		case "rules":
			sc.rules = value
		case "setup":
			sc.setup = append(sc.setup, value)
		case "\trefused":
			sc.lines[len(sc.lines)-1].refused = value
		default:
			sc.lines = append(sc.lines, line{text: at})
		}
	}
	return scripts
}

// scriptTables exist in every script that mentions them. s has values for t.
var scriptTables = []struct {
	mention *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(""), "CREATE TABLE t (id BIGINT NOT NULL {AUTO} PRIMARY KEY, a INT UNIQUE, b VARCHAR(40), at DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6), CHECK (a < 1000))"},
	{regexp.MustCompile(`(?i)\bs\b`), "CREATE TABLE s (id BIGINT PRIMARY KEY, a INT, b VARCHAR(40))"},
	{regexp.MustCompile(`(?i)\bs\b`), "INSERT INTO s VALUES (11, 1, 'x'), (12, 2, 'y'), (13, 3, 'z')"},
	{regexp.MustCompile(`(?i)\b(log|noted)\b`), "CREATE TABLE log (a INT)"},
	{regexp.MustCompile(`(?i)\bnoted\b`), "CREATE FUNCTION noted(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log VALUES (x); RETURN x; END"},
}

// tables returns the statements that create the script's tables.
func (sc *script) tables() (texts []string) {
	all := strings.Join(sc.setup, "\n")
	for _, line := range sc.lines {
		all += "\n" + line.text
	}
	for _, table := range scriptTables {
		if table.mention.MatchString(all) {
			texts = append(texts, table.text)
		}
	}
	return texts
}

// playAll runs the scripts of a file on each of their servers. Each has its own databases, and they run in parallel.
func playAll(t *testing.T, name string) { playScripts(t, readScripts(t, name)) }

func playScripts(t *testing.T, scripts []script) {
	for _, target := range mysqltest.Targets(t) {
		for _, sc := range scripts {
			if sc.only == "" || sc.only == target.Name {
				t.Run(target.Name+"/"+sc.name, func(t *testing.T) {
					t.Parallel()
					sc.run(t, target)
				})
			}
		}
	}
}

func (sc *script) run(t *testing.T, target mysqltest.Target) {
	target.SkipUnless(t, sc.name, sc.since, sc.since)
	want := sc.play(t, target, "mysql", "AUTO_INCREMENT")
	for _, auto := range []string{"AUTO_INCREMENT", ""} {
		got := sc.play(t, target, driver.Name, auto)
		for i, line := range sc.lines {
			if os.Getenv(mysqltest.EnvServer) != "" && strings.Contains(got[i], "MDEV-36026") {
				t.Log(mysqltest.Refused + line.text)
				break
			}
			if line.refused != "" {
				if !strings.Contains(got[i], line.refused) {
					t.Errorf("table %q: %s: %s, want a refusal with %q", auto, line.text, got[i], line.refused)
				}
				break
			}
			if got[i] != want[i] {
				t.Logf("so far %q", got[:i])
				t.Errorf("table %q: %s: %s, want %s", auto, line.text, got[i], want[i])
			}
		}
	}
}

// play runs the script on one side and returns the outcome of each line.
func (sc *script) play(t *testing.T, target mysqltest.Target, name, auto string) (told []string) {
	t.Helper()
	setup := append([]string{allocTable, row("t", generatedFrom, 1000)}, slices.Concat(sc.tables(), sc.setup)...)
	for i := range setup {
		setup[i] = strings.ReplaceAll(setup[i], "{AUTO}", auto)
	}
	if auto != "" {
		setup = append(setup, fmt.Sprintf("ALTER TABLE %s AUTO_INCREMENT = %d", map[bool]string{true: "base", false: "t"}[strings.Contains(strings.Join(sc.setup, ";"), "TO base")], int64(generatedFrom)))
	}
	dsn := target.Database(t)
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	plain.SetMaxOpenConns(1)
	for _, text := range setup {
		if _, err := plain.Exec(text); err != nil {
			notOnThisVersion(t, text, err)
			t.Fatalf("%s: %v", text, err)
		}
	}
	params := "?" + strings.TrimPrefix(sc.params, "&")
	if name == driver.Name {
		params += "&" + cmp.Or(sc.rules, "leafTables=t:id")
	}
	db, err := sql.Open(name, dsn+params)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var conns [2]*sql.Conn
	for i := range conns {
		if conns[i], err = db.Conn(context.Background()); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
		for _, text := range []string{"SET SESSION innodb_lock_wait_timeout = 1", "SET SESSION lock_wait_timeout = 1"} {
			if _, err := conns[i].ExecContext(context.Background(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, line := range sc.lines {
		text, second := strings.CutPrefix(strings.NewReplacer("{AUTO}", auto, "{DB}", path.Base(dsn)).Replace(line.text), "2:")
		conn := conns[0]
		if second {
			conn = conns[1]
		}
		told = append(told, tell(conn, text))
	}
	return told
}

// generatedKey matches keys that may differ between the twins.
var generatedKey = regexp.MustCompile(`\b1000000\d{6}\b`)

// tell runs a statement and returns its outcome as an application sees it.
func tell(conn *sql.Conn, text string) string {
	ctx := context.Background()
	number := func(err error) string {
		var me *mysql.MySQLError
		if errors.As(err, &me) {
			return "error " + strconv.Itoa(int(me.Number))
		}
		return err.Error()
	}
	if !strings.HasPrefix(text, "SELECT") && !strings.Contains(text, "RETURNING") {
		res, err := conn.ExecContext(ctx, text)
		if err != nil {
			return number(err)
		}
		affected, _ := res.RowsAffected()
		id, _ := res.LastInsertId()
		if id < generatedFrom || strings.Contains(text, "DUPLICATE") || strings.Contains(text, "IGNORE") {
			id = 0 // without AUTO_INCREMENT the server returns no explicit keys, and several rows have no single correct id
		}
		return generatedKey.ReplaceAllString(fmt.Sprintf("affected %d, id %d", affected, id), "generated")
	}
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return number(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	values, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	var b strings.Builder
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return number(err)
		}
		for _, v := range values {
			fmt.Fprintf(&b, "%v ", map[bool]string{true: v.String, false: "NULL"}[v.Valid])
		}
		b.WriteString("; ")
	}
	if err := rows.Err(); err != nil {
		return number(err)
	}
	return generatedKey.ReplaceAllString(b.String(), "generated")
}
