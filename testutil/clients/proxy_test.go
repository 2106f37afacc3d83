//go:build unix

package clients

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
)

// TestMain does without what leafsql logs: that stores of one process have equal tags, as each test has a store.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	os.Exit(m.Run())
}

// startProxy starts a proxy for the database of a DSN, of which it fills every table that it can, and returns its address.
func startProxy(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := driver.ParseDSN(parameters(dsn, "leafTables=*&leafCreate=true"))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server, err := proxy.New(proxy.Config{Connector: connector, Server: address(t, dsn)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; !errors.Is(err, proxy.ErrClosed) {
			t.Error(err)
		}
		connector.Close()
	})
	return l.Addr().String()
}
