//go:build storm

package chaos

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/nacostest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

var (
	full      = flag.String("chaos.servers", "", "registries for the long run, separated by commas: lines of Nacos such as 2.3.2, cluster (of Nacos), mysql, redis, zookeeper, etcd; none: the quick one on 3.1.0")
	processes = flag.Int("chaos.processes", 16, "writers of the long run")
	rows      = flag.Int("chaos.rows", 200_000, "rows that each of them inserts")
)

func TestMain(m *testing.M) {
	for env, write := range map[string]func() error{writerEnv: write, programEnv: writeOrders} {
		if os.Getenv(env) == "" {
			continue
		}
		if err := write(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A runSize has the numbers of a run.
type runSize struct {
	processes, rows, batch int
	rate                   int // rows per second and process without disturbances
	lease                  time.Duration
}

// statementPause returns the time from one statement of a writer's goroutine to the next.
func (s runSize) statementPause() time.Duration {
	return time.Second * time.Duration(goroutines*s.batch) / time.Duration(s.rate)
}

// A registryRun is a run with one registry, which leases the writers' worker ids.
type registryRun struct {
	*run
	reg   *registry
	table *sql.DB
}

// startRun starts a registry and the writers.
func startRun(t *testing.T, name string, s runSize) *registryRun {
	r := &registryRun{run: newRun(t, fmt.Sprintf("registry %s, %d writers of %d rows, leases of %v, layout %s", name, s.processes, s.rows, s.lease, layout))}
	dsn := mysqltest.Database(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE TABLE events (id BIGINT NOT NULL, process INT NOT NULL, life INT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	r.table, r.reg = db, startRegistry(t, name, s.lease)
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	r.startCrew(s.processes, s.rows, writerFuncs{
		startLife: func(m *member, left int) *exec.Cmd {
			return goProgram(writerEnv, order{
				DSN: fmt.Sprintf("%s%sleafTables=events:id:snowflake&leafSnowflake=%s&leafLease=%v&%s",
					dsn, separator, layout, s.lease, r.reg.params(r.reg.halves[m.number%2])),
				Process: m.number, Life: m.lives, Batch: s.batch, Pause: s.statementPause(), Rows: left,
			})
		},
		readLine: func(_ *member, line string) (int, error) {
			n, err := strconv.Atoi(line)
			if err != nil {
				return 0, errors.New(line)
			}
			return n, nil
		},
	})
	return r
}

// interruptNode kills a node of the registry, which may be the only one, calls meanwhile, and
// starts the node again after the time away.
func (r *registryRun) interruptNode(node int, away time.Duration, meanwhile func()) {
	n := r.reg.nodes[node]
	n.kill()
	r.countDisturbance("registry killed -9", fmt.Sprintf("node %d, for %v and its boot", node, away))
	meanwhile()
	r.sleep(away)
	n.start()
	r.logEvent("the node is back")
}

// restoreOlderState restores an older copy of the registry, as documented: two minutes
// after all writers were cut off. All leases have ended by then, so no writer
// issues ids. The nodes of a cluster are started again one by one.
func (r *registryRun) restoreOlderState() {
	for _, h := range r.reg.halves {
		h.each((*netfault.Proxy).Down)
	}
	r.countDisturbance("registry set back to an older copy", "two minutes from now")
	if len(r.reg.nodes) == 1 {
		r.interruptNode(0, 2*time.Minute, r.reg.restoreState)
	} else {
		r.sleep(2 * time.Minute)
		r.reg.restoreState()
		for i := range r.reg.nodes {
			r.interruptNode(i, 0, func() {})
		}
	}
	for _, h := range r.reg.halves {
		h.each(r.healProxy)
	}
	r.logEvent("the older copy is in use")
}

// healProxy ends all disturbances of a proxy.
func (r *registryRun) healProxy(p *netfault.Proxy) {
	p.Heal()
	if err := p.Up(); err != nil {
		r.Error(err)
	}
}

// disturbHalf disturbs the proxies of one half of the writers for the duration d.
func (r *registryRun) disturbHalf(what string, half int, d time.Duration, spoil func(*netfault.Proxy)) {
	r.countDisturbance(what, fmt.Sprintf("half %d for %v", half, d))
	h := r.reg.halves[half]
	h.each(spoil)
	r.sleep(d)
	h.each(r.healProxy)
}

// finish waits until all rows are inserted, queries the database for duplicates, and reports the figures.
func (r *registryRun) finish() {
	r.wait()
	f := r.count()
	r.report(
		reportLine{"registry", r.reg.name},
		reportLine{"processes", len(r.crew.members)},
		reportLine{"rows acknowledged", r.crew.acknowledged()},
		reportLine{"rows in the table", f.rows},
		reportLine{"distinct ids", f.distinct},
		reportLine{"DUPLICATES", f.rows - f.distinct},
		reportLine{"worker ids used", f.workers},
		reportLine{"lives × worker ids (the leases that wrote)", f.terms},
		reportLine{"statements refused, no id to be had", r.crew.refused()},
	)
}

// figures has the counts of the stored rows.
type figures struct{ rows, distinct, invalid, workers, terms int64 }

func (r *registryRun) count() (f figures) {
	err := r.table.QueryRow(`SELECT COUNT(*), COUNT(DISTINCT id), COUNT(IF(id < 1, 1, NULL)),
		COUNT(DISTINCT id >> 12 & 31), COUNT(DISTINCT id >> 12 & 31, process, life) FROM events`).
		Scan(&f.rows, &f.distinct, &f.invalid, &f.workers, &f.terms)
	if err != nil {
		r.Fatal(err)
	}
	if d := f.rows - f.distinct; d != 0 || f.invalid != 0 {
		r.Errorf("%d duplicates, %d ids below 1", d, f.invalid)
	}
	if got := r.crew.acknowledged(); f.rows < got {
		r.Errorf("%d rows are there, %d were acknowledged", f.rows, got)
	}
	return f
}

// layout is Leaf's layout with fewer worker ids.
const layout = "41-5-12@1288834974657"

func TestStormChaos(t *testing.T) {
	if *full == "" {
		runShort(t)
		return
	}
	for name := range strings.SplitSeq(*full, ",") {
		t.Run(name, func(t *testing.T) { runLong(t, name) })
	}
}

// runShort plays a run for daily use: one crash of the registry, one crash of a
// writer, and one writer stopped for longer than its lease.
func runShort(t *testing.T) {
	r := startRun(t, string(nacostest.V3), runSize{processes: 4, rows: 5_000, batch: 10, rate: 200, lease: 6 * time.Second})
	r.sleep(3 * time.Second)
	var stopped sync.WaitGroup
	stopped.Go(func() { r.pauseWriter(9 * time.Second) })
	r.sleep(2 * time.Second)
	r.interruptNode(0, 0, r.killWriter)
	stopped.Wait()
	r.finish()
}

// runLong plays the run of make chaos. A writer is killed every few seconds, and others
// are stopped for longer than their lease. Meanwhile the registry has one fault
// after another.
func runLong(t *testing.T, name string) {
	const lease = 30 * time.Second // with shorter leases no documents are put back after a wipe
	r := startRun(t, name, runSize{processes: *processes, rows: *rows, batch: 100, rate: 1000, lease: lease})
	var all sync.WaitGroup
	all.Go(func() {
		for r.sleep(r.randomDuration(2*time.Second, 8*time.Second)) && !r.isNearlyDone() {
			r.killWriter()
		}
	})
	for range 3 {
		all.Go(func() {
			for r.sleep(r.randomDuration(time.Second, 8*time.Second)) && !r.isNearlyDone() {
				r.pauseWriter(r.randomDuration(lease+time.Second, 4*lease))
			}
		})
	}
	black := func(p *netfault.Proxy) { p.Drop(netfault.Both) }
	last := len(r.reg.nodes) - 1
	r.sleep(20 * time.Second)
	r.interruptNode(0, 5*time.Second, func() {
		if r.reg.copyState != nil {
			r.reg.copyState()
		}
	})
	r.sleep(15 * time.Second)
	r.disturbHalf("partition, packets lost", 0, 25*time.Second, black)
	r.sleep(5 * time.Second)
	r.disturbHalf("partition, answers lost", 1, 15*time.Second, func(p *netfault.Proxy) { p.Drop(netfault.ToClient) })
	r.disturbHalf("connections refused", 0, 8*time.Second, (*netfault.Proxy).Down)
	r.disturbHalf("answers late by 1.5 s", 1, 15*time.Second, func(p *netfault.Proxy) { p.Delay(netfault.ToClient, 1500*time.Millisecond) })
	r.sleep(5 * time.Second)
	if r.reg.restoreState != nil {
		r.restoreOlderState()
	}
	if r.reg.lose != nil {
		r.countDisturbance("registry "+r.reg.lose(), "with everybody at work")
	}
	for range 3 {
		r.sleep(r.randomDuration(10*time.Second, 50*time.Second))
		r.reg.wipe()
		r.countDisturbance("registry wiped", "with everybody at work")
	}
	r.sleep(30 * time.Second)
	r.interruptNode(last, 5*time.Second, func() {})
	r.finish()
	all.Wait()
}
