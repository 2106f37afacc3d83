package worker_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
)

// wildClocks is for clocks that are not synchronized. nearClocks is within the limit of the quarantine,
// less the life of a message. tightClocks is the precision of NTP.
const (
	wildClocks  = 400_000 / scale
	nearClocks  = 15_000 / scale
	tightClocks = 1_000 / scale
)

// combination is a set of faults of a registry and its environment.
type combination struct {
	name string
	faults
}

// safeCombinations lists the combinations in which no schedule may find a duplicate.
var safeCombinations = []combination{
	{"documents exist", faults{clockError: wildClocks, clocksJump: true}},
	{"documents exist, versions count", faults{clockError: wildClocks, clocksJump: true, countsVersions: true}},
	{"documents exist, held slots are taken over at once", faults{clockError: wildClocks, clocksJump: true, takesOverAtOnce: true}},
	{"documents exist, another server answers that had all of them", faults{clockError: wildClocks, clocksJump: true, identity: true, serverMoves: true}},
	{"documents missing, creation exclusive", faults{clockError: wildClocks, clocksJump: true, missing: true}},
	{"documents missing, several creators told ok, clocks within a minute", faults{clockError: nearClocks, missing: true, severalCreators: true, putInserts: true}},
	{"documents missing, several creators told ok, the registry declared new", faults{clockError: nearClocks, missing: true, severalCreators: true, putInserts: true, declaredNew: true}},
	{"wiped, a put on a missing document is refused, clocks within a minute", faults{clockError: nearClocks, wipes: true}},
	{"wiped, a put on a missing document inserts, clocks within a minute", faults{clockError: nearClocks, wipes: true, severalCreators: true, putInserts: true}},
	{"wiped, a put on a missing document is refused, held slots are taken over early", faults{clockError: nearClocks, wipes: true, takesOverEarly: true}},
	{"wiped, a put on a missing document inserts, held slots are taken over early", faults{clockError: nearClocks, wipes: true, severalCreators: true, putInserts: true, takesOverEarly: true}},
	{"wiped, a put on a missing document is refused, held slots are taken over at once", faults{clockError: nearClocks, wipes: true, takesOverAtOnce: true}},
	{"a single document deleted, a put on a missing document is refused, held slots are taken over at once", faults{clockError: nearClocks, losses: true, losesSingle: true, takesOverAtOnce: true}},
	{"wiped, a put on a missing document inserts, held slots are taken over at once", faults{clockError: nearClocks, wipes: true, severalCreators: true, putInserts: true, takesOverAtOnce: true}},
	{"several losses, a put on a missing document is refused", faults{clockError: nearClocks, losses: true, takesOverEarly: true}},
	{"several losses, a put on a missing document is refused, long leases", faults{clockError: nearClocks, losses: true, takesOverEarly: true, longLease: true}},
	{"several losses, a put on a missing document inserts, long leases", faults{clockError: nearClocks, losses: true, severalCreators: true, putInserts: true, takesOverEarly: true, longLease: true}},
	{"several losses of a single document, a put on a missing document is refused, long leases", faults{clockError: nearClocks, losses: true, losesSingle: true, takesOverEarly: true, longLease: true}},
	{"a single document deleted, and a take that was decided on before arrives", faults{clockError: nearClocks, losses: true, losesSingle: true, delaysTakes: true}},
	{"a single document deleted, and a take that was decided on before arrives, long leases", faults{clockError: nearClocks, losses: true, losesSingle: true, delaysTakes: true, longLease: true}},
	{"wiped, two lengths of the lease, clocks within seconds", faults{clockError: tightClocks, wipes: true, twoLeases: true}},
	{"single documents deleted, a put on a missing document is refused, clocks within a minute", faults{clockError: nearClocks, deletes: true}},
	{"single documents deleted, a put on a missing document is refused, held slots are taken over early", faults{clockError: nearClocks, deletes: true, takesOverEarly: true}},
	{"an older copy after the quarantine, clocks within a minute", faults{clockError: nearClocks, restores: true, restoresLate: true}},
	{"failed over, the last seconds are lost, under another identity", faults{clockError: nearClocks, restores: true, restoresRecent: true, identity: true}},
	{"a copy of a running process, beyond the bound that it was copied with", faults{clockError: wildClocks, clones: true}},
}

// brokenCombinations lists the combinations in which duplicates are found, as
// documented.
var brokenCombinations = []struct {
	combination
	from uint64 // number of schedules without a duplicate
}{
	{combination{"wiped, a put on a missing document inserts, reads stale across the wipe", faults{clockError: nearClocks, wipes: true, severalCreators: true, putInserts: true, staleWipe: true}}, 3_600},
	{combination{"wiped, clocks further apart than a minute", faults{clockError: wildClocks, wipes: true}}, 0},
	{combination{"wiped, two lengths of the lease, clocks within a minute", faults{clockError: nearClocks, wipes: true, twoLeases: true}}, 5_400},
	{combination{"several losses, a put on a missing document inserts and the source does not report it, long leases", faults{clockError: nearClocks, losses: true, severalCreators: true, putInserts: true, hidesInserts: true, takesOverEarly: true, longLease: true}}, 500},
	{combination{"a single document deleted while a put on it that inserts is in progress", faults{clockError: nearClocks, deletes: true, severalCreators: true, putInserts: true}}, 1_450},
	{combination{"an older copy while owners live", faults{clockError: nearClocks, restores: true}}, 0},
	{combination{"failed over, the last seconds are lost, under the same identity", faults{clockError: nearClocks, restores: true, restoresRecent: true}}, 1_950},
	{combination{"compare-and-set that lies", faults{clockError: nearClocks, comparesNothing: true}}, 0},
}

var (
	// The first 500 of each combination. The mutations that these do not find are in rareSeeds.
	simSchedules = flag.Int("sim", 13_000, "schedules to simulate over all combinations that must be safe, beside those around rare duplicates")
	simSeed      = flag.Uint64("simseed", 1, "the first schedule's seed")
	simMutant    = flag.String("simmutant", "", "only look for the first duplicate in the combinations that match this expression")
)

// hunt plays schedules on all cores and returns the seeds that found a
// duplicate, in order, but at most limit of them.
func hunt(f faults, first uint64, n, limit int) []uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // hardly any memory stays in use
	var (
		mu    sync.Mutex
		found []uint64
		next  atomic.Int64
		wg    sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				seed := first + uint64(i)
				if run(newSchedule(f, seed), nil) == "" {
					continue
				}
				mu.Lock()
				found = append(found, seed)
				if len(found) >= limit {
					next.Store(int64(n))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(found)
	return found
}

// counterexample returns the shortest schedule of these seeds after removing
// actions as long as the duplicate remains.
func counterexample(f faults, seeds []uint64) string {
	var shortest string
	for _, seed := range seeds {
		s := newSchedule(f, seed)
		for again := true; again; {
			again = false
			for i := len(s.actions) - 1; i >= 0; i-- {
				less := s
				less.actions = slices.Delete(slices.Clone(s.actions), i, i+1)
				if run(less, nil) != "" {
					s, again = less, true
				}
			}
		}
		var trace strings.Builder
		run(s, &trace)
		text := fmt.Sprintf("seed %d, %d slots, after leaving out what does not matter:\n%s", seed, s.slots, &trace)
		if shortest == "" || strings.Count(text, "\n") < strings.Count(shortest, "\n") {
			shortest = text
		}
	}
	return shortest
}

func TestSimulation(t *testing.T) {
	each := *simSchedules / len(safeCombinations)
	if worker.RaceEnabled || testing.Short() {
		each /= 250 // the race detector keeps memory for every goroutine that has ever run
	}
	play := func(name string, c combination, first uint64, n int) {
		t.Run(name, func(t *testing.T) {
			if found := hunt(c.faults, first, n, 5); len(found) > 0 {
				t.Errorf("%d duplicates; the shortest:\n%s\nwant no found", len(found), counterexample(c.faults, found))
			}
		})
	}
	for _, c := range safeCombinations {
		play(c.name, c, *simSeed, each)
	}
	for _, m := range mutations {
		if rareSeeds[m.rule] == 0 {
			continue
		}
		for _, c := range m.combinations() {
			play(fmt.Sprintf("%s/%s", m.rule, c.name), c, *simSeed+rareSeeds[m.rule], rareSchedules(each))
		}
	}
}

func TestSimulationFindsWhatIsImpossible(t *testing.T) {
	if worker.RaceEnabled || testing.Short() {
		return // it runs without the race detector, with the simulation
	}
	for _, c := range brokenCombinations {
		t.Run(c.name, func(t *testing.T) {
			if found := hunt(c.faults, *simSeed+c.from, 100_000, 1); len(found) == 0 {
				t.Error("found no duplicate id, want one: the combination may be possible now")
			}
		})
	}
}

// TestDesignPageListsTestedFaults compares the two lists in docs/design/leases.md with the combinations that are tested.
func TestDesignPageListsTestedFaults(t *testing.T) {
	text, err := os.ReadFile("../../docs/design/leases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, leases, _ := strings.Cut(string(text), "\n## Rules that are tested by breaking them\n")
	var documented, tested []string
	for line := range strings.Lines(leases) {
		if item, ok := strings.CutPrefix(line, "- "); ok {
			documented = append(documented, strings.TrimSpace(item))
		}
	}
	for _, m := range mutations {
		tested = append(tested, m.rule)
	}
	for _, c := range brokenCombinations {
		tested = append(tested, c.name)
	}
	if !slices.Equal(documented, tested) {
		t.Errorf("documented:\n%s\n\nwant the tested:\n%s", strings.Join(documented, "\n"), strings.Join(tested, "\n"))
	}
}

func BenchmarkSchedule(b *testing.B) {
	b.ReportAllocs()
	seed := uint64(0)
	for b.Loop() {
		seed++
		run(newSchedule(safeCombinations[0].faults, seed), nil)
	}
}
