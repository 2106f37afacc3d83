// Package proxyserver runs package proxy as the process leafsql proxy, with its listeners, status page, metrics
// and shutdown.
//
//	s, err := proxyserver.New(proxyserver.Config{DSN: dsn, Listen: []string{"127.0.0.1:3307"}})
//	if err != nil {
//		return err
//	}
//	return s.Run(ctx) // until ctx ends; then it drains
package proxyserver

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/version"
	"github.com/leafsql/leafsql/proxy"
)

// Config configures a Server. A field with the zero value has the default in its comment; negative limits are
// errors.
type Config struct {
	DSN     string   // DSN of leafsql's account, with the leaf parameters
	Server  string   // address of the clients' server; default: the DSN's address
	Listen  []string // host:port, or paths of unix sockets; default: 127.0.0.1:3307
	Metrics string   // host:port of the page and the metrics; "": disabled

	Cert, Key  string // PEM files; both or none
	RequireTLS bool
	Insecure   bool // allow passwords and rows on a network without TLS

	ProxyProtocol       []netip.Prefix // addresses of balancers; their connections begin with a PROXY header
	ServerProxyProtocol bool           // send a PROXY header to the server

	MaxConnections int           // default: 10,000
	ReadMemory     int           // MiB of memory for the long commands of all clients; default: 1024
	FillTimeout    time.Duration // default: 50 s
	Drain          time.Duration // time limit for open transactions after ctx is done; 0: they are ended at once

	Logger *slog.Logger // default: slog.Default()
}

// Defaults are the defaults of the command's flags.
var Defaults = Config{Listen: []string{"127.0.0.1:3307"}, MaxConnections: 10_000, ReadMemory: 1024, FillTimeout: 50 * time.Second, Drain: 30 * time.Second}

// filesPerClient is the number of files per client: its connection, and the proxy's connection to the server.
const filesPerClient = 2

// A Server is a proxy with its listeners and status page. Use New to create one.
type Server struct {
	cfg         Config
	log         *slog.Logger
	driver      *driver.Config
	connector   *driver.Connector
	proxy       *proxy.Server
	serverDB    *sql.DB // pool to the server of -server, with leafsql's account; nil if the connector uses the same server
	loginDenied bool    // the account cannot log in at that server
	draining    atomic.Bool
	probe       probe
}

// New returns a Server for a Config. It opens no connections. It fails if the Config is invalid.
func New(cfg Config) (*Server, error) {
	if len(cfg.Listen) == 0 {
		cfg.Listen = Defaults.Listen
	}
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, Defaults.MaxConnections)
	cfg.ReadMemory = cmp.Or(cfg.ReadMemory, Defaults.ReadMemory)
	cfg.FillTimeout = cmp.Or(cfg.FillTimeout, Defaults.FillTimeout)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	negative := ""
	switch {
	case cfg.MaxConnections < 0:
		negative = "-max-connections"
	case cfg.ReadMemory < 0:
		negative = "-read-memory"
	case cfg.FillTimeout < 0:
		negative = "-fill-timeout"
	case cfg.Drain < 0:
		negative = "-drain"
	}
	if negative != "" {
		return nil, fmt.Errorf("leafsql: proxy: %s is negative; leave it out for its default", negative)
	}
	clientTLS, err := process.LoadTLS(cfg.Cert, cfg.Key, "-cert and -key")
	if err != nil {
		return nil, fmt.Errorf("leafsql: proxy: %w", err)
	}
	if cfg.RequireTLS && clientTLS == nil {
		return nil, errors.New("leafsql: proxy: -require-tls needs a certificate; name one with -cert and -key")
	}
	for _, address := range cfg.Listen {
		if err := checkAddress(address); err != nil {
			return nil, fmt.Errorf("leafsql: proxy: -listen: %w", err)
		}
		if !isPath(address) && !process.IsLocal(address) && clientTLS == nil && !cfg.Insecure {
			return nil, fmt.Errorf("leafsql: proxy: -listen %s can be reached from other machines, and rows would be sent without TLS; name a certificate with -cert and -key, or set -insecure", address)
		}
	}
	dc, err := databases.ParseDSN(cfg.DSN)
	if err != nil {
		return nil, err
	}
	cfg.Server = cmp.Or(cfg.Server, dc.MySQL.Addr)
	if err := checkAddress(cfg.Server); err != nil {
		return nil, fmt.Errorf("leafsql: proxy: -server: %w", err)
	}
	if slices.ContainsFunc(cfg.Listen, func(address string) bool { return sameAddress(address, cfg.Server) }) {
		return nil, fmt.Errorf("leafsql: proxy: it would connect to itself, because it listens at %s; set the server's address in the DSN or with -server", cfg.Server)
	}
	cfg.MaxConnections = process.LimitConnections(cfg.MaxConnections, Defaults.MaxConnections, filesPerClient, cfg.Logger)
	dc.Logger = cfg.Logger
	s := &Server{cfg: cfg, log: cfg.Logger, driver: dc}
	serverConnector, err := newServerConnector(cfg, dc.MySQL)
	if err != nil {
		return nil, err
	}
	if s.connector, err = driver.NewConnector(dc); err != nil {
		return nil, err
	}
	s.proxy, err = proxy.New(proxy.Config{
		Connector: s.connector, Server: cfg.Server, ServerConnector: serverConnector, ServerTLS: serverTLS(dc.MySQL, cfg.Server), TLS: clientTLS, RequireTLS: cfg.RequireTLS,
		ProxyProtocol: cfg.ProxyProtocol, ServerProxyProtocol: cfg.ServerProxyProtocol,
		MaxConnections: cfg.MaxConnections, ReadMemory: int64(cfg.ReadMemory) << 20, FillTimeout: cfg.FillTimeout, Logger: cfg.Logger,
	})
	if err != nil {
		s.connector.Close()
		return nil, err
	}
	if serverConnector != nil {
		s.serverDB = sql.OpenDB(serverConnector)
		s.serverDB.SetMaxOpenConns(1)
	}
	return s, nil
}

func checkAddress(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil && !isPath(address) {
		return fmt.Errorf("%w; write host:port, or the path of a unix socket", err)
	}
	return nil
}

// sameAddress reports whether a listening address is the server's address. It compares texts and resolves no names.
func sameAddress(listen, server string) bool {
	named := strings.NewReplacer("localhost:", "127.0.0.1:", "[::1]:", "127.0.0.1:")
	host, port, _ := net.SplitHostPort(listen)
	_, serverPort, _ := net.SplitHostPort(server)
	listensEverywhere := host == "" || net.ParseIP(host).IsUnspecified()
	return named.Replace(listen) == named.Replace(server) || listensEverywhere && port == serverPort && process.IsLocal(server)
}

// Run listens and proxies clients until ctx is done, then drains: it accepts no more clients, ends each session
// outside a transaction, and the other sessions within Config.Drain. Finally it releases its resources, such as
// a worker id. It fails immediately if leafsql's account may not read the required tables; it waits for a
// server that is unreachable. A Server can be run only once.
func (s *Server) Run(ctx context.Context) error {
	defer s.connector.Close()
	defer s.proxy.Close()
	if s.serverDB != nil {
		defer s.serverDB.Close()
	}
	if err := s.checkAccount(ctx); err != nil {
		if hint, wrong := configurationHint(err); wrong {
			return fmt.Errorf("leafsql: proxy: leafsql's account: %w%s", errprefix.Trim(err), hint)
		}
		s.log.Warn("leafsql: the server does not answer leafsql's account; clients get an error until it does", "err", err)
	}
	if err := s.checkSocket(ctx); err != nil {
		return err
	}
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for _, address := range s.cfg.Listen {
		l, err := listen(address)
		if err != nil {
			return fmt.Errorf("leafsql: proxy: %w; choose another address with -listen", err)
		}
		listeners = append(listeners, l)
	}
	background, stop := context.WithCancel(context.Background())
	defer stop()
	if s.cfg.Metrics != "" {
		if err := s.serveMetrics(background); err != nil {
			return fmt.Errorf("leafsql: proxy: %w; choose another address with -metrics", err)
		}
	}
	go s.watch(background)
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		s.log.Info("leafsql: serving clients", "address", l.Addr().String(), "server", s.cfg.Server, "version", version.Current())
		go func() { failed <- s.proxy.Serve(l) }()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("leafsql: proxy: %w; choose another address with -listen", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.log.Info("leafsql: draining", "drain", s.cfg.Drain.String(), "connections", s.proxy.Stats().Connections)
	drainCtx, cancel := context.WithTimeout(context.Background(), s.cfg.Drain)
	defer cancel()
	if err := s.proxy.Shutdown(drainCtx); errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("leafsql: connections were closed in the middle of a transaction", "drain", s.cfg.Drain.String(), "hint", "set a longer -drain")
	}
	s.log.Info("leafsql: ended")
	return nil
}

// checkAccount returns an error if leafsql's account cannot read the data that filling needs.
func (s *Server) checkAccount(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	if err := s.proxy.Ping(ctx); err != nil {
		return err
	}
	s.warnIncrement(ctx)
	if !s.readsAlloc() {
		return nil
	}
	_, err := inspect.Tag(ctx, s.connector, "")
	if s.driver.Create && servererr.Is(err, servererr.NoSuchTable) { // the first filled statement creates the table
		return nil
	}
	if _, none := errors.AsType[*segment.UnknownTagError](err); none { // the table can be read
		return nil
	}
	return err
}

// readsAlloc reports whether a rule takes ids from leaf_alloc.
func (s *Server) readsAlloc() bool {
	if s.driver.Auto() {
		return true
	}
	for _, r := range s.driver.Tables {
		if !r.Exclude && (r.Kind == "" || r.Kind == driver.Segment) {
			return true
		}
	}
	return false
}

const accountTimeout = 10 * time.Second

// listen listens on host:port, or on the path of a unix socket. It replaces the socket of a process that has
// ended, but not a socket that answers.
func listen(address string) (net.Listener, error) {
	if !isPath(address) {
		return net.Listen("tcp", address)
	}
	if c, err := net.Dial("unix", address); err == nil {
		c.Close()
		return nil, fmt.Errorf("another process already listens at %s", address)
	}
	if info, err := os.Lstat(address); err == nil && info.Mode()&os.ModeSocket != 0 {
		os.Remove(address)
	}
	l, err := net.Listen("unix", address)
	if err == nil {
		err = os.Chmod(address, 0o777) // like the sockets of servers, since the server checks logins
	}
	return l, err
}
