//go:build unix && storm

package clustertest_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/process"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// A chaosRun is the writers of one cluster and their results.
type chaosRun struct {
	testing.TB
	target  target
	began   time.Time
	end     context.CancelFunc
	ended   context.Context
	running sync.WaitGroup

	tables      map[string]*receipts
	plain       *stream
	streams     []*stream
	dsn         string // the DSN of programs without leafsql
	writers     int
	calm        atomic.Bool // write little, so that servers that come back reach the others on a busy machine
	visits      atomic.Int64
	clock       func() time.Duration // stops while the machine hangs
	windowBegan time.Duration
	outage      time.Duration // longest outage of the plain writer

	closers []func() // close the programs
}

// A stream is the writers of one table that use one way: the driver, the proxy, or neither.
type stream struct {
	way, table string
	writers    []int
	rows       atomic.Int64
	silence    time.Duration // longest time to a first id

	mu        sync.Mutex
	last      time.Duration   // the last success
	successes []time.Duration // since the last success of the previous window
	errors    map[string]int
}

const leafRules = "leafTables=seg:id:segment(seg),snow:id:snowflake"

// chaosPatience is the time limit of each INSERT.
const chaosPatience = 4 * time.Second

// newChaosRun creates the tables and starts the writers.
func newChaosRun(t *testing.T, c target, program string) *chaosRun {
	t.Helper()
	r := &chaosRun{TB: t, target: c, clock: stopwatch.Start(t), tables: map[string]*receipts{"seg": {}, "snow": {}, "plain": {}}}
	r.dsn = "app@tcp(" + c.address() + ")/ids?rejectReadOnly=true"
	r.mustExecute("CREATE DATABASE IF NOT EXISTS ids",
		"CREATE TABLE ids.plain (writer INT NOT NULL, n INT NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (writer, n))",
		"CREATE TABLE ids.seg (writer INT NOT NULL, n INT NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (writer, n), KEY (id))", // accepts an id twice
		"CREATE TABLE ids.snow LIKE ids.seg",
		"CREATE USER app@'127.0.0.1'", "GRANT ALL ON ids.* TO app@'127.0.0.1'")
	leafsql := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append(args, "-dsn", "env:LEAFSQL_DSN")...)
		cmd.Env = append(os.Environ(), "LEAFSQL_DSN=app@tcp("+c.address()+")/ids?"+leafRules)
		return cmd
	}
	if out, err := leafsql("init", "-new-registry").CombinedOutput(); err != nil {
		t.Fatalf("leafsql init: %v\n%s", err, out)
	}
	r.ended, r.end = context.WithCancel(context.Background())
	t.Cleanup(func() { r.end(); r.running.Wait() })
	r.began, r.windowBegan = time.Now(), r.clock()
	r.plain = r.write("plain", "plain", r.open("mysql", r.dsn))
	direct := r.open(driver.Name, r.dsn+"&"+leafRules)
	proxied := r.open("mysql", "app@tcp("+r.startProxy(leafsql)+")/ids?rejectReadOnly=true")
	for _, table := range []string{"seg", "snow"} {
		r.streams = append(r.streams, r.write("driver", table, direct), r.write("proxy", table, proxied))
	}
	r.waitForRows()
	t.Cleanup(r.logFailure)
	for _, s := range append(r.streams, r.plain) {
		s.takeWindow() // the start is not judged
	}
	r.began, r.windowBegan = time.Now(), r.clock()
	return r
}

// logFailure logs how the writers of a failed run ended.
func (r *chaosRun) logFailure() {
	if !r.Failed() {
		return
	}
	for _, s := range append(r.streams, r.plain) {
		s.mu.Lock()
		r.Logf("%s of %s: the last of %d rows was inserted %v ago; errors: %v", s.way, s.table, s.rows.Load(), r.clock()-s.last, s.errors)
		s.mu.Unlock()
	}
}

// waitForRows waits until each stream has rows.
func (r *chaosRun) waitForRows() {
	for _, s := range r.streams {
		for deadline := time.Now().Add(time.Minute); s.rows.Load() == 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				r.Fatalf("no row of %s through %s after a minute: %v", s.table, s.way, s.errors)
			}
		}
	}
}

// mustExecute runs statements on a server of the cluster.
func (r *chaosRun) mustExecute(texts ...string) {
	r.Helper()
	db, err := sql.Open("mysql", r.target.admin(""))
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	for _, text := range texts {
		if _, err := db.ExecContext(r.Context(), text); err != nil {
			r.Fatalf("%s: %v", text, err)
		}
	}
}

func (r *receipts) add(one receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

// startProxy starts leafsql proxy and returns its address.
func (r *chaosRun) startProxy(leafsql func(args ...string) *exec.Cmd) string {
	r.Helper()
	port, err := freeport.Find()
	if err != nil {
		r.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	p, err := process.New(process.Config{
		Name:    "proxy",
		Command: func(string) *exec.Cmd { return leafsql("proxy", "-listen", addr) },
		Ready:   process.Accepts(addr),
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { p.Finish(r) })
	if err := p.Start(); err != nil {
		r.Fatal(err)
	}
	return addr
}

// open opens a pool, which finish closes.
func (r *chaosRun) open(name, dsn string) *sql.DB {
	r.Helper()
	db, err := sql.Open(name, dsn)
	if err != nil {
		r.Fatal(err)
	}
	db.SetMaxIdleConns(4)
	db.SetConnMaxLifetime(2 * time.Second) // leaves a node that is not a member
	r.closers = append(r.closers, func() { r.close(db) })
	return db
}

// close closes a pool, which must not wait for a server that does not answer.
func (r *chaosRun) close(db *sql.DB) {
	began := r.clock()
	db.Close()
	if took := r.clock() - began; took > 5*time.Second {
		r.Errorf("Close() took %v, want at most 5s", took)
	}
}

// visit runs a program during a fault: it inserts one row with a time limit, and closes its pool.
func (r *chaosRun) visit() {
	db, err := sql.Open(driver.Name, fmt.Sprintf("%s&%s&connectionAttributes=app:%d", r.dsn, leafRules, r.visits.Add(1)))
	if err != nil {
		r.Error(err)
		return
	}
	defer r.close(db)
	r.insert(&stream{way: "visit", table: "seg"}, db, 100+int(r.visits.Load()), 1, 1)
}

// write starts the writers of a stream: one inserts single rows quickly, and the other one many rows at once.
func (r *chaosRun) write(way, table string, db *sql.DB) *stream {
	s := &stream{way: way, table: table, errors: make(map[string]int)}
	for _, bulk := range []bool{false, true} {
		number := r.writers
		r.writers++
		s.writers = append(s.writers, number)
		r.running.Go(func() {
			for n, rows := 1, 1; r.ended.Err() == nil; n += rows {
				began, pause := time.Now(), 50*time.Millisecond
				switch rows = 1; {
				case r.calm.Load():
					pause = 4 * pause
				case bulk && way != "plain":
					rows = r.nextRows()
				}
				r.insert(s, db, number, n, rows)
				time.Sleep(max(time.Until(began.Add(pause)), 5*time.Millisecond))
			}
		})
	}
	return s
}

// nextRows returns the number of rows of the next statement, so that all streams have their rows shortly before the faults end. Up to a
// half of the time nothing can be inserted.
func (r *chaosRun) nextRows() int {
	left := max(*chaosRows-r.rows(), 0)
	seconds := max(*chaosFor-r.elapsed(), 10*time.Second).Seconds() / 2
	rows := min(int(float64(left)/seconds/(4*12)), 2000) // 4 streams with about 12 statements per second
	return 1 + rand.IntN(2*rows+1)
}

// insert inserts rows n, n+1, … of a writer.
func (r *chaosRun) insert(s *stream, db *sql.DB, writer, n, rows int) {
	columns, suffix := "(writer, n)", ""
	if s.table == "plain" {
		columns, suffix = "(writer, n, id)", ", 0"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "INSERT INTO %s %s VALUES ", s.table, columns)
	for i := range rows {
		fmt.Fprintf(&text, "%s(%d, %d%s)", []string{"", ", "}[min(i, 1)], writer, n+i, suffix)
	}
	ctx, cancel := context.WithTimeout(context.Background(), chaosPatience)
	defer cancel()
	began := r.clock()
	result, err := db.ExecContext(ctx, text.String())
	if took := r.clock() - began; took > chaosPatience+insertTolerance {
		r.Errorf("an INSERT through %s took %v (error %v), want at most %v", s.way, took, err, chaosPatience+insertTolerance)
	}
	var first int64
	if err == nil {
		first, err = result.LastInsertId()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.errors != nil {
			s.errors[err.Error()]++
		}
		return
	}
	s.last = r.clock()
	s.successes = append(s.successes, s.last)
	s.rows.Add(int64(rows))
	r.tables[s.table].add(receipt{writer: writer, n: n, rows: rows, first: first})
}

func (r *chaosRun) elapsed() time.Duration { return time.Since(r.began) }

// rows returns the number of acknowledged rows with ids.
func (r *chaosRun) rows() (n int) {
	for _, s := range r.streams {
		n += int(s.rows.Load())
	}
	return n
}

// takeWindow returns the successes of a window, and starts the next one.
func (s *stream) takeWindow() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := s.successes
	s.successes = slices.Clone(times[max(0, len(times)-1):])
	return times
}

// A window is the time of one fault.
type window struct {
	outage time.Duration
	firsts map[string]time.Duration // by stream
}

func (w window) String() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(w.firsts)) {
		texts = append(texts, fmt.Sprintf("%v %s", w.firsts[name].Round(time.Millisecond), name))
	}
	return strings.Join(texts, ", ")
}

// endWindow compares the writers with the plain one since the last call.
func (r *chaosRun) endWindow() window {
	w := window{firsts: make(map[string]time.Duration)}
	end := r.clock()
	outages := gaps(r.plain.takeWindow(), r.windowBegan, end, outageGap)
	for _, o := range outages {
		w.outage = max(w.outage, o.end-o.begin)
	}
	r.outage = max(r.outage, w.outage)
	for _, s := range r.streams {
		silence := longestSilence(gaps(s.takeWindow(), r.windowBegan, end, 0), outages)
		w.firsts[s.table+" "+s.way] = silence
		s.silence = max(s.silence, silence)
		if silence > maxFirstID {
			r.Errorf("no id of %s through %s for %v while a plain writer inserts, want at most %v", s.table, s.way, silence.Round(time.Millisecond), maxFirstID)
		}
	}
	r.windowBegan = end
	return w
}
