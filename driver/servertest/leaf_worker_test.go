package servertest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// envInserter is set to a DSN to make the test binary a process that inserts a row
// for each line it reads, and prints the id.
const envInserter = "LEAFSQL_TEST_INSERTER"

func inserter() error {
	db, err := sql.Open(driver.Name, os.Getenv(envInserter))
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		res, err := db.Exec("INSERT INTO t (a) VALUES (1)")
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	return db.Close()
}

// inserting is a process that was started with envInserter.
type inserting struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startInserter(t *testing.T, dsn string) *inserting {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envInserter+"="+dsn)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &inserting{t, cmd, in, bufio.NewReader(out)}
}

// worker inserts a row and returns the worker id in its key.
func (p *inserting) worker() int {
	p.t.Helper()
	fmt.Fprintln(p.in)
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the process ended with error %v, want a running process", err)
	}
	id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	parts, err := snowflake.Leaf.Decompose(id)
	if err != nil {
		p.t.Fatal(err)
	}
	return int(parts.Worker)
}

func (p *inserting) stop() {
	p.t.Helper()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatal(err)
	}
}

// TestLeafWorkerTableLeasesWorkerIDs: without leafWorker, the worker id of a snowflake table is leased in
// leaf_worker. Two processes have different ids, and a stopped process gets its id again.
func TestLeafWorkerTableLeasesWorkerIDs(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			dsn := server.Database(t)
			const params = "leafTables=t::snowflake&leafCreate=true&leafNewRegistry=true"
			plain, leaf := openOn(t, dsn, params, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			parts, err := snowflake.Leaf.Decompose(insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"))
			if err != nil {
				t.Fatal(err)
			}
			own := int(parts.Worker)
			if stats, err := driver.StatsOf(leaf); err != nil || stats.Worker == nil || stats.Worker.Source != "mysql" {
				t.Errorf("StatsOf().Worker = %+v, error %v; want source mysql", stats.Worker, err)
			}
			var held int
			if err := plain.QueryRow("SELECT worker_id FROM leaf_worker WHERE worker_id >= 0 AND NOT free").Scan(&held); err != nil || held != own {
				t.Errorf("worker id in leaf_worker = %d, error %v; want %d", held, err, own)
			}
			one, two := startInserter(t, dsn+"?"+params), startInserter(t, dsn+"?"+params)
			a, b := one.worker(), two.worker()
			if a == b || a == own || b == own {
				t.Errorf("worker ids of three processes = %d, %d and %d, want different ones", own, a, b)
			}
			one.stop()
			again := startInserter(t, dsn+"?leafTables=t::snowflake")
			if c := again.worker(); c != a {
				t.Errorf("worker id after a restart = %d, want %d", c, a)
			}
			if b != two.worker() {
				t.Errorf("worker id of the other process is not %d any more, want no change", b)
			}
			again.stop()
			two.stop()
			var n int
			if err := plain.QueryRow("SELECT COUNT(*) FROM leaf_worker WHERE NOT free").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d worker ids are in use, error %v; want 1", n, err)
			}
		})
	}
}

// TestPoolsShareLeafWorkerLease: pools on one database share the lease, whatever their other settings. The
// last one releases it on a pool that is still open.
func TestPoolsShareLeafWorkerLease(t *testing.T) {
	dsn := mysqltest.Database(t)
	const params = "leafTables=t::snowflake&leafCreate=true&leafNewRegistry=true"
	plain, one := openOn(t, dsn, params, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	_, two := openOn(t, dsn, params+"&leafWorker=mysql()")
	for _, db := range []*sql.DB{one, two} {
		insertID(t, db, "INSERT INTO t (a) VALUES (1)")
	}
	held := func(want int) {
		t.Helper()
		var n int
		if err := plain.QueryRow("SELECT COUNT(*) FROM leaf_worker WHERE NOT free").Scan(&n); err != nil || n != 1+want {
			t.Errorf("%d worker ids are in use, want %d; error %v", n-1, want, err)
		}
	}
	plain.Exec("UPDATE leaf_worker SET free = FALSE WHERE worker_id = -1") // held counts this row
	held(1)
	one.Close()
	insertID(t, two, "INSERT INTO t (a) VALUES (1)")
	held(1)
	two.Close()
	held(0)
}

// TestMissingLeafWorkerErrorHasHint: without the table and without leafCreate, the error of each statement has a hint.
func TestMissingLeafWorkerErrorHasHint(t *testing.T) {
	_, leaf := open(t, "leafTables=t::snowflake", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	_, err := leaf.Exec("INSERT INTO t (a) VALUES (1)")
	if err == nil || !strings.Contains(err.Error(), "add leafCreate=true") {
		t.Errorf("error without leaf_worker = %v, want the hint add leafCreate=true", err)
	}
	for params, want := range map[string]string{
		"leafTables=t::snowflake&leafWorker=mysql(h:3306)":               "takes no address",
		"leafTables=t::snowflake&leafWorker=mysql()&leafMysqlUsername=x": "takes no address and no parameters",
	} {
		_, err := sql.Open(driver.Name, "u@tcp(127.0.0.1:1)/d?"+params)
		if _, ok := errors.AsType[*driver.ConfigError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want a ConfigError with %q", params, err, want)
		}
	}
}

type noSegments struct{}

func (noSegments) Fetch(context.Context, segment.Request) (segment.Range, error) {
	return segment.Range{}, errors.New("no segments")
}

// TestLeafWorkerIsNextToLeafAlloc: with a SegmentStore, the leases are in the application's database. With
// leafAllocTable in another database, they are next to it.
func TestLeafWorkerIsNextToLeafAlloc(t *testing.T) {
	dsn := mysqltest.Database(t)
	cfg, err := driver.ParseDSN(dsn + "?leafTables=t::snowflake&leafCreate=true&leafNewRegistry=true")
	if err != nil {
		t.Fatal(err)
	}
	other, err := gomysql.ParseDSN(mysqltest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := openOn(t, dsn, "leafTables=none", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	for _, change := range []struct {
		where string
		do    func(*driver.Config)
	}{
		{"", func(cfg *driver.Config) { cfg.SegmentStore = noSegments{} }},
		{other.DBName + ".", func(cfg *driver.Config) { cfg.AllocTable = other.DBName + ".alloc" }},
	} {
		cfg := cfg.Clone()
		change.do(cfg)
		c, err := driver.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(c)
		insertID(t, db, "INSERT INTO t (a) VALUES (1)")
		s := c.Worker()
		var nonces int
		if err := plain.QueryRow("SELECT COUNT(*) FROM "+change.where+"leaf_worker WHERE worker_id = ? AND NOT free", s.Worker).Scan(&nonces); err != nil || nonces != 1 || s.Phase != "holding" {
			t.Errorf("%+v: %d rows in leaf_worker, error %v; want 1 and phase holding", s, nonces, err)
		}
		if !strings.Contains(s.Registry, "leaf_worker") || strings.Contains(s.Registry, "root") {
			t.Errorf("Registry = %q, want leaf_worker without the user", s.Registry)
		}
		db.Close()
	}
}
