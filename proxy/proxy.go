// Package proxy makes leafsql available through MySQL's protocol: programs in any language connect to it like
// to their server, and the rows that they INSERT into configured tables get keys like those of the driver
// mysql-leaf, from the same counters.
//
//	cfg, err := driver.ParseDSN("leaf:secret@tcp(db:3306)/shop?leafTables=*")
//	connector, err := driver.NewConnector(cfg)
//	p, err := proxy.New(proxy.Config{Connector: connector, Server: "db:3306"})
//	err = p.Serve(listener)
//
// To fill a statement is to add ids as keys to its rows without a key. Other statements are passed on byte for
// byte: they are sent to the server unchanged. Filled statements are run by package driver over the client's own
// connection to the server. The server authenticates the clients: the proxy passes the login on, has no
// passwords, and keeps one connection to the server for each client while the client is connected.
//
// The package does not pool connections, split reads from writes, or change statements except for their keys.
// Connections of clients can be compressed with zlib; connections to the server are not compressed. The X
// protocol and zstd are not supported.
//
// In the protocol, a packet is sent in one frame or more. A frame is a header of four bytes and a part of the
// packet's payload. The header has the part's length and the frame's sequence number.
//
// The files, from the network to the statements:
//
//	proxy.go        the listener: accepts clients, and ends sessions
//	watch_*.go      detects that a server ended the connection of an idle client
//	compress.go     compression of a client's connection
//	socket_*.go     reads and writes of a connection, at lower cost
//	frame_conn.go   one connection of a session, read frame by frame
//	balancer.go     the client's address, if it connects through a balancer
//	login.go        the login, passed on in both directions; TLS
//	limits.go       limits of the server, and of concurrent logins, so that it does not refuse the proxy's host
//	memory.go       limit of the memory for the commands of all clients
//	log_limit.go    limit of the log lines that clients cause
//	session.go      a session from login to end
//	client.go       its client's side: waits for commands
//	backend.go      its server's side: negotiated settings, commands passed on
//	commands.go     the way in which each command is served
//	answer.go       an answer of the server, followed up to its end
//	relay.go        answers passed on
//	fill_context.go time limit of a command for its ids
//	fill.go         texts, and the answers to filled ones
//	prepared.go     prepared statements
//	bulk.go         their bulk executions
//	conn.go         the server's side as a connection of package driver
//	stats.go        counters
//
// The design is in docs/design/proxy.md.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/driver"
)

// Config configures a Server. Connector and Server are required.
type Config struct {
	// Connector has the rules, and leafsql's own account, which reads the tables and takes ids. Required. The
	// caller closes it after the Server.
	Connector *driver.Connector

	// Server is the address of the server: host:port, or the path of a unix socket. Required.
	Server string

	// ServerConnector connects leafsql's own account to Server. It is needed if Connector connects to another
	// address; nil means Connector.
	ServerConnector sqldriver.Connector

	// ServerTLS is used for the connections of clients with TLS to the server. nil means that the
	// server's certificate is not verified. If it is verified, ServerName has to be set.
	ServerTLS *tls.Config

	// TLS is used for clients that request TLS; nil means that TLS is not offered. The connection to the server
	// uses TLS if, and only if, the client's connection uses it.
	TLS *tls.Config

	// ProxyProtocol has the networks of balancers in front of the proxy, such as HAProxy. Every connection from
	// these networks has to begin with a PROXY header, of version 1 or 2, with the client's address. Hosts in
	// these networks can spoof client addresses.
	ProxyProtocol []netip.Prefix

	// ServerProxyProtocol makes each client's connection to the server begin with a PROXY header, so that the
	// server sees the client's address and not the proxy's. The server has to accept the header, like MariaDB
	// with proxy_protocol_networks. The Connector's connections send no header.
	ServerProxyProtocol bool

	RequireTLS     bool          // refuse clients that do not use TLS
	MaxConnections int           // maximum of concurrent clients; 0 means 10,000
	ReadMemory     int64         // maximum of bytes that long commands of all clients take in memory; 0 means 1 GiB
	FillTimeout    time.Duration // time limit for a wait for ids; 0 means 50 s, InnoDB's default for lock waits
	Logger         *slog.Logger  // nil means slog.Default()
}

// ErrClosed is returned by Serve after Shutdown or Close.
var ErrClosed = errors.New("leafsql: the proxy is closed")

// A Server connects its clients to a MySQL or MariaDB server. It is safe for concurrent use.
type Server struct {
	cfg     Config  // zero fields are replaced by their defaults
	ownDB   *sql.DB // pool of leafsql's account
	network string  // network of cfg.Server: tcp or unix
	memory  budget

	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	watch      *hangupWatch
	closeWatch func() error // closes watch, once
	draining   atomic.Bool

	mu        sync.Mutex
	listeners map[net.Listener]bool
	sessions  map[*session]bool
	running   sync.WaitGroup // waits for sessions

	statusConfirmed, statusContradicted atomic.Bool // a queried session has confirmed, or contradicted, NO_BACKSLASH_ESCAPES in the server's status

	maxAllowedPacket, maxConnectErrors atomic.Int64        // max_allowed_packet and max_connect_errors; 0 if not known
	logins                             *semaphore.Weighted // has loginLimit places; each login in progress, and each login counted in brokenInARow, holds one place
	loginLimit, brokenInARow           atomic.Int64        // brokenInARow: logins that were broken off since the last completed login

	counts counters

	brokenOffLine, unreachableLine, causeLine lineLimiter
}

// New returns a Server for a configuration, or an error if the configuration is invalid or, on Linux, if the
// process can open no more files. New does not connect. Callers have to call
// Close or Shutdown.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Connector == nil:
		return nil, errors.New("leafsql: proxy.Config.Connector: not set; make one with driver.NewConnector")
	case cfg.Server == "":
		return nil, errors.New("leafsql: proxy.Config.Server: not set; write host:port, or the path of a unix socket")
	case cfg.RequireTLS && cfg.TLS == nil:
		return nil, errors.New("leafsql: proxy.Config.RequireTLS: TLS is required without a certificate; set Config.TLS")
	case cfg.ServerTLS != nil && !cfg.ServerTLS.InsecureSkipVerify && cfg.ServerTLS.ServerName == "":
		return nil, errors.New("leafsql: proxy.Config.ServerTLS: it has no name to verify the server's certificate with; set its ServerName")
	}
	cfg.ServerConnector = cmp.Or[sqldriver.Connector](cfg.ServerConnector, cfg.Connector)
	cfg.ServerTLS = cmp.Or(cfg.ServerTLS, &tls.Config{InsecureSkipVerify: true})
	cfg.ProxyProtocol = slices.Clone(cfg.ProxyProtocol)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, 10_000)
	cfg.FillTimeout = cmp.Or(cfg.FillTimeout, 50*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	s := &Server{
		cfg: cfg, network: "tcp", memory: budget{limit: cmp.Or(cfg.ReadMemory, 1<<30)},
		listeners: make(map[net.Listener]bool), sessions: make(map[*session]bool),
	}
	if strings.Contains(cfg.Server, "/") {
		s.network = "unix"
	}
	var err error
	if s.watch, err = newWatch(); err != nil {
		return nil, fmt.Errorf("leafsql: the proxy cannot watch its connections: %w; raise the limit of open files", err)
	}
	s.closeWatch = sync.OnceValue(s.watch.close)
	s.ownDB = sql.OpenDB(unclosedConnector{cfg.Connector})
	s.ownDB.SetMaxOpenConns(2)
	s.ownDB.SetConnMaxIdleTime(time.Minute)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.logins = semaphore.NewWeighted(math.MaxInt64)
	s.logins.TryAcquire(math.MaxInt64)
	s.setLoginLimit((100 - 1) / 2) // the default of max_connect_errors, until it is known
	return s, nil
}

// unclosedConnector is the caller's Connector, which stays open when the pool is closed.
type unclosedConnector struct{ *driver.Connector }

func (unclosedConnector) Close() error { return nil }

// Serve accepts clients from l until Shutdown or Close, and then returns ErrClosed. If the caller closes l, Serve
// returns an error that wraps net.ErrClosed; after other errors it retries. It closes l before it returns, except if
// the server was closed before the call. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		return ErrClosed
	}
	s.listeners[l] = true
	s.mu.Unlock()
	defer func() {
		l.Close()
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
		case s.draining.Load():
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default: // for example, too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.Logger.Warn("leafsql: the proxy cannot accept a connection", "err", err, "retry_in", pause.String())
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
				return ErrClosed
			}
			continue
		}
		s.counts.accepted.Add(1)
		ses := newSession(s, conn)
		s.mu.Lock()
		ending, full := s.draining.Load(), len(s.sessions) >= s.cfg.MaxConnections
		if !ending && !full {
			s.sessions[ses] = true
			s.running.Go(ses.serve)
		}
		s.mu.Unlock()
		switch {
		case ending:
			conn.Close()
		case full:
			s.counts.turnedAway.Add(1)
			go ses.turnAway()
		}
	}
}

// Shutdown stops accepting clients, ends each session as soon as it is not in a transaction, and ends streams to
// replicas. When ctx ends, it closes the remaining sessions and returns an error that wraps ctx.Err().
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopAccepting()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	for {
		s.mu.Lock()
		for ses := range s.sessions {
			ses.wake()
		}
		s.mu.Unlock()
		select {
		case <-done:
			return s.Close()
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Server) stopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for l := range s.listeners {
		l.Close()
	}
}

// Close stops accepting clients, closes all sessions and waits for their ends. The error is only for logs.
func (s *Server) Close() error {
	s.stopAccepting()
	s.cancel()
	s.mu.Lock()
	for ses := range s.sessions {
		ses.client.raw.Close()
		if ses.server.raw != nil {
			ses.server.raw.Close()
		}
	}
	s.mu.Unlock()
	s.running.Wait()
	s.ownDB.Close() // this error only means that the server had ended a connection
	return s.closeWatch()
}
