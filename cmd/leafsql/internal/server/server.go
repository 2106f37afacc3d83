// Package server is leafsql serve: ids over HTTP, for programs that are not Go,
// at the addresses that Java Leaf's clients know.
//
//	s, err := server.New(server.Config{DSN: dsn, Listen: "127.0.0.1:8080"})
//	if err != nil {
//		return err
//	}
//	return s.Run(ctx) // until ctx ends; then it drains
//
// Everything that a client can make the server hold is bounded: connections,
// requests, those that wait for ids, look-ups of tags, bytes of a header.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/internal/version"
	"github.com/leafsql/leafsql/metrics"
	"github.com/leafsql/leafsql/statuspage"
)

// Config of a Server. The zero value of a field means its default.
type Config struct {
	DSN          string // as the driver takes it; its leafTables mean nothing here
	Listen       string // 127.0.0.1:8080
	NoSegments   bool   // serve snowflakes alone
	NoSnowflakes bool   // serve segments alone

	TLSCert, TLSKey string // files in PEM; both or none
	Token           string // that requests have to bring; "": none

	Timeout        time.Duration // the longest a request waits for ids; 3 s
	MaxBlock       int           // the most ids of one request; 10,000
	MaxRequests    int           // at a time, half of which may wait for ids; 4,096
	MaxConnections int           // 8,192
	Drain          time.Duration // how long it serves on after ctx ended, not ready any more; 0

	Logger  *slog.Logger // slog.Default()
	LogJSON bool         // for whoever makes that
}

var defaults = Config{Listen: "127.0.0.1:8080", Timeout: 3 * time.Second, MaxBlock: 10_000, MaxRequests: 4096, MaxConnections: 8192}

// What the server bounds without asking.
const (
	maxHeader    = 8 << 10
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second // beyond Config.Timeout
	idleTimeout  = time.Minute
	endTimeout   = 10 * time.Second // for requests under way, when draining
	maxPages     = 4                // pages, lists and metrics made at a time
)

// A Server serves ids of one database.
type Server struct {
	cfg          Config
	log          *slog.Logger
	db           *sql.DB
	connector    *driver.Connector
	tags         *tags
	create       bool            // leaf_alloc, where it is missing
	snowflake    idgen.Generator // nil: none
	searchAtOnce bool            // for a worker id, and not at the first request
	layout       snowflake.Layout
	tls          *tls.Config
	page         *statuspage.Page
	rows         rows
	probe        probe
	failing      atomic.Int64 // how many tags do, of refusals
	refusals     refusals
	handler      http.Handler

	connections *connections

	requests atomic.Int64  // under way
	waiting  chan struct{} // a token for each that may wait for ids
	pages    chan struct{} // likewise for what takes long to make
	draining atomic.Bool
}

// New makes a server. It connects to nothing: a database that is away is no
// error.
func New(cfg Config) (*Server, error) {
	cfg.Listen = cmp.Or(cfg.Listen, defaults.Listen)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaults.Timeout)
	cfg.MaxBlock = cmp.Or(cfg.MaxBlock, defaults.MaxBlock)
	cfg.MaxRequests = cmp.Or(cfg.MaxRequests, defaults.MaxRequests)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, defaults.MaxConnections)
	if cfg.Timeout < 0 || cfg.MaxBlock < 0 || cfg.MaxRequests < 2 || cfg.MaxConnections < 0 || cfg.Drain < 0 {
		return nil, errors.New("leafsql: serve: a limit is negative or too small; leave it out for its default")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.MaxConnections = process.Connections(cfg.MaxConnections, defaults.MaxConnections, 1, cfg.Logger)
	s := &Server{cfg: cfg, log: cfg.Logger, waiting: make(chan struct{}, cfg.MaxRequests/2), pages: make(chan struct{}, maxPages)}
	s.connections = newConnections(cfg.MaxConnections, s.log)
	var err error
	if s.tls, err = loadTLS(cfg); err != nil {
		return nil, err
	}
	dc, err := databases.Parse(cfg.DSN)
	if err != nil {
		return nil, err
	}
	if dc.MySQL.DBName == "" && dc.Store == "" && !strings.Contains(dc.AllocTable, ".") {
		return nil, errors.New("leafsql: serve: the DSN names no database that could hold leaf_alloc; write user:password@tcp(host:3306)/database")
	}
	dc.None, dc.Tables, dc.Logger = true, nil, cfg.Logger
	s.create = dc.Create
	s.searchAtOnce = dc.Worker != "" || cfg.NoSegments // who names none may want no snowflakes, and is not to take a worker id
	if cfg.NoSnowflakes {
		dc.Worker, dc.WorkerSource = "", nil
	} else if dc.Worker == "" && dc.WorkerSource == nil {
		dc.Worker = "mysql()"
	}
	if s.connector, err = driver.NewConnector(dc); err != nil {
		return nil, err
	}
	s.db = sql.OpenDB(s.connector)
	s.tags = newTags(s.connector)
	s.snowflake = s.connector.Snowflake()
	s.layout = cmp.Or(dc.Snowflake, snowflake.Leaf)
	title, of := "Ids over HTTP", ""
	if host, err := os.Hostname(); err == nil && cfg.Token != "" {
		title += " on " + host
		of = place(dc)
	}
	s.page = statuspage.Of(s.shown, title)
	s.page.Server = of
	s.page.Links = []statuspage.Link{{Text: "ranges in memory", Address: "cache"}, {Text: "rows of leaf_alloc", Address: "db"}, {Text: "metrics", Address: "metrics"}}
	s.handler = s.routes()
	return s, nil
}

// place names the database of leaf_alloc, without users and passwords.
func place(cfg *driver.Config) string {
	if cfg.Store == "" {
		return databases.Label(cfg.MySQL)
	}
	of, err := databases.Parse(cfg.Store)
	if err != nil {
		return ""
	}
	return databases.Label(of.MySQL)
}

// routes says what is answered by whom.
func (s *Server) routes() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), metrics.NewCollector(s.db, "serve"))
	counts := newCounts(reg, s.connections)
	mux := http.NewServeMux()
	route := func(pattern, name string, kind kind, serve func(http.ResponseWriter, *http.Request) error) {
		mux.Handle(pattern, &endpoint{s: s, name: name, kind: kind, serve: serve, counts: counts.of(name)})
	}
	route("/api/segment/get/{tag}", "segment", ids, s.segment)
	route("/api/snowflake/get/{key}", "snowflake", ids, s.nextSnowflake)
	route("/decodeSnowflakeId", "decode", plain, s.decode)
	route("/cache", "cache", page, s.cache)
	route("/db", "db", page, s.listRows)
	route("/{$}", "page", page, passOn(s.page))
	route("/metrics", "metrics", page, passOn(promhttp.HandlerFor(reg, promhttp.HandlerOpts{})))
	route("/healthz", "healthz", open, s.healthy)
	route("/readyz", "readyz", open, s.ready)
	route("/readyz/{kind}", "readyz", open, s.ready)
	route("/", "other", plain, func(http.ResponseWriter, *http.Request) error { return notFound })
	return mux
}

func passOn(h http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

// ServeHTTP answers one request, for tests and for servers of one's own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends what runs in the background and gives a worker id back.
func (s *Server) Close() error { return s.db.Close() }

// Run listens and serves until ctx ends, then drains: it is not ready any more,
// serves on for Config.Drain, takes no further connections, and gives those
// under way 10 s to end. It closes the server.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	listener, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("leafsql: serve: %w; choose another address with -listen", err)
	}
	return s.run(ctx, listener)
}

func (s *Server) run(ctx context.Context, listener net.Listener) error {
	listener = s.connections.limit(listener)
	address := listener.Addr().String()
	srv := &http.Server{
		Handler: s, MaxHeaderBytes: maxHeader, TLSConfig: s.tls,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: s.cfg.Timeout + writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what clients do wrong
	}
	background, stop := context.WithCancel(context.Background())
	defer stop()
	go s.page.Run(background)
	if !s.cfg.NoSegments {
		go s.watch(background)
	}
	if s.snowflake != nil && s.searchAtOnce {
		go s.snowflake.Next(ended, 1) // begins the search for a worker id
	}
	s.warnOpen(address)
	scheme, listen := "http", func() error { return srv.Serve(listener) }
	if s.tls != nil {
		scheme, listen = "https", func() error { return srv.ServeTLS(listener, "", "") }
	}
	s.log.Info("leafsql: serving ids", "address", scheme+"://"+address, "version", version.Of())

	failed := make(chan error, 1)
	go func() { failed <- listen() }()
	select {
	case err := <-failed:
		return fmt.Errorf("leafsql: serve: %w; choose another address with -listen", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.log.Info("leafsql: draining", "for", s.cfg.Drain.String())
	time.Sleep(s.cfg.Drain)
	left, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := srv.Shutdown(left); err != nil {
		srv.Close()
		return fmt.Errorf("leafsql: serve: requests were cut off after %v: %w; clients ask again", endTimeout, err)
	}
	s.log.Info("leafsql: ended")
	return nil
}
