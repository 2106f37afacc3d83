// Package servertest tests package driver from outside, as an application uses it, on real servers: a file for each thing
// that a user writes or meets. Most compare with the plain driver and AUTO_INCREMENT.
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

// roles are what the test binary is instead where the environment names a DSN for it.
var roles = map[string]func() error{envWriter: write, envInserter: inserter}

// notOnThisVersion skips a test on a server that is named by its version, where the plain driver shows that the version does not
// have what the test is about.
func notOnThisVersion(t *testing.T, text string, err error) {
	t.Helper()
	if os.Getenv(mysqltest.EnvServer) != "" && isNumber(err, 1064, 1231, 1295) { // no such syntax, no such value, not in a prepared statement
		t.Skip(mysqltest.Lacks + text)
	}
}

// refusedForItsVersion reports whether a statement was refused since this version of the server, which was named, has the bug
// MDEV-36026.
func refusedForItsVersion(t *testing.T, text string, err error) bool {
	t.Helper()
	if os.Getenv(mysqltest.EnvServer) == "" || !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "MDEV-36026") {
		return false
	}
	t.Log(mysqltest.Refused + text)
	return true
}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the tests make tables that leafsql warns of
	mysql.SetLogger(&mysql.NopLogger{})            // and cut connections
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
