package servertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	farKey   = 2000000000 // takes more than half of an INT
	farTable = "CREATE TABLE t (id INT PRIMARY KEY, kind TINYINT, u INT UNIQUE)"
)

// farWays are ways to send an INSERT of the row (farKey, kind, u).
var farWays = map[string]func(db *sql.DB, verb string, kind, u int) error{
	"text": func(db *sql.DB, verb string, kind, u int) error {
		_, err := db.Exec(fmt.Sprintf("%s INTO t VALUES (%d, %d, %d)", verb, farKey, kind, u))
		return err
	},
	"arguments": func(db *sql.DB, verb string, kind, u int) error {
		_, err := db.Exec(verb+" INTO t VALUES (?, ?, ?)", farKey, kind, u)
		return err
	},
	"prepared": func(db *sql.DB, verb string, kind, u int) error {
		stmt, err := db.Prepare(verb + " INTO t VALUES (?, ?, ?)")
		if err == nil {
			defer stmt.Close()
			_, err = stmt.Exec(farKey, kind, u)
		}
		return err
	},
	"several rows": func(db *sql.DB, verb string, kind, u int) error {
		_, err := db.Exec(fmt.Sprintf("%s INTO t VALUES (%d, 1, -1), (%d, %d, %d)", verb, farKey-1, farKey, kind, u))
		return err
	},
	"staged": func(db *sql.DB, verb string, kind, u int) error {
		_, err := db.Exec(fmt.Sprintf("%s INTO t SELECT %d, %d, %d", verb, farKey, kind, u))
		return err
	},
	"staged with arguments": func(db *sql.DB, verb string, kind, u int) error {
		_, err := db.Exec(verb+" INTO t SELECT ?, ?, ?", farKey, kind, u)
		return err
	},
}

// TestFailingInsertUsesUpNoColumn: the counter passes a key that takes more than half of the remaining range only if its row is stored.
func TestFailingInsertUsesUpNoColumn(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"", "&interpolateParams=true", "&multiStatements=true"} {
			for way, insert := range farWays {
				t.Run(server.Name+"/"+way+params, func(t *testing.T) {
					_, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true"+params, farTable)
					expect := func(after string, want int64) {
						t.Helper()
						if got := insertID(t, leaf, "INSERT INTO t (kind, u) VALUES (1, ?)", want); got != want {
							t.Errorf("next id after %s = %d, want %d", after, got, want)
						}
					}
					for name, err := range map[string]error{"out of range": insert(leaf, "INSERT", 1000, 7), "out of range, REPLACE": insert(leaf, "REPLACE", 1000, 7)} {
						if !isNumber(err, 1264) {
							t.Fatalf("%s: error %v, want 1264", name, err)
						}
					}
					expect("an error", 1)
					if err := insert(leaf, "INSERT", 1, 1); !isNumber(err, 1062) {
						t.Fatalf("error %v, want 1062", err)
					}
					expect("a duplicate", 2)
					if err := insert(leaf, "INSERT", 1, 7); err != nil {
						t.Fatal(err)
					}
					expect("a row", farKey+1)
				})
			}
		}
	}
}

// TestIDsAreAboveFarKeyOfTheirStatement: the ids of a statement are above all its keys, so the counter moves before the statement runs.
func TestIDsAreAboveFarKeyOfTheirStatement(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, params := range []string{"", "&interpolateParams=true"} {
			_, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true"+params, farTable)
			for i, args := range [][]any{nil, {nil, farKey + 10, nil}} {
				text := fmt.Sprintf("INSERT INTO t (id) VALUES (NULL), (%d), (NULL)", farKey)
				if args != nil {
					text = "INSERT INTO t (id) VALUES (?), (?), (?)"
				}
				if got, want := insertID(t, leaf, text, args...), int64(farKey+1+10*i); got != want {
					t.Errorf("%s: first id of %s = %d, want %d", server.Name, text, got, want)
				}
			}
			if got := insertID(t, leaf, "INSERT INTO t (kind) VALUES (1)"); got != farKey+13 {
				t.Errorf("%s: next id = %d, want %d", server.Name, got, farKey+13)
			}
		}
	}
}

// TestFarKeyStoredDespiteErrorMovesCounter: in a table without transactions the rows before the bad one stay.
func TestFarKeyStoredDespiteErrorMovesCounter(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, text := range []string{"INSERT INTO t VALUES (%d, 1, 1), (5, 1, 1)", "INSERT INTO t SELECT %d, 1, 1 UNION ALL SELECT 5, 1, 1"} {
			_, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true", farTable+" ENGINE=MyISAM")
			if _, err := leaf.Exec(fmt.Sprintf(text, farKey)); !isNumber(err, 1062) {
				t.Fatalf("%s: error %v, want 1062", server.Name, err)
			}
			if got := insertID(t, leaf, "INSERT INTO t (kind) VALUES (1)"); got != farKey+1 {
				t.Errorf("%s: next id after %s = %d, want %d", server.Name, text, got, farKey+1)
			}
		}
	}
}

// TestFarKeyWithUnknownOutcomeMovesCounter: the row may be stored, so the counter passes its key.
func TestFarKeyWithUnknownOutcomeMovesCounter(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true", farTable)
		insertID(t, leaf, "INSERT INTO t (kind) VALUES (1)")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := leaf.ExecContext(ctx, "INSERT INTO t VALUES (?, SLEEP(2), 7)", farKey)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s: error %v, want that of the context", server.Name, err)
		}
		var next int64
		if err := plain.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&next); err != nil || next <= farKey {
			t.Errorf("%s: max_id = %d, %v; want more than %d", server.Name, next, err, farKey)
		}
	}
}

// TestNextProcessMovesCounterAboveFarKey: if a process ends after the statement and before the counter moves, the next process moves it.
func TestNextProcessMovesCounterAboveFarKey(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		_, leaf := openOn(t, dsn, "leafTables=t&leafCreate=true", farTable)
		insertID(t, leaf, "INSERT INTO t (kind) VALUES (1)")
		leaf.Close()
		plain, leaf := openOn(t, dsn, "leafTables=t&leafCreate=true", fmt.Sprintf("INSERT INTO t VALUES (%d, 1, 7)", farKey))
		_, err := leaf.Exec("REPLACE INTO t (kind) VALUES (2)")
		var kind, below int
		if err := plain.QueryRow(fmt.Sprintf("SELECT MAX(IF(id = %d, kind, 0)), SUM(id < %[1]d) FROM t", farKey)).Scan(&kind, &below); err != nil {
			t.Fatal(err)
		}
		if err != nil && !errors.Is(err, driver.ErrRefused) || kind != 1 || below != 1 {
			t.Errorf("%s: error %v, kind %d, %d rows below the key; want a refusal or an id above it", server.Name, err, kind, below)
		}
	}
}

// TestFarKeyIsStoredWhileStoreIsAway: the row is stored, and its table gets no ids until the counter is compared with its key again.
func TestFarKeyIsStoredWhileStoreIsAway(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		plain, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 1, 10), farTable)
		insertID(t, leaf, "INSERT INTO t (kind) VALUES (1)")
		for _, step := range []string{"RENAME TABLE leaf_alloc TO away", "INSERT INTO t VALUES (2000000000, 1, 7)", "RENAME TABLE away TO leaf_alloc"} {
			db := plain
			if step[0] == 'I' {
				db = leaf
			}
			if _, err := db.Exec(step); err != nil {
				t.Fatalf("%s: %s: %v", server.Name, step, err)
			}
			if db == leaf {
				if _, err := leaf.Exec("INSERT INTO t (kind) VALUES (1)"); err == nil {
					t.Errorf("%s: INSERT while the store is away: no error, want one", server.Name)
				}
			}
		}
		err := refused(t, leaf, "the highest key is 2000000000", "INSERT INTO t (kind) VALUES (1)")
		if refusal, ok := errors.AsType[*driver.RefusedError](err); !ok {
			t.Errorf("%s: error %v, want a RefusedError", server.Name, err)
		} else if _, err := plain.Exec(refusal.Fix[strings.Index(refusal.Fix, "UPDATE"):]); err != nil {
			t.Fatal(err)
		}
		insertID(t, leaf, "INSERT INTO t (kind) VALUES (1)")
	}
}
