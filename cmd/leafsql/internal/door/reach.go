package door

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

// elsewhere connects leafsql's own account to the server that clients are taken to, where the DSN
// leads to another address; nil where it leads there. A connection that only dialed would be a
// login that was broken off, of which servers count how many there are.
func elsewhere(cfg Config, dsn *mysql.Config) (driver.Connector, error) {
	if cfg.Server == dsn.Addr {
		return nil, nil
	}
	at := dsn.Clone()
	at.Addr, at.Net, at.DBName, at.TLS, at.Logger = cfg.Server, "tcp", "", serverTLS(dsn, cfg.Server), &mysql.NopLogger{}
	if isPath(cfg.Server) {
		at.Net = "unix"
	}
	at.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil && cfg.ServerProxyProtocol { // of nobody: it is the proxy's own
			if _, err = c.Write(wire.AppendHeader(nil, netip.AddrPort{}, netip.AddrPort{})); err != nil {
				c.Close()
			}
		}
		return c, err
	}
	connector, err := mysql.NewConnector(at)
	if err != nil {
		return nil, fmt.Errorf("leafsql: proxy: -server: %w", err)
	}
	return connector, nil
}

func isPath(address string) bool { return strings.Contains(address, "/") }

// serverTLS returns how connections of clients check the server's certificate: as the DSN does.
func serverTLS(dsn *mysql.Config, server string) *tls.Config {
	if dsn.TLS == nil {
		return nil
	}
	of := dsn.TLS.Clone()
	if host, _, err := net.SplitHostPort(server); err == nil && server != dsn.Addr {
		of.ServerName = host
	}
	return of
}

// warnIncrement warns of an auto_increment_increment with which some clients name other rows than theirs.
func (d *Door) warnIncrement(ctx context.Context) {
	db := d.elsewhere
	if db == nil {
		connector, err := mysql.NewConnector(d.driver.MySQL)
		if err != nil {
			return
		}
		db = sql.OpenDB(connector)
		defer db.Close()
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT @@GLOBAL.auto_increment_increment").Scan(&n); err == nil && n > 1 {
		d.log.Warn("leafsql: the server's auto_increment_increment is above 1, so clients that count the ids of several rows by it name other rows", "value", n,
			"way out", "sessionVariables=auto_increment_increment=1 in the URL of Connector/J; or for all clients, once no table has AUTO_INCREMENT: SET GLOBAL auto_increment_increment = 1")
	}
}

// reaches says why the server that clients are taken to does not answer. One that does not know
// leafsql's account has answered, and is not asked again: it may count such logins.
func (d *Door) reaches(ctx context.Context) error {
	if d.elsewhere == nil || d.stranger {
		return nil
	}
	err := d.elsewhere.PingContext(ctx)
	d.stranger = servererr.Is(err, servererr.LoginDenied, servererr.SocketLoginDenied)
	if d.stranger {
		d.log.Warn("leafsql: leafsql's own account may not log in at -server, so that broken logins can get the proxy's host refused", "error", err, "way out", "create the account there, or SET GLOBAL max_connect_errors = 4294967295")
	}
	if err == nil || d.stranger {
		return nil
	}
	return fmt.Errorf("-server %s: %w", d.cfg.Server, err)
}

// checkSocket returns an error if no client could log in: after a restart of MySQL behind its unix socket, clients without TLS get
// error 1045 with the right password, and there is no certificate to offer TLS with. A server that is away gets no check here: the
// proxy refuses clients without TLS later.
func (d *Door) checkSocket(ctx context.Context) error {
	if !isPath(d.cfg.Server) || d.cfg.Cert != "" {
		return nil
	}
	db := d.elsewhere
	if db == nil {
		connector, err := mysql.NewConnector(d.driver.MySQL)
		if err != nil {
			return nil // which driver.NewConnector has found right
		}
		db = sql.OpenDB(connector)
		defer db.Close()
	}
	var version string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil || strings.Contains(version, "MariaDB") {
		return nil
	}
	return fmt.Errorf("leafsql: proxy: -server %s: MySQL behind its unix socket takes clients with TLS only; set -cert and -key, or name the server's host and port with -server", d.cfg.Server)
}
