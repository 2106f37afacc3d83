package segment

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mutants"
)

// mutation breaks one rule in the source, for the compiler only, and the model must find a violation. A rule
// that is implemented in several places is broken in all of them: a single place would still enforce it. The
// test fails if a text does not occur exactly once.
type mutation struct {
	rule    string
	in      string // the model's case
	replace []replacement
}

type replacement struct{ file, old, new string }

var mutations = []mutation{
	{"a row below what was seen gives no range", "goes back", []replacement{
		{"internal/tagtable/tagtable.go", "decimal(m.From-r.Last)", "decimal(-r.Last)"},
		{"internal/tagtable/tagtable.go", "next-m.N < max(m.From, m.Floor) ||", "next-m.N < m.Floor ||"},
		{"counter.go", "row.next < q.Seen && action != jump", "false"},
		{"fetch.go", "case r.Start >= 0 && r.Start < q.Seen && r.Start < r.End:", "case false:"},
	}},
	{"Skip returns when the row stands above the key: not before the store was asked", "keys", []replacement{
		{"skip.go", "case k < g.rowNext:", "case true:"},
	}},
	{"Skip returns when the row stands above the key: not when the ids below are given up", "keys", []replacement{
		{"fetch.go", "w.key > 0 && w.key < g.rowNext", "w.key > 0"},
	}},
	{"Skip gives up what is left of the segment in use", "one process", []replacement{
		{"queue.go", "gone := g.cur.Load().skip(k)", "gone := int64(0)"},
	}},
	{"Skip gives up what is in the queue", "one process", []replacement{
		{"queue.go", "min(q.end, g.floor) - q.start; n > 0 {", "min(q.end, g.floor) - q.start; n > 1<<31 {"},
	}},
	{"Skip gives up what is in memory after it has waited", "one process", []replacement{
		{"fetch.go", "\t\t\tg.discardUpTo(w.key)\n", ""},
	}},
	{"a fetch under way is cut to what was not skipped", "goes back", []replacement{
		{"queue.go", "low := min(max(g.floor, g.fetchFloor), s.end)", "low := s.start"},
	}},
	{"ids in memory that rows have are given up", "way back", []replacement{
		{"inuse.go", "\t\t\tg.discardUpTo(k)\n", ""},
	}},
	{"so are those that are under way", "way back", []replacement{
		{"inuse.go", "g.fetchFloor = max(g.fetchFloor, highest+1)", "g.fetchFloor = 0"},
	}},
	{"a range whose answer was lost is not used", "cuts", []replacement{
		{"counter.go", "\t\tif err != nil {\n\t\t\treturn Range{}, err\n\t\t}\n\t\tif end > 0 {", "\t\tif err != nil {\n\t\t\tend = max(q.Seen, floor) + q.N\n\t\t}\n\t\tif end > 0 {"},
	}},
	{"the range is the one that the server returns", "keys", []replacement{
		{"internal/tagtable/tagtable.go", `(GREATEST("+now+", "+decimal(m.Floor)+") + "+`, `("+now+" + "+`},
		{"internal/tagtable/tagtable.go", "next-m.N < max(m.From, m.Floor) ||", "next-m.N < m.From ||"},
		{"counter.go", "Range{Start: end - q.N, End: end,", "Range{Start: max(end-q.N, floor), End: max(end-q.N, floor) + q.N,"},
	}},

	// Mutations of fail-overs.
	{"a fetch compares the mark", "fail-over", []replacement{
		{"internal/tagtable/mark.go", `" AND " + locateServer(hash) + " > 0"`, `""`},
	}},
	{"the mark is compared with the server that executes the fetch", "fail-over", []replacement{
		{"failover.go", "tagtable.Guard(r.hash)", "tagtable.Guard(quote.String(r.server))"},
	}},
	{"the mark is compared, not the server alone", "back as a replica", []replacement{
		{"failover.go", "tagtable.Guard(r.hash)", `"", " AND "+r.hash+" = "+quote.String(r.server)`},
	}},
	{"the start of a server that may lose commits is compared", "crash", []replacement{
		{"../../internal/serverid/serverid.go", `"CONCAT('server ', " + name + ", ' started at ', UNIX_TIMESTAMP() - CAST(" + value("Uptime") + " AS SIGNED)), CONCAT('server ', " + name + "))"`, `"1, CONCAT('server ', " + name + "))"`},
	}},
	{"the event of a fetch has the mark", "late events", []replacement{
		{"internal/tagtable/mark.go", `return ", description = description", `, `return "", `},
	}},
	{"a row with another mark moves up by a margin", "fail-over", []replacement{
		{"failover.go", "m.N += min(t.margin(left), r.end-q.N-at)", "m.N += 0"},
	}},
	{"the margin is larger than what was lost", "fail-over", []replacement{
		{"../../internal/control/margin.go", "return m + random(m)", "return 1"},
	}},
	{"the margin is random", "A to B to C", []replacement{
		{"../../internal/control/margin.go", "return m + random(m)", "return m"},
	}},
	{"a row is added with its mark", "fail-over, creation", []replacement{
		{"counter.go", "mark, lossy, err := t.newMark(ctx, c)", `mark, lossy, err := "", false, error(nil)`},
	}},
	{"a row that may have been lost begins a margin higher", "fail-over, creation", []replacement{
		{"counter.go", "gap = t.margin(highest - next + 1)", "gap = 0"},
	}},
	{"a row below what was seen moves up", "back to its own state", []replacement{
		{"counter.go", "row.behind = moves && late", "row.behind = false"},
	}},
	{"a move by a margin runs on the server that its mark names", "A to B to C", []replacement{
		{"internal/tagtable/mark.go", `" AND LOCATE(" + quote.String(old.String()) + ", description) > 0" + m.executedBy(hash)`, `" AND LOCATE(" + quote.String(old.String()) + ", description) > 0"`},
	}},
	{"a row moves by a margin above what was seen", "A to B to C", []replacement{
		{"failover.go", "max(m.Floor, q.Seen)", "m.Floor"},
	}},
	{"the first mark is written on the server that it names", "first mark", []replacement{
		{"internal/tagtable/mark.go", "strconv.Itoa(MaxTextLength) + m.executedBy(hash)", "strconv.Itoa(MaxTextLength)"},
	}},
	{"one of two moves of a row finds its mark gone", "fail-over, three", []replacement{
		{"internal/tagtable/mark.go", `" AND LOCATE(" + quote.String(old.String()) + ", description) > 0" + m.executedBy(hash)`, `m.executedBy(hash)`},
	}},
}

// mutantStates and mutantWalks bound the search for the first violation.
const mutantStates, mutantWalks = 20_000, 8000

// TestMutations compiles the package once, with all mutations in it.
func TestMutations(t *testing.T) {
	if raceEnabled || testing.Short() {
		return // the mutations run without the race detector, next to the model
	}
	var faults [][]mutants.Edit
	for _, m := range mutations {
		faults = append(faults, m.edits(t))
	}
	tests, err := mutants.Build(t.TempDir(), faults)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tests.Run(-1, "-test.run=^TestModel$", "-model.states=200"); err != nil {
		t.Fatalf("without a mutation: got %v, want a run that passes\n%s", err, out)
	}
	for i, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			args := []string{"-test.run=^TestModel$", "-model.case=" + m.in, fmt.Sprint("-model.states=", mutantStates)}
			if modelCases[m.in].failovers != (failovers{}) { // a few walks find faults for which a search needs many states
				args[0], args[2] = "-test.run=^TestModelWalks$", fmt.Sprint("-model.walks=", mutantWalks)
			}
			out, err := tests.Run(i, args...)
			if err == nil || !strings.Contains(out, "states: ") {
				t.Fatalf("the model found no fault with the mutation, want one: the rule may be unnecessary, or the model may lack its reason: %v\n%s", err, out)
			}
			_, found, _ := strings.Cut(out, "_test.go:")
			_, found, _ = strings.Cut(found, ": ")
			t.Log(strings.Join(strings.SplitN(found, "\n", 3)[:2], " "))
		})
	}
}

// edits finds the texts that a mutation replaces.
func (m mutation) edits(t *testing.T) (edits []mutants.Edit) {
	t.Helper()
	for _, r := range m.replace {
		source, err := os.ReadFile(r.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), r.old); n != 1 {
			t.Fatalf("%s contains %q %d times, want once", r.file, r.old, n)
		}
		at := strings.Index(string(source), r.old)
		edits = append(edits, mutants.Edit{File: r.file, From: at, To: at + len(r.old), Code: r.new})
	}
	return edits
}
