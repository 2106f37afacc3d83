// Package servertest tests package driver from outside, as an application uses it, on real servers: a file for each thing
// that a user writes or meets. Most compare with the plain driver and AUTO_INCREMENT.
package servertest

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// roles are what the test binary is instead where the environment names a DSN for it.
var roles = map[string]func() error{envWriter: write, envInserter: inserter}

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
