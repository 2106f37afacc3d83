//go:build unix && storm

package clustertest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var (
	chaosRows = flag.Int("chaos.rows", 20_000, "rows that TestStormChaosClusters inserts into each cluster")
	chaosFor  = flag.Duration("chaos.for", 40*time.Second, "how long TestStormChaosClusters disturbs each cluster; it ends the fault that it has begun")
	chaosSeed = flag.Uint64("chaos.seed", 0, "seed of the schedules of TestStormChaosClusters, 0 for a random one")
)

// maxFirstID is how long after the engine's recovery the first id may come.
const maxFirstID = time.Second

// A target is a cluster with a balancer, as its operator sees it.
type target interface {
	// address returns the address at which programs connect.
	address() string
	// admin returns the DSN of a server that has all rows, for a user with all privileges.
	admin(database string) string
	// faults returns the faults that the cluster is to survive. Each one lasts for about the time hold. When it returns, the
	// cluster is complete again.
	faults(random *rand.Rand) []fault
}

type fault struct {
	name  string
	cause func(t testing.TB, hold time.Duration)
}

// TestStormChaosClusters: programs insert through the driver and through leafsql proxy, with ids of segments and snowflakes, while
// faults of a seeded schedule disturb their cluster. No id is issued twice, no acknowledged row is lost unless the engine loses
// it, and ids come within a second after a plain writer's statements succeed again.
func TestStormChaosClusters(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64N(1_000_000)
	}
	t.Logf("seed %d", seed)
	program := filepath.Join(t.TempDir(), "leafsql")
	if out, err := exec.Command("go", "build", "-C", "../../cmd/leafsql", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var table []string
	for number, kind := range chaosKinds() {
		t.Run(kind.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, uint64(number)))
			r := newChaosRun(t, kind.start(t), program)
			rows := r.finish(kind, r.disturb(random))
			t.Logf("\n%s\n%s", chaosHeader, strings.Join(rows, "\n"))
			table = append(table, rows...)
		})
	}
	t.Logf("seed %d\n\n%s\n%s", seed, chaosHeader, strings.Join(table, "\n"))
}

// A chaosKind is a kind of cluster.
type chaosKind struct {
	name  string
	loses bool // a fail-over loses acknowledged commits by design
	start func(t *testing.T) target
}

func chaosKinds() []chaosKind {
	// A killed server keeps the data that it has written, except for half-written pages without the doublewrite buffer.
	durable := []string{"--innodb-doublewrite=1", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"}
	kinds := []chaosKind{
		{"Galera", false, func(t *testing.T) target { return newClusterTarget(t, clustertest.Galera(t, durable...), galeraHealth) }},
		{"Group Replication, multi-primary", false, func(t *testing.T) target {
			return newClusterTarget(t, clustertest.SeparableGroup(t, durable...), groupHealth)
		}},
		{"Group Replication, single-primary", false, func(t *testing.T) target {
			options := append([]string{"--loose-group-replication-enforce-update-everywhere-checks=OFF", "--loose-group-replication-single-primary-mode=ON"}, durable...)
			g := newClusterTarget(t, clustertest.SeparableGroup(t, options...), groupHealth)
			g.singlePrimary = true
			return g
		}},
	}
	for _, kind := range []mysqltest.Kind{mysqltest.MariaDB, mysqltest.MySQL} {
		for _, how := range []replication{async, waiting} {
			kinds = append(kinds, chaosKind{map[mysqltest.Kind]string{mysqltest.MariaDB: "MariaDB", mysqltest.MySQL: "MySQL"}[kind] + ", " + string(how),
				how == async, func(t *testing.T) target { return newPairTarget(t, kind, how, durable) }})
		}
	}
	return kinds
}

// disturb causes faults until the time of the run is over. It draws them like cards: each one comes once before any comes again. It
// returns how often each one came.
func (r *chaosRun) disturb(random *rand.Rand) map[string]int {
	counts := make(map[string]int)
	var cards []fault
	for r.elapsed() < *chaosFor {
		if len(cards) == 0 {
			cards = r.target.faults(random)
			random.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		}
		card := cards[0]
		cards = cards[1:]
		counts[card.name]++
		hold := time.Second + time.Duration(random.Int64N(int64(2*time.Second)))
		r.forgetMoves()
		began := time.Now()
		visited := make(chan struct{})
		go func() {
			defer close(visited)
			time.Sleep(hold / 2)
			r.visit()
		}()
		calm := time.AfterFunc(2*hold+2*time.Second, func() { r.calm.Store(true) })
		card.cause(r, hold)
		calm.Stop()
		r.calm.Store(false)
		took := time.Since(began)
		<-visited
		time.Sleep(time.Second) // for the first ids afterwards
		w := r.endWindow()
		r.Logf("%3.0f s: %s, whole after %.1f s: plain writer away for %v, first ids later by %v; %d rows",
			r.elapsed().Seconds(), card.name, took.Seconds(), w.outage.Round(time.Millisecond), w, r.rows())
	}
	return counts
}

// forgetMoves removes the number of moves from the mark of each row, as if the last move was an hour ago. Fetches wait for 2 s
// before the second move within an hour, and twice as long before each further one. A run has more fail-overs within three minutes
// than a real cluster has within an hour.
func (r *chaosRun) forgetMoves() {
	r.mustExecute("UPDATE ids.leaf_alloc SET description = REGEXP_REPLACE(description, '[0-9]+ [0-9]+$', '0 0') WHERE description LIKE '%leafsql@%'")
}

const chaosHeader = `| cluster | through | rows | ids twice | rows lost | faults | plain writer away for at most | first id after it at most |
| --- | --- | --- | --- | --- | --- | --- | --- |`

// describeFaults returns the faults by kind.
func describeFaults(counts map[string]int) string {
	var texts []string
	for name, n := range counts {
		texts = append(texts, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
