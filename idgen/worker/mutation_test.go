package worker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/mutants"
)

// mutation breaks one rule of the protocol in the source code of the engine or the
// generator. The simulation must find a duplicate. The line that ends in
// "// mutation: at" is replaced in a compiler overlay.
type mutation struct {
	rule string
	at   string
	in   string // regular expression for the combinations that are searched
	code string // replaces the line
}

var mutations = []mutation{
	{"refuse above the bound", "limit", "^documents exist$", "k.next.Limit = h.bound.Add(6 * e.lease)"},
	{"start above the previous high water", "start", "^documents exist$", "h.start = e.now()"},
	{"a take keeps the high water at or above the previous one", "taken up to", "versions count$", "y.HighWater = now.Add(e.lease)"},
	{"raise the bound only on a confirmed put: not on an unknown one", "confirmed", "^documents exist, held", "case swapped, unclear:"},
	{"raise the bound only on a confirmed put: not when it is sent", "sent", "^documents exist, held", "h.highestSent, h.bound = y.HighWater, bound"},
	{"never on a read: renewing", "read", "long leases$", "r := e.get(ctx, h.slot)\nif r.doc.Nonce == h.doc.Nonce && r.doc.HighWater.Equal(hw) {\nh.doc, h.bound, again = r.doc, now.Add(e.lease), e.minPause/8\n}"},
	{"never on a read: taking", "taken", "^documents exist$", "case res == unclear && e.get(ctx, r.slot).doc.Nonce == h.doc.Nonce:\nv = e.get(ctx, r.slot).ver\ncase res != swapped:"},
	{"nonce", "nonce", "^documents exist$", "case true:"},
	{"real compare-and-set: not a look before the write", "compare-and-set", "^documents exist$",
		"if _, seen, err := e.source.Slots.Get(one, slot); err == nil {\nexpected = seen\n}\nv, ok, err := e.source.Slots.Put(one, slot, d, expected)"},
	{"free with the high water at or above what was issued", "freed", "^documents exist$", "free.HighWater, free.Free = h.floor, true"},
	{"free with the high water at or above the previous, also when nothing was issued", "unused", "^documents exist$", "return time.UnixMilli(0)"},
	{"free with the high water at or above the previous, also when the take is void", "void take", "", "e.release(ctx, h, time.UnixMilli(1))"},
	{"no id after sending free", "after marking", "^documents exist$", "if v = g.currentView(); true {"},
	{"one's own slot after its bound: start above that", "own slot", "^documents exist$", "return e.claim.floor"},
	{"quarantine of unknown history", "quarantine", "^wiped", "return latest(used, now.Add(-tick))"},
	{"quarantine of unknown history, and at least up to its high water", "quarantine", "another server", "return e.quarantineEnd(now)"},
	{"quarantine of unknown history, when spares are prepared", "prepared", "^wiped.*taken over", "d := Doc{Nonce: r.doc.Nonce, HighWater: e.now(), Free: true, Owner: e.owner, Registry: id}"},
	{"quarantine of unknown history, when slots are prepared again", "prepared again", "another server", ""},
	{"quarantine of unknown history, when a spare is taken", "spare", "^wiped.*taken over", "return now.Add(-tick)"},
	{"quarantine of unknown history, for a document of another registry", "unknown", "^wiped.*at once$", "return d.IsInitial()"},
	{"unknown history that is declared new: the first take is confirmed", "first take", "declared new$", "unconfirmed := false"},
	{"unknown history that is declared new: the first take is confirmed, also for a document made just before", "first take", "declared new$",
		"unconfirmed := res == swapped && e.source.Inserts && r.doc.IsInitial() && e.declaredNew"},
	{"the registry is the same after the take", "after the take", "^wiped.*at once$", "if after, err := reg, error(nil); err != nil || after.id != reg.id ||"},
	{"the registry is the same after the take, and that was read", "after the take", "taken over early$", "if after, err := e.readRegistry(ctx); err == nil && after.id != reg.id ||"},
	{"a take of unknown history is unknown history until a renewal", "blind", "before arrives$", ""},
	{"a take of unknown history that is confirmed late is void", "taken late", "before arrives, long", "false {"},
	{"the registry's identity is part of it", "identity", "identity", "sum := sha256.Sum256([]byte(r.doc.Nonce))"},
	{"never send an old text again", "text", "^wiped.*at once$", "y.HighWater = latest(now, h.doc.HighWater.Add(tick), h.highestSent)"},
	{"the bound counts from the decision to put", "decided", "taken over at once$", "v, res, err := e.put(ctx, h.slot, y, expected)\nbound = e.now().Add(e.lease)"},
	{"put nothing back that was lost long ago", "late", "is refused, long", "return !h.mayHaveIssued || e.grace < e.skew"},
	{"put nothing back that was lost long ago: not by a renewal that inserts", "late", "inserts, long", "return !h.mayHaveIssued || e.grace < e.skew"},
	{"put nothing back that was lost long ago, checked again when the answer arrives", "told late", "losses", "if false {"},
	{"a document that was put back is unknown history until a renewal", "mark", "losses", "y.Registry = reg.id"},
	{"no renewal of a document that was put back too late", "given up", "single document, ", "if false {"},
	{"a document that was put back too late is not given back", "given back", "single document, ", "{"},
	{"put nothing back in quarantine", "late", "single document, ", "return e.grace < e.skew || e.now().After(h.bound.Add(min(e.lease, e.skew-e.skew/3)-e.lease))"},
	{"put nothing back if a slot may be taken over before its bound has passed", "late", "deleted.*at once", "return !h.mayHaveIssued || e.now().After(h.bound.Add(min(e.lease, e.skew-e.skew/3)-e.lease))"},
}

// rareSeeds has the first seed of the search for a mutation that the schedules of TestSimulation do not find in
// any combination. TestSimulation also plays some schedules from this seed on, and so finds each mutation.
var rareSeeds = map[string]uint64{
	"refuse above the bound":                                                                                  4_850,
	"never on a read: taking":                                                                                 500,
	"one's own slot after its bound: start above that":                                                        600,
	"quarantine of unknown history, when slots are prepared again":                                            7_500,
	"the registry is the same after the take, and that was read":                                              2_050,
	"the registry's identity is part of it":                                                                   1_400,
	"put nothing back that was lost long ago, checked again when the answer arrives":                          1_150,
	"a document that was put back is unknown history until a renewal":                                         1_150,
	"no renewal of a document that was put back too late":                                                     1_150,
	"a document that was put back too late is not given back":                                                 147_350,
	"put nothing back in quarantine":                                                                          25_900,
	"unknown history that is declared new: the first take is confirmed, also for a document made just before": 500_035_300,
}

// rareSchedules returns the number of schedules per combination that TestSimulation plays for such a mutation, if it plays each
// schedules per combination itself.
func rareSchedules(each int) int { return max(1, each/8) }

// combinations returns the combinations that are searched for the mutation.
func (m mutation) combinations() []combination { return safeIn(m.in) }

// mutantSchedules bounds the search for a mutation's first duplicate.
const mutantSchedules = 200_000

// TestMutations compiles the tests once, with all mutations in them.
func TestMutations(t *testing.T) {
	if worker.RaceEnabled || testing.Short() {
		return // mutations run without the race detector, with the simulation
	}
	began := time.Now()
	var faults [][]mutants.Edit
	for _, m := range mutations {
		faults = append(faults, []mutants.Edit{m.edit(t)})
	}
	tests, err := mutants.Build(t.TempDir(), faults)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tests.Run(-1, "-test.run=^TestHunt$", "-simmutant=", "-sim=2000"); err != nil || strings.Contains(out, "schedule") {
		t.Fatalf("without a mutation: got %v, want a run that passes\n%s", err, out)
	}
	for i, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			out, err := tests.Run(i, "-test.run=^TestHunt$", "-simmutant="+m.in, fmt.Sprint("-sim=", mutantSchedules), fmt.Sprint("-simseed=", 1+rareSeeds[m.rule]))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			first := regexp.MustCompile(`schedule \d+ .*\nseed (\d+)`).FindStringSubmatch(out)
			if first == nil {
				t.Fatalf("found no duplicate id in %d schedules with the mutation, want one: the rule may be unnecessary, or the simulation may lack its reason", mutantSchedules)
			}
			each := *simSchedules / len(safeCombinations)
			if rareSeeds[m.rule] > 0 {
				each = rareSchedules(each)
			}
			if seed, _ := strconv.ParseUint(first[1], 10, 64); seed > rareSeeds[m.rule]+uint64(each) {
				t.Errorf("the first duplicate has the seed %d, which TestSimulation does not play, want at most %d: put it into rareSeeds", seed, rareSeeds[m.rule]+uint64(each))
			}
			t.Log(first[0])
		})
	}
	t.Logf("%d mutations in %v", len(mutations), time.Since(began).Round(time.Second))
}

// edit returns the replacement of the mutation's line.
func (m mutation) edit(t *testing.T) (edit mutants.Edit) {
	t.Helper()
	var files []string
	for _, dir := range []string{".", "../snowflake"} {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	marked := regexp.MustCompile(`(?m)^.*\S\s*// mutation: ` + regexp.QuoteMeta(m.at) + `$`)
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if found := marked.FindAllIndex(b, -1); len(found) > 0 && !strings.HasSuffix(f, "_test.go") {
			n += len(found)
			edit = mutants.Edit{File: f, From: found[0][0], To: found[0][1], Code: m.code}
		}
	}
	if n != 1 {
		t.Fatalf("%d lines are marked // mutation: %s; want one", n, m.at)
	}
	return edit
}

// safeIn returns the combinations that must be safe and have names that match a regular expression.
func safeIn(expression string) []combination {
	in := regexp.MustCompile(expression)
	return slices.DeleteFunc(slices.Clone(safeCombinations), func(c combination) bool { return !in.MatchString(c.name) })
}

// TestHunt runs in a broken engine. It prints the first schedule
// with a duplicate; the combinations take turns.
func TestHunt(t *testing.T) {
	flagged := false
	for _, arg := range os.Args {
		flagged = flagged || strings.HasPrefix(arg, "-simmutant=")
	}
	if !flagged {
		t.Skip("a tool for the mutations")
	}
	combinations := safeIn(*simMutant)
	const round = 32 // schedules of each combination at a time
	for n := 0; n < *simSchedules; n += round * len(combinations) {
		for i, c := range combinations {
			if found := hunt(c.faults, *simSeed+uint64(n/len(combinations)), round, round); len(found) > 0 {
				at := n + round*i + int(found[0]-*simSeed) - n/len(combinations) + 1
				fmt.Printf("schedule %d (%s)\n%s", at, c.name, counterexample(c.faults, found[:1]))
				return
			}
		}
	}
}
