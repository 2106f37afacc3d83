package servertest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const counted = "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)"

// TestDDLOfLeafAllocIsNoticed: the application's own changes of leaf_alloc are noticed. Rows are created again above
// fetched ids, and ids restart only if the tables were dropped, too.
func TestDDLOfLeafAllocIsNoticed(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, c := range []struct {
			name  string
			ddl   []string
			first int64 // first id afterwards
		}{
			{"TRUNCATE", []string{"TRUNCATE leaf_alloc"}, 21},
			{"TRUNCATE of all", []string{"TRUNCATE TABLE leaf_alloc", "TRUNCATE t"}, 21},
			{"DROP TABLE", []string{"DROP TABLE IF EXISTS leaf_alloc"}, 21},
			{"DROP TABLE of all", []string{"DROP TABLE t, leaf_alloc", counted}, 21},
			{"RENAME", []string{"DROP TABLE IF EXISTS old_alloc", "RENAME TABLE leaf_alloc TO old_alloc"}, 21},
			{"DROP DATABASE", []string{"DROP DATABASE {db}", "CREATE DATABASE {db}", "USE {db}", counted}, 1},
			{"DROP DATABASE in one text", []string{"DROP DATABASE IF EXISTS {db}; CREATE DATABASE {db}; USE {db}; " + counted}, 1},
			{"DROP DATABASE in a text that fails", []string{"DO 1", "DROP DATABASE {db}; CREATE DATABASE {db}; USE {db}; " + counted + "; nonsense"}, 21},
		} {
			dsn := server.Database(t)
			_, leaf := openOn(t, dsn, "leafTables=t&leafCreate=true"+withMult, counted)
			leaf.SetMaxOpenConns(1) // USE applies to all statements
			insert := func() int64 { return insertID(t, leaf, "INSERT INTO t (a) VALUES (1)") }
			for want := int64(1); want <= 20; want++ {
				if id := insert(); id != want {
					t.Fatalf("%s, %s: LastInsertId() = %d, want %d", server.Name, c.name, id, want)
				}
			}
			for round := range 2 {
				for _, text := range c.ddl {
					if _, err := leaf.Exec(strings.ReplaceAll(text, "{db}", databaseOf(t, dsn))); (err != nil) != strings.HasSuffix(text, "nonsense") {
						t.Fatalf("%s: %v", text, err)
					}
				}
				began, last := time.Now(), insert()
				if took := time.Since(began); round == 0 && last != c.first || took > 1500*time.Millisecond {
					t.Errorf("%s, %s: first id = %d after %v, want %d within 1.5s", server.Name, c.name, last, took, c.first)
				}
				for range 1200 {
					id := insert()
					if id <= last {
						t.Fatalf("%s, %s: LastInsertId() = %d, want more than %d", server.Name, c.name, id, last)
					}
					last = id
				}
				var row int64
				if err := leaf.QueryRow("SELECT max_id FROM leaf_alloc WHERE biz_tag = 't'").Scan(&row); err != nil || row <= last {
					t.Errorf("%s, %s: max_id = %d, error %v; want more than %d", server.Name, c.name, row, err, last)
				}
			}
		}
	}
}

// TestIDsContinueIfTagRemainsElsewhere: ids continue if another database still has a table of the tag,
// or another pool of the process has fetched ids.
func TestIDsContinueIfTagRemainsElsewhere(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn, other := server.Database(t), server.Database(t)
		db, rest := databaseOf(t, dsn), databaseOf(t, other)
		openOn(t, other, "", counted)
		rules := "leafCreate=true&leafTables=" + db + ".t," + rest + ".t"
		mine, theirs := "INSERT INTO "+db+".t (a) VALUES (1)", "INSERT INTO "+rest+".t (a) VALUES (1)"
		_, one := openOn(t, dsn, rules, counted)
		_, two := openOn(t, dsn, rules+"&parseTime=true") // uses its own store
		last := insertID(t, one, mine)
		for _, used := range []bool{false, true} { // also tables that this process has not used yet
			if used {
				last = insertID(t, one, theirs)
			}
			mustExec(t, one, "DROP DATABASE "+db, "CREATE DATABASE "+db, "CREATE TABLE "+db+".t (id BIGINT PRIMARY KEY, a INT)")
			id := insertID(t, one, mine)
			if id <= last {
				t.Errorf("%s: LastInsertId() = %d, want more than %d, since a table of the tag remains", server.Name, id, last)
			}
			last = id
		}
		seen := make(map[int64]bool)
		for range 2 {
			for range 2200 { // the other pool has the highest range
				seen[insertID(t, two, mine)] = true
			}
			mustExec(t, one, "TRUNCATE "+db+".leaf_alloc", "TRUNCATE "+db+".t", "TRUNCATE "+rest+".t")
			for i := range 3000 {
				pool, text := one, mine
				if i%2 == 1 {
					text = theirs
				}
				if i > 5 && i%3 == 0 {
					pool = two
				}
				id := insertID(t, pool, text)
				if seen[id] {
					t.Fatalf("%s: id %d was issued twice, want once", server.Name, id)
				}
				seen[id] = true
			}
		}
	}
}

// TestNoIDTwiceWhileLeafAllocIsEmptied: connections that insert while leaf_alloc is emptied may get an error,
// but no id is issued twice, even if its row was deleted.
func TestNoIDTwiceWhileLeafAllocIsEmptied(t *testing.T) {
	const conns, rows = 4, 400
	text := "INSERT INTO t (a) VALUES (1)" + strings.Repeat(", (1)", rows-1)
	for _, server := range mysqltest.Targets(t) {
		for _, empty := range []string{"TRUNCATE leaf_alloc", "DROP TABLE IF EXISTS leaf_alloc"} {
			_, leaf := openOn(t, server.Database(t), "leafTables=t&leafCreate=true", counted)
			insertID(t, leaf, text)
			stop := make(chan struct{})
			var mu sync.Mutex
			var ids []int64
			var wg sync.WaitGroup
			for range conns {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						res, err := leaf.Exec(text)
						var unknown *segment.UnknownTagError
						if err != nil && !errors.As(err, &unknown) && !strings.Contains(err.Error(), "Error 1146") {
							t.Errorf("%s, %s: error %v, want none, an UnknownTagError or error 1146", server.Name, empty, err)
							return
						}
						if err == nil {
							id, _ := res.LastInsertId()
							mu.Lock()
							ids = append(ids, id)
							mu.Unlock()
						}
					}
				})
			}
			for range 5 {
				mustExec(t, leaf, empty)
				_, err := leaf.Exec(text)
				for until := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(until); {
					_, err = leaf.Exec(text)
				}
				if err != nil {
					t.Fatal(err)
				}
				mustExec(t, leaf, "TRUNCATE t")
			}
			close(stop)
			wg.Wait()
			slices.Sort(ids)
			for i, id := range ids {
				if i > 0 && id < ids[i-1]+rows {
					t.Fatalf("%s, %s: ids from %d, want at least %d", server.Name, empty, id, ids[i-1]+rows)
				}
			}
			if insertID(t, leaf, text) <= ids[len(ids)-1] {
				t.Errorf("LastInsertId() is an earlier id, want more than %d", ids[len(ids)-1])
			}
		}
	}
}

// TestErrorNamesDroppedObject: the next statement fails with an error that names the missing object.
func TestErrorNamesDroppedObject(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", 1, 1000), counted)
		for range 20 {
			insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
		}
		began := time.Now()
		mustExec(t, leaf, "TRUNCATE leaf_alloc")
		refused(t, leaf, `tag "t" has no row in `, "INSERT INTO t (a) VALUES (1)")
		mustExec(t, leaf, "DROP TABLE leaf_alloc")
		refused(t, leaf, "the table leaf_alloc", "INSERT INTO t (a) VALUES (1)")
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("%s: the error took %v, want at most 1.5s", server.Name, took)
		}
	}
}

// TestNewUniqueIndexTakesEffect: an index that makes another column unique takes effect immediately.
func TestNewUniqueIndexTakesEffect(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), "leafTables=n", allocTable, row("n", 100, 10), "CREATE TABLE n (id BIGINT NOT NULL PRIMARY KEY, a INT, b VARCHAR(9))")
		leaf.SetMaxOpenConns(1)
		upsert := "INSERT INTO n (id, a) VALUES (?, ?) ON DUPLICATE KEY UPDATE b = CONCAT(COALESCE(b, ''), 'y')"
		mustExec(t, leaf, "INSERT INTO n (id, a) VALUES (3, 1)")
		if id := insertID(t, leaf, upsert, 4, 2); id != 4 {
			t.Errorf("%s: id %d, want 4", target.Name, id)
		}
		mustExec(t, leaf, "CREATE UNIQUE INDEX i ON n (a)")
		if id := insertID(t, leaf, upsert, 5, 1); id != 3 {
			t.Errorf("%s: LastInsertId() = %d, want 3 of the updated row", target.Name, id)
		}
	}
}
