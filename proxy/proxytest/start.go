package proxytest

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
)

// Start starts a proxy in front of the server of a DSN. The DSN has the configured tables and leafsql's own
// account. Start returns the proxy's address. The proxy ends with the test.
func Start(t testing.TB, dsn string, settings ...func(*proxy.Config)) (addr string) {
	t.Helper()
	_, addr = Serve(t, dsn, settings...)
	return addr
}

// Serve is like Start, and also returns the proxy, which the test may end itself.
func Serve(t testing.TB, dsn string, settings ...func(*proxy.Config)) (p *proxy.Server, addr string) {
	t.Helper()
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server, err := mysql.ParseDSN(cfg.MySQL.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	config := proxy.Config{Connector: connector, Server: server.Addr, Logger: slog.New(slog.DiscardHandler)}
	for _, set := range settings {
		set(&config)
	}
	if p, err = proxy.New(config); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			t.Errorf("the proxy's end: %v", err)
		}
		if err := <-ended; err != proxy.ErrClosed {
			t.Errorf("the proxy's Serve: %v", err)
		}
		connector.Close()
	})
	return p, l.Addr().String()
}
