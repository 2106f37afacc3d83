package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
)

// healthy says that the process answers, whatever else is away.
func (s *Server) healthy(w http.ResponseWriter, r *http.Request) error {
	w.Header()["Content-Type"] = textPlain
	io.WriteString(w, "ok\n")
	return nil
}

// ready says whether what is served can be had. Of /readyz these are the ids of leaf_alloc,
// and the snowflakes where the settings ask for them; /readyz/segment and /readyz/snowflake
// ask for one of the two.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	kind := r.PathValue("kind")
	switch {
	case s.draining.Load():
		return &problem{Status: http.StatusServiceUnavailable, Type: "draining", Detail: "the server is about to end", retry: true}
	case kind == "segment" && s.cfg.NoSegments:
		return noSegments
	case kind == "snowflake" && s.snowflake == nil:
		return noSnowflakes
	case kind != "" && kind != "segment" && kind != "snowflake":
		return notFound
	}
	text := "ready\n"
	if kind != "snowflake" && !s.cfg.NoSegments {
		if err := s.askStore(); err != nil {
			if !s.stocked() {
				return err
			}
			text = "ready: the store is away, there are ids in memory\n"
		}
	}
	if kind != "segment" && s.snowflake != nil {
		wanted := kind == "snowflake" || s.searchAtOnce
		if err := s.holds(wanted); err != nil {
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

// holds is nil while snowflakes can be made. Before anybody has wanted one it is nil, too,
// or, where they are wanted now, begins the search for a worker id.
func (s *Server) holds(wanted bool) error {
	st := s.connector.Worker()
	switch {
	case st.Phase == "holding" && (st.Err == nil || time.Now().Before(st.Limit)), st.Phase == "idle" && !wanted:
		return nil
	case st.Phase == "idle":
		s.snowflake.Next(ended, 1)
	case st.Phase == "waiting":
		return &problem{Status: http.StatusServiceUnavailable, Type: "unavailable", retry: true,
			Detail: "the ids of this worker id are safe from " + st.Start.UTC().Format(time.RFC3339) + " on"}
	}
	return &snowflake.LeaseError{Worker: st.Worker, Cause: st.Err}
}

// ended is a context that has ended: calls under it do not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// storeAnswers is nil where leaf_alloc can be read.
func (s *Server) storeAnswers(ctx context.Context) error {
	_, err := s.connector.Tag(ctx, "")
	if _, missing := errors.AsType[*segment.UnknownTagError](err); missing { // which is an answer
		return nil
	}
	return err
}

// stocked reports whether every tag in use has ids in memory. One whose row gave none while
// the store was there has none elsewhere either.
func (s *Server) stocked() bool {
	used := 0
	for _, t := range s.connector.Stats().Tags {
		switch {
		case t.Fetches == 0 || isAnswer(t.Err) || s.refused(t.Tag):
		case t.Remaining == 0:
			return false
		default:
			used++
		}
	}
	return used > 0
}

// How often the store is asked, and how long it may take to answer: less than the second
// after which many a balancer takes /readyz for silent.
const (
	probeEvery   = time.Second
	probeTimeout = 700 * time.Millisecond
)

// A probe asks whether something is there, once in probeEvery at most, and tells when that
// changes.
type probe struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

func (p *probe) ask(there func(context.Context) error, changed func(error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= probeEvery {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout) // not that of the request, which may be gone
		defer cancel()
		err := there(ctx)
		if (err == nil) != (p.err == nil) || err != nil && kindOf(err) != kindOf(p.err) {
			changed(err)
		}
		p.err, p.at = err, time.Now()
	}
	return p.err
}
