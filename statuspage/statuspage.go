// Package statuspage shows the statistics of a pool of mysql-leaf on a web page. It has
// an http.Handler for one page with the pool's tags, tables and worker id, which
// driver.StatsOf returns, and with a decoder of snowflakes. OfPools shows several pools.
//
//	page := statuspage.New(db, "shop")
//	go page.Run(ctx) // charts begin before the first request
//	mux.Handle("GET /leafsql", page)
//
// The page is in English, or in Chinese for browsers that prefer Chinese. It is one document that loads nothing from other addresses.
// It can be read on a phone, in dark mode and without JavaScript; JavaScript only updates the figures. It shows names of
// tags and tables and the texts of errors, but no rows, statements or passwords.
// It changes nothing and sends nothing to a server. It has no authentication: protect it like the application's other
// internal pages.
package statuspage

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/pageextra"
)

// A Page is the http.Handler. It may be mounted anywhere, and is safe for concurrent use if the function passed to Of is.
type Page struct {
	pageextra.Extra // for leafsql's commands

	title   string
	began   time.Time
	stats   func() (driver.Stats, error)
	lookups []*lookup // used instead of stats by a page of several pools
	history history
}

// New returns the page of a pool that was opened with mysql-leaf. The title
// names the pool.
func New(db *sql.DB, title string) *Page {
	return Of(func() (driver.Stats, error) { return driver.StatsOf(db) }, title)
}

// Of returns a page of the statistics that stats returns, for example with errors and sources
// removed if readers must not see the names of users and hosts in them.
func Of(stats func() (driver.Stats, error), title string) *Page {
	return &Page{title: title, began: time.Now(), stats: stats}
}

// OfPools returns one page of several pools, by their names. Pools that share a leaf_alloc show its tags once. If there are
// several leaf_alloc, tags have the name of a pool in parentheses, as tables always have. If the statistics of a pool cannot
// be read, the pool is listed as a problem, and looked up again after 30 s. The decoder is hidden if the pools' layouts differ.
func OfPools(dbs map[string]*sql.DB, title string) *Page {
	return &Page{title: title, began: time.Now(), lookups: newLookups(dbs)}
}

// Run records how many ids are issued, until ctx ends. Without it the charts cover only
// the times of requests.
func (p *Page) Run(ctx context.Context) {
	tick := time.NewTicker(noteInterval)
	defer tick.Stop()
	for {
		p.readStats(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// readStats reads the statistics and records them. It also returns the pools of a page of several pools.
func (p *Page) readStats(now time.Time) (s driver.Stats, pools []pool, err error) {
	if p.stats != nil {
		s, err = p.stats()
	} else {
		pools = readPools(p.lookups)
		s, err = joinStats(pools)
	}
	if err == nil {
		p.history.note(now, s.Tags)
	}
	return s, pools, err
}

// firstLook is the time between the first two readings of the statistics after a pause. It is
// short so that rates can be shown immediately.
const firstLook = 250 * time.Millisecond

// ServeHTTP answers GET and HEAD, in Chinese if the browser prefers it. The parameter id is a snowflake to
// decode. The parameter tag is a part of names; only tags and tables with this part in their names are shown.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
		return
	}
	s, pools, err := p.readStats(time.Now())
	if err == nil && !p.history.recent() {
		select {
		case <-time.After(firstLook):
		case <-r.Context().Done():
			return
		}
		s, pools, err = p.readStats(time.Now())
	}
	texts, document := chinese.Texts(nil), english
	if pageextra.PrefersChinese(r) {
		texts, document = inChinese, translated
	}
	v := newView(p, texts, s, pools, err, time.Now())
	q := r.URL.Query()
	v.filter(q.Get("tag"), &p.history)
	v.decode(q.Get("id"))

	var page bytes.Buffer
	if err := document.Execute(&page, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding, Accept-Language")
	if pageextra.AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		page = compressed(page.Bytes())
	}
	if v.Err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	w.Write(page.Bytes())
}

func compressed(page []byte) (out bytes.Buffer) {
	z := gzip.NewWriter(&out)
	z.Write(page) // writing to a Buffer does not fail
	z.Close()
	return out
}

//go:embed page.html
var body string

//go:embed page.js
var js string

// The page in each of its languages.
var english, translated = document(nil), document(inChinese)

func document(texts chinese.Texts) *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"css": func() template.CSS { return template.CSS(pageextra.CSS) },
		"js":  func() template.JS { return template.JS(js) },
		"say": texts.Sprintf, "text": texts.Text,
	}).Parse(body))
}

// policy makes the browser use only the document's own script and style, even if other code was
// injected into the document.
var policy = "default-src 'none'; style-src " + pageextra.Hash(pageextra.CSS) + "; script-src " + pageextra.Hash(js) + "; connect-src 'self'; img-src data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
