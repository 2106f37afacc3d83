package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestContributing: CONTRIBUTING.md names files that are there, and tests that are in the packages it says.
func TestContributing(t *testing.T) {
	const page = "../CONTRIBUTING.md"
	for _, row := range table(t, page, "## Where do I change it, and which test will tell me") {
		for _, file := range append(quoted(row[1]), quoted(regexp.MustCompile("`Test\\w+`").ReplaceAllString(row[2], ""))...) {
			if _, err := os.Stat(filepath.Join("..", file)); err != nil {
				t.Errorf("%s: %s: there is no %s", page, row[0], file)
			}
		}
		for _, m := range regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) in `([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			for _, name := range quoted(m[1]) {
				if !slices.Contains(tests(t, m[2]), name) {
					t.Errorf("%s: %s: there is no %s in %s", page, row[0], name, m[2])
				}
			}
		}
	}
	for _, row := range table(t, page, "## What the tests need") {
		for _, folder := range quoted(row[0]) {
			if _, err := os.Stat(filepath.Join("..", folder)); err != nil && !strings.HasPrefix(folder, "make ") {
				t.Errorf("%s: there is no %s", page, folder)
			}
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)(?:^    |`+"`"+`)make (\w+)`).FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("%s: there is no make %s", page, m[1])
		}
	}
}

// tests lists the tests of a package.
func tests(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
	}
	return names
}
