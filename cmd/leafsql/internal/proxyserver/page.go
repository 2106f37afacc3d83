package proxyserver

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/pageextra"
	"github.com/leafsql/leafsql/metrics"
	"github.com/leafsql/leafsql/statuspage"
)

// Limits of the page's HTTP server.
const (
	maxReaders   = 64 // connections at a time
	maxHeader    = 8 << 10
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	keepAlive    = time.Minute
	contentType  = "text/plain; charset=utf-8"
)

// serveMetrics starts a server for the page and the metrics, which runs until ctx is done.
func (s *Server) serveMetrics(ctx context.Context) error {
	l, err := net.Listen("tcp", s.cfg.Metrics)
	if err != nil {
		return err
	}
	page := statuspage.Of(func() (driver.Stats, error) { return process.HideCauses(s.connector.Stats()), nil }, "leafsql proxy")
	page.More = s.pageDetails
	page.Links = []pageextra.Link{{Text: "metrics", Address: "metrics"}}
	srv := &http.Server{
		Handler: s.routes(page), MaxHeaderBytes: maxHeader, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: keepAlive,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // errors caused by readers
	}
	s.log.Info("leafsql: page and metrics", "address", "http://"+l.Addr().String())
	if !process.IsLocal(l.Addr().String()) {
		s.log.Warn("leafsql: every client that can connect to this address can read the names of tables and tags", "address", l.Addr().String(), "hint", "set -metrics to an address that only the proxy's operators can reach")
	}
	go page.Run(ctx)
	go srv.Serve(netutil.LimitListener(l, maxReaders))
	context.AfterFunc(ctx, func() { srv.Close() })
	return nil
}

func (s *Server) routes(page http.Handler) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.NewCollector(sql.OpenDB(s.connector), "proxy"), metrics.NewProxyCollector(s.proxy, "proxy"))
	mux := http.NewServeMux()
	mux.Handle("/{$}", page)
	mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case s.draining.Load():
			writeText(w, http.StatusServiceUnavailable, "not ready: the proxy is shutting down\n")
		case s.probeServer() != nil:
			writeText(w, http.StatusServiceUnavailable, "not ready: the server does not answer leafsql's account; see the log\n")
		default:
			writeText(w, http.StatusOK, "ready\n")
		}
	})
	return mux
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	io.WriteString(w, text)
}

// pageDetails returns the page's figures and warnings about the proxy.
func (s *Server) pageDetails() pageextra.More {
	stats := s.proxy.Stats()
	more := pageextra.More{Title: "Proxy", Figures: []pageextra.Figure{
		{Text: "Connections now", Number: stats.Connections},
		{Text: "At most", Number: stats.MaxConnections},
		{Text: "Clients so far", Number: stats.Accepted},
		{Text: "Logins refused by the server", Number: stats.FailedLogins},
		{Text: "Logins broken off", Number: stats.BrokenOff},
		{Text: "Clients that found no server", Number: stats.Unreachable},
		{Text: "Commands passed on", Number: stats.Passed},
		{Text: "Statements filled", Number: stats.Filled},
		{Text: "Statements refused", Number: stats.Refused},
		{Text: "Statements without ids", Number: stats.Unfilled},
	}}
	wrong := func(is bool, text string) {
		if is {
			more.Wrong = append(more.Wrong, text)
		}
	}
	wrong(s.probeServer() != nil, "The server does not answer leafsql's account. See the log.")
	wrong(isNearLimit(stats.BrokenOffInARow, stats.MaxConnectErrors, 2), "Many consecutive logins were broken off. When they reach max_connect_errors, the server refuses all clients of this proxy with error 1129.")
	wrong(isNearLimit(stats.Connections, stats.MaxConnections, 8), "Nearly all connections that -max-connections allows are taken.")
	wrong(stats.Faults > 0, "Sessions ended by a fault of the proxy. The log has them; please report it.")
	return more
}

// isNearLimit reports whether n is at least most - most/part. It returns false if most is 0, which means unknown.
func isNearLimit(n, most, part int64) bool { return most > 0 && n >= most-most/part }
