// Package servertest tests package driver as an application uses it, on real servers, with a file for each topic
// that a user sees. Most tests compare with the plain driver and AUTO_INCREMENT.
package servertest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// roles are functions that the test binary runs instead of tests if their environment variable is set to a DSN.
var roles = map[string]func() error{envWriter: write, envInserter: inserter}

// notOnThisVersion skips a test on a server that was selected by version if the plain driver's error shows that the version lacks
// the tested feature.
func notOnThisVersion(t *testing.T, text string, err error) {
	t.Helper()
	if os.Getenv(mysqltest.EnvServer) != "" && isNumber(err, 1064, 1231, 1235, 1295) { // no such syntax, no such value, not supported, not in a prepared statement
		t.Skip(mysqltest.Lacks + text)
	}
}

// refusedForItsVersion reports whether a statement was refused because the server, which was selected by version, has the bug
// MDEV-36026, or is TiDB or Vitess.
func refusedForItsVersion(t *testing.T, text string, err error) bool {
	t.Helper()
	if os.Getenv(mysqltest.EnvServer) == "" || !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "MDEV-36026") && !strings.Contains(err.Error(), "are not filled on ") {
		return false
	}
	t.Log(mysqltest.Refused + text)
	return true
}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the tests create tables that leafsql warns about
	mysql.SetLogger(&mysql.NopLogger{})            // and close connections
	for env, process := range roles {
		if os.Getenv(env) == "" {
			continue
		}
		if err := process(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
