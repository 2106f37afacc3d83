package inserttest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Corpus returns the queries of the golden files in a folder. It ends the test if there are no such files.
func Corpus(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in %s: %v", folder, err)
	}
	var texts []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "< ")
			if !ok {
				continue
			}
			if strings.HasPrefix(text, `"`) {
				if text, err = strconv.Unquote(text); err != nil {
					t.Fatal(err)
				}
			}
			texts = append(texts, text)
		}
	}
	return texts
}
