package mysql

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var durable = []string{"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"}

// All processes get the same identity of a server between two of its starts. A server
// that does not flush each commit has another identity after each start.
func TestIdentityChangesWithARestart(t *testing.T) {
	for _, kind := range kinds {
		for _, tt := range []struct {
			name  string
			args  []string
			loses bool
		}{
			{"flushes", durable, false},
			{"flushes, with a binlog", append([]string{"--log-bin=binlog", "--server-id=7"}, durable...), false},
			{"flushes no binlog", append([]string{"--log-bin=binlog", "--server-id=7"}, "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=0"), true},
			{"flushes each second", []string{"--innodb-flush-log-at-trx-commit=0"}, true},
			{"flushes each second, of no cluster", []string{"--innodb-flush-log-at-trx-commit=0", "--loose-wsrep-on=ON", "--binlog-format=ROW"}, true},
			{"leaves flushing to the system", []string{"--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF"}, true},
		} {
			t.Run(string(kind)+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				s := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: tt.args})
				before := identities(t, s, tt.loses)
				if err := s.Kill9(); err != nil {
					t.Fatal(err)
				}
				if err := s.Restart(); err != nil {
					t.Fatal(err)
				}
				if after := identities(t, s, tt.loses); (after != before) != tt.loses {
					t.Errorf("%q before a restart, %q after it, want them to differ: %v", before, after, tt.loses)
				}
			})
		}
	}
}

// identities returns the identity of a server, which 64 processes read at several times.
func identities(t *testing.T, s *mysqltest.Server, warns bool) string {
	seen := make(map[string]bool)
	var (
		mu sync.Mutex
		wg sync.WaitGroup
	)
	for i := range 64 {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 40 * time.Millisecond) // over several seconds of the server's clock
			db, err := sql.Open("mysql", s.DSN(""))
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			var log strings.Builder
			src := Open(db, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for range 2 {
				id, err := src.Identity(t.Context())
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
			if warned := strings.Count(log.String(), "may lose its last commits"); warned > 1 || warned == 1 != warns {
				t.Errorf("warned %d times: %s, want warned at most 1 and warned = 1 = %v", warned, &log, warns)
			}
		})
	}
	wg.Wait()
	for id := range seen {
		if len(seen) == 1 && id != "" {
			return id
		}
	}
	t.Fatalf("identities: %v", seen)
	return ""
}

// The identity contains the second of the server's start. It is read after this second, so that the server cannot be
// restarted within it. It also distinguishes a server with a clock that was set back.
func TestIdentityContainsTheStart(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--innodb-flush-log-at-trx-commit=0"}})
			at := func(ctx context.Context, params string) (string, error) {
				return Open(openPool(t, s.DSN(""), params), Config{Logger: slog.New(slog.DiscardHandler)}).Identity(ctx)
			}
			want, err := at(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			_, text, _ := strings.Cut(want, " started at ")
			start, err := strconv.ParseInt(text, 10, 64)
			if err != nil || time.Since(time.Unix(start, 0)).Abs() > time.Hour {
				t.Fatalf("%q: ParseInt(text, 10, 64) = %v, want time.Since(time.Unix(start, 0)).Abs() at most 1h and no error", want, err)
			}
			for _, uptime := range []int64{1, 86_400, -3600} {
				if got, err := at(t.Context(), fmt.Sprintf("timestamp=%d", start+uptime)); got != want || err != nil {
					t.Errorf("%d s after the start: %q, %v; want %q", uptime, got, err, want)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if got, err := at(ctx, fmt.Sprintf("timestamp=%d", start)); err == nil {
				t.Errorf("in the second of the start: %q, want an error", got)
			}
			if err := execute(s, "SET GLOBAL innodb_flush_log_at_trx_commit = 1"); err != nil {
				t.Fatal(err)
			}
			if got, err := at(t.Context(), ""); got == want || err != nil {
				t.Errorf("once commits are flushed: %q, %v, want got other than %v and no error", got, err, want)
			}
		})
	}
}

var kills = flag.Int("kills", 2, "how often TestKilledAfterATake kills each server")

// The server is killed right after a worker id was taken. The process that took it continues.
// New processes issue none of its times, even if the take was
// lost because commits are not flushed.
func TestKilledAfterATake(t *testing.T) {
	for _, kind := range kinds {
		for _, flush := range []string{"0", "1", "2"} {
			t.Run(string(kind)+" flush "+flush, func(t *testing.T) {
				t.Parallel()
				s := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--innodb-flush-log-at-trx-commit=" + flush, "--sync-binlog=1"}})
				if err := execute(s, "CREATE DATABASE leases"); err != nil {
					t.Fatal(err)
				}
				ids := 0
				for i := range *kills {
					ids += killedAfterATake(t, s, time.Duration(i)*100*time.Millisecond/time.Duration(*kills))
				}
				t.Logf("%d kills, %d different ids", *kills, ids)
			})
		}
	}
}

// killedAfterATake returns how many ids it saw.
func killedAfterATake(t *testing.T, s *mysqltest.Server, after time.Duration) int {
	db, err := sql.Open("mysql", s.DSN("leases"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	layout := snowflake.Layout{Time: 41, Worker: 1, Sequence: 10, Epoch: snowflake.Leaf.Epoch} // two worker ids: both meet
	process := func(fresh bool) *snowflake.Generator {
		quiet := slog.New(slog.DiscardHandler)
		open := func(context.Context) (worker.Source, error) {
			return Open(db, Config{Create: true, Logger: quiet}), nil
		}
		g, err := snowflake.New(layout, open, worker.Config{NewRegistry: fresh, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if err := execute(s, "DROP TABLE IF EXISTS leases.leaf_worker"); err != nil {
		t.Fatal(err)
	}
	before := process(true) // a process that returns its worker id right before
	if _, err := before.Next(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	before.Close()
	time.Sleep(1500 * time.Millisecond) // until all this is flushed
	owner := process(false)
	defer owner.Close()
	ids := make(map[int64]bool)
	issue := func(ctx context.Context, g *snowflake.Generator) error {
		first, err := g.Next(ctx, 1)
		if err != nil {
			return err
		}
		if ids[first] {
			t.Errorf("id %d twice", first)
		}
		ids[first] = true
		return nil
	}
	if err := issue(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := s.Kill9(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	newcomer := process(false)
	defer newcomer.Close()
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		if err := issue(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		issue(soon, newcomer) // usually it waits
		cancel()
	}
	return len(ids)
}
