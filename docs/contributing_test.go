package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	rulesPage = "contributing/rules.md"
	testsPage = "contributing/tests.md"
)

// TestContributingNamesExist: the files that contributing/rules.md names exist, and the tests are in the packages that it and
// contributing/tests.md name.
func TestContributingNamesExist(t *testing.T) {
	page := rulesPage
	for _, row := range readTable(t, page, "## Where to change a rule, and which test covers it") {
		for _, file := range append(quotedTexts(row[1]), quotedTexts(regexp.MustCompile("`Test\\w+`").ReplaceAllString(row[2], ""))...) {
			if _, err := os.Stat(filepath.Join("..", file)); err != nil {
				t.Errorf("%s: row %s: file %s does not exist, want an existing file", page, row[0], file)
			}
		}
		checkNamedTests(t, page, row[2])
	}
	page = testsPage
	var storms string
	for _, row := range readTable(t, page, "## Storms") {
		checkNamedTests(t, page, row[0])
		checkNamedTests(t, page, row[2])
		storms += row[0]
	}
	checkNamedStorms(t, page, storms)
	for _, row := range readTable(t, page, "## Servers and durations") {
		for _, folder := range quotedTexts(row[0]) {
			if _, err := os.Stat(filepath.Join("..", folder)); err != nil && !strings.HasPrefix(folder, "make ") {
				t.Errorf("%s: folder %s does not exist, want an existing folder", page, folder)
			}
		}
	}
}

// TestMakeTargetsExist: the make targets that CONTRIBUTING.md and the pages for contributors name exist.
func TestMakeTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"../CONTRIBUTING.md", "contributing/releasing.md", rulesPage, testsPage} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)(?:^    |`+"`"+`)make ([\w-]+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %s, want one", page, m[1])
			}
		}
	}
}

// TestFlagsOfTestsAreListed: contributing/tests.md lists the flags of tests, each with its package.
func TestFlagsOfTestsAreListed(t *testing.T) {
	const page = testsPage
	listed := make(map[string]bool)
	for _, row := range readTable(t, page, "## Flags for long runs") {
		for _, folder := range quotedTexts(row[0]) {
			for _, example := range quotedTexts(row[1]) {
				name, _, _ := strings.Cut(example, " ")
				listed[folder+" "+name] = true
			}
		}
		for _, folder := range quotedTexts(row[0]) {
			for _, name := range quotedTexts(row[2]) {
				if strings.HasPrefix(name, "Test") && !declaresFunc(t, folder, name) {
					t.Errorf("%s: %s is not declared in %s, want a declared test", page, name, folder)
				}
			}
		}
	}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`\bflag\.(?:Bool|Duration|Int|String|Uint64)\("([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
			has := filepath.ToSlash(filepath.Dir(path))[len("../"):] + " -" + m[1]
			if !listed[has] {
				t.Errorf("%s does not list the flag %s, want it listed", page, has)
			}
			delete(listed, has)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for flag := range listed {
		t.Errorf("%s lists %s, which no program defines, want defined flags", page, flag)
	}
}

// TestQuickNeedsNoOtherServer: the tests of make quick need no server except the one that it starts.
func TestQuickNeedsNoOtherServer(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	packages := regexp.MustCompile(`(?m)^QUICK\s*= (.*)$`).FindStringSubmatch(string(makefile))
	if packages == nil {
		t.Fatal("the Makefile has no variable QUICK, want one")
	}
	args := []string{"-f", `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`}
	for pattern := range strings.FieldsSeq(packages[1]) {
		args = append(args, module+strings.TrimPrefix(pattern, "./"))
	}
	for _, line := range goList(t, args...) {
		for _, server := range []string{"clustertest", "nacostest", "redistest", "zktest", "etcdtest", "chromiumtest", "promtooltest", "haproxytest"} {
			if strings.Contains(line+" ", "/"+server+" ") {
				pkg, _, _ := strings.Cut(line, " ")
				t.Errorf("make quick runs %s, whose tests import %s, want tests without other servers", pkg, server)
			}
		}
	}
}

// checkNamedTests reports an error unless the tests in a cell of a table are in the
// packages that the cell names.
func checkNamedTests(t *testing.T, page, cell string) {
	t.Helper()
	for _, m := range regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) in `([^`]+)`").FindAllStringSubmatch(cell, -1) {
		for _, name := range quotedTexts(m[1]) {
			if !declaresFunc(t, m[2], name) {
				t.Errorf("%s: %s is not declared in %s, want a declared test", page, name, m[2])
			}
		}
	}
}

// checkNamedStorms reports an error unless every test of a storm is named, and built only with
// the tag.
func checkNamedStorms(t *testing.T, page, named string) {
	t.Helper()
	filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tagged := regexp.MustCompile(`(?m)^//go:build .*\bstorm\b`).Match(source)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(source), -1) {
			if storm := strings.HasPrefix(m[1], "TestStorm"); storm != tagged {
				t.Errorf("%s: name of %s begins with TestStorm: %v, want %v, as the file has the build tag storm: %[4]v", path, m[1], storm, tagged)
			} else if storm && !slices.Contains(quotedTexts(named), m[1]) {
				t.Errorf("%s does not name %s of %s, want it named", page, m[1], path)
			}
		}
		return nil
	})
}

// declaresFunc reports whether a test file of a package declares a function.
func declaresFunc(t *testing.T, folder, function string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(source), "\nfunc "+function+"(")
	})
}
