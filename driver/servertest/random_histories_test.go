package servertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// ascending is a generator of 100001, 100002, … that exposes its next id.
type ascending struct{ next int64 }

func (a *ascending) Next(_ context.Context, n int) (int64, error) {
	first := a.next
	a.next += int64(n)
	return first, nil
}

// A statement is one random INSERT, as an application writes it and with the keys
// written by the test.
type statement struct {
	text, byHand string
	args, handed []any
	generated    int // rows that lack a key
	plain        bool
}

// grammar makes random statements for the tables of the test, independently of the scanner.
type grammar struct {
	*rand.Rand
	first   int64 // the next id
	useArgs bool
}

func (g *grammar) pick(s ...string) string { return s[g.IntN(len(s))] }

// space returns random white space or comments between two tokens.
func (g *grammar) space() string {
	return g.pick(" ", " ", " ", "\n", "\t ", " /* , ) ? ' */ ", " -- x ' ( \n", " # ) \n", " /**/ ")
}

// value returns an expression for the column, as a literal or as a placeholder with an argument.
func (g *grammar) value(column string, st *statement) string {
	var lit string
	var arg any
	switch column {
	case "k":
		arg = fmt.Sprintf("%s%d", g.pick("a", "b", "it''s", "q?", "p(", ",", "/*", "-- "), g.IntN(40))
		lit = "'" + strings.ReplaceAll(strings.ReplaceAll(arg.(string), "''", "'"), "'", "''") + "'"
		arg = strings.ReplaceAll(arg.(string), "''", "'")
	default:
		arg = g.IntN(1000)
		lit = fmt.Sprint(arg)
	}
	if g.useArgs && g.IntN(2) == 0 {
		st.args, st.handed = append(st.args, arg), append(st.handed, arg)
		return "?"
	}
	if column == "k" {
		return g.pick(lit, lit, "("+lit+")", "CONCAT("+lit+",'')", "SUBSTR("+lit+",1,(1+19))", "_utf8mb4"+lit, "LOWER("+lit+")")
	}
	return g.pick(lit, lit, "NULL", "("+lit+")", "-"+lit, lit+"+1", "(SELECT "+lit+")", "LENGTH('),(')", "DEFAULT", "CASE WHEN 1 THEN "+lit+" ELSE 0 END", "1--1", "GREATEST("+lit+",2)")
}

// key returns a row's key as the application writes it, and as the test writes it.
func (g *grammar) key(st *statement, made *int64) (own, byHand string) {
	if g.IntN(4) == 0 {
		own = fmt.Sprint(1 + g.IntN(60))
		if g.useArgs && g.IntN(2) == 0 {
			st.args, st.handed = append(st.args, own), append(st.handed, own)
			return "?", "?"
		}
		return own, own
	}
	id := g.first + *made
	*made++
	if g.useArgs && g.IntN(2) == 0 {
		st.args = append(st.args, []any{nil, 0, "0", []byte("0"), 0.0}[g.IntN(5)])
		st.handed = append(st.handed, id)
		return "?", "?"
	}
	return g.pick("NULL", "DEFAULT", "0", "'0'", "(0)", "-0", "(NULL)"), fmt.Sprint(id)
}

func (g *grammar) statement() statement {
	var st statement
	var made int64
	both := func(s string) { st.text += s; st.byHand += s }
	head := g.pick("INSERT", "INSERT", "INSERT", "insert IGNORE", "REPLACE", "INSERT LOW_PRIORITY", "INSERT HIGH_PRIORITY IGNORE")
	both(head + g.space() + g.pick("INTO ", "", "/*x*/INTO ") + g.pick("t", "`t`", "t"))
	columns := []string{"k", "n", "m"}
	g.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	columns = columns[:1+g.IntN(3)]
	keyAt := -1 // index of the key among the columns
	if g.IntN(2) == 0 {
		keyAt = g.IntN(len(columns) + 1)
	}
	name := func(c string) string { return g.pick(c, c, strings.ToUpper(c), "`"+c+"`", "t."+c) }
	switch form := g.IntN(6); form {
	case 0: // SET
		both(g.space() + "SET ")
		sep := ""
		for i := range len(columns) + 1 {
			if i == keyAt {
				own, id := g.key(&st, &made)
				both(sep)
				st.text += "id=" + own
				st.byHand += "id=" + id
				sep = ", "
			}
			if i < len(columns) {
				both(sep + name(columns[i]) + g.pick("=", " = ", ":=") + g.value(columns[i], &st))
				sep = g.pick(",", " , ")
			}
		}
		if keyAt < 0 {
			st.byHand += fmt.Sprintf(", id=%d", g.first)
			made = 1
		}
	default:
		rows := 1 + g.IntN(4)
		if form == 1 { // positional: all columns in the table's order
			columns, keyAt = []string{"k", "n", "m"}, 1
			both(g.space())
		} else {
			both(" (")
			for i := range len(columns) + 1 {
				if i == keyAt {
					both(g.pick("", " ") + name("id") + g.pick("", ","))
					if strings.HasSuffix(st.text, ",") == (i == len(columns)) { // a comma is needed unless the column is last
						if i == len(columns) {
							st.text, st.byHand = strings.TrimSuffix(st.text, ","), strings.TrimSuffix(st.byHand, ",")
						} else {
							both(",")
						}
					}
				}
				if i < len(columns) {
					both(name(columns[i]))
					if i < len(columns)-1 || keyAt == len(columns) {
						both(g.pick(",", " , "))
					}
				}
			}
			if keyAt < 0 {
				st.byHand += ",id"
			}
			both(")" + g.space())
		}
		both(g.pick("VALUES", "values", "VALUE"))
		for r := range rows {
			if r > 0 {
				both(g.pick(",", " , "))
			}
			both(g.pick("", " ") + "(")
			for i := range len(columns) + 1 {
				if i == keyAt {
					own, id := g.key(&st, &made)
					sep := ","
					if i == len(columns) {
						sep = ""
					}
					st.text += own + sep
					st.byHand += id + sep
				}
				if i < len(columns) {
					both(g.value(columns[i], &st))
					if i < len(columns)-1 || keyAt == len(columns) {
						both(",")
					}
				}
			}
			if keyAt < 0 {
				st.byHand += fmt.Sprintf(",%d", g.first+made)
				made++
			}
			both(g.pick("", " ", "/*)*/") + ")")
		}
	}
	if !strings.HasPrefix(head, "REPLACE") && g.IntN(4) == 0 {
		both(" ON DUPLICATE KEY UPDATE " + g.pick("n = 1", "n = t.n + 1, m = 3", "m = VALUES(n)", "n = (m)", "k = CONCAT(t.k, 'x')"))
	} else {
		st.plain = head == "INSERT"
	}
	both(g.pick("", ";", " ", " -- end", " /* end */"))
	st.generated = int(made)
	return st
}

// TestRandomStatementsEqualPlainDriver runs random statements through mysql-leaf, and the same with
// keys written by the test through the plain driver on a twin. Tables,
// affected rows and errors must be equal.
func TestRandomStatementsEqualPlainDriver(t *testing.T) {
	statements := 600
	if testing.Short() {
		statements = 100
	}
	for _, target := range mysqltest.Targets(t) {
		for _, m := range modes[:4] {
			t.Run(target.Name+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				randomStatements(t, target, m, statements)
			})
		}
	}
}

func randomStatements(t *testing.T, target mysqltest.Target, m mode, statements int) {
	ddl := "CREATE TABLE t (k VARCHAR(60) UNIQUE, id BIGINT NOT NULL PRIMARY KEY, n INT, m INT DEFAULT 5)"
	twinDSN, leafDSN := target.Database(t), target.Database(t)
	twin, _ := openOn(t, twinDSN+"?"+strings.TrimPrefix(m.params, "&"), "leafTables=none", ddl)
	plain, _ := openOn(t, leafDSN, "leafTables=none", ddl)
	cfg, err := driver.ParseDSN(leafDSN + "?" + strings.TrimPrefix(m.params, "&"))
	if err != nil {
		t.Fatal(err)
	}
	ids := &ascending{next: 100001}
	cfg.Tables = []driver.Rule{{Table: "t", Generator: ids}}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	leaf := sql.OpenDB(connector)
	defer leaf.Close()
	leaf.SetMaxOpenConns(1)

	for seed := range uint64(statements) {
		g := &grammar{rand.New(rand.NewPCG(seed, 7)), ids.next, m.name != "text"}
		st := g.statement()
		want, wantErr := m.exec(twin, step{sql: st.byHand, args: st.handed})
		got, gotErr := m.exec(leaf, step{sql: st.text, args: st.args})
		lost := errors.Is(gotErr, mysql.ErrInvalidConn) && errors.Is(wantErr, mysql.ErrInvalidConn) && onVitess() // vtgate ends the connection if it crashes on a statement
		if number(gotErr) != number(wantErr) || gotErr != nil && number(gotErr) == 0 && !lost {
			t.Fatalf("seed %d: error %v, want %v\n%s %v\n%s", seed, gotErr, wantErr, st.text, st.args, st.byHand)
		}
		if gotErr != nil {
			continue
		}
		a, _ := got.RowsAffected()
		b, _ := want.RowsAffected()
		id, _ := got.LastInsertId()
		if a != b || st.plain && st.generated > 0 && id != g.first {
			t.Fatalf("seed %d: RowsAffected() = %d, want %d; LastInsertId() = %d, want %d\n%s %v", seed, a, b, id, g.first, st.text, st.args)
		}
		if n := ids.next - g.first; n != int64(st.generated) {
			t.Fatalf("seed %d: %d ids were drawn, want %d\n%s %v", seed, n, st.generated, st.text, st.args)
		}
		if seed%20 == 0 || seed == uint64(statements)-1 {
			if x, y := content(t, plain), content(t, twin); x != y {
				t.Fatalf("seed %d: rows after %s\n%s\nwant\n%s", seed, st.text, x, y)
			}
		}
	}
}

func number(err error) uint16 {
	var me *mysql.MySQLError
	if errors.As(err, &me) {
		return me.Number
	}
	return 0
}

func content(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query("SELECT id, k, n, m FROM t ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var b strings.Builder
	for rows.Next() {
		var id, k, n, m sql.NullString
		if err := rows.Scan(&id, &k, &n, &m); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, id, k, n, m)
	}
	return b.String()
}
