package segment_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// If envWriter is set, the test binary is a writer process.
const (
	envWriter = "LEAFSQL_SEGMENT_WRITER" // DSN
	envDir    = "LEAFSQL_SEGMENT_DIR"    // directory of the ids, with a file for each tag
	envConns  = "LEAFSQL_SEGMENT_CONNS"  // number of connections of the pool
)

var tags = []string{"orders", "customers", "items"}

const (
	writerGoroutines = 64
	writerCalls      = 300 // calls of each goroutine, for each tag in turn
)

// writer issues ids and writes them to files. It prints a line half-way and at the end.
func writer() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func write() error {
	db, err := sqlx.Open("mysql", os.Getenv(envWriter))
	if err != nil {
		return err
	}
	defer db.Close()
	var conns int
	fmt.Sscan(os.Getenv(envConns), &conns)
	db.SetMaxOpenConns(conns)
	store := segment.NewAllocStore(db, "leaf_alloc")

	var (
		generators []*segment.Generator
		files      []*os.File
		wg         sync.WaitGroup
		calls      atomic.Int64
		failed     atomic.Value
	)
	for _, tag := range tags {
		g := segment.New(store, tag, nil)
		defer g.Close()
		f, err := os.OpenFile(filepath.Join(os.Getenv(envDir), tag), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		generators, files = append(generators, g), append(files, f)
	}
	for w := range writerGoroutines {
		wg.Go(func() {
			for c := range writerCalls {
				tag, n := (w+c)%len(tags), 1
				if c%5 == 0 {
					n = 1 + (w+c)%40
				}
				first, err := generators[tag].Next(context.Background(), n)
				if err == nil && c%50 == 0 { // a row with its own key, somewhat ahead
					err = generators[tag].Skip(context.Background(), first+int64(w))
				}
				if err != nil {
					failed.Store(err)
					return
				}
				// One write a line: only the last line of a killed process may be incomplete.
				if _, err := fmt.Fprintf(files[tag], "%d %d\n", first, n); err != nil {
					failed.Store(err)
					return
				}
				if calls.Add(1) == writerGoroutines*writerCalls/2 {
					fmt.Println("half")
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return err.(error)
	}
	return nil
}

// process is a running writer.
type process struct {
	*exec.Cmd
	dir   string
	lines *bufio.Scanner
}

func start(t *testing.T, dsn string, conns int) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0]), dir: t.TempDir()}
	p.Env = append(os.Environ(), envWriter+"="+dsn, envDir+"="+p.dir, envConns+"="+fmt.Sprint(conns))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// waitForLine waits for a line.
func (p *process) waitForLine(t *testing.T, want string) {
	t.Helper()
	if !p.lines.Scan() || p.lines.Text() != want {
		t.Fatalf("the writer said %q, %v instead of %q", p.lines.Text(), p.lines.Err(), want)
	}
}

func (p *process) finish(t *testing.T) {
	t.Helper()
	p.waitForLine(t, "half")
	p.waitForLine(t, "done")
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Four processes with 64 goroutines each, two of which are killed half-way and replaced, and a reader like Java
// Leaf, use the same rows.
func TestProcessesShareRowsWithJavaLeaf(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		for _, conns := range []int{8, 1} {
			t.Run(fmt.Sprintf("%s, %d connections", server.Name, conns), func(t *testing.T) { processes(t, server.Database(t), conns) })
		}
	}
}

func processes(t *testing.T, dsn string, conns int) {
	db := pool(t, dsn, "")
	s := allocStore(t, db, "leaf_alloc")
	for _, tag := range tags {
		if err := s.Ensure(t.Context(), tag, 0, 10); err != nil {
			t.Fatal(err)
		}
	}
	collectors := make([]idcheck.Collector, len(tags))

	stop := make(chan struct{})
	var leaf sync.WaitGroup
	for i, tag := range tags {
		leaf.Go(func() { javaLeaf(t, db, tag, collectors[i].Recorder(), stop) })
	}
	var procs []*process
	for range 4 {
		procs = append(procs, start(t, dsn, conns))
	}
	for _, p := range procs[:2] {
		p.waitForLine(t, "half")
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.Wait()
		procs = append(procs, start(t, dsn, conns))
	}
	for _, p := range procs[2:] {
		p.finish(t)
	}
	close(stop)
	leaf.Wait()

	for i, tag := range tags {
		for _, p := range procs {
			f, err := os.Open(filepath.Join(p.dir, tag))
			if err != nil {
				t.Fatal(err)
			}
			if err := collectors[i].Recorder().AddLines(f); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		report := collectors[i].Verify(t)
		row, err := s.Row(t.Context(), tag)
		if err != nil || report.Max >= row.MaxID {
			t.Errorf("%s: id %d was issued, the row is at %d (%v), want report.Max below %v and no error", tag, report.Max, row.MaxID, err, row.MaxID)
		}
		if least := int64(4 * writerGoroutines * writerCalls / len(tags)); report.Issued < least {
			t.Errorf("%s: %d ids, want at least %d", tag, report.Issued, least)
		}
		t.Logf("%s: %d ids, %d missing, max_id %d", tag, report.Issued, report.Missing, row.MaxID)
	}
}

// javaLeaf takes ranges like Leaf and uses them up.
func javaLeaf(t *testing.T, db *sqlx.DB, tag string, r *idcheck.Recorder, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		tx, err := db.Beginx()
		if err != nil {
			t.Error(err)
			return
		}
		var row segmenttest.Row
		_, err = tx.Exec("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", tag)
		if err == nil {
			err = tx.Get(&row, "SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?", tag)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			t.Error(err)
			tx.Rollback()
			return
		}
		first, n := row.MaxID-row.Step, int(row.Step)
		if first == 0 {
			first, n = 1, n-1
		}
		r.Add(first, n)
	}
}
