package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// mutation breaks one rule of the protocol in the engine's source, which the
// simulation must notice. The source is replaced for the compiler alone, so
// that nothing of this is in the engine; a text that no longer occurs exactly
// once fails the test.
type mutation struct {
	rule     string
	in       string // expression of the combinations in which it is looked for
	file     string
	old, new string
}

var mutations = []mutation{
	{"refuse above the bound", "^documents exist$", "holding.go",
		"limit := h.bound\n", "limit := h.bound + 6*e.bound\n"},
	{"start above the previous hw", "^documents exist$", "acquire.go",
		"h.start = max(floor+1, e.now())", "h.start = e.now()"},
	{"a take keeps hw at or above the previous one", "taken over at once$", "acquire.go",
		"HW: max(r.doc.HW+1, floor, bound)", "HW: bound"},
	{"raise the bound only on a confirmed put: not on an unknown one", "taken over at once$", "holding.go",
		"if res == OK {\n\t\th.doc", "if res != Refused {\n\t\th.doc"},
	{"raise the bound only on a confirmed put: not when it is sent", "taken over at once$", "holding.go",
		"h.sent = y.HW\n", "h.sent, h.bound = y.HW, bound\n"},
	{"never on a read: renewing", "taken over at once$", "holding.go",
		"if res == Unknown && r.doc.Same(y) {\n", "if r.doc.Same(y) {\n\t\t\th.doc, h.bound = y, bound\n"},
	{"never on a read: taking", "^documents exist$", "acquire.go",
		"again(seen.ver)", "v, res, err = seen.ver, OK, nil"},
	{"nonce", "^documents exist$", "holding.go",
		"case r.doc.Nonce == h.doc.Nonce && !h.wrote(r.doc):\n\t\treturn 0, &LostError{Worker: h.slot, Owner: owner(r.doc.Owner), Cause: errClone}\n\tcase r.doc.Nonce == h.doc.Nonce:", "case true:"},
	{"real compare-and-set: not a look before the write", "^documents exist$", "engine.go",
		"v, r, err := e.slots.Put(", "if _, v, err := e.slots.Get(ctx, slot); err == nil {\n\t\texpected = v\n\t}\n\tv, r, err := e.slots.Put("},
	{"free with hw at or above what was issued", "^documents exist$", "holding.go",
		"free.HW, free.Free = last, true", "free.HW, free.Free = h.start-1, true"},
	{"free with hw at or above the previous, also when nothing was issued", "^documents exist$", "holding.go",
		"last := h.start - 1\n", "last := int64(0)\n"},
	{"no id after sending free", "^documents exist$", "holding.go",
		"h.limit.Store(sealed)\n", ""},
	{"quarantine of unknown history", "^wiped", "engine.go",
		"return max(d.HW, e.quarantine(now))", "return max(d.HW, now-1)"},
	{"quarantine of unknown history, by who prepares spares", "^wiped", "holding.go",
		"HW: e.quarantine(now), Free: true", "HW: now, Free: true"},
	{"quarantine of unknown history, where a document has another anchor", "^wiped.*anchor", "engine.go",
		"d.IsInitial() || d.Anchor != \"\" && d.Anchor != anchor", "d.IsInitial()"},
	{"unknown history that is declared new: the first take is confirmed", "declared new$", "acquire.go",
		"e.fresh && e.settle > 0", "e.fresh && e.settle < 0"},
	{"the anchor is the same after the take", "^wiped.*anchor", "acquire.go",
		"err != nil || after != anchor", "err != nil && after != anchor"},
	{"never send an old text again", "^documents exist|^wiped", "holding.go",
		"y.HW = max(h.sent+1, bound)", "y.HW = max(h.doc.HW+1, h.sent, bound-e.bound)"},
	{"no renewal past one's bound", "^wiped", "holding.go",
		"if now > h.bound {\n\t\t\treturn &LostError", "if now > h.bound && h.resumed {\n\t\t\treturn &LostError"},
	{"an OK later than D is unknown, or else the bound counts from when the put was sent", "taken over at once$", "holding.go",
		"v, res, err := e.put(ctx, now, h.slot, y, h.ver)", "v, res, err := e.slots.Put(ctx, h.slot, y, h.ver)\n\tbound = e.now() + e.bound"},
	{"a bound is never further ahead than W", "^wiped", "holding.go",
		"= y, v, v, bound, nil\n", "= y, v, v, y.HW, nil\n"},
	{"local state is saved before ids are issued", "^local state, documents", "holding.go",
		"HW: h.bound, Reserved: limit})", "HW: h.bound, Reserved: min(limit, e.now())})"},
	{"local state is removed before the slot is freed", "^local state, documents", "holding.go",
		"if err := e.state.remove(); err != nil {", "if err := error(nil); err != nil {"},
	{"a restart begins above what was reserved", "^local state, documents", "acquire.go",
		"start: max(rec.Reserved+1, now)", "start: now"},
}

// mutantSchedules bounds the search for a mutation's first duplicate.
const mutantSchedules = 60_000

// TestMutations compiles the package once for each mutation.
func TestMutations(t *testing.T) {
	if raceEnabled || testing.Short() {
		return // they run without the race detector, beside the simulation
	}
	began := time.Now()
	for _, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			source, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), m.old); n != 1 {
				t.Fatalf("%s holds %q %d times; the mutation needs it once", m.file, m.old, n)
			}
			out, err := build(t, m.file, strings.Replace(string(source), m.old, m.new, 1)).
				run("-test.run=^TestHunt$", "-simmutant="+m.in, fmt.Sprint("-sim=", mutantSchedules))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			first := regexp.MustCompile(`schedule (\d+) .*`).FindString(out)
			if first == "" {
				t.Fatalf("no duplicate in %d schedules: is the rule needed, and does the simulation know why?", mutantSchedules)
			}
			t.Log(first)
		})
	}
	t.Logf("%d mutations in %v", len(mutations), time.Since(began).Round(time.Second))
}

// TestHunt is what a broken engine runs: it says which schedule is the first
// with a duplicate, the combinations taking turns.
func TestHunt(t *testing.T) {
	if *simMutant == "" {
		return
	}
	in := regexp.MustCompile(*simMutant)
	combinations := slices.DeleteFunc(slices.Clone(safe), func(c combination) bool { return !in.MatchString(c.name) })
	const round = 32 // of each combination at once
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

// testBinary is the package's tests, compiled.
type testBinary string

// build compiles the package's tests with one file replaced.
func build(t *testing.T, file, source string) testBinary {
	t.Helper()
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replaced := filepath.Join(dir, file)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, file): replaced}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{replaced: []byte(source), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "worker.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "-overlay="+filepath.Join(dir, "overlay.json"), ".").CombinedOutput(); err != nil {
		t.Fatalf("compiling: %v\n%s", err, out)
	}
	return testBinary(binary)
}

func (b testBinary) run(args ...string) (string, error) {
	out, err := exec.Command(string(b), args...).CombinedOutput()
	return string(out), err
}
