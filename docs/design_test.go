package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDesignNames: the files, functions and types that ARCHITECTURE.md and the design pages name exist.
func TestDesignNames(t *testing.T) {
	var source strings.Builder
	files := make(map[string]bool) // the last two elements of each path
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		parts := strings.Split(filepath.ToSlash(path), "/")
		for i := range parts {
			files[strings.Join(parts[i:], "/")] = true
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("design/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := source.String()
	name := regexp.MustCompile(`^(?:(?:\w+\.)+(\w+)(?:\(.*\))?|([A-Z]+[a-z]\w*))$`)
	for _, page := range append(pages, "../ARCHITECTURE.md") {
		for _, q := range quotedTexts(readPage(t, page).text) {
			if strings.HasSuffix(q, ".go") {
				if !files[q] {
					t.Errorf("%s: there is no file %s", page, q)
				}
			} else if m := name.FindStringSubmatch(q); m != nil && !regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)`+m[1]+m[2]+`\b`).MatchString(all) {
				t.Errorf("%s: nothing declares %s", page, q)
			}
		}
	}
}
