package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// seedSource returns statements that insert rows 1 … n into src in shuffled order.
func seedSource(n int) []string {
	values := make([]string, n)
	for i := range n {
		values[i*7919%n] = fmt.Sprintf("(%d, 'x')", i+1)
	}
	return []string{"CREATE TABLE src (a INT UNIQUE, b VARCHAR(100))", "INSERT INTO src VALUES " + strings.Join(values, ",")}
}

func TestInsertSelect(t *testing.T) {
	const n = 500
	for _, target := range mysqltest.Targets(t) {
		for _, tt := range []struct {
			name, text string
			args       []any
			rows       int
		}{
			{"plain", "INSERT INTO t (a, b) SELECT a, b FROM src", nil, n},
			{"ordered", "INSERT INTO t (a, b) SELECT a, b FROM src ORDER BY a DESC", nil, n},
			{"limit", "INSERT INTO t (a, b) SELECT a, b FROM src ORDER BY a LIMIT 10", nil, 10},
			{"arguments", "INSERT INTO t (a, b) SELECT a, ? FROM src WHERE a <= ? ORDER BY a", []any{"y", 20}, 20},
			{"union", "INSERT INTO t (a, b) SELECT a, b FROM src WHERE a < 5 UNION SELECT a, b FROM src WHERE a > 490", nil, 14},
			{"with", "INSERT INTO t (a, b) WITH c AS (SELECT a, b FROM src WHERE a < 8) SELECT a, b FROM c", nil, 7},
			{"same value twice", "INSERT INTO t (a, b) SELECT a, 1 FROM src WHERE a < 4", nil, 3},
			{"nothing", "INSERT INTO t (a, b) SELECT a, b FROM src WHERE a < 0", nil, 0},
			{"no table", "INSERT INTO t (a, b) SELECT 1, 'x'", nil, 1},
			{"target as source", "INSERT INTO t (a, b) SELECT a + 1000, b FROM t", nil, 3},
			{"replace", "REPLACE INTO t (a, b) SELECT a, b FROM src WHERE a < 9", nil, 8},
		} {
			for _, prepared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/prepared=%v", target.Name, tt.name, prepared), func(t *testing.T) {
					setup := append([]string{allocTable, row("t", 1000, 1000), tableT}, seedSource(n)...)
					if tt.name == "target as source" {
						setup = append(setup, "INSERT INTO t (id, a) VALUES (1, 1), (2, 2), (3, 3)")
					}
					_, leaf := openOn(t, target.Database(t), "leafTables=t", setup...)
					exec := func() (sql.Result, error) { return leaf.Exec(tt.text, tt.args...) }
					if prepared {
						st, err := leaf.Prepare(tt.text)
						if err != nil {
							t.Fatal(err)
						}
						defer st.Close()
						exec = func() (sql.Result, error) { return st.Exec(tt.args...) }
					}
					res, err := exec()
					if err != nil {
						t.Fatal(err)
					}
					affected, _ := res.RowsAffected()
					id, _ := res.LastInsertId()
					if int(affected) != tt.rows || (id == 1000) != (tt.rows > 0) {
						t.Errorf("RowsAffected() = %d, LastInsertId() = %d; want %d, and id 1000 if rows are stored", affected, id, tt.rows)
					}
					var rows, top int
					if err := leaf.QueryRow("SELECT COUNT(*), COALESCE(MAX(id), 999) FROM t WHERE id >= 1000").Scan(&rows, &top); err != nil || rows != tt.rows || top != 999+rows {
						t.Errorf("%d rows, highest id %d, error %v; want %d rows from id 1000", rows, top, err, tt.rows)
					}
					if tt.name == "ordered" {
						var wrong int
						if err := leaf.QueryRow("SELECT COUNT(*) FROM t WHERE id + a <> 1000 + ?", n).Scan(&wrong); err != nil || wrong != 0 {
							t.Errorf("%d ids do not follow ORDER BY, error %v; want 0", wrong, err)
						}
					}
				})
			}
		}
	}
}

// TestInsertSelectFillsRowsThatAppear: another session adds rows between the count
// and the INSERT, in every isolation level.
func TestInsertSelectFillsRowsThatAppear(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, level := range []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			t.Run(target.Name+"/"+level.String(), func(t *testing.T) {
				plain, leaf := openOn(t, target.Database(t), "leafTables=t",
					append([]string{allocTable, row("t", 1000, 1000), tableT}, seedSource(20)...)...)
				tx, err := leaf.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				var n int
				if level != sql.LevelSerializable { // there the locks of the count block other sessions
					if err := tx.QueryRow("SELECT COUNT(*) FROM src").Scan(&n); err != nil {
						t.Fatal(err)
					}
				}
				for i := range 13 {
					if _, err := plain.Exec("INSERT INTO src VALUES (?, 'late')", 100+i); err != nil {
						t.Fatal(err)
					}
				}
				_, err = tx.Exec("INSERT INTO t (a, b) SELECT a, b FROM src")
				if level == sql.LevelRepeatableRead && isNumber(err, 1020) {
					return // under innodb_snapshot_isolation no statement may read rows newer than the transaction's snapshot
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				var unfilled int
				if err := plain.QueryRow("SELECT COUNT(*), SUM(id < 1000) FROM t").Scan(&n, &unfilled); err != nil || unfilled != 0 || n < 20 {
					t.Errorf("%d rows, %d of them without a generated key, error %v; want at least 20 and 0", n, unfilled, err)
				}
			})
		}
	}
}

func TestStagedStatementsRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t&multiStatements=true", append([]string{allocTable, row("t", 1, 1000), tableT}, seedSource(5)...)...)
		leaf.SetMaxOpenConns(1)
		for _, tt := range []struct{ text, want string }{
			{"INSERT INTO t (a) SELECT a FROM src ON DUPLICATE KEY UPDATE b = src.b", "not among the selected columns"},
			{"INSERT INTO t (a) SELECT (@r := a) FROM src ON DUPLICATE KEY UPDATE b = @r", "use @r, but"},
			{"INSERT INTO t (a) SELECT a + ROW_COUNT() FROM src", "store it in a user variable first"},
			{"INSERT INTO t (a) SELECT a + FOUND_ROWS() FROM src", "store it in a user variable first"},
			{"INSERT INTO t (a) SELECT a + @@warning_count FROM src", "store it in a user variable first"},
			{"INSERT INTO t (a, id) VALUES (5, a + 1)", "only the server"},
			{"INSERT INTO t SET a = 5, id = t.a + 1", "only the server"},
			{"/*!50000 INSERT INTO t (id) VALUES (DEFAULT) */", "write it without that comment"},
		} {
			_, err := leaf.Exec(tt.text)
			var refusal *driver.RefusedError
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "leafsql: table ") {
				t.Errorf("%s, %s: %v; want a refusal with %q", server.Name, tt.text, err, tt.want)
			}
		}
		var n, auto int
		if err := leaf.QueryRow("SELECT (SELECT COUNT(*) FROM t), @@autocommit").Scan(&n, &auto); err != nil || n != 0 || auto != 1 {
			t.Errorf("%s: %d rows, autocommit = %d, error %v; want 0 rows, autocommit = 1", server.Name, n, auto, err)
		}
	}
}

// TestIDsFollowOrderOfSelectInParentheses: ids follow the select's order.
func TestIDsFollowOrderOfSelectInParentheses(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT,
			"CREATE TABLE src (a INT)", "INSERT INTO src VALUES (1), (2), (3), (4)")
		const text = "INSERT INTO t (a) ((SELECT a FROM src ORDER BY a DESC))"
		if _, err := leaf.Exec(text); err != nil {
			notOnThisVersion(t, text, err)
			t.Errorf("%s: error %v, want none", text, err)
		}
		var list string
		if err := plain.QueryRow("SELECT GROUP_CONCAT(a ORDER BY id) FROM t").Scan(&list); err != nil || list != "4,3,2,1" {
			t.Errorf("%s: values in the order of ids = %s, error %v; want 4,3,2,1", server.Name, list, err)
		}
	}
}

// TestOffsetWithoutLimitWorks: MariaDB allows OFFSET without LIMIT.
func TestOffsetWithoutLimitWorks(t *testing.T) {
	server := mysqltest.TargetOf(t, mysqltest.MariaDB)
	server.SkipUnless(t, "OFFSET … ROWS", 100600, 0)
	_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT, "CREATE TABLE src (a INT)", "INSERT INTO src VALUES (1), (2), (3)")
	if id := insertID(t, leaf, "INSERT INTO t (a) SELECT a FROM src ORDER BY a OFFSET 1 ROWS"); id != notByUs {
		t.Errorf("LastInsertId() = %d, want %d", id, notByUs)
	}
}

// TestApplicationTableNamedLikeStageKeepsRows: a temporary table of the application with the name of the staging table keeps its rows.
func TestApplicationTableNamedLikeStageKeepsRows(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			_, leaf := openOn(t, target.Database(t), "leafTables=t&leafCreate=true", "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a INT)", "CREATE TABLE src (a INT)", "INSERT INTO src VALUES (1), (2)")
			conn := onOne(t, leaf)
			const staged = "INSERT INTO t (a) SELECT a FROM src"
			for _, text := range []string{"CREATE TEMPORARY TABLE leafsql_stage (own INT)", "INSERT INTO leafsql_stage VALUES (7)"} {
				if _, err := conn.ExecContext(t.Context(), text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
			for range 2 {
				if _, err := conn.ExecContext(t.Context(), staged); !errors.Is(err, driver.ErrRefused) {
					t.Errorf("%s: error %v, want a refusal", staged, err)
				}
				var own int
				if err := conn.QueryRowContext(t.Context(), "SELECT own FROM leafsql_stage").Scan(&own); own != 7 || err != nil {
					t.Fatalf("the application's row is %d, %v; want 7", own, err)
				}
			}
			if _, err := conn.ExecContext(t.Context(), "DROP TEMPORARY TABLE leafsql_stage"); err != nil {
				t.Fatal(err)
			}
			if res, err := conn.ExecContext(t.Context(), staged); err != nil {
				t.Errorf("%s: error %v, want none", staged, err)
			} else if n, _ := res.RowsAffected(); n != 2 {
				t.Errorf("%s: %d rows, want 2", staged, n)
			}
		})
	}
}
