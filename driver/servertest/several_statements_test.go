package servertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/driver/internal/insert/inserttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// severalTables creates the tables of the corpora. %s is AUTO_INCREMENT or empty.
const severalTables = `
CREATE TABLE orders (id BIGINT NOT NULL %[1]s PRIMARY KEY, customer VARCHAR(60) UNIQUE, total INT DEFAULT 5);
CREATE TABLE items (order_id INT, item_id BIGINT NOT NULL %[1]s PRIMARY KEY, qty INT);
CREATE TABLE other (id INT AUTO_INCREMENT PRIMARY KEY, a INT, customer VARCHAR(40));
CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40));
CREATE TABLE victim (a INT);
INSERT INTO victim VALUES (1)`

// attacks are second statements to append to a query. A change of victim shows that one
// ran.
var attacks = []string{
	"; DELETE FROM victim",
	"\n; DROP TABLE victim -- ",
	";DELETE FROM victim;",
	"; ; /* */; DELETE FROM victim # ",
	";\n/*!DELETE FROM victim*/",
	"', 1); DELETE FROM victim -- ",
	"\"; DELETE FROM victim; -- \"",
	"*/; DELETE FROM victim",
	"; DELETE FROM victim; '",
	"; '", "; \"", "; `", "; /*", "; \x00", ";\x00DELETE FROM victim", "; nonsense", "; )", "; -- \x00\n DELETE FROM victim", "; /*!99999 x */ DELETE FROM victim",
	"; CREATE TABLE orders (id INT)", "; INSERT INTO orders (customer) SELECT name FROM customers; DELETE FROM victim",
}

// severalTexts returns the queries of all corpora, as they are sent.
func severalTexts(t *testing.T) []string {
	texts := inserttest.Corpus(t, "../internal/insert/read/testdata")
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("files = %v, error %v; want at least one file", files, err)
	}
	for _, file := range files {
		for _, sc := range readScripts(t, strings.TrimSuffix(filepath.Base(file), ".txt")) {
			for _, line := range sc.lines {
				texts = append(texts, strings.NewReplacer("{AUTO}", "", "2:", "", "{DB}", "shop").Replace(line.text))
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// severalModes are session settings that change how queries are read.
var severalModes = []string{"", "&sql_mode=ANSI_QUOTES", "&sql_mode=NO_BACKSLASH_ESCAPES", "&charset=gbk", "&charset=latin1&sql_mode=ANSI_QUOTES"}

// A severalSide is a database with the corpora's tables and a connection to it.
type severalSide struct {
	t    *testing.T
	dsn  string
	base *sql.DB
}

func newSeveralSide(t *testing.T, target mysqltest.Target, auto string) *severalSide {
	s := &severalSide{t: t, dsn: target.Database(t)}
	setup := append([]string{allocTable}, strings.Split(fmt.Sprintf(severalTables, auto), ";\n")...)
	for _, table := range scriptTables {
		setup = append(setup, strings.ReplaceAll(table.text, "{AUTO}", auto))
	}
	s.base, _ = openOn(t, s.dsn, "leafTables=none", setup...)
	return s
}

// open opens a connection: a plain one, leafsql's by a DSN, or leafsql's with Wrap.
func (s *severalSide) open(how, params string) *sql.Conn {
	s.t.Helper()
	params = "?" + strings.TrimPrefix(strings.ReplaceAll(params, "sql_mode=", "sql_mode="+url.QueryEscape("'STRICT_TRANS_TABLES,")), "&")
	if strings.Contains(params, "sql_mode=") {
		params = strings.Replace(params, "ANSI_QUOTES", "ANSI_QUOTES%27", 1)
		params = strings.Replace(params, "NO_BACKSLASH_ESCAPES", "NO_BACKSLASH_ESCAPES%27", 1)
	}
	const rules = "&leafTables=*,!s&leafCreate=true" // the key of s never is AUTO_INCREMENT
	var db *sql.DB
	var err error
	switch how {
	case "plain":
		db, err = sql.Open("mysql", s.dsn+params)
	case "dsn":
		db, err = sql.Open(driver.Name, s.dsn+params+rules)
	case "wrap":
		var cfg *driver.Config
		if cfg, err = driver.ParseDSN(s.dsn + params + rules); err == nil {
			var inner *mysql.Config
			inner, cfg.MySQL = cfg.MySQL, nil
			db, err = openWrap(inner, cfg)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { db.Close() })
	return onOne(s.t, db)
}

func openWrap(inner *mysql.Config, cfg *driver.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(inner)
	if err != nil {
		return nil, err
	}
	wrapped, err := driver.Wrap(connector, cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(wrapped), nil
}

// play sends a query in one way and returns the number of the server's error: 0 for no
// error, -1 for a refusal.
func (s *severalSide) play(conn *sql.Conn, way, text string) int {
	text = strings.NewReplacer("shop.", path.Base(s.dsn)+".", "USE shop", "USE "+path.Base(s.dsn), "`shop`", "`"+path.Base(s.dsn)+"`").Replace(text)
	var args []any
	if way != "text" {
		args = slices.Repeat([]any{1}, strings.Count(text, "?"))
	}
	var err error
	ctx := s.t.Context()
	switch way {
	case "query":
		var rows *sql.Rows
		if rows, err = conn.QueryContext(ctx, text); err == nil {
			for rows.Next() || rows.NextResultSet() {
			}
			err = rows.Err()
			rows.Close()
		}
	case "prepared":
		var st *sql.Stmt
		if st, err = conn.PrepareContext(ctx, text); err == nil {
			_, err = st.ExecContext(ctx, args...)
			st.Close()
		}
	default:
		_, err = conn.ExecContext(ctx, text, args...)
	}
	var me *mysql.MySQLError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &me):
		return int(me.Number)
	case errors.Is(err, driver.ErrRefused):
		return -1
	}
	s.t.Logf("%q: %v", text, err)
	return -2
}

// state returns the contents of the tables.
func (s *severalSide) state() string {
	var victim, orders, items, others, ts int
	const q = "SELECT (SELECT COUNT(*) FROM victim), (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM items), (SELECT COUNT(*) FROM t), " +
		"(SELECT COUNT(*) FROM other) + (SELECT COUNT(*) FROM s) + (SELECT COUNT(*) FROM log)"
	err := s.base.QueryRowContext(context.Background(), q).Scan(&victim, &orders, &items, &ts, &others)
	return fmt.Sprint(victim, orders, items, ts, others, isNumber(err, 1146))
}

// severalWays are ways to send queries: the kind of connection, its parameters and the method.
var severalWays = [][3]string{
	{"dsn", "", "text"}, {"wrap", "", "text"}, {"dsn", "", "prepared"}, {"wrap", "", "query"}, {"dsn", "&interpolateParams=true", "args"}, {"wrap", "&interpolateParams=true", "args"},
}

// TestStackedStatementsDoNotRun: on a connection for single statements, a query with several gets
// the server's error 1064, and none of them runs. -twin.full sends all in each way.
func TestStackedStatementsDoNotRun(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			leaf, plain := newSeveralSide(t, target, ""), newSeveralSide(t, target, "AUTO_INCREMENT")
			before, told, n := leaf.state(), map[string]int{}, 0
			for m, mode := range severalModes {
				var conns []*sql.Conn
				for _, way := range severalWays {
					conns = append(conns, leaf.open(way[0], mode+way[1]))
				}
				server := plain.open("plain", mode)
				for i, text := range severalTexts(t) {
					for j, attack := range attacks {
						if !*twinFull && (i%len(severalModes) != m || i/len(severalModes)%(2*len(attacks)) != j && (j > 0 || i/len(severalModes)%(2*len(attacks)) < len(attacks))) {
							continue
						}
						text := text + attack
						// A query that the server reads as one statement is no attack.
						if st, err := server.PrepareContext(t.Context(), text); err == nil || !isNumber(err, 1064) {
							if err == nil {
								st.Close()
							}
							continue
						}
						for w, way := range severalWays {
							if n++; !*twinFull && w != n/len(severalWays)%len(severalWays) && w > 0 {
								continue
							}
							switch got := leaf.play(conns[w], way[2], text); got {
							case 1064:
								told["as the server"]++
							case -1:
								told["refused"]++
							case 1146, 1054, 1305: // a name in the query was looked up first
								told["unknown names"]++
							default:
								t.Errorf("%s, %s: %q: error %d, want 1064", way, mode, text, got)
							}
						}
						if after := leaf.state(); after != before {
							t.Fatalf("%s: %q changed the state to %s, want %s", mode, text, after, before)
						}
					}
				}
			}
			t.Log(told)
		})
	}
}

// TestSeveralStatementsWorkOrAreRefused: on a connection that allows several statements, a query with several has
// the same effect as with the plain driver, or is refused.
func TestSeveralStatementsWorkOrAreRefused(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			leaf, plain := newSeveralSide(t, target, ""), newSeveralSide(t, target, "AUTO_INCREMENT")
			before, told := leaf.state(), map[string]int{}
			for i, text := range severalTexts(t) {
				w := i % len(severalWays)
				way := severalWays[w]
				text += attacks[i/len(severalWays)%5]
				if way[2] == "prepared" || !*twinFull && i/len(severalWays)%4 > 0 || changesMore(text) {
					continue
				}
				want, got := plain.playAlone("plain", way, text), leaf.playAlone(way[0], way, text)
				switch {
				case strings.HasPrefix(got, "-1 "):
					told["refused"]++
				case way[0] == "wrap" && way[2] == "args" && got == "1064 "+before:
					told["arguments under Wrap"]++ // leafsql cannot find out whether the wrapped driver interpolates
				case got == "1146 "+before: // a name in the query was looked up first
					told["unknown names"]++
				case got != want:
					t.Errorf("%s: %q: %s, want %s", way, text, got, want)
				default:
					told["as the server"]++
				}
			}
			t.Log(told)
		})
	}
}

// changesMore reports whether a query has effects that the test cannot undo.
func changesMore(text string) bool {
	for _, word := range []string{"USE ", "LOOP", "WHILE", "REPEAT", "CREATE ", "GRANT", "REVOKE", "ALTER", "RENAME", "DROP ",
		"HANDLER", "LOCK TABLES", "HELP", "SLEEP", "DELAYED", "XA ", "gtid_next", "TRUNCATE", "PREPARE", "LOAD DATA"} {
		if strings.Contains(strings.ReplaceAll(text, "DROP TABLE victim", ""), word) {
			return true
		}
	}
	return false
}

// playAlone runs play on a new connection, and returns its result and the state of the tables.
func (s *severalSide) playAlone(how string, way [3]string, text string) string {
	conn := s.open(how, "&multiStatements=true"+way[1])
	told := fmt.Sprint(s.play(conn, way[2], text), " ")
	conn.ExecContext(context.Background(), "ROLLBACK")
	conn.Close()
	told += s.state()
	for _, text := range []string{"CREATE TABLE IF NOT EXISTS victim (a INT)", "DELETE FROM victim", "INSERT INTO victim VALUES (1)", "DELETE FROM orders", "DELETE FROM items",
		"DELETE FROM t", "DELETE FROM log", "DELETE FROM other", "DELETE FROM s", "INSERT INTO s VALUES (11, 1, 'x'), (12, 2, 'y'), (13, 3, 'z')"} {
		mustExec(s.t, s.base, text)
	}
	return told
}

// TestStarRefusesUnclearForms: if every name may be a configured table's, other
// words in the query do not prevent the refusal.
func TestStarRefusesUnclearForms(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, target.Database(t), "leafTables=*&leafCreate=true", "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)")
		for _, text := range []string{"WITH x AS (SELECT 1) INSERT INTO t (a) VALUES (1)", "PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'", "BEGIN NOT ATOMIC INSERT INTO t (a) VALUES (1); END",
			"UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a = 1", "DELETE FROM t FOR PORTION OF p FROM 1 TO 2"} {
			if _, err := leaf.Exec(text); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%s: %s: error %v, want a refusal", target.Name, text, err)
			}
		}
		var n int
		if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d rows, error %v; want 0", target.Name, n, err)
		}
	}
}
