package statuspage

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/pageextra"
	"github.com/leafsql/leafsql/internal/version"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
	return w
}

// text returns the visible text of the page, with single spaces.
func text(w *httptest.ResponseRecorder) string {
	body := regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>`).ReplaceAllString(w.Body.String(), " ")
	return strings.Join(strings.Fields(html.UnescapeString(body)), " ")
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("page = \n%s\nwant text with %q", text, p)
		}
	}
}

// TestPageShowsAPool: figures of a real pool, without JavaScript.
func TestPageShowsAPool(t *testing.T) {
	dsn := mysqltest.Database(t)
	db, err := sql.Open(driver.Name, dsn+"?leafTables=t")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := New(db, "a shop")
	w := get(t, p, "/")
	wants(t, text(w), "a shop", "all is well", "No id has been asked for yet")

	for _, text := range []string{
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL)",
		"INSERT INTO leaf_alloc VALUES ('t', 100, 1000)",
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)",
		"INSERT INTO t (a) VALUES (1), (2), (3), (4)",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("WITH x AS (SELECT 1) INSERT INTO t (a) VALUES (4)"); !errors.Is(err, driver.ErrRefused) {
		t.Fatal(err)
	}
	w = get(t, p, "/?id=1234567890123456789")
	wants(t, text(w), "1 to look at", "100 … 116", "25 %", "4 ids issued", "segment t 1 4 1", "2020-03-02 19:54:56.824 UTC", "Worker id 664", "Sequence 277")
	for header, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Type": "text/html; charset=utf-8",
	} {
		if got := w.Header().Get(header); !strings.HasPrefix(got, want) {
			t.Errorf("%s: Get(header) = %q, want prefix %q", header, got, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("policy = %v, want no text with \"unsafe\" and no text with \"*\"", policy)
	}
}

func TestPageOfAnotherDriverIsRefused(t *testing.T) {
	db, err := sql.Open("mysql", "app:s3cret@tcp(127.0.0.1:1)/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := get(t, New(db, "shop"), "/")
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "s3cret") {
		t.Errorf("w.Code = %v, w.Body = %v, want w.Code = http.StatusServiceUnavailable and no text with \"s3cret\"", w.Code, w.Body)
	}
	wants(t, text(w), "No statistics", "connection refused")
}

func of(s driver.Stats) *Page {
	return &Page{title: "shop", stats: func() (driver.Stats, error) { return s, nil }}
}

func TestOnlyReadingMethodsAreServed(t *testing.T) {
	for method, code := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405} {
		w := httptest.NewRecorder()
		of(driver.Stats{}).ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if w.Code != code {
			t.Errorf("method = %s, w.Code = %d, want w.Code = %v", method, w.Code, code)
		}
	}
}

func TestDecodeShowsASnowflake(t *testing.T) {
	for id, want := range map[string]string{
		"":                    "an epoch", // never there
		"0":                   "cannot be 0",
		"-5":                  "cannot be -5",
		"x":                   "not a number",
		"9223372036854775808": "not a number",
		"9223372036854775807": "Worker id 1023 Sequence 4095",
		"%20%201%0A":          "2010-11-04 01:42:54.657 UTC",
	} {
		body := text(get(t, of(driver.Stats{}), "/?id="+id))
		if found := strings.Contains(body, want); found != (id != "") {
			t.Errorf("id %q: %s, want found = %v", id, body, id != "")
		}
	}
	w := shop()
	w.Worker.Layout.Datacenter = 5
	wants(t, text(get(t, of(w), "/?id=1234567890123456789")), "Data centre 20", "Worker id 24", "Read as 41-5+5-12@1288834974657")
}

func TestPageShowsTheEndOfTheWaitForAWorkerID(t *testing.T) {
	s := shop()
	start := time.Now().Add(90 * time.Second)
	for _, phase := range []string{"searching", "waiting"} { // without a worker id, and with one
		s.Worker.Status = worker.Status{Phase: phase, Worker: -1, Start: start}
		at := "until " + formatTime(start) + " (in "
		wants(t, text(get(t, of(s), "/")), "State "+phase+" "+at, "no snowflakes "+at, "leafsql init -new-registry")
	}
	s.Worker.Status = worker.Status{Phase: "holding", Worker: 7, Start: time.Now().Add(-time.Minute)}
	if body := text(get(t, of(s), "/")); strings.Contains(body, "no snowflakes until") {
		t.Errorf("page of a process with a worker id = %s, want no text of a wait", body)
	}
}

func TestFilterSelectsTags(t *testing.T) {
	body := text(get(t, of(many()), "/?tag=ITEMS_19"))
	if n := strings.Count(body, "order_items_19"); n != 10 || !strings.Contains(body, "190 more tags and tables are not shown") {
		t.Errorf("Count(body, \"order_items_19\") = %d with body = %s, want 10 and text with \"190 more tags and tables are not shown\"", n, body)
	}
	wants(t, text(get(t, of(many()), "/?tag=nosuch")), "None whose name holds “nosuch”")
	var s driver.Stats
	for range maxRows + 7 {
		s.Tags = append(s.Tags, tag("t", 1, 1))
	}
	wants(t, text(get(t, of(s), "/")), "7 more tags and tables are not shown")
}

// TestRatesAreIDsPerSecond: rates are the ids of the last seconds divided by the time.
func TestRatesAreIDsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := driver.Stats{Tags: []driver.TagStats{tag("a", 0, 0), tag("b", 0, 0)}}
		p := &Page{title: "shop", stats: func() (driver.Stats, error) {
			now := s
			now.Tags = append(now.Tags[:0:0], s.Tags...)
			now.Tags[0].IDs = int64(1000 * time.Since(began).Seconds())
			return now, nil
		}}
		// The first request takes a moment, and shows a rate.
		wants(t, text(get(t, p, "/")), "1,000 ids a second", "250 ids issued", "a 1,000", "b 0")
		if d := time.Since(began); d != firstLook {
			t.Errorf("the first look took %v, want %v", d, firstLook)
		}
		// So does a request after an hour without any.
		time.Sleep(time.Hour)
		s.Tags[1].IDs = 7_000_000
		wants(t, text(get(t, p, "/")), "1,000 ids a second")

		// Many requests do not make the history long or the rates wrong.
		for range 500 {
			time.Sleep(600 * time.Millisecond)
			get(t, p, "/")
		}
		if n := len(p.history.notes); n > int(2*historySpan/noteInterval) || p.history.rate("a") < 999 || p.history.rate("a") > 1001 {
			t.Errorf("%d notes, %f a second, want n at most %v, p.history.rate(\"a\") at least 999 and p.history.rate(\"a\") at most 1001", n, p.history.rate("a"), int(2*historySpan/noteInterval))
		}
		// A counter that is reset is no negative rate.
		began = time.Now()
		time.Sleep(time.Second)
		get(t, p, "/")
		if r := p.history.rate("a"); r < 0 {
			t.Errorf("%f a second, want at least 0", r)
		}
	})
}

// TestRunRecordsBeforeTheFirstRequest: the charts begin before the first request.
func TestRunRecordsBeforeTheFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var issued int64
		p := &Page{title: "shop", stats: func() (driver.Stats, error) {
			issued += 20
			s := driver.Stats{Tags: []driver.TagStats{tag("a", 0, 0)}}
			s.Tags[0].IDs = issued
			return s, nil
		}}
		ctx := t.Context()
		go p.Run(ctx)
		time.Sleep(2 * historySpan)
		c := p.history.chart("a", 120, 28)
		if c.Most != 10 || c.Top() != "10" || c.Line != "M0 30V1H122V30" {
			t.Errorf("chart(\"a\", 120, 28) = %+v, want Most = 10, c.Top() = \"10\" and Line = \"M0 30V1H122V30\"", c)
		}
	})
}

// TestIDsOfARenamedTagHaveNoRate: a tag that gets the name of its pool, or is new, has a rate from its second note on, and the rate of all
// tags has no ids from before.
func TestIDsOfARenamedTagHaveNoRate(t *testing.T) {
	var h history
	at := time.Now()
	for i, tags := range []map[string]int64{
		{"orders": 1_000_000},
		{"orders": 1_000_200},
		{"orders (a)": 1_000_400, "orders (b)": 3_000_000, "other": 20},
		{"orders (a)": 1_000_600, "orders (b)": 3_000_000, "other": 60},
	} {
		var stats []driver.TagStats
		for name, ids := range tags {
			stats = append(stats, driver.TagStats{Tag: name, Stats: segment.Stats{IDs: ids}})
		}
		h.note(at.Add(time.Duration(i)*noteInterval), stats)
		for name, want := range []map[string]float64{
			{"orders": 0, total: 0},
			{"orders": 100, total: 100},
			{"orders (a)": 0, "orders (b)": 0, "other": 0, total: 50},
			{"orders (a)": 100, "orders (b)": 0, "other": 20, total: (200 + 240) / 6.},
		}[i] {
			if got := h.rate(name); got != want {
				t.Errorf("rate(%q) after note %d = %v, want %v", name, i, got, want)
			}
		}
	}
	if got := h.busy(); got["orders (a)"] != 200 || got["orders (b)"] != 0 || got["other"] != 40 {
		t.Errorf("busy() = %v, want 200 ids of orders (a), 0 of orders (b) and 40 of other", got)
	}
	if c := h.chart(total, 120, 28); c.Most != 120 {
		t.Errorf("highest rate of the chart = %v, want 120", c.Most)
	}
}

// TestChartHasEachRate: the line has each rate up to the next note, and its highest point is the highest rate.
func TestChartHasEachRate(t *testing.T) {
	var h history
	at := time.Now()
	for i, ids := range []int64{0, 0, 200, 300, 300} {
		h.note(at.Add(time.Duration(i)*noteInterval), []driver.TagStats{{Tag: "a", Stats: segment.Stats{IDs: ids}}})
	}
	if c := h.chart("a", 120, 28); c.Most != 100 || c.Line != "M112 30V27H114V1H116V14H118V27H122V30" {
		t.Errorf("chart(\"a\", 120, 28) = %+v, want Most = 100 and Line = \"M112 30V27H114V1H116V14H118V27H122V30\"", c)
	}
	w := get(t, of(shop()), "/")
	wants(t, text(w), "Ids a second in the last two minutes, at most 0", "2 min ago now")
}

// TestOrderPutsErrorsFirst: tags with errors come first, then the busiest ones. The others are sorted by name, and have no chart
// after the first tags.
func TestOrderPutsErrorsFirst(t *testing.T) {
	s := many()
	s.Tags[150].Err = away
	p := of(s)
	p.history.note(time.Now().Add(-time.Minute), s.Tags)
	tags := slices.Clone(s.Tags)
	tags[120].IDs += 100
	tags[130].IDs += 3000
	p.stats = func() (driver.Stats, error) { return driver.Stats{Tags: tags}, nil }
	page := get(t, p, "/").Body.String()
	var order []string
	for _, m := range regexp.MustCompile(`scope="row"><span>order_items_(\d+)<`).FindAllStringSubmatch(page, -1) {
		order = append(order, m[1])
	}
	if len(order) != 200 || !slices.Equal(order[:5], []string{"150", "130", "120", "000", "001"}) || tags[0].Tag != "order_items_000" {
		t.Errorf("order = %v, want len(order) = 200, %+v and tags[0].Tag = \"order_items_000\"", order, []string{"150", "130", "120", "000", "001"})
	}
	if n := strings.Count(page, "<svg"); n != 1+maxCharts {
		t.Errorf("%d charts, want %v", n, 1+maxCharts)
	}
	if find := strings.Index(page, "Find a tag"); find < 0 || find > strings.Index(page, "<h2>Tags") || find > strings.Index(page, "order_items_000") {
		t.Error("the search is below the rows, want it above them")
	}
}

// TestPageStaysSmall: a page with 500 different tags with errors has 100 KB when compressed, and is the same for a client
// without gzip.
func TestPageStaysSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s driver.Stats
	for i := range 500 {
		x := tag(fmt.Sprintf("%s_%x", []string{"orders", "order_items", "customers", "payments"}[i%4], r.Uint32()), r.Int64N(1e12), r.Int64N(1000))
		x.Waits, x.Failures, x.Err = r.Int64N(1000), r.Int64N(100), away
		s.Tags = append(s.Tags, x)
	}
	p := of(s)
	for at := time.Now().Add(-historySpan); at.Before(time.Now()); at = at.Add(noteInterval) {
		for i := range s.Tags {
			s.Tags[i].IDs += r.Int64N(100_000)
		}
		p.history.note(at, s.Tags)
	}
	for encoding, want := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "deflate, GZIP": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false, "identity": false} {
		w := httptest.NewRecorder()
		q := httptest.NewRequest("GET", "/", nil)
		q.Header.Set("Accept-Encoding", encoding)
		p.ServeHTTP(w, q)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want || w.Header().Get("Vary") != "Accept-Encoding, Accept-Language" {
			t.Errorf("encoding = %q, w.Header() = %v, want got = %v and w.Header().Get(\"Vary\") = \"Accept-Encoding, Accept-Language\"", encoding, w.Header(), want)
		}
		page, size := w.Body.Bytes(), w.Body.Len()
		if want {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if page, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d bytes", size, len(page))
			if size > 100_000 {
				t.Errorf("%d bytes, want at most 100_000", size)
			}
		}
		if n := bytes.Count(page, []byte(`<th role="rowheader"`)); n != 500 || !bytes.Contains(page, []byte("</html>")) {
			t.Errorf("encoding %q: %d tags, want 500 in a complete page", encoding, n)
		}
	}
}

// TestAboutShowsTheVersion: the page shows the version, the uptime, the source of the ids, and links.
func TestAboutShowsTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Of(func() (driver.Stats, error) { return driver.Stats{}, nil }, "shop")
		p.Server = "db:3306/shop <b>"
		p.Links = []pageextra.Link{{Text: "rows & more", Address: "db"}, {Text: "bad", Address: "javascript:alert(1)"}}
		time.Sleep(3 * time.Hour)
		w := get(t, p, "/")
		wants(t, text(w), "leafsql "+version.Current()+", up for 3 h, ids of db:3306/shop <b>", "rows & more")
		if body := w.Body.String(); !strings.Contains(body, `<a href="db">rows &amp; more</a>`) || strings.Contains(body, "javascript:") || strings.Contains(body, "shop <b>") {
			t.Errorf("String() = %+v, want text with `<a href=\"db\">rows &amp; more</a>`, no text with \"javascript:\" and no text with \"shop <b>\"", body)
		}
	})
}

// TestManyProblemsHideNothing: many problems do not hide the rest of the page.
func TestManyProblemsHideNothing(t *testing.T) {
	s := many()
	for i := range s.Tags {
		s.Tags[i].Err = away
	}
	w := get(t, of(s), "/")
	wants(t, text(w), "200 to look at", "And 190 more: the rows below say why.")
	if n := strings.Count(w.Body.String(), "<dt>Tag "); n != maxListed {
		t.Errorf("Count(w.Body.String(), \"<dt>Tag \") = %v, want %v", n, maxListed)
	}
}

// TestErrorsAreShownOnce: an error at the top of the page is not repeated in its row, and errors for which there is no room at
// the top are in their rows.
func TestErrorsAreShownOnce(t *testing.T) {
	w := httptest.NewRecorder()
	of(failing()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	for _, why := range []string{"ids are issued again as soon as the store answers", "cannot get an id: no ids for tag"} {
		if n := strings.Count(w.Body.String(), why); n != 1 {
			t.Errorf("page has %q %d times, want once", why, n)
		}
	}
	s := many()
	for i := range s.Tags {
		s.Tags[i].Err = fmt.Errorf("failure %03d", i)
	}
	w = httptest.NewRecorder()
	of(s).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	for i := range s.Tags {
		if n := strings.Count(w.Body.String(), fmt.Sprintf("failure %03d", i)); n != 1 {
			t.Errorf("page has the error of tag %d %d times, want once", i, n)
		}
	}
}

// TestContrastMeetsWCAG: the contrast of texts with their background is at least 4.5:1, and that of borders and chart lines 3:1, as
// WCAG 2.2 AA requires.
func TestContrastMeetsWCAG(t *testing.T) {
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageextra.CSS, -1)
	if len(schemes) != 2 {
		t.Fatalf("FindAllStringSubmatch(pageextra.CSS, -1) = %+v, want len(schemes) = 2", schemes)
	}
	for i, scheme := range schemes {
		colors := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+): #(\w+)`).FindAllStringSubmatch(scheme[1], -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		ratio := func(a, b string) float64 {
			return (max(colors[a], colors[b]) + 0.05) / (min(colors[a], colors[b]) + 0.05)
		}
		for _, on := range []string{"page", "card", "badpage"} {
			for name, least := range map[string]float64{"text": 4.5, "soft": 4.5, "accent": 4.5, "good": 4.5, "bad": 4.5, "edge": 3, "badline": 3} {
				if got := ratio(name, on); got < least {
					t.Errorf("scheme %d: %s on %s: %.2f, want %.1f", i, name, on, got, least)
				}
			}
		}
	}
	if !regexp.MustCompile(`input, button \{[^}]*border: 1px solid var\(--edge\)`).MatchString(pageextra.CSS) {
		t.Error("input fields have another border, want 1px solid var(--edge)")
	}
}

// luminance returns the relative luminance of a color, as WCAG defines it.
func luminance(t *testing.T, hex string) float64 {
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if len(hex) == 8 {
		n >>= 8
	}
	if err != nil {
		t.Fatal(err)
	}
	linear := func(c uint64) float64 {
		v := float64(c&255) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}

func TestFiguresAreRounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "0 s ago", 90 * time.Second: "90 s ago", -54 * time.Second: "in 54 s", 10 * time.Minute: "10 min ago", 5 * time.Hour: "5 h ago", 72 * time.Hour: "3 days ago",
	} {
		if got := formatRelative(nil, now.Add(-d), now); got != want {
			t.Errorf("%v: formatRelative(nil, now.Add(-d), now) = %q, want %v", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 1<<63 - 1: "9,223,372,036,854,775,807"} {
		if got := formatNumber(n); got != want {
			t.Errorf("%d: formatNumber(n) = %q, want %v", n, got, want)
		}
	}
	for r, want := range map[float64]string{0: "0", 0.34: "0.3", 9.96: "10.0", 12.4: "12", 12345.6: "12,346"} {
		if got := formatRate(r); got != want {
			t.Errorf("%f: formatRate(r) = %q, want %v", r, got, want)
		}
	}
}
