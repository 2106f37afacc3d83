package servertest

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestReaderByIDMissesLateRows: a reader that selects keys above the last one it read misses rows if two processes write through
// leafsql. With AUTO_INCREMENT it misses rows of a transaction that commits late. A queue in which readers lock and delete
// rows misses no row.
func TestReaderByIDMissesLateRows(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		server.SkipUnless(t, "SKIP LOCKED", 100600, 80000)
		for _, c := range []struct {
			name, auto   string
			two          bool // one of two writers is another process
			late         bool // one of them writes in a transaction that commits last
			missed, rows int
		}{
			{"AUTO_INCREMENT", "AUTO_INCREMENT", false, false, 0, 4},
			{"AUTO_INCREMENT, a late commit", "AUTO_INCREMENT", false, true, 1, 5},
			{"leafsql, one process", "", false, false, 0, 4},
			{"leafsql, one process, a late commit", "", false, true, 1, 5},
			{"leafsql, two processes", "", true, false, 1, 4},
		} {
			t.Run(server.Name+"/"+c.name, func(t *testing.T) {
				dsn := server.Database(t)
				plain, first := openOn(t, dsn, "leafTables=log", allocTable, row("log", 1, 100), "CREATE TABLE log (id BIGINT PRIMARY KEY "+c.auto+")")
				second := first
				if c.auto != "" {
					first, second = plain, plain
				} else if c.two {
					_, second = openOn(t, dsn, "leafTables=log&connectionAttributes=process:2")
				}
				log := reader{db: plain}
				var late *sql.Tx
				if c.late {
					var err error
					if late, err = first.BeginTx(t.Context(), nil); err != nil {
						t.Fatal(err)
					}
					defer late.Rollback()
					mustExec(t, late, "INSERT INTO log () VALUES ()")
				}
				for range 2 {
					for _, db := range []*sql.DB{second, first} {
						mustExec(t, db, "INSERT INTO log () VALUES ()")
						log.poll(t)
						log.take(t)
					}
				}
				if c.late {
					if err := late.Commit(); err != nil {
						t.Fatal(err)
					}
				}
				log.poll(t)
				for log.take(t) {
				}
				if len(log.seen) != c.rows-c.missed {
					t.Errorf("the reader read %v, %d rows, want %d of %d", log.seen, len(log.seen), c.rows-c.missed, c.rows)
				}
				if taken := slices.Compact(slices.Sorted(slices.Values(log.taken))); len(taken) != c.rows || len(log.taken) != c.rows {
					t.Errorf("the queue returned %v, want each of %d rows once", log.taken, c.rows)
				}
			})
		}
	}
}

// A reader reads a table by key and as a queue.
type reader struct {
	db          *sql.DB
	seen, taken []int64
	last        int64
}

// poll reads the rows above the last one that it read.
func (r *reader) poll(t *testing.T) {
	t.Helper()
	rows, err := r.db.QueryContext(t.Context(), "SELECT id FROM log WHERE id > ? ORDER BY id", r.last)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&r.last); err != nil {
			t.Fatal(err)
		}
		r.seen = append(r.seen, r.last)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// take takes a row from the queue while another reader holds the row before it, and reports whether there was a row.
func (r *reader) take(t *testing.T) bool {
	t.Helper()
	const take = "SELECT id FROM log ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
	var held []*sql.Tx
	for range 2 {
		tx, err := r.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		var id int64
		err = tx.QueryRow(take).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("DELETE FROM log WHERE id = ?", id); err != nil {
			t.Fatal(err)
		}
		r.taken = append(r.taken, id)
		held = append(held, tx)
	}
	for _, tx := range held {
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return len(held) > 0
}
