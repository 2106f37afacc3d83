package proxyserver

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/wire"
)

// newServerConnector returns a connector to the clients' server with leafsql's account, or nil if this server has
// the DSN's address. The probe of the server needs it: servers count connections without a login as aborted logins.
func newServerConnector(cfg Config, dsn *mysql.Config) (driver.Connector, error) {
	if cfg.Server == dsn.Addr {
		return nil, nil
	}
	serverConfig := dsn.Clone()
	serverConfig.Addr, serverConfig.Net, serverConfig.DBName, serverConfig.TLS, serverConfig.Logger = cfg.Server, "tcp", "", serverTLS(dsn, cfg.Server), &mysql.NopLogger{}
	if isPath(cfg.Server) {
		serverConfig.Net = "unix"
	}
	serverConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil && cfg.ServerProxyProtocol { // without a client's address: the connection is the proxy's own
			if _, err = c.Write(wire.AppendHeader(nil, netip.AddrPort{}, netip.AddrPort{})); err != nil {
				c.Close()
			}
		}
		return c, err
	}
	connector, err := mysql.NewConnector(serverConfig)
	if err != nil {
		return nil, fmt.Errorf("leafsql: proxy: -server: %w", err)
	}
	return connector, nil
}

func isPath(address string) bool { return strings.Contains(address, "/") }

// serverTLS returns the TLS configuration for clients' connections to the server, which is the DSN's configuration.
func serverTLS(dsn *mysql.Config, server string) *tls.Config {
	if dsn.TLS == nil {
		return nil
	}
	config := dsn.TLS.Clone()
	if host, _, err := net.SplitHostPort(server); err == nil && server != dsn.Addr {
		config.ServerName = host
	}
	return config
}

// warnIncrement logs a warning if auto_increment_increment is above 1, because some clients then compute
// wrong ids.
func (s *Server) warnIncrement(ctx context.Context) {
	db := s.serverDB
	if db == nil {
		connector, err := mysql.NewConnector(s.driver.MySQL)
		if err != nil {
			return
		}
		db = sql.OpenDB(connector)
		defer db.Close()
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT @@GLOBAL.auto_increment_increment").Scan(&n); err == nil && n > 1 {
		s.log.Warn("leafsql: the server's auto_increment_increment is above 1, so clients that compute the ids of several rows with it return wrong ids", "auto_increment_increment", n,
			"hint", "sessionVariables=auto_increment_increment=1 in the URL of Connector/J; or for all clients, once no table has AUTO_INCREMENT: SET GLOBAL auto_increment_increment = 1")
	}
}

// pingServer returns an error if the clients' server does not answer. A server that rejects leafsql's account
// has answered. It is not probed again, since it may count such logins.
func (s *Server) pingServer(ctx context.Context) error {
	if s.serverDB == nil || s.loginDenied {
		return nil
	}
	err := s.serverDB.PingContext(ctx)
	s.loginDenied = servererr.Is(err, servererr.LoginDenied, servererr.SocketLoginDenied)
	if s.loginDenied {
		s.log.Warn("leafsql: leafsql's account cannot log in at -server, so the server may refuse the proxy's host after broken logins", "err", err, "hint", "create the account on that server, or SET GLOBAL max_connect_errors = 4294967295")
	}
	if err == nil || s.loginDenied {
		return nil
	}
	return fmt.Errorf("-server %s: %w", s.cfg.Server, err)
}

// checkSocket returns an error if the server is a MySQL at a unix socket and the proxy has no certificate. After a
// restart of such a server, clients without TLS get error 1045 even with the right password, and without a
// certificate the proxy cannot offer TLS. If the server is unreachable, it returns nil, and the proxy refuses
// clients without TLS later.
func (s *Server) checkSocket(ctx context.Context) error {
	if !isPath(s.cfg.Server) || s.cfg.Cert != "" {
		return nil
	}
	db := s.serverDB
	if db == nil {
		connector, err := mysql.NewConnector(s.driver.MySQL)
		if err != nil {
			return nil // driver.NewConnector has accepted the configuration
		}
		db = sql.OpenDB(connector)
		defer db.Close()
	}
	var version string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil || strings.Contains(version, "MariaDB") {
		return nil
	}
	return fmt.Errorf("leafsql: proxy: -server %s: MySQL requires TLS from clients at its unix socket; set -cert and -key, or set -server to the server's host and port", s.cfg.Server)
}
