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

// Start starts a proxy before the server of a DSN, which names the configured tables and leafsql's own account, and returns
// its address. It ends with the test.
func Start(t testing.TB, dsn string, settings ...func(*proxy.Config)) (addr string) {
	t.Helper()
	_, addr = Serve(t, dsn, settings...)
	return addr
}

// Serve does what Start does, and returns the proxy too, which the test may end itself.
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
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
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
