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

// A size has the numbers of a run.
type size struct {
	processes, rows, batch int
	rate                   int // rows per second and process without disturbances
	lease                  time.Duration
}

// pause returns the time from one statement of a writer's goroutine to the next.
func (s size) pause() time.Duration {
	return time.Second * time.Duration(goroutines*s.batch) / time.Duration(s.rate)
}

// A registryRun is a run with one registry, which leases the writers' worker ids.
type registryRun struct {
	*run
	reg   *registry
	table *sql.DB
}

// start starts a registry and the writers.
func start(t *testing.T, name string, s size) *registryRun {
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
	r.hire(s.processes, s.rows, trade{
		life: func(m *member, left int) *exec.Cmd {
			return goProgram(writerEnv, order{
				DSN: fmt.Sprintf("%s%sleafTables=events:id:snowflake&leafSnowflake=%s&leafLease=%v&%s",
					dsn, separator, layout, s.lease, r.reg.params(r.reg.halves[m.number%2])),
				Process: m.number, Life: m.lives, Batch: s.batch, Pause: s.pause(), Rows: left,
			})
		},
		heard: func(_ *member, line string) (int, error) {
			n, err := strconv.Atoi(line)
			if err != nil {
				return 0, errors.New(line)
			}
			return n, nil
		},
	})
	return r
}

// outage kills a node of the registry, which may be the only one, calls meanwhile, and
// starts the node again after the time away.
func (r *registryRun) outage(node int, away time.Duration, meanwhile func()) {
	n := r.reg.nodes[node]
	n.kill()
	r.note("registry killed -9", fmt.Sprintf("node %d, for %v and its boot", node, away))
	meanwhile()
	r.nap(away)
	n.start()
	r.say("the node is back")
}

// setBack restores an older copy of the registry, as documented: two minutes
// after all writers were cut off. All leases have ended by then, so no writer
// issues ids. The nodes of a cluster are started again one by one.
func (r *registryRun) setBack() {
	for _, h := range r.reg.halves {
		h.each((*netfault.Proxy).Down)
	}
	r.note("registry set back to an older copy", "two minutes from now")
	if len(r.reg.nodes) == 1 {
		r.outage(0, 2*time.Minute, r.reg.setBack)
	} else {
		r.nap(2 * time.Minute)
		r.reg.setBack()
		for i := range r.reg.nodes {
			r.outage(i, 0, func() {})
		}
	}
	for _, h := range r.reg.halves {
		h.each(r.up)
	}
	r.say("the older copy is in use")
}

// up ends all disturbances of a proxy.
func (r *registryRun) up(p *netfault.Proxy) {
	p.Heal()
	if err := p.Up(); err != nil {
		r.Error(err)
	}
}

// halfway disturbs the proxies of one half of the writers for the duration d.
func (r *registryRun) halfway(what string, half int, d time.Duration, spoil func(*netfault.Proxy)) {
	r.note(what, fmt.Sprintf("half %d for %v", half, d))
	h := r.reg.halves[half]
	h.each(spoil)
	r.nap(d)
	h.each(r.up)
}

// finish waits until all rows are inserted, queries the database for duplicates, and reports the figures.
func (r *registryRun) finish() {
	r.wait()
	f := r.count()
	r.report(
		figure{"registry", r.reg.name},
		figure{"processes", len(r.crew.members)},
		figure{"rows acknowledged", r.crew.acknowledged()},
		figure{"rows in the table", f.rows},
		figure{"distinct ids", f.distinct},
		figure{"DUPLICATES", f.rows - f.distinct},
		figure{"worker ids used", f.workers},
		figure{"lives × worker ids (the leases that wrote)", f.terms},
		figure{"statements refused, no id to be had", r.crew.refused()},
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
		quick(t)
		return
	}
	for name := range strings.SplitSeq(*full, ",") {
		t.Run(name, func(t *testing.T) { long(t, name) })
	}
}

// quick plays a run for daily use: one crash of the registry, one crash of a
// writer, and one writer stopped for longer than its lease.
func quick(t *testing.T) {
	r := start(t, string(nacostest.V3), size{processes: 4, rows: 5_000, batch: 10, rate: 200, lease: 6 * time.Second})
	r.nap(3 * time.Second)
	var stopped sync.WaitGroup
	stopped.Go(func() { r.stop(9 * time.Second) })
	r.nap(2 * time.Second)
	r.outage(0, 0, r.kill)
	stopped.Wait()
	r.finish()
}

// long plays the run of make chaos. A writer is killed every few seconds, and others
// are stopped for longer than their lease. Meanwhile the registry has one fault
// after another.
func long(t *testing.T, name string) {
	const lease = 30 * time.Second // with shorter leases no documents are put back after a wipe
	r := start(t, name, size{processes: *processes, rows: *rows, batch: 100, rate: 1000, lease: lease})
	var all sync.WaitGroup
	all.Go(func() {
		for r.nap(r.between(2*time.Second, 8*time.Second)) && !r.calm() {
			r.kill()
		}
	})
	for range 3 {
		all.Go(func() {
			for r.nap(r.between(time.Second, 8*time.Second)) && !r.calm() {
				r.stop(r.between(lease+time.Second, 4*lease))
			}
		})
	}
	black := func(p *netfault.Proxy) { p.Drop(netfault.Both) }
	last := len(r.reg.nodes) - 1
	r.nap(20 * time.Second)
	r.outage(0, 5*time.Second, func() {
		if r.reg.older != nil {
			r.reg.older()
		}
	})
	r.nap(15 * time.Second)
	r.halfway("partition, packets lost", 0, 25*time.Second, black)
	r.nap(5 * time.Second)
	r.halfway("partition, answers lost", 1, 15*time.Second, func(p *netfault.Proxy) { p.Drop(netfault.ToClient) })
	r.halfway("connections refused", 0, 8*time.Second, (*netfault.Proxy).Down)
	r.halfway("answers late by 1.5 s", 1, 15*time.Second, func(p *netfault.Proxy) { p.Delay(netfault.ToClient, 1500*time.Millisecond) })
	r.nap(5 * time.Second)
	if r.reg.setBack != nil {
		r.setBack()
	}
	if r.reg.lose != nil {
		r.note("registry "+r.reg.lose(), "with everybody at work")
	}
	for range 3 {
		r.nap(r.between(10*time.Second, 50*time.Second))
		r.reg.wipe()
		r.note("registry wiped", "with everybody at work")
	}
	r.nap(30 * time.Second)
	r.outage(last, 5*time.Second, func() {})
	r.finish()
	all.Wait()
}
