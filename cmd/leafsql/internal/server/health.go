package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/inspect"
)

// serveHealth answers that the process runs, even if its database is unreachable.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request) error {
	w.Header()["Content-Type"] = textPlain
	io.WriteString(w, "ok\n")
	return nil
}

// serveReadiness answers whether ids can be served. /readyz covers the ids of leaf_alloc, and snowflakes if the
// settings request them; /readyz/segment and /readyz/snowflake cover one of the two.
func (s *Server) serveReadiness(w http.ResponseWriter, r *http.Request) error {
	kind := r.PathValue("kind")
	switch {
	case s.draining.Load():
		return &problem{Status: http.StatusServiceUnavailable, Type: "draining", Detail: "the server is shutting down", retry: true}
	case kind == "segment" && s.cfg.NoSegments:
		return noSegments
	case kind == "snowflake" && s.snowflake == nil:
		return noSnowflakes
	case kind != "" && kind != "segment" && kind != "snowflake":
		return notFound
	}
	text := "ready\n"
	if kind != "snowflake" && !s.cfg.NoSegments {
		if err := s.probeStore(); err != nil {
			if !s.hasIDs() {
				return err
			}
			text = "ready: leaf_alloc is unavailable, but there are ids in memory\n"
		}
	}
	if kind != "segment" && s.snowflake != nil {
		wanted := kind == "snowflake" || s.searchesAtStart
		if err := s.checkWorkerID(wanted); err != nil {
			if wanted {
				return err
			}
			text += "no snowflakes: there is no worker id\n"
		}
	}
	w.Header()["Content-Type"] = textPlain
	io.WriteString(w, text)
	return nil
}

// checkWorkerID returns nil if snowflakes can be issued. Before the first request for a snowflake it also returns nil,
// unless wanted is true; then it starts the search for a worker id.
func (s *Server) checkWorkerID(wanted bool) error {
	st := s.connector.Worker()
	switch {
	case st.Phase == "holding" && (st.Err == nil || time.Now().Before(st.Limit)), st.Phase == "idle" && !wanted:
		return nil
	case st.Phase == "idle":
		s.snowflake.Next(canceledContext, 1)
	case time.Now().Before(st.Start):
		return &problem{Status: http.StatusServiceUnavailable, Type: "unavailable", retry: true,
			Detail: process.PublicText(&worker.UnavailableError{Reason: "quarantine", Until: st.Start})}
	}
	return &snowflake.LeaseError{Worker: st.Worker, Cause: st.Err}
}

// canceledContext is a canceled context: calls with it do not wait.
var canceledContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// pingStore returns nil if leaf_alloc can be read.
func (s *Server) pingStore(ctx context.Context) error {
	_, err := inspect.Tag(ctx, s.connector, "")
	if _, missing := errors.AsType[*segment.UnknownTagError](err); missing { // the table can be read
		return nil
	}
	return err
}

// hasIDs reports whether every tag in use has ids in memory. It skips tags for which the last fetch failed because of
// the row in the store: other servers have no ids for them either.
func (s *Server) hasIDs() bool {
	used := 0
	for _, t := range s.connector.Stats().Tags {
		switch {
		case t.Fetches == 0 || isAnswer(t.Err) || s.isTagRefused(t.Tag):
		case t.Remaining == 0:
			return false
		default:
			used++
		}
	}
	return used > 0
}

// Interval and timeout of probes. Many balancers give up on /readyz after one second, so the timeout is shorter.
const (
	probeInterval = time.Second
	probeTimeout  = 700 * time.Millisecond
)

// A probe checks the store at most once in probeInterval, and reports changes.
type probe struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

func (p *probe) run(there func(context.Context) error, changed func(error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= probeInterval {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout) // independent of the request, which may be canceled
		defer cancel()
		err := there(ctx)
		if (err == nil) != (p.err == nil) || err != nil && errorNumber(err) != errorNumber(p.err) {
			changed(err)
		}
		p.err, p.at = err, time.Now()
	}
	return p.err
}
