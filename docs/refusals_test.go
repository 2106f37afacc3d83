package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRefusalsAreInTheCode: the fragments of errors in what-is-filled.md, by which readers distinguish refusals,
// are in the code.
func TestRefusalsAreInTheCode(t *testing.T) {
	var code strings.Builder
	err := filepath.WalkDir("../driver", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		code.Write(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, refusals, _ := strings.Cut(readPage(t, "what-is-filled.md").text, "\n## Refused statements\n")
	lines := regexp.MustCompile(`(?m)^- Error: (.*(?:\n  .*)*)`).FindAllStringSubmatch(refusals, -1)
	if len(lines) < 25 {
		t.Fatalf("what-is-filled.md has the errors of %d refusals, want at least 25", len(lines))
	}
	for _, line := range lines {
		for _, part := range quotedTexts(strings.ReplaceAll(line[1], "\n ", "")) {
			if !strings.Contains(code.String(), part) {
				t.Errorf("what-is-filled.md has the error %q, want an error of package driver", part)
			}
		}
	}
}
