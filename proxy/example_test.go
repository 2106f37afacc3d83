package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
)

// A proxy that ends its sessions between transactions.
func ExampleNew() {
	cfg, err := driver.ParseDSN("leaf:secret@tcp(db:3306)/shop?leafTables=*")
	if err != nil {
		log.Fatal(err)
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer connector.Close()
	p, err := proxy.New(proxy.Config{Connector: connector, Server: "db:3306"})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:3307")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		<-ctx.Done()
		left, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		p.Shutdown(left)
	}()
	if err := p.Serve(listener); !errors.Is(err, proxy.ErrClosed) {
		log.Fatal(err)
	}
}

// A proxy behind HAProxy, which sends each client's address; the proxy sends it to MariaDB.
func ExampleConfig_proxyProtocol() {
	connector := new(driver.Connector) // as for New
	cfg := proxy.Config{
		Connector: connector, Server: "db:3306",
		ProxyProtocol:       []netip.Prefix{netip.MustParsePrefix("10.0.0.5/32"), netip.MustParsePrefix("fd00::/64")},
		ServerProxyProtocol: true,
	}
	p, err := proxy.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Stats().Connections, "connections")
	// Output: 0 connections
}
