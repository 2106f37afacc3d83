//go:build unix

package main

import (
	"bytes"
	"cmp"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/testutil/conformance/through"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// outcomes contains the outcome of each test: PASS, FAIL, SKIP or PANIC.
type outcomes map[string]string

// The modes of a suite, by its kind. The runs in the other modes are compared
// with the run in the first mode.
var (
	ofKeylessTables = []string{"bare", "none", "hidden", "filled"}
	ofTables        = []string{"bare", "none", "filled"}
	ofADriver       = []string{"bare", proxied, "none", "hidden", "filled"}
	ofAutoIncrement = []string{"bare", "left", "dropped", "control"}
)

// compareModes runs the tests of one package on one server in all modes, and reports
// whether they conform.
func (p peer) compareModes(b binary, server *mysqltest.Server, verbose bool) (bool, error) {
	excluded, err := p.exclusions()
	if err != nil {
		return false, err
	}
	var bare outcomes
	ok := true
	for _, mode := range p.modes {
		skip := excluded[mode]
		started := time.Now()
		got, log, err := p.run(b, mode, server, slices.Sorted(maps.Keys(skip)))
		if err != nil {
			return false, err
		}
		took := time.Since(started).Seconds()
		counts := map[string]int{}
		for _, o := range got {
			counts[o]++
		}
		switch mode {
		case "bare":
			bare = got
		case "hidden": // a test that passes only on tables without keys cannot be compared with the mode "filled"
			for name := range bare {
				if got[name] != "PASS" {
					delete(bare, name)
				}
			}
		}
		differ := findDifferences(bare, got, skip)
		fmt.Printf("%s %s: %d passed, %d failed, %d skipped, %d excluded, %d differ, %d errors of mysql-leaf (%s, %.0f s)\n",
			filepath.Join(p.name, b.pkg), mode, counts["PASS"], counts["FAIL"]+counts["PANIC"], counts["SKIP"], len(skip), len(differ),
			bytes.Count(log, []byte("\n"+through.ErrorPrefix)), server.Kind(), took)
		if mode == "control" {
			continue
		}
		for _, name := range differ {
			ok = false
			fmt.Printf("  %s: %s, passes on go-sql-driver\n", name, cmp.Or(got[name], "did not run"))
			if verbose {
				fmt.Println(indent(testOutput(log, name)))
			}
		}
	}
	return ok, nil
}

// findDifferences returns the tests that pass on go-sql-driver and do not pass in
// got, except those in skip.
func findDifferences(bare, got outcomes, skip map[string]string) (names []string) {
	for name, before := range bare {
		if top, _, _ := strings.Cut(name, "/"); before == "PASS" && got[name] != "PASS" && skip[top] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

//go:embed excluded.txt
var exclusions string

// exclusions returns the peer's part of excluded.txt: reasons by mode and test.
func (p peer) exclusions() (map[string]map[string]string, error) {
	modes := map[string]map[string]string{proxied: {}, "none": {}, "hidden": {}, "filled": {}, "left": {}, "dropped": {}}
	for _, line := range parseLines(exclusions) {
		test, reason, ok := strings.Cut(line, " # ")
		f := strings.Fields(test)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("excluded.txt: %q: want PEER MODE TEST # REASON", line)
		}
		if f[0] != p.name {
			continue
		}
		for mode := range modes {
			if f[1] == mode || f[1] == mode+"@"+os.Getenv(mysqltest.EnvServer) || f[1] == "leaf" && mode != proxied || f[1] == "filled" && mode == "hidden" {
				modes[mode][f[2]] = reason
			}
		}
	}
	return modes, nil
}

// parseLines returns the lines that are neither empty nor a comment.
func parseLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

const timeout = 10 * time.Minute

var (
	result  = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	uuids   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`) // part of a test's name, different in each run
	started = regexp.MustCompile(`(?m)^=== (?:RUN|CONT|NAME)\s+(\S+)`)
)

// run runs the tests in one mode on a new database. If a test panics, which ends
// the binary, the other tests run again without it.
func (p peer) run(b binary, mode string, server *mysqltest.Server, skip []string) (outcomes, []byte, error) {
	got := outcomes{}
	var log bytes.Buffer
	for {
		database := "conformance"
		if err := recreateDatabase(server, database); err != nil {
			return nil, nil, err
		}
		if err := p.createSchema(server, mode, b.tree); err != nil {
			return nil, nil, err
		}
		addr := ""
		if mode == proxied {
			var stop func()
			var err error
			if addr, stop, err = startProxy(server); err != nil {
				return nil, nil, err
			}
			defer stop()
		}
		args := []string{"-test.v", "-test.timeout=" + timeout.String()}
		if p.tests != "" {
			args = append(args, "-test.run="+p.tests)
		}
		if len(skip) > 0 {
			args = append(args, "-test.skip=^("+strings.Join(skip, "|")+")$")
		}
		if p.args != nil {
			args = append(args, withAddress(p.args(server, database), server.Addr(), addr)...)
		}
		cmd := exec.Command(b.path, args...)
		cmd.Dir = b.folder
		cmd.Env = append(os.Environ(),
			through.EnvMode+"="+mode,
			through.EnvDSN+"="+server.DSN(database),
			through.EnvTables+"="+b.path+".tables")
		switch {
		case slices.Contains(p.modes, "hidden"):
			cmd.Env = append(cmd.Env, through.EnvHidden+"=yes")
		case slices.Contains(p.modes, "left"):
			cmd.Env = append(cmd.Env, through.EnvAddr+"="+server.Addr())
		}
		if p.env != nil {
			cmd.Env = append(cmd.Env, withAddress(p.env(server, database), server.Addr(), addr)...)
		}
		out, err := cmd.CombinedOutput()
		log.Write(out)
		if err := os.WriteFile(fmt.Sprintf("%s.%s.%s.log", b.path, server.Kind(), mode), log.Bytes(), 0o644); err != nil {
			return nil, nil, err
		}
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return nil, nil, err
		}
		outcomes, top := parse(out)
		maps.Copy(got, outcomes)
		switch {
		case len(got) == 0 && mode == "control": // the first INSERT ends the program
			return got, log.Bytes(), nil
		case len(got) == 0:
			return nil, nil, fmt.Errorf("no test ran: %v\n%s", err, out)
		case top == "":
			return got, log.Bytes(), nil
		case slices.Contains(skip, top):
			return nil, nil, fmt.Errorf("%s panics although it is left out\n%s", top, out)
		}
		got[top] = "PANIC"
		skip = append(slices.Clone(skip), top)
	}
}

// parse returns the outcomes in the output of a test binary, and the test whose
// panic ended the binary.
func parse(out []byte) (got outcomes, crashed string) {
	got = outcomes{}
	for _, m := range result.FindAllSubmatch(out, -1) {
		got[uuids.ReplaceAllString(string(m[2]), "UUID")] = string(m[1])
	}
	at := bytes.Index(out, []byte("\npanic: "))
	if at < 0 {
		return got, ""
	}
	running := started.FindAllSubmatch(out[:at], -1)
	if len(running) == 0 {
		return got, "?"
	}
	crashed, _, _ = strings.Cut(string(running[len(running)-1][1]), "/")
	return got, crashed
}

// serversOwn are databases and keyspaces that every server has.
var serversOwn = []string{"information_schema", "mysql", "performance_schema", "sys", "metrics_schema", mysqltest.ShardedKeyspace, "unsharded"}

// recreateDatabase creates an empty database and drops everything that suites have
// created. The database is utf8mb4 with the server's own collation.
func recreateDatabase(server *mysqltest.Server, database string) error {
	db, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	var old []string
	if err := sqlx.NewDb(db, "mysql").Select(&old, "SHOW DATABASES"); err != nil { // information_schema of Vitess has the databases of one shard
		return err
	}
	for _, name := range old {
		if slices.Contains(serversOwn, strings.ToLower(name)) {
			continue
		}
		if _, err := db.Exec("DROP DATABASE `" + name + "`"); err != nil {
			return err
		}
	}
	_, err = db.Exec("CREATE DATABASE " + database)
	return err
}

// createSchema executes the program's SQL files.
func (p peer) createSchema(server *mysqltest.Server, mode, tree string) error {
	db, err := sql.Open("mysql", server.DSN("")+"?multiStatements=true")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, file := range p.schema {
		text, err := os.ReadFile(filepath.Join(tree, file))
		if err != nil {
			return err
		}
		if mode == "dropped" || mode == "control" {
			text = []byte(through.StripAutoIncrement(string(text)))
		}
		if _, err := db.Exec(string(text)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// testOutput returns the output of a test.
func testOutput(log []byte, name string) []byte {
	var out []byte
	printing := false
	for line := range bytes.Lines(log) {
		if m := started.FindSubmatch(line); m != nil {
			printing = string(m[1]) == name
		}
		if m := result.FindSubmatch(line); m != nil {
			printing = string(m[2]) == name
		}
		if printing && len(out) < 4000 {
			out = append(out, line...)
		}
	}
	return out
}

func indent(b []byte) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", "\n      ")
}
