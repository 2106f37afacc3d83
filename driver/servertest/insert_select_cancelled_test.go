package servertest

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var cancelCalls = flag.Int("stage.calls", 160, "how many calls TestCancelledStagedStatementIsAllOrNothing and TestKilledStagedStatementReportsTrueOutcome cut a server")

// callRows is the number of rows that each call writes. Column a of call k's rows starts at k*1000.
const callRows = 200

const callText = "INSERT INTO t (a, b) SELECT ? * 1000 + a, 'x' FROM src"

// A fate is the outcome of a call as reported to its caller.
type fate uint8

const (
	unheard fate = iota // unknown: the context ended, possibly before the commit's reply arrived
	said                // the rows are stored
	failed              // the rows are not stored
)

// fates holds the fate of each call.
type fates struct {
	mu sync.Mutex
	of map[int]fate

	wrong []error
}

func (f *fates) note(k int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var me *mysql.MySQLError
	switch {
	case err == nil:
		f.of[k] = said
	case errors.As(err, &me):
		f.of[k] = failed
	default:
		f.of[k] = unheard
	}
	if err != nil && strings.HasPrefix(err.Error(), "LAST_INSERT_ID() is") {
		f.wrong = append(f.wrong, err)
	}
}

// check compares the stored rows with the fates.
func (f *fates) check(t *testing.T, plain *sql.DB) {
	t.Helper()
	rows, err := plain.Query("SELECT a DIV 1000, COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) FROM t GROUP BY 1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	stored := map[int]bool{}
	for rows.Next() {
		var k, n, distinct int
		var low, high int64
		if err := rows.Scan(&k, &n, &distinct, &low, &high); err != nil {
			t.Fatal(err)
		}
		stored[k] = true
		if n != callRows || high-low != callRows-1 {
			t.Errorf("call %d stored %d rows with ids %d to %d, want %d rows with consecutive ids, or none", k, n, low, high, callRows)
		}
	}
	count := map[string]int{}
	for k, fate := range f.of {
		switch {
		case fate == said && !stored[k]:
			t.Errorf("call %d reported success, want an error, since its rows are not stored", k)
		case fate == failed && stored[k]:
			t.Errorf("call %d reported a failure, want success, since its rows are stored", k)
		}
		count[fmt.Sprintf("%s, stored %v", [...]string{"cut", "ok", "error"}[fate], stored[k])]++
	}
	t.Log(count)
	if len(f.wrong) > 0 {
		t.Errorf("%d wrong outcomes, want 0; the first: %v", len(f.wrong), f.wrong[0])
	}
}

// healthy takes all connections of a pool and checks the state of each.
func healthy(t *testing.T, db *sql.DB, conns int) {
	t.Helper()
	var all []*sql.Conn
	for range conns {
		c, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	for _, c := range all {
		var auto int
		if err := c.QueryRowContext(context.Background(), "SELECT @@autocommit").Scan(&auto); err != nil || auto != 1 {
			t.Errorf("autocommit of a pooled connection = %d, error %v; want 1", auto, err)
		}
		for _, text := range []string{"SAVEPOINT here", "ROLLBACK TO SAVEPOINT here"} {
			if _, err := c.ExecContext(context.Background(), text); err == nil && text != "SAVEPOINT here" {
				t.Error("a pooled connection is in a transaction, want none")
			}
		}
		if err := c.QueryRowContext(context.Background(), "SELECT 1 FROM leafsql_stage LIMIT 1").Err(); err == nil {
			t.Error("a pooled connection still has a staging table, want none")
		}
		if _, err := c.ExecContext(context.Background(), "INSERT INTO t (a) SELECT -1 FROM src LIMIT 0"); err != nil {
			t.Errorf("staged INSERT on a pooled connection: error %v, want none", err)
		}
	}
}

func cancelSetup(t *testing.T, target mysqltest.Target, params string) (plain, leaf *sql.DB) {
	plain, leaf = openOn(t, target.Database(t), "leafTables=t"+params,
		append([]string{allocTable, row("t", 1, 1_000_000), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a))"}, seedSource(callRows)...)...)
	if _, err := leaf.Exec("INSERT INTO t (a) SELECT 0 FROM src LIMIT 0"); err != nil { // the first statement looks tables up
		t.Fatal(err)
	}
	return plain, leaf
}

// waysToCall run a staged statement with a context that may end at any time.
var waysToCall = []struct {
	name, params string
	run          func(ctx context.Context, db *sql.DB, k int) error
}{
	{"autocommit", "", func(ctx context.Context, db *sql.DB, k int) error {
		_, err := db.ExecContext(ctx, callText, k)
		return err
	}},
	{"interpolated", "&interpolateParams=true", func(ctx context.Context, db *sql.DB, k int) error {
		_, err := db.ExecContext(ctx, callText, k)
		return err
	}},
	{"prepared", "", func(ctx context.Context, db *sql.DB, k int) error {
		st, err := db.PrepareContext(ctx, callText)
		if err != nil {
			return err
		}
		defer st.Close()
		_, err = st.ExecContext(ctx, k)
		return err
	}},
	{"transaction", "", func(ctx context.Context, db *sql.DB, k int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, callText, k); err != nil {
			return err
		}
		return tx.Commit()
	}},
	{"autocommit off", "", func(ctx context.Context, db *sql.DB, k int) error {
		return onConn(ctx, db, k, "SET autocommit = 0", "COMMIT", "SET autocommit = 1")
	}},
	{"tables locked", "", func(ctx context.Context, db *sql.DB, k int) error {
		return onConn(ctx, db, k, "LOCK TABLES t WRITE, src READ", "DO 1", "UNLOCK TABLES")
	}},
}

// onConn runs a call between two other statements of the application. last resets the
// session's state, whatever the outcome of the call.
func onConn(ctx context.Context, db *sql.DB, k int, before, after, last string) error {
	c, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	insist := func(text string, dest ...any) (err error) {
		for n := 0; n < 100; n++ {
			if len(dest) > 0 {
				err = c.QueryRowContext(context.Background(), text).Scan(dest...)
			} else {
				_, err = c.ExecContext(context.Background(), text)
			}
			if !isNumber(err, 1317) {
				break
			}
		}
		return err
	}
	defer insist(last)
	insist(fmt.Sprintf("DO LAST_INSERT_ID(%d)", idBefore))
	if err = insist(before); err == nil {
		if _, err = c.ExecContext(ctx, callText, k); err == nil {
			_, err = c.ExecContext(context.Background(), after)
		} else if id := 0; insist("SELECT LAST_INSERT_ID()", &id) == nil && id != idBefore {
			return fmt.Errorf("LAST_INSERT_ID() is %d after %w, want %d", id, err, idBefore)
		}
	}
	if err != nil {
		insist("ROLLBACK")
	}
	return err
}

// TestCancelledStagedStatementIsAllOrNothing cancels contexts at random moments of staged statements.
// Each statement is stored as a whole or not at all, and the reported outcome is true.
// No connection returns to the pool in a changed state.
func TestCancelledStagedStatementIsAllOrNothing(t *testing.T) {
	seed := rand.Uint64()
	for _, target := range mysqltest.Targets(t) {
		for _, way := range waysToCall {
			t.Run(target.Name+"/"+way.name, func(t *testing.T) {
				t.Logf("seed %d", seed)
				rng := rand.New(rand.NewPCG(seed, 1))
				plain, leaf := cancelSetup(t, target, way.params)
				leaf.SetMaxOpenConns(2)
				f := &fates{of: map[int]fate{}}
				longest := 10 * time.Millisecond // longest call so far
				for k := 1; k <= *cancelCalls/len(waysToCall); k++ {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(longest*3/2))))
					if k%10 == 1 { // measure an uncancelled call
						cancel()
						ctx, cancel = context.WithCancel(t.Context())
					}
					start := time.Now()
					err := way.run(ctx, leaf, k)
					cancel()
					if err == nil {
						longest = (longest*3 + time.Since(start)) / 4
					}
					f.note(k, err)
				}
				f.check(t, plain)
				healthy(t, leaf, 2)
			})
		}
	}
}

// TestKilledStagedStatementReportsTrueOutcome: KILL QUERY hits every statement of a staging, including those
// that restore the session. The reported outcome is always true.
func TestKilledStagedStatementReportsTrueOutcome(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			plain, leaf := cancelSetup(t, target, "")
			const workers = 2
			leaf.SetMaxOpenConns(workers)
			ctx, stop := context.WithCancel(t.Context())
			var killer sync.WaitGroup
			killer.Go(func() {
				for ctx.Err() == nil {
					time.Sleep(time.Duration(2+rand.IntN(6)) * time.Millisecond)
					kill(plain)
				}
			})
			f := &fates{of: map[int]fate{}}
			var next, odd atomic.Int64
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for k := int(next.Add(1)); k <= *cancelCalls; k = int(next.Add(1)) {
						ctx := context.Background()
						var err error
						if k%2 == 0 {
							_, err = leaf.ExecContext(ctx, callText, k)
						} else { // not sql.Tx: if its COMMIT is killed, the connection returns to the pool in the transaction
							err = onConn(ctx, leaf, k, "BEGIN", "COMMIT", "ROLLBACK")
						}
						var me *mysql.MySQLError
						if err != nil && !errors.As(err, &me) {
							odd.Add(1)
						}
						f.note(k, err)
					}
				})
			}
			wg.Wait()
			stop()
			killer.Wait()
			f.check(t, plain)
			t.Logf("%d connections were given up", odd.Load())
			healthy(t, leaf, workers)
		})
	}
}

// kill kills the statements of this database's other connections.
func kill(plain *sql.DB) {
	rows, err := plain.Query("SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID() AND command <> 'Sleep'")
	if err != nil {
		return
	}
	var ids []int
	for rows.Next() {
		var id int
		rows.Scan(&id)
		ids = append(ids, id)
	}
	rows.Close()
	for _, id := range ids {
		plain.Exec(fmt.Sprint("KILL QUERY ", id))
	}
}

// TestStagedDeadlockStoresNothing: sessions that wait for each other get the server's deadlock error,
// as without leafsql, and store nothing.
func TestStagedDeadlockStoresNothing(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			plain, leaf := cancelSetup(t, target, "")
			const workers = 4
			leaf.SetMaxOpenConns(workers)
			var ok, deadlocks atomic.Int64
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for k := range *cancelCalls / workers {
						_, err := leaf.Exec("INSERT INTO t (a) SELECT ? FROM src WHERE src.a = 1 AND NOT EXISTS (SELECT 1 FROM t q WHERE q.a = ? FOR UPDATE)", 1000+k, 1000+k)
						switch {
						case err == nil:
							ok.Add(1)
						case isNumber(err, 1213, 1205, 1020):
							deadlocks.Add(1)
						default:
							t.Errorf("worker %d: error %v, want none or a deadlock", w, err)
						}
					}
				})
			}
			wg.Wait()
			var n, distinct int
			if err := plain.QueryRow("SELECT COUNT(*), COUNT(DISTINCT a) FROM t").Scan(&n, &distinct); err != nil || n != distinct {
				t.Errorf("%d rows with %d different values, error %v; want equal numbers", n, distinct, err)
			}
			t.Logf("%d ok, %d deadlocks, %d rows", ok.Load(), deadlocks.Load(), n)
			healthy(t, leaf, workers)
		})
	}
}
