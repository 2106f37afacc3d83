//go:build unix && clients

package clients

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A suite is the test suite of a project.
type suite struct {
	name      string
	command   func(t *testing.T, at serverAddr) *exec.Cmd
	result    *regexp.Regexp    // matches a line with a test's name and outcome
	minTests  int               // minimum of passed tests
	differing map[string]string // tests with another outcome through the proxy, by a regular expression, and the reason
}

// A serverAddr is the server for a suite.
type serverAddr struct {
	host, port, database string
	user
}

var suites = []suite{
	{"SQLAlchemy", func(t *testing.T, at serverAddr) *exec.Cmd {
		cmd := python("-m", "pytest", "-v", "--color=no", "--dburi",
			fmt.Sprintf("mysql+pymysql://%s:%s@%s:%s/%s", at.name, strings.ReplaceAll(at.password, " ", "%20"), at.host, at.port, at.database))(t)
		cmd.Dir = filepath.Join("testdata", "sqlalchemy")
		return cmd
	}, regexp.MustCompile(`(?m)^(test_suite\.py::.*) (PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)\b`), 800, map[string]string{
		`test_autoincrement_on_insert|test_imv_returning_datatypes|test_insert_w_floats|test_roundtrip_fetch`: "ids go on in a table that was dropped and made again, and these want them from 1",
		`RowCountTest.*test_basic`: "stores key 0 in a column without AUTO_INCREMENT; a pattern in leafTables fills it",
	}},
	{"Django", func(t *testing.T, at serverAddr) *exec.Cmd {
		settings, err := filepath.Abs("testdata/django")
		if err != nil {
			t.Fatal(err)
		}
		cmd := python("runtests.py", "--settings=leafsql_settings", "--parallel=1", "-v2", "--noinput", "backends", "basic", "bulk_create", "custom_pk",
			"force_insert_update", "get_or_create", "many_to_many", "model_inheritance", "transactions", "update")(t)
		cmd.Env = append(cmd.Env, "PYTHONPATH="+settings, "DB_HOST="+at.host, "DB_PORT="+at.port, "DB_USER="+at.name, "DB_PASSWORD="+at.password,
			"DB_NAME="+at.database)
		cmd.Dir = filepath.Join(installedFolder(t, "django"), "tests")
		return cmd
	}, regexp.MustCompile(`(?m)^(\w+ \([\w.]+\))(?:\n.*)? \.\.\. (ok|FAIL|ERROR|skipped|expected failure)`), 450, map[string]string{
		`SqlFlushTests\.test_execute_sql_flush_statements`: "ids go on in a table that was emptied",
		`CustomPKTests\.test_required_pk`:                  "wants a key without AUTO_INCREMENT to be missed; a pattern in leafTables fills it",
		`CustomPKTests\.test_zero_non_autoincrement_pk`:    "stores key 0 in such a table",
	}},
}

// TestSuites runs suites directly and through a proxy that fills every table that they create: the outcome of each test
// is the same.
func TestSuites(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		for _, s := range suites {
			t.Run(target.Name+"/"+s.name, func(t *testing.T) {
				own := target.Database(t)
				u := createAccount(t, target)
				execute(t, target.DSN(), fmt.Sprintf("GRANT ALL ON *.* TO %s@'%%'", u.name))
				want := s.run(t, target, address(t, own), u)
				got := s.run(t, target, startProxy(t, own, "*.*"), u)
				different, expected := 0, 0
				for _, name := range slices.Sorted(maps.Keys(want)) {
					switch {
					case got[name] == want[name]:
					case s.mayDiffer(name):
						expected++
					default:
						different++
						t.Errorf("%s: %s directly, %q through the proxy", name, want[name], got[name])
					}
				}
				counts := make(map[string]int)
				for _, outcome := range want {
					counts[outcome]++
				}
				t.Logf("%v directly, %d different through the proxy beyond %d that are to be", counts, different, expected)
				if len(got) != len(want) || counts["PASSED"]+counts["ok"] < s.minTests {
					t.Errorf("%d tests directly, %d through the proxy; want the same, and at least %d that pass", len(want), len(got), s.minTests)
				}
			})
		}
	}
}

func (s suite) mayDiffer(test string) bool {
	for pattern := range s.differing {
		if regexp.MustCompile(pattern).MatchString(test) {
			return true
		}
	}
	return false
}

// run returns the outcome of each test.
func (s suite) run(t *testing.T, target mysqltest.Target, addr string, u user) map[string]string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	database := parseDSN(t, target.Database(t)).DBName
	execute(t, target.DSN(), "CREATE DATABASE IF NOT EXISTS test_schema") // SQLAlchemy's second database
	defer execute(t, target.DSN(), "DROP DATABASE test_schema")
	cmd := s.command(t, serverAddr{host, port, database, u})
	cmd.Env = append(os.Environ(), cmd.Env...)
	out, err := cmd.CombinedOutput()
	outcomes := make(map[string]string)
	for _, match := range s.result.FindAllStringSubmatch(string(out), -1) {
		outcomes[match[1]] = match[2]
	}
	if len(outcomes) == 0 {
		t.Fatalf("no outcomes of tests in the output (%v), want some\n%s", err, out)
	}
	return outcomes
}
