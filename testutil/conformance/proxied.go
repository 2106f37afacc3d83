//go:build unix

package main

import (
	"crypto/tls"
	"database/sql"
	"errors"
	"net"
	"strings"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/selfsigned"
)

// proxied is the mode in which a suite runs on go-sql-driver itself, with connections through the proxy.
const proxied = "proxied"

// startProxy starts a proxy that fills all tables it can, with ids from a separate database.
func startProxy(server *mysqltest.Server) (addr string, stop func(), err error) {
	db, err := sql.Open("mysql", server.DSN(""))
	if err == nil {
		_, err = db.Exec("CREATE DATABASE leaf")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return "", nil, err
	}
	cfg, err := driver.ParseDSN(server.DSN("leaf") + "?leafTables=*.*&leafCreate=true")
	if err != nil {
		return "", nil, err
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return "", nil, err
	}
	own, err := selfsigned.New()
	if err != nil {
		return "", nil, err
	}
	p, err := proxy.New(proxy.Config{Connector: connector, Server: server.Addr(), TLS: &tls.Config{Certificates: own.Client().Certificates}})
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, p.Close())
	}
	go p.Serve(l)
	return l.Addr().String(), func() { p.Close(); connector.Close() }, nil
}

// withAddress returns the settings of a suite with another address instead of the
// server's.
func withAddress(settings []string, server, addr string) []string {
	if addr == "" {
		return settings
	}
	other := make([]string, len(settings))
	for i, s := range settings {
		other[i] = strings.ReplaceAll(s, server, addr)
	}
	return other
}
