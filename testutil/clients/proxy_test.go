//go:build unix

package clients

import (
	"log/slog"
	"os"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// TestMain discards leafsql's warnings that stores of one process have equal tags, as each test has a store.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// startProxy starts a proxy for the database of a DSN, which fills the given tables, and returns its address.
func startProxy(t *testing.T, dsn, tables string) string {
	t.Helper()
	return proxytest.Start(t, addParameters(dsn, "leafTables="+tables+"&leafCreate=true"))
}
