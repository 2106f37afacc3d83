package driver

import (
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/calltrace"
)

// ways lists one-row INSERTs with cached table and plan, and the maximum number of functions and files that each may pass. A
// reader has to follow these to see how leafsql fills the INSERT.
var ways = []struct {
	name             string
	prepared         bool
	text             string
	args             []any
	functions, files int
}{
	{"text", false, "INSERT INTO t (a, b) VALUES (1, 2)", nil, 10, 5},
	{"arguments", false, "INSERT INTO t (a, b) VALUES (?, ?)", []any{int64(1), int64(2)}, 10, 5},
	{"prepared", true, "INSERT INTO t (a, b) VALUES (?, ?)", []any{int64(1), int64(2)}, 12, 6},
}

// TestCachedInsertPassesFewFunctions limits the functions that an INSERT passes, without the pool's calls before and after it.
func TestCachedInsertPassesFewFunctions(t *testing.T) {
	if !calltrace.RunInstrumented(t) {
		return
	}
	_, leaf := openNoop(t)
	for _, w := range ways {
		exec := func(args ...any) error {
			_, err := leaf.ExecContext(t.Context(), w.text, args...)
			return err
		}
		if w.prepared {
			st, err := leaf.PrepareContext(t.Context(), w.text)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			exec = func(args ...any) error {
				_, err := st.ExecContext(t.Context(), args...)
				return err
			}
		}
		run := func() {
			if err := exec(w.args...); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			run()
		}
		passed := calltrace.RecordCalls(run, "ResetSession", "IsValid")
		var files []string
		for _, p := range passed {
			file, _, _ := strings.Cut(p, ":")
			files = append(files, file)
		}
		slices.Sort(files)
		files = slices.Compact(files)
		t.Logf("%s: %d functions in %d files\n%s", w.name, len(passed), len(files), strings.Join(passed, "\n"))
		if len(passed) == 0 || len(passed) > w.functions || len(files) > w.files {
			t.Errorf("%s: %d functions in %d files, want at most %d in %d", w.name, len(passed), len(files), w.functions, w.files)
		}
	}
}
