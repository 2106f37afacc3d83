// Package server runs leafsql serve: ids over HTTP, for programs in any language, on the paths of Java Leaf.
//
//	s, err := server.New(server.Config{DSN: dsn, Listen: "127.0.0.1:8080"})
//	if err != nil {
//		return err
//	}
//	return s.Run(ctx) // until ctx ends; then it drains
//
// All resources that a client can use up are limited: connections, requests, requests that wait for ids,
// look-ups of tags, and bytes of a header.
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
	"github.com/leafsql/leafsql/internal/pageextra"
	"github.com/leafsql/leafsql/internal/version"
	"github.com/leafsql/leafsql/metrics"
	"github.com/leafsql/leafsql/statuspage"
)

// Config configures a Server. A field with the zero value has the default in its comment; negative limits are
// errors.
type Config struct {
	DSN          string // as for the driver; its leafTables are ignored
	Listen       string // default: 127.0.0.1:8080
	NoSegments   bool   // serve snowflakes only
	NoSnowflakes bool   // serve segments only

	TLSCert, TLSKey string // PEM files; both or none
	Token           string // required in requests; "": no token

	Timeout        time.Duration // time limit of a request for ids; default: 3 s
	MaxBlock       int           // maximum number of ids of one request; default: 10,000
	MaxRequests    int           // maximum number of concurrent requests, half of which may wait for ids; at least 2; default: 4,096
	MaxConnections int           // default: 8,192
	Drain          time.Duration // how long to continue serving after ctx is done; /readyz fails meanwhile

	Logger  *slog.Logger // default: slog.Default()
	LogJSON bool         // for the caller that creates Logger; New ignores it

	unknownKeys string // keys of leaf.properties that are perhaps misspelt, separated by commas
}

var defaults = Config{Listen: "127.0.0.1:8080", Timeout: 3 * time.Second, MaxBlock: 10_000, MaxRequests: 4096, MaxConnections: 8192}

// Limits without a setting.
const (
	maxHeader    = 8 << 10
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second // in addition to Config.Timeout
	idleTimeout  = time.Minute
	endTimeout   = 10 * time.Second // time for requests in progress to end after Config.Drain
	maxPages     = 4                // pages, lists and metrics rendered at a time
)

// A Server serves the ids of one database. Its methods are safe for concurrent use.
type Server struct {
	cfg             Config
	log             *slog.Logger
	db              *sql.DB
	connector       *driver.Connector
	tags            *tagCache
	createsAlloc    bool            // create leaf_alloc if it is missing
	snowflake       idgen.Generator // nil: disabled
	searchesAtStart bool            // the search for a worker id begins at the start, not at the first request
	layout          snowflake.Layout
	tls             *tls.Config
	page            *statuspage.Page
	rows            rowCache
	probe           probe
	failingCount    atomic.Int64 // number of failedTags
	failedTags      failedTags
	handler         http.Handler

	connections *connections

	requests       atomic.Int64  // requests in progress
	snowflakeCount atomic.Int64  // snowflakes issued
	waiting        chan struct{} // a token for each request that may wait for ids
	pages          chan struct{} // a token for each page in progress
	draining       atomic.Bool
}

// New returns a server for a Config. It opens no connections, so an unreachable database is not an error. The
// caller has to call Run or Close.
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
	if cfg.unknownKeys != "" {
		cfg.Logger.Warn("leafsql: leaf.properties has keys that Java Leaf does not have, and they have no effect", "keys", cfg.unknownKeys)
	}
	cfg.MaxConnections = process.LimitConnections(cfg.MaxConnections, defaults.MaxConnections, 1, cfg.Logger)
	s := &Server{cfg: cfg, log: cfg.Logger, waiting: make(chan struct{}, cfg.MaxRequests/2), pages: make(chan struct{}, maxPages)}
	s.connections = newConnections(cfg.MaxConnections, s.log)
	var err error
	if s.tls, err = loadTLS(cfg); err != nil {
		return nil, err
	}
	dc, err := databases.ParseDSN(cfg.DSN)
	if err != nil {
		return nil, err
	}
	if dc.MySQL.DBName == "" && dc.Store == "" && !strings.Contains(dc.AllocTable, ".") {
		return nil, errors.New("leafsql: serve: the DSN has no database for leaf_alloc; write user:password@tcp(host:3306)/database")
	}
	dc.None, dc.Tables, dc.Logger = true, nil, cfg.Logger
	s.createsAlloc = dc.Create
	s.searchesAtStart = dc.Worker != "" || cfg.NoSegments // without leafWorker, clients may need no snowflakes, so a worker id is only leased for the first request
	if cfg.NoSnowflakes {
		dc.Worker, dc.WorkerSource = "", nil
	} else if dc.Worker == "" && dc.WorkerSource == nil {
		dc.Worker = "mysql()"
	}
	if s.connector, err = driver.NewConnector(dc); err != nil {
		return nil, err
	}
	s.db = sql.OpenDB(s.connector)
	s.tags = newTagCache(s.connector)
	s.snowflake = s.connector.Snowflake()
	s.layout = cmp.Or(dc.Snowflake, snowflake.Leaf)
	host, storeServer := "", ""
	if name, err := os.Hostname(); err == nil && cfg.Token != "" {
		host, storeServer = name, storeLabel(dc)
	}
	s.page = statuspage.Of(s.pageStats, "Ids over HTTP")
	s.page.Server, s.page.Host = storeServer, host
	s.page.Links = []pageextra.Link{{Text: "ranges in memory", Address: "cache"}, {Text: "rows of leaf_alloc", Address: "db"}, {Text: "metrics", Address: "metrics"}}
	if s.snowflake != nil {
		s.page.More = func() pageextra.More {
			return pageextra.More{Title: "Snowflakes", Figures: []pageextra.Figure{{Text: "Snowflakes issued", Number: s.snowflakeCount.Load()}}}
		}
	}
	s.handler = s.routes()
	return s, nil
}

// storeLabel returns the address and database of leaf_alloc, without users and passwords.
func storeLabel(cfg *driver.Config) string {
	if cfg.Store == "" {
		return databases.Label(cfg.MySQL)
	}
	storeConfig, err := databases.ParseDSN(cfg.Store)
	if err != nil {
		return ""
	}
	return databases.Label(storeConfig.MySQL)
}

// routes returns the handler of all paths.
func (s *Server) routes() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), metrics.NewCollector(s.db, "serve"))
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "leafsql_http_snowflakes_total", Help: "Snowflakes issued."},
		func() float64 { return float64(s.snowflakeCount.Load()) }))
	counts := newRequestMetrics(reg, s.connections)
	mux := http.NewServeMux()
	route := func(pattern, name string, kind kind, serve func(http.ResponseWriter, *http.Request) error) {
		mux.Handle(pattern, &endpoint{s: s, name: name, kind: kind, serve: serve, counts: counts.endpoint(name)})
	}
	route("/api/segment/get/{tag}", "segment", idAnswer, s.serveSegment)
	route("/api/snowflake/get/{key}", "snowflake", idAnswer, s.serveSnowflake)
	route("/decodeSnowflakeId", "decode", plainAnswer, s.serveDecode)
	route("/cache", "cache", pageAnswer, s.serveCache)
	route("/db", "db", pageAnswer, s.serveRows)
	route("/{$}", "page", pageAnswer, serveHandler(s.page))
	route("/metrics", "metrics", pageAnswer, serveHandler(promhttp.HandlerFor(reg, promhttp.HandlerOpts{})))
	route("/healthz", "healthz", openAnswer, s.serveHealth)
	route("/readyz", "readyz", openAnswer, s.serveReadiness)
	route("/readyz/{kind}", "readyz", openAnswer, s.serveReadiness)
	route("/", "other", plainAnswer, func(http.ResponseWriter, *http.Request) error { return notFound })
	return mux
}

func serveHandler(h http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

// ServeHTTP answers one request, for tests and for other HTTP servers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close stops the background work and releases the worker id. The error is only for logs.
func (s *Server) Close() error { return s.db.Close() }

// Run listens and serves until ctx is done. Then it reports that it is not ready, and continues to serve
// for Config.Drain. After that it accepts no more connections, waits up to 10 s for requests in progress, and closes the
// server. It returns an error, with a text for people, if it cannot listen or if requests did not end in time.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	listener, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("leafsql: serve: %w; choose another address with -listen", err)
	}
	return s.run(ctx, listener)
}

func (s *Server) run(ctx context.Context, listener net.Listener) error {
	listener = s.connections.limitListener(listener)
	address := listener.Addr().String()
	srv := &http.Server{
		Handler: s, MaxHeaderBytes: maxHeader, TLSConfig: s.tls,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: s.cfg.Timeout + writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // errors caused by clients
	}
	background, stop := context.WithCancel(context.Background())
	defer stop()
	go s.page.Run(background)
	if !s.cfg.NoSegments {
		go s.watch(background)
	}
	if s.snowflake != nil && s.searchesAtStart {
		go s.snowflake.Next(canceledContext, 1) // starts the search for a worker id
	}
	s.warnOpen(address)
	scheme, listen := "http", func() error { return srv.Serve(listener) }
	if s.tls != nil {
		scheme, listen = "https", func() error { return srv.ServeTLS(listener, "", "") }
	}
	s.log.Info("leafsql: serving ids", "address", scheme+"://"+address, "version", version.Current())

	failed := make(chan error, 1)
	go func() { failed <- listen() }()
	select {
	case err := <-failed:
		return fmt.Errorf("leafsql: serve: %w; choose another address with -listen", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.log.Info("leafsql: draining", "drain", s.cfg.Drain.String())
	time.Sleep(s.cfg.Drain)
	drainCtx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := srv.Shutdown(drainCtx); err != nil {
		srv.Close()
		return fmt.Errorf("leafsql: serve: requests were interrupted after %v: %w; clients have to retry", endTimeout, err)
	}
	s.log.Info("leafsql: ended")
	return nil
}
