package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDesignNamesExist: the files, functions and types that ARCHITECTURE.md and the design pages name exist.
func TestDesignNamesExist(t *testing.T) {
	var source strings.Builder
	files, packages := make(map[string]bool), make(map[string]bool) // paths, and their ends; names of folders
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		parts := strings.Split(filepath.ToSlash(path), "/")
		packages[parts[max(0, len(parts)-2)]] = true
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
	declared := func(owner, name string) bool {
		pattern := `^(?:func (?:\([^)]*\) )?|type |\t)` + name + `\b`
		if owner != "" && !packages[owner] { // a type, with a method or field
			pattern = `^func \(\w+ \*?` + owner + `\) ` + name + `\(|^type ` + owner + ` (?:struct|interface) \{\n(?:[^}\n].*\n|\n)*?\t` + name + `\b`
		}
		return regexp.MustCompile(`(?m)` + pattern).MatchString(all)
	}
	name := regexp.MustCompile(`^(?:(?:\w+\.)*?(\w+)\.(\w+)(?:\(.*\))?|([A-Z]+[a-z]\w*))$`)
	for _, page := range append(pages, "../ARCHITECTURE.md") {
		for _, q := range quotedTexts(readPage(t, page).text) {
			if strings.HasSuffix(q, ".go") {
				if !files[q] {
					t.Errorf("%s: file %s does not exist, want an existing file", page, q)
				}
			} else if m := name.FindStringSubmatch(q); m != nil && q != "sql.Tx.Commit" && !declared(m[1], m[2]+m[3]) {
				t.Errorf("%s: %s is not declared, want a declared name", page, q)
			}
		}
	}
}
