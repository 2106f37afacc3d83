//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestCellsShowOutcomes(t *testing.T) {
	r := newResults()
	for _, e := range []event{
		{"pass", "a", "TestGood", ""}, {"pass", "a", "TestGood/part", ""},
		{"output", "a", "TestPart/x", "    a_test.go:1: " + mysqltest.Refused + "INSERT"}, {"skip", "a", "TestPart/x", ""}, {"pass", "a", "TestPart", ""},
		{"output", "a", "TestLacks", "    a_test.go:2: " + mysqltest.Lacks + "RETURNING"}, {"skip", "a", "TestLacks", ""},
		{"output", "a", "TestRefused", "    a_test.go:3: " + mysqltest.Refused + "all"}, {"skip", "a", "TestRefused", ""},
		{"run", "a", "TestCutOff", ""}, {"fail", "b", "TestBad", ""}, {"pass", "c", "TestGood", ""},
	} {
		r.add(e)
	}
	r.broken["c"] = true // such as a race, or a panic after the last test
	for tests, want := range map[string]string{
		"a TestGood": same, "a TestPart": "equal, in part refused", "a TestLacks": lacking, "a TestRefused": refused,
		"a TestCutOff": differs, "a TestGood|TestCutOff": differs, "b .": differs, "c TestGood": same, "c .": differs, "a TestNone": notRun, "d .": notRun,
	} {
		if got := r.cell([]string{tests}); got != want {
			t.Errorf("%s: %q, want %q", tests, got, want)
		}
	}
}

// TestExclusionsCountAsRefusedOrLacking: an excluded test, or a test with an excluded subtest, counts as refused or as one that the server does not have.
func TestExclusionsCountAsRefusedOrLacking(t *testing.T) {
	r := newResults()
	for _, x := range []exclusion{{"", "a", "TestRefused", true}, {"", "a", "TestLacks", false}, {"", "a", "TestPart/x y", true}, {"", "a", "TestFewer/x", false}} {
		r.exclude(x)
	}
	r.add(event{"pass", "a", "TestPart", ""})
	r.add(event{"pass", "a", "TestFewer", ""})
	for tests, want := range map[string]string{"a TestRefused": refused, "a TestLacks": lacking, "a TestPart": "equal, in part refused", "a TestFewer": same} {
		if got := r.cell([]string{tests}); got != want {
			t.Errorf("cell(%s) = %q, want %q", tests, got, want)
		}
	}
	if got, want := (exclusion{test: "TestPart/x.y"}).pattern(), `^TestPart$/^x\.y$`; got != want {
		t.Errorf("pattern() = %s, want %s", got, want)
	}
}

// TestExclusionsNameTests: every exclusion names a test of its package.
func TestExclusionsNameTests(t *testing.T) {
	all, err := exclusions("")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		top, _, _ := strings.Cut(x.test, "/")
		if !slices.Contains(testsOf(t, x.pkg), top) {
			t.Errorf("excluded.txt names %s of %s, which is not declared, want a declared test", top, x.pkg)
		}
	}
}

// TestPageKeepsOtherColumns: a column replaces that of its series, and the others stay.
func TestPageKeepsOtherColumns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "servers.md")
	if err := os.WriteFile(file, []byte("# Servers\n\n| |  |\n| --- | --- |\n\nend\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for server, cell := range map[string]string{"MariaDB 10.2.11": same, "MySQL 8.0.33": refused, "MySQL 9.7.4": same, "MariaDB 11.8.6": lacking, "TiDB 8.4.0": refused} {
		if err := writeColumn(file, server, map[string]string{suite: cell}); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeColumn(file, "MySQL 8.0.40", map[string]string{suite: differs}); err != nil {
		t.Fatal(err)
	}
	if err := writeColumn(file, "MySQL 9.7.4", map[string]string{capabilities[0].what: refused}); err != nil { // keeps its other cells
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Servers\n\n| | MySQL 9.7.4 | MySQL 8.0.40 | MariaDB 11.8.6 | MariaDB 10.2.11 | TiDB 8.4.0 |\n| --- | --- | --- | --- | --- | --- |\n",
		"| " + capabilities[0].what + " | refused | not run | not run | not run | not run |\n",
		"| " + suite + " | equal | **differs** | not available | equal | refused |\n\nend\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page is\n%s\nand does not hold\n%s", text, want)
		}
	}
}

// TestCapabilitiesNameTests: every pattern matches a test of its package.
func TestCapabilitiesNameTests(t *testing.T) {
	for _, c := range capabilities {
		for _, tests := range c.tests {
			pkg, pattern, _ := strings.Cut(tests, " ")
			names := testsOf(t, pkg)
			for one := range strings.SplitSeq(pattern, "|") {
				if !regexp.MustCompile("(?m)" + one).MatchString(strings.Join(names, "\n")) {
					t.Errorf("%s: no test of %s matches %s, want one", c.what, pkg, one)
				}
			}
		}
	}
}

// testNames has the names of packages' tests that were already read. There are hundreds of exclusions in a few packages.
var testNames = map[string][]string{}

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	if names, ok := testNames[pkg]; ok {
		return names
	}
	files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	testNames[pkg] = names
	return names
}
