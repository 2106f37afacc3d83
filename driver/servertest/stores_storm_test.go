//go:build storm

package servertest

import (
	"bufio"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// storeKills is how often TestStormStores kills a store.
var storeKills = flag.Int("stores.kills", 30, "how often a store is killed and wiped")

// envStoresWriter makes the test binary a writer of TestStormStores: its DSN.
const envStoresWriter = "LEAFSQL_TEST_STORES_WRITER"

func init() { roles[envStoresWriter] = writeOn }

const (
	storesRows  = 10                    // of an INSERT
	storesPause = 10 * time.Millisecond // behind each: half a range lasts longer than it takes to turn to another store
	storesWarm  = 1000                  // rows until ranges hold a step
)

// writeOn inserts until its standard input ends, and then says how many rows it wrote,
// how many statements waited for ids after the first ones, and how long the longest took.
func writeOn() error {
	db, err := sql.Open(driver.Name, os.Getenv(envStoresWriter))
	if err != nil {
		return err
	}
	defer db.Close()
	stop := make(chan struct{})
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		close(stop)
	}()
	text := "INSERT INTO t (a) VALUES (1)" + strings.Repeat(", (1)", storesRows-1)
	tag := func() (driver.TagStats, error) {
		stats, err := driver.StatsOf(db)
		if err != nil || len(stats.Tags) == 0 {
			return driver.TagStats{}, err
		}
		return stats.Tags[0], nil
	}
	first, longest := int64(0), time.Duration(0)
	for rows := 0; ; rows += storesRows {
		select {
		case <-stop:
			now, err := tag()
			fmt.Println(rows, now.Waits-first, now.Fetches, longest.Microseconds())
			return err
		default:
		}
		began := time.Now()
		if _, err := db.Exec(text); err != nil {
			return err
		}
		switch {
		case rows < storesWarm:
			now, err := tag()
			if err != nil {
				return err
			}
			first = now.Waits
		default:
			longest = max(longest, time.Since(began))
		}
		if rows == storesWarm {
			fmt.Println("ready")
		}
		time.Sleep(storesPause)
	}
}

// TestStormStores: 16 processes insert while one of three MariaDB servers that give them
// ids is killed at a time and comes back empty. No id is there twice, no statement fails,
// and none waits for ids, but for a process' first ones.
func TestStormStores(t *testing.T) {
	const processes = 16
	var servers []*mysqltest.Server
	var dsns []string
	empty := t.TempDir()
	for k := range 3 {
		s := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB})
		if err := s.Shutdown(); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(empty, fmt.Sprint(k)), os.DirFS(s.DataDir())); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
		dsns = append(dsns, s.DSN("leaf"))
		launch(t, s)
	}
	dsn := mysqltest.Database(t)
	plain, _ := openOn(t, dsn, "leafTables=none", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "SELECT 1")
	_, leaf := openOn(t, dsn, "leafTables=t&leafCreate=true&"+storesParam(dsns...))
	mustExec(t, leaf, "INSERT INTO t (a) VALUES (1)")
	leaf.Close()
	whole(t, servers)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type figures struct{ rows, waits, fetches, longest int64 }
	var mu sync.Mutex
	var sum figures
	var writers, ready sync.WaitGroup
	var failed atomic.Bool
	release := make(chan struct{})
	for range processes {
		ready.Add(1)
		writers.Go(func() {
			isReady := sync.OnceFunc(ready.Done)
			defer isReady()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), envStoresWriter+"="+dsn+"?leafTables=t&leafCreate=true&"+storesParam(dsns...))
			cmd.Stderr = os.Stderr
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			go func() {
				<-release
				in.Close()
			}()
			for lines := bufio.NewScanner(out); lines.Scan(); {
				isReady()
				var f figures
				if n, _ := fmt.Sscan(lines.Text(), &f.rows, &f.waits, &f.fetches, &f.longest); n == 4 {
					mu.Lock()
					sum = figures{sum.rows + f.rows, sum.waits + f.waits, sum.fetches + f.fetches, max(sum.longest, f.longest)}
					mu.Unlock()
				}
			}
			if err := cmd.Wait(); err != nil {
				failed.Store(true)
				t.Errorf("a writer: %v", err)
			}
		})
	}
	ready.Wait()
	for k := 0; k < *storeKills && !failed.Load(); k++ {
		s := servers[k%3]
		if err := s.Kill9(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // it is away
		if err := os.RemoveAll(s.DataDir()); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(s.DataDir(), os.DirFS(filepath.Join(empty, fmt.Sprint(k%3)))); err != nil {
			t.Fatal(err)
		}
		launch(t, s)
		whole(t, servers)
	}
	close(release)
	writers.Wait()

	var rows int64
	if err := plain.QueryRow("SELECT COUNT(*) FROM t").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows != sum.rows+1 && !t.Failed() {
		t.Errorf("%d rows, but %d were acknowledged", rows, sum.rows+1)
	}
	if sum.waits > sum.fetches/8 { // none, unless the machine is busy
		t.Errorf("%d statements waited for ids", sum.waits)
	}
	t.Logf("%d kills: %d rows in %d processes, %d ranges, %d waits, no duplicate; the longest INSERT took %v",
		*storeKills, rows, processes, sum.fetches, sum.waits, time.Duration(sum.longest)*time.Microsecond)
}

// launch starts an empty server again and makes the stores' database.
func launch(t *testing.T, s *mysqltest.Server) {
	t.Helper()
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	root, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	mustExec(t, root, "CREATE DATABASE leaf")
}

// whole waits until all stores have the tag's row, as parts of one set.
func whole(t *testing.T, servers []*mysqltest.Server) {
	t.Helper()
	began := time.Now()
	for {
		sets := make(map[string]int)
		for _, s := range servers {
			db, err := sql.Open("mysql", s.DSN("leaf"))
			if err != nil {
				t.Fatal(err)
			}
			var mark string
			db.QueryRow("SELECT description FROM leaf_alloc WHERE biz_tag = 't'").Scan(&mark)
			db.Close()
			_, set, _ := strings.Cut(mark, ", set ")
			sets[set]++
		}
		if len(sets) == 1 && sets[""]+sets["new"] == 0 {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the stores are not whole: %v", sets)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
