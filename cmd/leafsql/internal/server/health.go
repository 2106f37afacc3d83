package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
)

// healthy says that the process answers, whatever else is away.
func (s *Server) healthy(w http.ResponseWriter, r *http.Request) error {
	w.Header()["Content-Type"] = textPlain
	io.WriteString(w, "ok\n")
	return nil
}

// ready says whether ids can be had: the store answers, or every tag in use has
// ids in memory. While the store is away a balancer must not take the servers
// away that can still serve.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.draining.Load() {
		return &problem{Status: http.StatusServiceUnavailable, Type: "draining", Detail: "the server is about to end", retry: true}
	}
	text := "ready\n"
	if !s.cfg.NoSegments {
		if err := s.askStore(); err != nil {
			if !s.stocked() {
				return err
			}
			text = "ready: the store is away, there are ids in memory\n"
		}
	}
	w.Header()["Content-Type"] = textPlain
	io.WriteString(w, text)
	return nil
}

func (s *Server) storeAnswers(ctx context.Context) error {
	_, err := s.connector.Tag(ctx, "")
	if _, missing := errors.AsType[*segment.UnknownTagError](err); missing {
		return nil // which is an answer
	}
	return err
}

// stocked reports whether every tag in use has ids in memory.
func (s *Server) stocked() bool {
	tags := s.connector.Stats().Tags
	for _, t := range tags {
		if t.Remaining == 0 {
			return false
		}
	}
	return len(tags) > 0
}

// probeTimeout is how long the store may take to answer, and how long an answer
// counts.
const probeTimeout = time.Second

// A probe asks whether something is there, once a second at most, and tells when that
// changes.
type probe struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

func (p *probe) ask(there func(context.Context) error, changed func(error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= probeTimeout {
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
