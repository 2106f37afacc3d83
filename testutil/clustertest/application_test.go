//go:build unix

package clustertest_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// An application is a set of processes that insert rows with ids of one tag while its leaf_alloc fails over. Their user has only
// the rights that the documentation lists.
type application struct {
	t    *testing.T
	pair *clustertest.Pair
	rows *sql.DB // pool for the database of the tables
	dsn  string  // data source of the processes

	running sync.WaitGroup

	mu           sync.Mutex
	writers      map[int]*writer // by number
	acknowledged []insertedRow
	errors       map[string]int
	promoted     time.Time // when the new primary began to accept writes
}

// A writer is a process of an application.
type writer struct {
	program  string
	process  *os.Process
	end      func()
	hasMoved bool // an id above the margin has been acknowledged
}

// An insertedRow is an acknowledged row.
type insertedRow struct {
	writer, n int
	id        int64
	at        time.Time
}

// marginStart is greater than all ids that are fetched before the row is moved up by the margin, and less than
// all later ones.
const marginStart = 1 << 36

var applicationTables = []string{
	"CREATE TABLE events (id BIGINT NOT NULL, writer INT NOT NULL, n INT NOT NULL)",
	"CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, writer INT NOT NULL, n INT NOT NULL)",
}

// foreignRow is the row in leaf_alloc of another program with INT keys.
const foreignRow = "2000000000 leafsql@00112233445566ff 0 0"

// newApplication creates the tables, and a row of leaf_alloc without a mark. If apart is set, the tables are on another server, which
// does not fail over.
func newApplication(t *testing.T, p *clustertest.Pair, kind mysqltest.Kind, apart bool) *application {
	t.Helper()
	const user = "app@'127.0.0.1'"
	p.Execute(t, p.Primary, "USE ids", leafAlloc, insertRow("shop", 10),
		"INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('other', 2000000000, 10, 'leafsql@00112233445566ff 0 0')",
		"CREATE USER "+user, "GRANT SELECT, UPDATE ON ids.leaf_alloc TO "+user)
	store := "app@tcp(" + p.BalancerAddr() + ")/ids"
	tables, at := "?leafTables=events:id:segment(shop),orders:id:segment(shop)", ""
	a := &application{t: t, pair: p, writers: make(map[int]*writer), errors: make(map[string]int)}
	if apart {
		at = mysqltest.TargetOf(t, kind).Database(t)
		a.dsn = at + tables + "&leafStore=" + url.QueryEscape(store)
	} else {
		p.Execute(t, p.Primary, append([]string{"USE ids"}, applicationTables...)...)
		p.Execute(t, p.Primary, "GRANT SELECT, INSERT, DELETE ON ids.events TO "+user, "GRANT SELECT, INSERT, DELETE ON ids.orders TO "+user)
		at, a.dsn = "root@tcp("+p.BalancerAddr()+")/ids", store+tables
	}
	var err error
	if a.rows, err = sql.Open("mysql", at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.rows.Close() })
	for _, text := range applicationTables {
		if _, err := a.rows.ExecContext(t.Context(), text); apart && err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(a.stop)
	return a
}

// start starts a process of the program.
func (a *application) start(program string) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	number := len(a.writers)
	cmd := exec.Command(program, a.dsn, strconv.Itoa(number))
	in, err := cmd.StdinPipe() // closed when this process ends, which ends the other one
	if err != nil {
		a.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	w := &writer{program: program, process: cmd.Process, end: func() { in.Close() }}
	a.writers[number] = w
	a.running.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			a.note(number, w, lines.Text())
		}
		cmd.Wait()
	})
}

// note records a line of a process: an acknowledged row or an error.
func (a *application) note(number int, w *writer, line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := insertedRow{writer: number, at: time.Now()}
	if _, err := fmt.Sscan(line, &r.n, &r.id); err != nil {
		a.errors[line]++
		return
	}
	a.acknowledged = append(a.acknowledged, r)
	w.hasMoved = w.hasMoved || r.id > marginStart
}

// signal sends a process a signal.
func (a *application) signal(number int, s os.Signal) {
	a.t.Helper()
	if err := a.writers[number].process.Signal(s); err != nil {
		a.t.Error(err)
	}
}

// stop ends all processes and waits for them.
func (a *application) stop() {
	for _, w := range a.writers {
		w.end()
	}
	a.running.Wait()
}

// count returns the number of acknowledged rows.
func (a *application) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.acknowledged)
}

// hasMoved reports whether each process of a program has an id above the margin.
func (a *application) hasMoved(program string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.writers {
		if w.program == program && !w.hasMoved {
			return false
		}
	}
	return true
}

// waitUntil waits until happened returns true, and fails the test after 2 minutes.
func (a *application) waitUntil(what string, happened func() bool) {
	a.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.t.Fatalf("%s: not after 2 minutes; %d rows are acknowledged, the errors are %v", what, len(a.acknowledged), a.errors)
		}
	}
}

// failOver starts three processes of one program (before), kills the primary, and starts three processes of another one (after).
// If loses is set, the replica lacks ranges that were fetched. The first process is stopped meanwhile, so it cannot notice that
// leaf_alloc goes back.
func (a *application) failOver(before, after string, loses bool) {
	a.t.Helper()
	for range 3 {
		a.start(before)
	}
	a.waitUntil("300 rows", func() bool { return a.count() >= 300 })
	if loses {
		a.signal(0, syscall.SIGSTOP)
		defer a.signal(0, syscall.SIGCONT)
		a.pair.AwaitReplica(a.t)
		a.pair.PauseReplication(a.t)
		there, n := rowNumber(a.t, a.pair, a.pair.Replica, "shop"), a.count()
		a.waitUntil("ranges that the replica lacks", func() bool {
			return a.count() >= n+600 && rowNumber(a.t, a.pair, a.pair.Primary, "shop") >= there+300
		})
		if a.pair.IsSemiSync(a.t) {
			a.t.Error("the primary waits for a replica that receives nothing")
		}
	}
	at := a.pair.FailOver(a.t)
	a.mu.Lock()
	a.promoted = at
	a.mu.Unlock()
	for range 3 {
		a.start(after)
	}
}

// An outcome is the comparison of the stored rows with the acknowledged ones.
type outcome struct {
	rows        int           // acknowledged rows
	duplicates  []int64       // ids that were acknowledged for two rows
	overwritten int           // acknowledged rows that are stored with other values
	missing     int           // acknowledged rows that are not stored
	missingNew  int           // missing rows with ids above the margin
	first       time.Duration // from the promotion to the first id above the margin, 0 if there is none
	errors      map[string]int
}

func (o outcome) String() string {
	return fmt.Sprintf("%d rows acknowledged, %d ids twice, %d rows overwritten, %d missing, first new id after %v, %d statements failed",
		o.rows, len(o.duplicates), o.overwritten, o.missing, o.first.Round(time.Millisecond), o.failed())
}

func (o outcome) failed() (n int) {
	for _, times := range o.errors {
		n += times
	}
	return n
}

// finish ends the processes and compares the stored rows with the acknowledged ones.
func (a *application) finish() (o outcome) {
	a.t.Helper()
	a.stop()
	if at := a.pair.Query(a.t, a.pair.Primary, "SELECT CONCAT(max_id, ' ', description) FROM leaf_alloc WHERE biz_tag = 'other'"); at != foreignRow {
		a.t.Errorf("the row of another program is %q, want %q", at, foreignRow)
	}
	type written struct{ writer, n int }
	there := map[string]map[int64]map[written]bool{"events": {}, "orders": {}}
	for table, ids := range there {
		rows, err := a.rows.QueryContext(a.t.Context(), "SELECT id, writer, n FROM "+table)
		if err != nil {
			a.t.Fatal(err)
		}
		for rows.Next() {
			var id int64
			var w written
			if err := rows.Scan(&id, &w.writer, &w.n); err != nil {
				a.t.Fatal(err)
			}
			if ids[id] == nil {
				ids[id] = make(map[written]bool)
			}
			ids[id][w] = true
		}
		if err := rows.Err(); err != nil {
			a.t.Fatal(err)
		}
	}
	o.rows, o.errors = len(a.acknowledged), a.errors
	times := make(map[int64]int)
	for _, r := range a.acknowledged {
		if times[r.id]++; times[r.id] == 2 {
			o.duplicates = append(o.duplicates, r.id)
		}
		table := "orders"
		if r.n%3 == 0 {
			table = "events"
		}
		switch found := there[table][r.id]; {
		case found[written{r.writer, r.n}]:
		case len(found) > 0:
			o.overwritten++
		default:
			o.missing++
			if r.id > marginStart {
				o.missingNew++
			}
		}
		if after := r.at.Sub(a.promoted); r.id > marginStart && (o.first == 0 || after < o.first) {
			o.first = after
		}
	}
	return o
}

// buildWriter builds the writer in a tree of this repository.
func buildWriter(t *testing.T, tree string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "writer")
	if out, err := exec.Command("go", "build", "-C", tree, "-buildvcs=false", "-o", program, "./testutil/clustertest/writer").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
