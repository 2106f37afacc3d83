package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/process"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/errprefix"
)

// A problem is an error answer: problem details of RFC 9457.
type problem struct {
	Type   string // one word; clients see a URN
	Status int
	Detail string
	Legacy string // Java Leaf's message, in its member errorMsg
	retry  bool   // the same request may succeed after a second
}

// Problems that do not depend on the request.
var (
	noSegments   = &problem{Status: http.StatusNotFound, Type: "disabled", Detail: "this server issues no ids from leaf_alloc"}
	noSnowflakes = &problem{Status: http.StatusNotFound, Type: "disabled", Detail: "this server issues no snowflakes"}
	notFound     = &problem{Status: http.StatusNotFound, Type: "not-found", Detail: "ids are at /api/segment/get/{tag} and /api/snowflake/get/{key}"}
)

var noSniff = []string{"nosniff"}

func (p *problem) Error() string { return p.Detail }

func (p *problem) write(w http.ResponseWriter) {
	text, err := json.Marshal(struct {
		Type     string `json:"type"`
		Title    string `json:"title"`
		Status   int    `json:"status"`
		Detail   string `json:"detail,omitempty"`
		ErrorMsg string `json:"errorMsg,omitempty"`
	}{"urn:leafsql:problem:" + p.Type, http.StatusText(p.Status), p.Status, p.Detail, p.Legacy})
	if err != nil {
		text = []byte("{}") // strings cannot fail
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h["X-Content-Type-Options"] = noSniff
	if p.retry {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	w.Write(text)
}

// problemOf returns the answer for an error. The status is 500 if no server gets ids from the row until it is fixed.
// For other errors of a generator or the store it is 503, since the same request may succeed later.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*segment.UnknownTagError](err); ok {
		return unknownTag(e.Tag)
	}
	if e, ok := errors.AsType[*idgen.CountError](err); ok {
		return &problem{Status: http.StatusBadRequest, Type: "count", Detail: errprefix.TrimText(e)}
	}
	if isAnswer(err) {
		return &problem{Status: http.StatusInternalServerError, Type: "row", Detail: process.PublicText(err)}
	}
	return &problem{Status: http.StatusServiceUnavailable, Type: "unavailable", Detail: process.PublicText(err), retry: true}
}

// isAnswer reports whether a tag has no ids because of its row, or because it has no row. It is false for other
// errors, such as an unreachable store.
func isAnswer(err error) bool {
	_, unknown := errors.AsType[*segment.UnknownTagError](err)
	_, row := errors.AsType[*segment.RowError](err)
	_, back := errors.AsType[*segment.RolledBackError](err)
	return unknown || row || back || errors.Is(err, idgen.ErrExhausted)
}

// unknownTag returns the problem for a tag without a row.
func unknownTag(tag string) *problem {
	return &problem{Status: http.StatusNotFound, Type: "unknown-tag", Detail: "leaf_alloc has no row for the tag " + strconv.Quote(tag) + "; add one that starts above the ids in use"}
}

// busyProblem returns the problem for a request above a limit.
func busyProblem(of string) error {
	return &problem{Status: http.StatusServiceUnavailable, Type: "busy", Detail: "too many " + of + " at a time; try again", retry: true}
}
