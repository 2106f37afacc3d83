// Package proxy is MySQL's protocol as a door to leafsql: programs in any language connect to
// it as to their server, and the rows that they INSERT into configured tables get keys as
// those of the driver mysql-leaf do, from the same counters.
//
//	cfg, err := driver.ParseDSN("leaf:secret@tcp(db:3306)/shop?leafTables=*")
//	connector, err := driver.NewConnector(cfg)
//	p, err := proxy.New(proxy.Config{Connector: connector, Server: "db:3306"})
//	err = p.Serve(listener)
//
// What is not filled is passed on byte for byte; what is filled is run by package driver over
// the client's own connection to the server. A client is let in by the server, to which the
// proxy passes the login on: it knows no password, and keeps one connection to the server for
// each client, for as long as that stays.
//
// The package does not pool connections, split reads from writes, or change statements beyond
// their keys. Connections of clients can be compressed with zlib, those to the server are not. The
// X protocol and zstd are not supported.
//
// The files, from the network to the statements:
//
//	proxy.go      the listener: who gets a session, and how sessions end
//	watch_*.go    notices that a server ended a connection whose client is idle
//	compress.go   compression of a client's connection
//	socket_*.go   reads and writes of a connection, at less cost
//	end.go        one connection of a session, read frame by frame
//	balancer.go   who the client is, if it comes through a balancer
//	login.go      the login, passed on in both directions; TLS
//	limits.go     limits of the server, and how many clients log in at a time so that it does not refuse the proxy's host
//	memory.go     how much memory the commands of all clients take
//	quiet.go      how often a client may cause a line of the log
//	session.go    a session's life
//	client.go     its client's side: waiting for commands
//	backend.go    its server's side: what both sides agreed on, commands passed on
//	commands.go   which command is served how
//	answer.go     an answer of the server, followed up to its end
//	relay.go      answers passed on
//	bound.go      how long a command waits for its ids
//	fill.go       texts, and what the client is told of those that were filled
//	prepared.go   prepared statements
//	bulk.go       their executions for many rows at once
//	conn.go       the server's side as a connection of package driver
//	stats.go      what is counted
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

// Config says where clients are taken to, and how.
type Config struct {
	// Connector has the rules, and leafsql's own account, with which it reads the tables and
	// takes ids. Required; the caller closes it after the Server.
	Connector *driver.Connector

	// Server is where clients are taken to: host:port, or the path of a unix socket. Required.
	Server string

	// ServerConnector connects leafsql's own account to Server, where Connector's address is another
	// one; nil: Connector does.
	ServerConnector sqldriver.Connector

	// ServerTLS is for connections to the server of clients that ask for TLS; nil: the
	// server's certificate is not verified. Where it is, ServerName has to be set.
	ServerTLS *tls.Config

	// TLS is for clients that ask for it; nil: it is not offered. Such a client's connection
	// to the server is through TLS too, and no other is.
	TLS *tls.Config

	// ProxyProtocol are the networks of balancers before the proxy, such as HAProxy. Every connection
	// from there has to begin with a PROXY header, of version 1 or 2, that says whose it is. Who
	// may connect from there can pass for any client.
	ProxyProtocol []netip.Prefix

	// ServerProxyProtocol says that each client's connection to the server is to begin with a PROXY
	// header, so that the server sees the client's address and not the proxy's. The server has to
	// expect that, as MariaDB does of what is in proxy_protocol_networks. The Connector's
	// connections have none.
	ServerProxyProtocol bool

	RequireTLS     bool          // refuse clients without it
	MaxConnections int           // at a time; 0: 10,000
	ReadMemory     int64         // the most bytes of long commands that are in memory, over all clients; 0: 1 GiB
	FillTimeout    time.Duration // how long a statement waits for its ids; 0: 50 s, as long as InnoDB waits for a lock
	Logger         *slog.Logger  // nil: slog.Default()
}

// ErrClosed is what Serve returns after Shutdown or Close.
var ErrClosed = errors.New("leafsql: the proxy is closed")

// A Server takes clients to a server.
type Server struct {
	cfg     Config  // zero fields have their defaults
	own     *sql.DB // pool of leafsql's account
	network string  // network of cfg.Server: tcp or unix
	memory  budget

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	watch    *watch
	unwatch  func() error // closes watch, once
	draining atomic.Bool

	mu        sync.Mutex
	listeners map[net.Listener]bool
	sessions  map[*session]bool
	ended     sync.WaitGroup // sessions

	statusHolds, statusLies atomic.Bool // of NO_BACKSLASH_ESCAPES, as a session that was asked has shown

	maxAllowed, maxErrors atomic.Int64        // max_allowed_packet and max_connect_errors; 0: not known
	logins                *semaphore.Weighted // of which admitted are free, or held by logins in progress and by inARow
	admitted, inARow      atomic.Int64        // inARow: logins that were broken off, since the last that was not

	counts counters

	brokenOffLine, unreachableLine, causeLine rarely
}

// New returns a Server for a configuration. It connects to nothing.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Connector == nil:
		return nil, errors.New("leafsql: proxy.Config.Connector: not set; make one with driver.NewConnector")
	case cfg.Server == "":
		return nil, errors.New("leafsql: proxy.Config.Server: not set; write host:port, or the path of a unix socket")
	case cfg.RequireTLS && cfg.TLS == nil:
		return nil, errors.New("leafsql: proxy.Config.RequireTLS: there is no certificate to offer TLS with; set Config.TLS")
	case cfg.ServerTLS != nil && !cfg.ServerTLS.InsecureSkipVerify && cfg.ServerTLS.ServerName == "":
		return nil, errors.New("leafsql: proxy.Config.ServerTLS: it does not say whose certificate the server has to show; set its ServerName")
	}
	cfg.ServerConnector = cmp.Or[sqldriver.Connector](cfg.ServerConnector, cfg.Connector)
	cfg.ServerTLS = cmp.Or(cfg.ServerTLS, &tls.Config{InsecureSkipVerify: true})
	cfg.ProxyProtocol = slices.Clone(cfg.ProxyProtocol)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, 10_000)
	cfg.FillTimeout = cmp.Or(cfg.FillTimeout, 50*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	s := &Server{
		cfg: cfg, network: "tcp", memory: budget{most: cmp.Or(cfg.ReadMemory, 1<<30)},
		listeners: make(map[net.Listener]bool), sessions: make(map[*session]bool),
	}
	if strings.Contains(cfg.Server, "/") {
		s.network = "unix"
	}
	var err error
	if s.watch, err = newWatch(); err != nil {
		return nil, fmt.Errorf("leafsql: the proxy cannot watch its connections: %w; raise the limit of open files", err)
	}
	s.unwatch = sync.OnceValue(s.watch.close)
	s.own = sql.OpenDB(keepOpen{cfg.Connector})
	s.own.SetMaxOpenConns(2)
	s.own.SetConnMaxIdleTime(time.Minute)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.logins = semaphore.NewWeighted(math.MaxInt64)
	s.logins.TryAcquire(math.MaxInt64)
	s.admit((100 - 1) / 2) // the default of max_connect_errors, until it is known
	return s, nil
}

// keepOpen is the caller's Connector, which the pool's Close leaves open.
type keepOpen struct{ *driver.Connector }

func (keepOpen) Close() error { return nil }

// Serve takes clients from a listener until Shutdown or Close; then it returns ErrClosed.
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
		default: // too many open files, for one
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.Logger.Warn("leafsql: the proxy cannot accept a connection", "error", err, "again in", pause)
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
			s.ended.Go(ses.serve)
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

// Shutdown ends the proxy: it takes no more clients, and ends each session as soon as that is
// in no transaction, and streams to replicas. When ctx ends, so do the others.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopAccepting()
	done := make(chan struct{})
	go func() {
		s.ended.Wait()
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

// Close ends the proxy with all its sessions.
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
	s.ended.Wait()
	s.own.Close() // its error is only that the server ended a connection before
	return s.unwatch()
}

// Describe names the server, for people.
func (s *Server) Describe() string { return s.network + "(" + s.cfg.Server + ")" }
