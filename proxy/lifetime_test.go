//go:build unix

package proxy_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestConfigIsRefused: New refuses a configuration that could not serve any client.
func TestConfigIsRefused(t *testing.T) {
	connector := new(driver.Connector)
	for want, cfg := range map[string]proxy.Config{
		"Connector": {Server: "db:3306"}, "Server: ": {Connector: connector}, "RequireTLS": {Connector: connector, Server: "db:3306", RequireTLS: true},
		"ServerName": {Connector: connector, Server: "db:3306", ServerTLS: new(tls.Config)},
	} {
		if _, err := proxy.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New() error = %v, want %s", err, want)
		}
	}
}

// TestSessionsEndTogether: clients connect and disconnect concurrently. A shutdown of the proxy ends idle
// sessions, and sessions with a transaction that then ends.
func TestSessionsEndTogether(t *testing.T) {
	dsn := mysqltest.Database(t)
	server, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	separator := "?"
	if strings.Contains(dsn, separator) {
		separator = "&"
	}
	cfg, err := driver.ParseDSN(dsn + separator + "leafTables=none")
	if err != nil {
		t.Fatal(err)
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer connector.Close()
	p, err := proxy.New(proxy.Config{Connector: connector, Server: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	server.Addr, server.Logger = l.Addr().String(), &mysql.NopLogger{}
	through := server.FormatDSN()

	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				db, err := sql.Open("mysql", through)
				if err == nil {
					err = errors.Join(db.Ping(), db.Close())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	db, err := sql.Open("mysql", through)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("DO 1"); err != nil {
		t.Fatal(err)
	}
	idle, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Shutdown(ctx) }()
	if err := <-served; !errors.Is(err, proxy.ErrClosed) {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("Commit() of a transaction that was open = %v, want nil", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Shutdown() = %v, want nil", err)
	}
}
