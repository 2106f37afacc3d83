package server

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// kind determines the checks of an endpoint's requests.
type kind int

const (
	idAnswer    kind = iota // GET only, since each answer uses up ids; refused for pages of other sites
	plainAnswer             // GET and HEAD
	pageAnswer              // GET and HEAD, a few at a time
	openAnswer              // GET and HEAD, without a token and under any load
)

// An endpoint answers the requests for one path: it checks and counts them, and writes errors of serve as
// problems.
type endpoint struct {
	s      *Server
	name   string
	kind   kind
	serve  func(http.ResponseWriter, *http.Request) error
	counts endpointMetrics
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	code := http.StatusOK
	if e.s.connections.areScarce() {
		w.Header()["Connection"] = closeConnection
	}
	if err := e.answer(w, r); err != nil {
		p := problemOf(err)
		p.write(w)
		code = p.Status
	}
	e.counts.countAnswer(code)
	e.counts.took.Observe(time.Since(began).Seconds())
}

func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			e.s.log.Error("leafsql: a request failed", "endpoint", e.name, "panic", v, "stack", string(debug.Stack()))
			err = &problem{Status: http.StatusInternalServerError, Type: "internal", Detail: "see the server's log"}
		}
	}()
	if e.kind != openAnswer {
		defer e.s.requests.Add(-1)
		if e.s.requests.Add(1) > int64(e.s.cfg.MaxRequests) {
			return busyProblem("requests")
		}
	}
	if err := e.admit(w, r); err != nil {
		return err
	}
	if e.kind == pageAnswer {
		select {
		case e.s.pages <- struct{}{}:
			defer func() { <-e.s.pages }()
		default:
			return busyProblem("pages")
		}
	}
	return e.serve(w, r)
}

// admit returns a problem for a request that is malformed or not allowed.
func (e *endpoint) admit(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h["Cache-Control"] = noStore
	if e.kind != idAnswer { // browsers do not sniff a bare number
		h["X-Content-Type-Options"] = noSniff
	}
	if e.kind != openAnswer && !e.s.isAuthorized(r) {
		h.Set("WWW-Authenticate", `Bearer realm="leafsql"`)
		h.Add("WWW-Authenticate", `Basic realm="leafsql", charset="UTF-8"`)
		return &problem{Status: http.StatusUnauthorized, Type: "unauthorized", Detail: "send the server's token: Authorization: Bearer …"}
	}
	if r.Method != http.MethodGet && (e.kind == idAnswer || r.Method != http.MethodHead) {
		h.Set("Allow", "GET")
		return &problem{Status: http.StatusMethodNotAllowed, Type: "method", Detail: "use GET"}
	}
	if r.ContentLength != 0 {
		h["Connection"] = closeConnection
		return &problem{Status: http.StatusRequestEntityTooLarge, Type: "body", Detail: "this request must have no body"}
	}
	if e.kind == idAnswer && len(r.Header["Sec-Fetch-Site"]) > 0 && r.Header["Sec-Fetch-Site"][0] == "cross-site" {
		return &problem{Status: http.StatusForbidden, Type: "cross-site", Detail: "a page of another site must not use up ids"}
	}
	return nil
}

var noStore, closeConnection, textPlain = []string{"no-store"}, []string{"close"}, []string{"text/plain; charset=utf-8"}

// statusCodes are the possible status codes.
var statusCodes = []int{
	http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusRequestEntityTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

type requestMetrics struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

// endpointMetrics are the counters of an endpoint, looked up once and not for each request.
type endpointMetrics struct {
	byCode map[int]prometheus.Counter
	took   prometheus.Observer
}

func newRequestMetrics(reg prometheus.Registerer, open *connections) *requestMetrics {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leafsql_http_connections", Help: "Open connections."},
			func() float64 { return float64(open.open.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "leafsql_http_connections_limit", Help: "Maximum number of open connections."},
			func() float64 { return float64(open.max) }),
	)
	c := &requestMetrics{
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "leafsql_http_requests_total", Help: "Finished requests."}, []string{"endpoint", "code"}),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "leafsql_http_request_duration_seconds", Help: "Duration of requests, in seconds.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"endpoint"}),
	}
	reg.MustRegister(c.requests, c.took)
	return c
}

func (c *requestMetrics) endpoint(name string) endpointMetrics {
	e := endpointMetrics{make(map[int]prometheus.Counter), c.took.WithLabelValues(name)}
	for _, code := range statusCodes {
		e.byCode[code] = c.requests.WithLabelValues(name, fmt.Sprint(code))
	}
	return e
}

func (e endpointMetrics) countAnswer(code int) { e.byCode[code].Inc() }
