package docs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const haPage = "high-availability.md"

// TestRunBook follows the run-book on a pair of servers with the page's options, balancer and hook, while programs
// write. The primary is killed twice: first after semi-synchronous replication turned asynchronous, with ranges that
// the replica lacks, then with the hook. At last both servers accept writes. No id is issued twice, and all
// acknowledged rows exist at the end.
func TestRunBook(t *testing.T) {
	kinds := mysqltest.Kinds()
	if testing.Short() {
		kinds = kinds[:1]
	}
	buildToolsFolder(t)
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) { newRunBook(t, kind).followPage() })
	}
}

// A runBook is one run of the page.
type runBook struct {
	t       *testing.T
	kind    mysqltest.Kind
	hosts   map[string]*mysqltest.Server // db0 and db1, which swap roles in each fail-over
	front   string                       // the address of the balancer
	dir     string                       // for programs of the page, and the clients mysql and mysqldump
	exports string
	servers int

	orders shopOrders
	events idcheck.Collector
	jumps  atomic.Int64 // moves of the row, as the programs count them
	apps   int
	ctx    context.Context
	end    context.CancelFunc
	run    sync.WaitGroup
}

func newRunBook(t *testing.T, kind mysqltest.Kind) *runBook {
	t.Helper()
	r := &runBook{t: t, kind: kind, hosts: map[string]*mysqltest.Server{}, dir: t.TempDir()}
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	r.front = fmt.Sprintf("127.0.0.1:%d", port)
	r.ctx, r.end = context.WithCancel(t.Context())
	t.Cleanup(func() {
		r.end()
		r.run.Wait()
	})
	for _, name := range []string{"db0", "db1"} {
		r.hosts[name] = mysqltest.Run(t, r.config())
	}
	for name, program := range map[string]string{"takes-writes": r.block("sh takes-writes"), "promoted": r.block("sh promoted")} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(program), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *runBook) followPage() {
	t := r.t
	r.setUp()
	for range 3 {
		r.startWriter(r.front)
	}
	r.orders.awaitCount(t, 300)
	r.testAsynchronous()
	r.waitFor("db0", fmt.Sprintf("SELECT max_id > %d FROM leaf_alloc WHERE biz_tag = 'orders'", r.row("db1")+1000)) // ranges that the replica lacks
	const freeWorker = "SELECT registry FROM leaf_worker WHERE worker_id = (SELECT MAX(worker_id) FROM leaf_worker WHERE free = 1)"
	registry := r.value("db1", freeWorker)
	r.kill("db0")
	r.runBlocks("During")
	promoted := time.Now()
	r.startWriter(r.front)
	r.startWriter(r.front)
	r.orders.awaitAbove(t, 1<<36)
	t.Logf("ids from above the margin %v after the promotion", time.Since(promoted).Round(time.Millisecond))
	r.restartOldPrimary()
	if now := r.value("db1", freeWorker); now == registry {
		t.Errorf("registry of worker ids after leafsql init = %q as before, want another one", now)
	}

	r.hosts["db0"], r.hosts["db1"] = r.hosts["db1"], r.hosts["db0"]
	r.waitFor("db1", fmt.Sprintf("SELECT max_id >= %d FROM leaf_alloc WHERE biz_tag = 'orders'", r.row("db0"))) // it has the mark
	r.orders.awaitCount(t, r.orders.count()+100)
	r.kill("db0")
	before := r.row("db1")
	r.runShell("promoted " + strings.Replace(r.hosts["db1"].Addr(), ":", " ", 1) + "\n")
	if after := r.row("db1"); after < before+1_000_000_000 {
		t.Errorf("max_id after the hook = %d, want at least %d", after, before+1_000_000_000)
	}
	r.orders.awaitCount(t, r.orders.count()+100)
	r.testTwoPrimaries()
}

// setUp sets the pair up. The tables are those of a program with leafsql 0.1: its rows have no mark.
func (r *runBook) setUp() {
	t := r.t
	t.Helper()
	r.runBlocks("Before")
	status := map[mysqltest.Kind]string{mysqltest.MariaDB: "Rpl_semi_sync_master_status", mysqltest.MySQL: "Rpl_semi_sync_source_status"}[r.kind]
	if got := r.status("db0", status); got != "ON" {
		t.Errorf("%s on the primary = %s, want ON", status, got)
	}
}

// testAsynchronous stops the replica. With the page's timeout a commit waits for it. With a short timeout the
// primary turns asynchronous, and the replica lacks every later commit.
func (r *runBook) testAsynchronous() {
	t := r.t
	t.Helper()
	runSQL(t, r.hosts, "-- on db1\nSTOP REPLICA IO_THREAD;\n")
	stopped := r.orders.count()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := r.open("db0").ExecContext(ctx, "UPDATE leaf_alloc SET step = 10"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit without a replica: %v, want it to wait", err)
	}
	t.Logf("%d INSERTs ended without a replica, with a long timeout", r.orders.count()-stopped)
	side := map[mysqltest.Kind]string{mysqltest.MariaDB: "master", mysqltest.MySQL: "source"}[r.kind]
	runSQL(t, r.hosts, "-- on db0\nSET GLOBAL rpl_semi_sync_"+side+"_timeout = 100;\n")
	runSQL(t, r.hosts, "-- on db1\nSTART REPLICA IO_THREAD;\n")
	r.orders.awaitCount(t, r.orders.count()+10) // the waiting commits end
	runSQL(t, r.hosts, "-- on db1\nSTOP REPLICA IO_THREAD;\n")
	r.orders.awaitCount(t, r.orders.count()+100)
	if got := r.status("db0", "Rpl_semi_sync_"+side+"_status"); got != "OFF" {
		t.Errorf("after the timeout Rpl_semi_sync_%s_status is %s, want OFF", side, got)
	}
}

// restartOldPrimary restarts the old primary, which accepts no writes, and follows the page from
// there.
func (r *runBook) restartOldPrimary() {
	t := r.t
	t.Helper()
	if err := r.hosts["db0"].Launch(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", "app:secret@tcp("+r.hosts["db0"].Addr()+")/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var refused *mysql.MySQLError
	if _, err := db.Exec(plainInsert); !errors.As(err, &refused) || refused.Number != 1290 {
		t.Errorf("an INSERT into the old primary: %v, want error 1290", err)
	}
	r.runBlocks("After")
}

// testTwoPrimaries makes both servers accept writes, and follows the page from there.
func (r *runBook) testTwoPrimaries() {
	t := r.t
	t.Helper()
	if err := r.hosts["db0"].Launch(); err != nil {
		t.Fatal(err)
	}
	runSQL(t, r.hosts, "-- on db0\nSET GLOBAL read_only = OFF;\n") // by mistake
	r.startWriter(r.hosts["db0"].Addr())
	r.startWriter(r.hosts["db1"].Addr())
	for _, name := range []string{"db0", "db1"} {
		r.waitFor(name, "SELECT COUNT(*) > 50 FROM orders WHERE customer = '"+r.hosts[name].Addr()+"'")
	}
	runSQL(t, r.hosts, "-- on db0\nINSERT INTO orders VALUES (-7, 'of db0', 1);\n")
	runSQL(t, r.hosts, "-- on db1\nINSERT INTO orders VALUES (-7, 'of db1', 1);\n")
	var output string
	for _, b := range readPage(t, haPage).blocks {
		if b.sub != "Split brain: two servers accepted writes" {
			continue
		}
		t.Logf("%s:%d", haPage, b.line)
		if b.lang == "sql" {
			r.runSQL(b.code)
			r.end()
			r.run.Wait()
		} else {
			output = r.runShell(b.code)
		}
	}
	if output != "-7\n" {
		t.Errorf("the rows that differ are\n%s, want -7", output)
	}
	for _, b := range readPage(t, haPage).blocks {
		if b.sub == "After" && b.lang == "sh" {
			r.runShell(b.code)
		}
	}
	r.verify()
}

// verify reports acknowledged rows that the last primary lacks, and ids that were issued
// twice.
func (r *runBook) verify() {
	t := r.t
	t.Helper()
	rows, err := r.open("db1").Query("SELECT id, customer FROM orders")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	stored := map[int64]string{}
	for rows.Next() {
		var id int64
		var customer string
		if err := rows.Scan(&id, &customer); err != nil {
			t.Fatal(err)
		}
		stored[id] = customer
	}
	lost, twice := 0, r.orders.twice
	for id := range r.orders.ids {
		if stored[id] == "" {
			lost++
		}
	}
	t.Logf("%d rows, %d acknowledged, %d lost, %d ids twice; %d errors: %v", len(stored), len(r.orders.ids), lost, len(twice), r.orders.failures, r.orders.failed)
	if lost > 0 || len(twice) > 0 {
		t.Errorf("%d acknowledged rows lost, ids issued twice: %v, want none", lost, twice)
	}
	for text := range r.orders.failed {
		if strings.Contains(text, "1062") {
			t.Errorf("an INSERT failed with %s, want no duplicate key", text)
		}
	}
	if n := r.jumps.Load(); n < 2 {
		t.Errorf("the programs count %d moves by a margin, want one for each fail-over", n)
	}
	r.events.Verify(t)
}

func (r *runBook) kill(name string) {
	r.t.Helper()
	if err := r.hosts[name].Kill9(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *runBook) open(name string) *sql.DB {
	r.t.Helper()
	db, err := sql.Open("mysql", r.hosts[name].DSN("shop"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { db.Close() })
	return db
}

func (r *runBook) value(name, query string) (value string) {
	r.t.Helper()
	if err := r.open(name).QueryRow(query).Scan(&value); err != nil {
		r.t.Fatalf("on %s: %s: %v", name, query, err)
	}
	return value
}

func (r *runBook) row(name string) (at int64) {
	r.t.Helper()
	fmt.Sscan(r.value(name, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'"), &at)
	return at
}

func (r *runBook) status(name, variable string) (value string) {
	r.t.Helper()
	if err := r.open(name).QueryRow("SHOW GLOBAL STATUS LIKE '"+variable+"'").Scan(new(string), &value); err != nil {
		r.t.Fatal(err)
	}
	return value
}

// waitFor waits until a condition is true on a server, which may not have the tables yet.
func (r *runBook) waitFor(name, condition string) {
	r.t.Helper()
	db := r.open(name)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var value string
		err := db.QueryRow(condition).Scan(&value)
		if err == nil && value == "1" {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("on %s after a minute: %s is %q, %v; errors of programs: %v", name, condition, value, err, r.orders.failed)
		}
	}
}
