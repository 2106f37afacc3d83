//go:build unix

// Command servers runs leafsql's tests on several database servers, one after the other, and writes the results into
// the table of docs/servers.md:
//
//	go run ./testutil/servers mysql-8.0 mariadb-11.8
//
// The names are those of .ci/server; mariadb and mysql are the servers of make test. The columns of other servers are
// not changed, and with -only neither are the rows of other packages.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const (
	file   = "docs/servers.md"
	module = "github.com/leafsql/leafsql/"
	suite  = "the tests of go-sql-driver/mysql itself, through leafsql"
)

func main() {
	only := flag.String("only", "", "a regular expression: test these packages alone, such as cmd/leafsql, or go-sql-driver for its own tests")
	logs := flag.String("logs", os.TempDir(), "the folder for what the tests print")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: servers [-only packages] [-logs folder] server ...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	packages, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "servers: -only:", err)
		os.Exit(2)
	}
	ok := true
	for _, name := range flag.Args() {
		equal, err := testServer(name, packages, *logs)
		if err != nil {
			fmt.Fprintln(os.Stderr, "servers:", err)
		}
		ok = ok && equal && err == nil
	}
	if !ok {
		os.Exit(1)
	}
}

// testServer runs the tests on a server and writes its column.
func testServer(name string, only *regexp.Regexp, logs string) (equal bool, err error) {
	if err := os.Setenv(mysqltest.EnvServer, name); err != nil {
		return false, err
	}
	for _, env := range []string{mysqltest.EnvDSN, mysqltest.EnvMySQLDSN} {
		os.Unsetenv(env)
	}
	needed := []string{name}
	if name == "tidb" {
		needed = append(needed, "mariadb", "mysql", "commandline") // rows are moved from these servers
	}
	if err := run(".ci/install", needed...); err != nil {
		return false, err
	}
	version, err := versionOf()
	if err != nil {
		return false, err
	}
	log, err := os.Create(filepath.Join(logs, "leafsql-"+name+".log"))
	if err != nil {
		return false, err
	}
	defer log.Close()
	fmt.Printf("%s: %s; what the tests print is in %s\n", name, version, log.Name())

	found := newResults()
	excluded, err := exclusions(name)
	if err != nil {
		return false, err
	}
	for _, p := range packages {
		names := slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return !only.MatchString(path.Join(p.module, name)) })
		if len(names) == 0 {
			continue
		}
		if err := found.run(name, p.module, p.tests, names, excluded, log); err != nil {
			return false, err
		}
	}
	column := make(map[string]string)
	equal = true
	for _, c := range capabilities {
		if slices.ContainsFunc(c.tests, func(tests string) bool { return !only.MatchString(packageOf(tests)) }) {
			continue
		}
		if c.what == moveShards && name != "tidb" {
			column[c.what] = lacking
			continue
		}
		column[c.what] = found.cell(c.tests)
		equal = equal && column[c.what] != differs && column[c.what] != notRun
	}
	if !only.MatchString("go-sql-driver") {
		return equal, writeColumn(file, version, column)
	}
	began := time.Now()
	cmd := exec.Command("go", "run", "./testutil/conformance", "-v", "-server", string(mysqltest.Kinds()[0]), "go-sql-driver")
	cmd.Stdout, cmd.Stderr = log, log
	column[suite] = same
	if err := cmd.Run(); err != nil {
		column[suite], equal = differs, false
	}
	fmt.Printf("%s: go-sql-driver's tests: %s, %s\n", name, column[suite], time.Since(began).Round(time.Second))
	return equal, writeColumn(file, version, column)
}

// packageOf returns the package of a capability's tests.
func packageOf(tests string) string {
	pkg, _, _ := strings.Cut(tests, " ")
	return pkg
}

func run(command string, args ...string) error {
	cmd := exec.Command(command, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// versionOf starts the server and returns its name and version, such as "MySQL
// 8.0.33".
func versionOf() (string, error) {
	server, err := mysqltest.Start(mysqltest.Config{})
	if err != nil {
		return "", err
	}
	defer server.Stop()
	return server.Version()
}

// run runs the tests of a module's packages and prints its progress.
func (r *results) run(name, folder, tests string, packages []string, excluded []exclusion, log *os.File) error {
	kind, _, _ := strings.Cut(name, "-") // some tests are for one kind of server
	skip := elsewhere
	for _, x := range excluded {
		if slices.ContainsFunc(packages, func(pkg string) bool { return path.Join(folder, pkg) == x.pkg }) {
			skip += "|" + x.pattern()
			r.exclude(x)
		}
	}
	atOnce := "-p=2"
	if name == "vitess" { // each package starts its own vtcombo and MySQL, which need both cores
		atOnce = "-p=1"
	}
	cmd := exec.Command("go", append([]string{"test", "-C", folder, "-json", "-count=1", "-timeout=90m", atOnce, "-run=" + tests, "-skip=" + skip, "-tags=" + kind}, packages...)...)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	began := time.Now()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(log, lines.Text())
			continue
		}
		e.Package = strings.TrimPrefix(e.Package, module)
		fmt.Fprint(log, e.Output)
		r.add(e)
		switch {
		case e.Action == "fail" && e.Test != "" && !strings.Contains(e.Test, "/"):
			fmt.Printf("%s: %s %s FAILED\n", name, e.Package, e.Test)
		case e.Test == "" && (e.Action == "pass" || e.Action == "fail"):
			fmt.Printf("%s: %s: %s, %s\n", name, e.Package, r.summary(e.Package), time.Since(began).Round(time.Second))
			if e.Action == "fail" {
				r.broken[e.Package] = true
			}
		}
	}
	if exit := (*exec.ExitError)(nil); lines.Err() != nil {
		return lines.Err()
	} else if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// An event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// A result is the outcome of one test with its subtests.
type result struct {
	action                  string // pass, fail or skip
	refused, missingFeature bool   // in some subtest
}

type results struct {
	tests  map[string]map[string]*result // by package and test
	broken map[string]bool               // packages that failed as a whole
}

func newResults() *results {
	return &results{map[string]map[string]*result{}, map[string]bool{}}
}

func (r *results) add(e event) {
	if e.Test == "" {
		return
	}
	top, part, _ := strings.Cut(e.Test, "/")
	test := r.test(e.Package, top)
	test.refused = test.refused || strings.Contains(e.Output, mysqltest.Refused)
	test.missingFeature = test.missingFeature || strings.Contains(e.Output, mysqltest.Lacks)
	if part == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
		test.action = e.Action
	}
}

// test returns the result of a test. A test that has not ended counts as failed.
func (r *results) test(pkg, name string) *result {
	if r.tests[pkg] == nil {
		r.tests[pkg] = map[string]*result{}
	}
	if r.tests[pkg][name] == nil {
		r.tests[pkg][name] = &result{action: "fail"}
	}
	return r.tests[pkg][name]
}

func (r *results) summary(pkg string) string {
	counts := map[string]int{}
	for _, t := range r.tests[pkg] {
		counts[t.action]++
	}
	return fmt.Sprintf("%d tests passed, %d failed, %d cannot be", counts["pass"], counts["fail"], counts["skip"])
}

// The texts of a cell.
const (
	same    = "equal"
	refused = "refused"
	lacking = "not available"
	differs = "**differs**"
	notRun  = "not run"
)

// cell returns the result of a capability's tests.
func (r *results) cell(tests []string) string {
	var pass, skip, fail int
	var anyRefused, anyLack bool
	for _, t := range tests {
		pkg, pattern, _ := strings.Cut(t, " ")
		if pattern == "." && r.broken[pkg] {
			fail++
		}
		matches := regexp.MustCompile(pattern)
		for name, test := range r.tests[pkg] {
			if !matches.MatchString(name) {
				continue
			}
			switch test.action {
			case "pass":
				pass++
			case "skip":
				skip++
			default:
				fail++
			}
			anyRefused, anyLack = anyRefused || test.refused, anyLack || test.missingFeature
		}
	}
	switch {
	case fail > 0:
		return differs
	case pass > 0 && anyRefused:
		return same + ", in part refused"
	case pass > 0:
		return same
	case anyRefused:
		return refused
	case anyLack:
		return lacking
	}
	return notRun
}
