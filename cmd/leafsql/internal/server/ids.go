package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/leafsql/leafsql/idgen"
)

// serveSegment answers with the next id of a tag, or with a block of ids.
func (s *Server) serveSegment(w http.ResponseWriter, r *http.Request) error {
	n, block, err := s.parseCount(r)
	if err != nil {
		return err
	}
	if s.cfg.NoSegments {
		return noSegments
	}
	tag := r.PathValue("tag")
	gen, ok := s.tags.cached(tag)
	if !ok {
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.Timeout)
		defer cancel()
		if gen, err = s.tags.find(ctx, tag); err != nil {
			return err
		}
	}
	if err := s.writeIDs(w, r, gen, n, block); err != nil {
		switch problemOf(err).Type {
		case "unavailable", "row", "unknown-tag": // other errors are caused by the client
			if r.Context().Err() == nil {
				s.noteFailure(tag, err)
			}
		}
		return err
	}
	s.noteSuccess(tag, true)
	return nil
}

// serveSnowflake answers with a snowflake, or with a block of snowflakes. As with Java Leaf, the key is ignored.
func (s *Server) serveSnowflake(w http.ResponseWriter, r *http.Request) error {
	n, block, err := s.parseCount(r)
	if err != nil {
		return err
	}
	if s.snowflake == nil {
		return noSnowflakes
	}
	if err := s.writeIDs(w, r, s.snowflake, n, block); err != nil {
		return err
	}
	s.snowflakeCount.Add(int64(n))
	return nil
}

// parseCount parses ?n=, the number of consecutive ids. Without it, n is 1 and the answer is a bare number.
func (s *Server) parseCount(r *http.Request) (n int, block bool, err error) {
	if r.URL.RawQuery == "" {
		return 1, false, nil
	}
	bad := &problem{Status: http.StatusBadRequest, Type: "count", Detail: fmt.Sprintf("n is one number from 1 to %d", s.cfg.MaxBlock)}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(q["n"]) > 1 {
		return 0, false, bad
	}
	if len(q["n"]) == 0 {
		return 1, false, nil
	}
	if n, err = strconv.Atoi(q["n"][0]); err != nil || n < 1 || n > s.cfg.MaxBlock {
		return 0, false, bad
	}
	return n, true, nil
}

func (s *Server) writeIDs(w http.ResponseWriter, r *http.Request, gen idgen.Generator, n int, block bool) error {
	first, err := s.drawIDs(r.Context(), gen, n)
	if err != nil {
		return err
	}
	var buf [48]byte
	text := strconv.AppendInt(buf[:0], first, 10)
	if block {
		text = strconv.AppendInt(append(text, ','), int64(n), 10)
	}
	w.Header()["Content-Type"] = textPlain
	w.Write(text) // if the answer is lost, the id is not used
	return nil
}

// drawIDs returns the first of n ids. Only half of all requests may wait for ids, so that a tag without ids does not
// block requests for other tags.
func (s *Server) drawIDs(ctx context.Context, gen idgen.Generator, n int) (int64, error) {
	first, err := gen.Next(canceledContext, n) // ids in memory
	if !errors.Is(err, context.Canceled) {
		return first, err
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return 0, busyProblem("requests that wait for ids")
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	return gen.Next(ctx, n)
}
