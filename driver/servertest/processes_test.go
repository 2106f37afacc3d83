package servertest

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// envWriter is set to a DSN to make the test binary one of TestProcessesIssueNoIDTwice'
// writers.
const envWriter, envWriterConns = "LEAFSQL_TEST_WRITER", "LEAFSQL_TEST_WRITER_CONNS"

const (
	writerGoroutines = 64
	writerRows       = 30 // number of statements of each goroutine
)

// writerTables are five tables with three tags. Tables with the same tag must not share
// an id either, although no primary key would detect it.
var writerTables = []string{"a_1", "a_2", "b_1", "b_2", "c"}

// write runs a writer. It prints the number of acknowledged rows after each statement, so
// that all of them are counted when it is killed.
func write() error {
	db, err := sql.Open(driver.Name, os.Getenv(envWriter))
	if err != nil {
		return err
	}
	defer db.Close()
	conns, err := strconv.Atoi(os.Getenv(envWriterConns))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(conns)
	var wg sync.WaitGroup
	errs := make(chan error, writerGoroutines)
	for g := range writerGoroutines {
		wg.Go(func() {
			for i := range writerRows {
				table := writerTables[(g+i)%len(writerTables)]
				if _, err := db.Exec("INSERT INTO "+table+" (a) VALUES (?), (?)", g, i); err != nil {
					errs <- err
					return
				}
				fmt.Println(2)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// TestProcessesIssueNoIDTwice: four processes of 64 goroutines write through one leaf_alloc.
// Two of them are killed midway and restarted. No id exists twice: the primary key
// ensures it in a table, and a count checks it in a tag. Every acknowledged row is
// stored.
func TestProcessesIssueNoIDTwice(t *testing.T) {
	for _, conns := range []int{16, 1} {
		t.Run(fmt.Sprintf("%d connections", conns), func(t *testing.T) { processes(t, conns) })
	}
}

func processes(t *testing.T, conns int) {
	dsn := mysqltest.Database(t)
	setup := []string{allocTable, row("a_*", 1, 50), row("b_*", 1, 7), row("c", 1, 100)}
	for _, table := range writerTables {
		setup = append(setup, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, a INT)")
	}
	plain, _ := openOn(t, dsn, "leafTables=none", setup...)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var acknowledged atomic.Int64
	start := func() (*exec.Cmd, func() error) {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), envWriter+"="+dsn+"?leafTables=a_*,b_*,c", envWriterConns+"="+strconv.Itoa(conns))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		counted := make(chan struct{})
		go func() {
			defer close(counted)
			count(out, &acknowledged)
		}()
		return cmd, func() error { <-counted; return cmd.Wait() }
	}

	type process struct {
		cmd  *exec.Cmd
		wait func() error
	}
	var all []process
	for range 4 {
		cmd, wait := start()
		all = append(all, process{cmd, wait})
	}
	for acknowledged.Load() < 4*writerGoroutines*writerRows*2/4 { // midway
		if ctx.Err() != nil {
			t.Fatal("the writers did not store enough rows before the deadline")
		}
		time.Sleep(time.Millisecond)
	}
	for _, p := range all[:2] {
		p.cmd.Process.Kill()
		p.wait()
	}
	for range 2 {
		cmd, wait := start()
		all = append(all, process{cmd, wait})
	}
	for _, p := range all[2:] {
		if err := p.wait(); err != nil {
			t.Errorf("writer: error %v, want none", err)
		}
	}

	var rows, ids int64
	const q = "SELECT COUNT(*), COUNT(DISTINCT tag, id) FROM (" +
		"SELECT 'a' tag, id FROM a_1 UNION ALL SELECT 'a', id FROM a_2 UNION ALL SELECT 'b', id FROM b_1 UNION ALL SELECT 'b', id FROM b_2 UNION ALL SELECT 'c', id FROM c) x"
	if err := plain.QueryRow(q).Scan(&rows, &ids); err != nil {
		t.Fatal(err)
	}
	if rows != ids {
		t.Errorf("%d rows have %d different ids, want equal numbers (%d duplicates)", rows, ids, rows-ids)
	}
	if rows < acknowledged.Load() {
		t.Errorf("%d rows, want at least the %d acknowledged ones", rows, acknowledged.Load())
	}
	t.Logf("%d rows of 6 process lives, %d acknowledged, no duplicate", rows, acknowledged.Load())
}

// count adds the numbers in a writer's complete lines to n.
func count(r io.Reader, n *atomic.Int64) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if v, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
			n.Add(v)
		}
	}
}
