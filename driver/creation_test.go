package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var (
	creationTime  = flag.Duration("creation", 0, "have TestOneConnectionAtATimeCreatesTag play as long as this, with 32 connections on 300 tables")
	creationPause = flag.Duration("creation.pause", 0, "how long each connection waits between two INSERTs")
)

// texts counts the statements that connections send, by their first characters.
type texts struct {
	mu     sync.Mutex
	counts map[string]int
	before func(ctx context.Context, text string) error // if not nil, may delay a statement or return an error for it
}

func (s *texts) note(ctx context.Context, text string) error {
	s.mu.Lock()
	s.counts[text[:min(len(text), 22)]]++
	before := s.before
	s.mu.Unlock()
	if before != nil {
		return before(ctx, text)
	}
	return nil
}

// ours returns the number of leafsql's statements, and a list of them.
func (s *texts) ours() (n int, list string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for text, k := range s.counts {
		if !strings.HasPrefix(text, "INSERT INTO t") {
			n += k
			lines = append(lines, fmt.Sprintf("%6d %s …", k, text))
		}
	}
	slices.Sort(lines)
	return n, strings.Join(lines, "\n")
}

// openRecording opens a pool on tables t0, t1, … of a database without leaf_alloc. Its
// statements are counted, including those of internal pools.
func openRecording(t *testing.T, target mysqltest.Target, rules string, tables, conns int) (*sql.DB, *texts) {
	t.Helper()
	var setup []string
	for i := range tables {
		setup = append(setup, fmt.Sprintf("CREATE TABLE t%d (id BIGINT PRIMARY KEY, a INT)", i))
	}
	sent := &texts{counts: make(map[string]int)}
	db, _ := openRecorded(t, target.Database(t), "leafCreate=true&leafTables="+rules, setup, func(inner driver.Connector) recording { return recording{Connector: inner, before: sent.note} })
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, sent
}

// TestOneConnectionAtATimeCreatesTag: however many connections of a process need a tag, one at a time creates it. It
// queries the highest key of each table with the tag before and after. The internal statements for
// a table read its columns, read that key twice, insert the row, read the row before, in and after
// that, and fetch ids twice. A ROLLBACK follows the read that finds no row. Each connection can also find leaf_alloc
// missing, which is a read and a ROLLBACK.
func TestOneConnectionAtATimeCreatesTag(t *testing.T) {
	tables, conns := 40, 16
	if *creationTime > 0 {
		tables, conns = 300, 32
	}
	for _, target := range mysqltest.Targets(t) {
		for _, rules := range []string{"t*", "*"} {
			db, sent := openRecording(t, target, rules, tables, conns)
			began, first := time.Now(), time.Duration(0)
			var wg sync.WaitGroup
			for k := range conns {
				wg.Go(func() {
					for round := 0; round == 0 || time.Since(began) < *creationTime; round++ {
						for i := range tables {
							if _, err := db.Exec(fmt.Sprintf("INSERT INTO t%d (a) VALUES (1)", (i+k*tables/conns)%tables)); err != nil {
								t.Errorf("INSERT: error %v, want none", err)
								return
							}
							time.Sleep(*creationPause)
						}
						if k == 0 && round == 0 {
							first = time.Since(began)
						}
					}
				})
			}
			wg.Wait()
			n, list := sent.ours()
			t.Logf("%s, leafTables=%s: %.2f statements of ours a table; the first round took %v\n%s", target.Name, rules, float64(n)/float64(tables), first, list)
			// At most 22 statements more create leaf_alloc, and prepare the connections of the internal pools.
			if limit := 10*tables + 2*conns + 22; *creationTime == 0 && n > limit {
				t.Errorf("%s, leafTables=%s: %d internal statements, want at most %d", target.Name, rules, n, limit)
			}
		}
	}
}

// TestWaitingConnectionCreatesTag: if the context of the connection that creates a tag ends, a waiting
// connection creates the tag.
func TestWaitingConnectionCreatesTag(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		db, sent := openRecording(t, target, "t*", 2, 2)
		held, cancelled := make(chan struct{}), make(chan error)
		sent.before = func(ctx context.Context, text string) error {
			if !strings.HasPrefix(text, "INSERT INTO `leaf_alloc`") {
				return nil
			}
			sent.mu.Lock()
			sent.before = nil
			sent.mu.Unlock()
			close(held)
			<-ctx.Done()
			return ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := db.ExecContext(ctx, "INSERT INTO t0 (a) VALUES (1)")
			cancelled <- err
		}()
		<-held
		short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := db.ExecContext(short, "INSERT INTO t1 (a) VALUES (1)"); err == nil {
			t.Error("second INSERT before the tag exists: no error, want it to wait until its context ends")
		}
		stop()
		waits := make(chan int64)
		go func() {
			res, err := db.Exec("INSERT INTO t1 (a) VALUES (1)")
			if err != nil {
				t.Errorf("waiting INSERT: error %v, want none", err)
				close(waits)
				return
			}
			id, _ := res.LastInsertId()
			waits <- id
		}()
		cancel()
		if err := <-cancelled; err == nil {
			t.Error("INSERT with a cancelled context: no error, want one")
		}
		if id := <-waits; id != 1 {
			t.Errorf("%s: LastInsertId() of the waiting INSERT = %d, want 1", target.Name, id)
		}
	}
}
