package segment

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mutants"
)

// mutation breaks one rule in the source, for the compiler alone, and the model must
// find what comes of it. A rule that is kept in several places is broken in all of them:
// one alone would still hold. A text that no longer occurs exactly once fails the test.
type mutation struct {
	rule    string
	in      string // the model's case
	replace []replacement
}

type replacement struct{ file, old, new string }

var mutations = []mutation{
	{"a row below what was seen gives no range", "goes back", []replacement{
		{"internal/tagrow/tagrow.go", "decimal(m.From-r.Last)", "decimal(-r.Last)"},
		{"internal/tagrow/tagrow.go", "next-m.N < max(m.From, m.Floor) ||", "next-m.N < m.Floor ||"},
		{"counter.go", "case row.next < q.Seen:", "case false:"},
		{"fetch.go", "case r.Start >= 0 && r.Start < q.Seen:", "case false:"},
	}},
	{"Skip returns when the row stands above the key: not before the store was asked", "keys", []replacement{
		{"skip.go", "case k < g.top:", "case true:"},
	}},
	{"Skip returns when the row stands above the key: not when the ids below are given up", "keys", []replacement{
		{"fetch.go", "w.key > 0 && w.key < g.top", "w.key > 0"},
	}},
	{"Skip gives up what is left of the segment in use", "one process", []replacement{
		{"queue.go", "gone := g.cur.Load().skip(k)", "gone := int64(0)"},
	}},
	{"Skip gives up what is in the queue", "one process", []replacement{
		{"queue.go", "min(q.end, g.floor) - q.start; n > 0 {", "min(q.end, g.floor) - q.start; n > 1<<31 {"},
	}},
	{"Skip gives up what is in memory after it has waited", "one process", []replacement{
		{"fetch.go", "\t\t\tg.pass(w.key)\n", ""},
	}},
	{"a fetch under way is cut to what was not skipped", "goes back", []replacement{
		{"queue.go", "low := min(max(g.floor, g.least), s.end)", "low := s.start"},
	}},
	{"ids in memory that rows have are given up", "way back", []replacement{
		{"inuse.go", "\t\t\tg.pass(k)\n", ""},
	}},
	{"so are those that are under way", "way back", []replacement{
		{"inuse.go", "g.least = max(g.least, highest+1)", "g.least = 0"},
	}},
	{"a range whose answer was lost is not used", "cuts", []replacement{
		{"counter.go", "t.move(q, row, floor))\n\tif err != nil {\n\t\treturn Range{}, err\n\t}\n",
			"t.move(q, row, floor))\n\tif err != nil {\n\t\tend = max(q.Seen, floor) + q.N\n\t}\n"},
	}},
	{"the range is what the server says it wrote", "keys", []replacement{
		{"internal/tagrow/tagrow.go", `(GREATEST("+now+", "+decimal(m.Floor)+") + "+`, `("+now+" + "+`},
		{"internal/tagrow/tagrow.go", "next-m.N < max(m.From, m.Floor) ||", "next-m.N < m.From ||"},
		{"counter.go", "Range{Start: end - q.N, End: end,", "Range{Start: max(end-q.N, floor), End: max(end-q.N, floor) + q.N,"},
	}},
}

// mutantStates bounds the search for a violation.
const mutantStates = 20_000

// TestMutations compiles the package once, with all mutations in it.
func TestMutations(t *testing.T) {
	if raceEnabled || testing.Short() {
		return // they run without the race detector, beside the model
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
		t.Fatalf("without a mutation: %v\n%s", err, out)
	}
	for i, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			out, err := tests.Run(i, "-test.run=^TestModel$", "-model.case="+m.in, fmt.Sprint("-model.states=", mutantStates))
			if err == nil || !strings.Contains(out, "states: ") {
				t.Fatalf("the model found nothing: is the rule needed, and does the model know why? %v\n%s", err, out)
			}
			_, found, _ := strings.Cut(out, "after ")
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
			t.Fatalf("%s holds %q %d times; the mutation needs it once", r.file, r.old, n)
		}
		at := strings.Index(string(source), r.old)
		edits = append(edits, mutants.Edit{File: r.file, From: at, To: at + len(r.old), Code: r.new})
	}
	return edits
}
