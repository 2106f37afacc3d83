//go:build storm

package chaos

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	if os.Getenv(writerEnv) == "" {
		os.Exit(m.Run())
	}
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A size says how much of everything there is in a run.
type size struct {
	processes, rows, batch int
	rate                   int // rows a second and process, where nothing is wrong
	lease                  time.Duration
}

// pause is how long a goroutine of a writer takes for a statement.
func (s size) pause() time.Duration {
	return time.Second * time.Duration(goroutines*s.batch) / time.Duration(s.rate)
}

// A run is one registry, its writers, and what was done to them.
type run struct {
	*testing.T
	size
	ctx   context.Context
	began time.Time
	reg   *registry
	crew  *crew
	table *sql.DB

	mu     sync.Mutex
	random *rand.Rand
	counts map[string]int
}

func start(t *testing.T, name string, s size) *run {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	t.Cleanup(cancel)
	seed := uint64(time.Now().UnixNano())
	t.Logf("registry %s, %d writers of %d rows, leases of %v, layout %s, seed %d", name, s.processes, s.rows, s.lease, layout, seed)
	dsn := mysqltest.Database(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE TABLE events (id BIGINT NOT NULL, process INT NOT NULL, life INT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	r := &run{
		T: t, size: s, ctx: ctx, reg: startRegistry(t, name, s.lease), table: db,
		random: rand.New(rand.NewPCG(seed, 0)), counts: make(map[string]int),
	}
	r.began = time.Now()
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	r.crew = hire(ctx, t, s, func(writer int) string {
		return fmt.Sprintf("%s%sleafTables=events:id:snowflake&leafSnowflake=%s&leafLease=%v&%s",
			dsn, separator, layout, s.lease, r.reg.params(r.reg.halves[writer%2]))
	})
	return r
}

// note says what happens, and counts it.
func (r *run) note(what, detail string) {
	r.mu.Lock()
	r.counts[what]++
	r.mu.Unlock()
	r.say(what + ": " + detail)
}

func (r *run) say(what string) {
	r.Logf("%6.1f s %8d rows  %s", time.Since(r.began).Seconds(), r.crew.acknowledged(), what)
}

// nap waits, and reports whether the run goes on.
func (r *run) nap(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}

// calm reports whether so few rows are left that their writers are let alone.
func (r *run) calm() bool { return r.crew.acknowledged() > int64(r.processes*r.rows*9/10) }

func (r *run) between(lo, hi time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return lo + time.Duration(r.random.Int64N(int64(hi-lo)))
}

// victim is any writer that has not finished and is not stopped already. It
// is to be let go afterwards; nil if there is none.
func (r *run) victim() *member {
	r.mu.Lock()
	order := r.random.Perm(len(r.crew.members))
	r.mu.Unlock()
	for _, i := range order {
		m := r.crew.members[i]
		if m.acknowledged.Load() < int64(r.rows) && m.caught.CompareAndSwap(false, true) {
			return m
		}
	}
	return nil
}

// kill ends one writer as a crash does. It is started again at once.
func (r *run) kill() {
	m := r.victim()
	if m == nil {
		return
	}
	defer m.caught.Store(false)
	if m.signal(syscall.SIGKILL) {
		r.note("writer killed -9", fmt.Sprint(m.number))
	}
}

// stop holds one writer up, as a machine that swaps or is moved does.
func (r *run) stop(d time.Duration) {
	m := r.victim()
	if m == nil {
		return
	}
	defer m.caught.Store(false)
	if !m.signal(syscall.SIGSTOP) {
		return
	}
	r.note("writer stopped", fmt.Sprintf("%d for %v", m.number, d.Round(time.Second)))
	r.nap(d)
	m.signal(syscall.SIGCONT)
}

// outage kills a node of the registry, which may be the only one, and starts
// it again after a while and after what is done meanwhile.
func (r *run) outage(node int, away time.Duration, meanwhile func()) {
	n := r.reg.nodes[node]
	n.kill()
	r.note("registry killed -9", fmt.Sprintf("node %d, for %v and its boot", node, away))
	meanwhile()
	r.nap(away)
	n.start()
	r.say("the node is back")
}

// setBack brings an older copy of the registry back, as it is documented: two
// minutes after everybody was cut off. No bound of before is good any more
// then, so that no writer is at work. The nodes of a cluster are started
// again one by one.
func (r *run) setBack() {
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

func (r *run) up(p *netfault.Proxy) {
	p.Heal()
	if err := p.Up(); err != nil {
		r.Error(err)
	}
}

// halfway does something to the way of one half of the writers for a while.
func (r *run) halfway(what string, half int, d time.Duration, spoil func(*netfault.Proxy)) {
	r.note(what, fmt.Sprintf("half %d for %v", half, d))
	h := r.reg.halves[half]
	h.each(spoil)
	r.nap(d)
	h.each(r.up)
}

// finish waits until all rows are in, and asks the database for duplicates.
func (r *run) finish() {
	done := make(chan struct{})
	go func() { r.crew.wg.Wait(); close(done) }()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-time.After(15 * time.Second):
			r.say("")
		}
	}
	if r.ctx.Err() != nil {
		for _, m := range r.crew.members {
			r.Errorf("writer %d has %d rows, last refusal: %s", m.number, m.acknowledged.Load(), m.lastRefusal())
		}
	}
	r.report(r.count())
}

// figures are what the database says.
type figures struct{ rows, distinct, invalid, workers, terms int64 }

func (r *run) count() (f figures) {
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

// report prints the table of figures.
func (r *run) report(f figures) {
	var b strings.Builder
	line := func(what string, value any) { fmt.Fprintf(&b, "\n   %-42s %12v", what, value) }
	line("registry", r.reg.name)
	line("processes", r.processes)
	line("rows acknowledged", r.crew.acknowledged())
	line("rows in the table", f.rows)
	line("distinct ids", f.distinct)
	line("DUPLICATES", f.rows-f.distinct)
	line("worker ids used", f.workers)
	line("lives × worker ids (the leases that wrote)", f.terms)
	line("statements refused, no id to be had", r.crew.refused())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		line(what, r.counts[what])
	}
	line("time taken", time.Since(r.began).Round(time.Second))
	r.Log(b.String())
}

// layout has few worker ids, and otherwise Leaf's bits.
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

// quick is short enough for every day: one crash of the registry, one of a
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

// long is what make chaos runs. A writer is killed every few seconds and
// others are stopped for longer than their lease, all the while these things
// happen to the registry one after another.
func long(t *testing.T, name string) {
	const lease = 30 * time.Second // with shorter ones nothing is put back after a wipe
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
