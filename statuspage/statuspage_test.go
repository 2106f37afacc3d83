package statuspage

import (
	"database/sql"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", target, nil))
	return w
}

// text is what a person reads of the page, spaces made one.
func text(w *httptest.ResponseRecorder) string {
	body := regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>`).ReplaceAllString(w.Body.String(), " ")
	return strings.Join(strings.Fields(html.UnescapeString(body)), " ")
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%s", p, text)
		}
	}
}

// TestPageOfAPool: figures of a real pool, without JavaScript.
func TestPageOfAPool(t *testing.T) {
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
			t.Errorf("%s: %q", header, got)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Error(policy)
	}
}

func TestPageOfAnotherDriver(t *testing.T) {
	db, err := sql.Open("mysql", "app:s3cret@tcp(127.0.0.1:1)/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := get(t, New(db, "shop"), "/")
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "s3cret") {
		t.Error(w.Code, w.Body)
	}
	wants(t, text(w), "Nothing can be told", "connection refused")
}

func of(s driver.Stats) *Page {
	return &Page{title: "shop", stats: func() (driver.Stats, error) { return s, nil }}
}

func TestMethods(t *testing.T) {
	for method, code := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405} {
		w := httptest.NewRecorder()
		of(driver.Stats{}).ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if w.Code != code {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

func TestDecode(t *testing.T) {
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
			t.Errorf("id %q: %s", id, body)
		}
	}
	w := shop()
	w.Worker.Layout.Datacenter = 5
	wants(t, text(get(t, of(w), "/?id=1234567890123456789")), "Data centre 20", "Worker id 24", "Read as 41-5+5-12@1288834974657")
}

func TestFilter(t *testing.T) {
	body := text(get(t, of(many()), "/?tag=ITEMS_19"))
	if n := strings.Count(body, "order_items_19"); n != 10 || !strings.Contains(body, "190 more tags and tables are not shown") {
		t.Errorf("%d: %s", n, body)
	}
	wants(t, text(get(t, of(many()), "/?tag=nosuch")), "None whose name holds “nosuch”")
	var s driver.Stats
	for range most + 7 {
		s.Tags = append(s.Tags, tag("t", 1, 1))
	}
	wants(t, text(get(t, of(s), "/")), "7 more tags and tables are not shown")
}

// TestRates: what was issued in the last seconds, over the time it took.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := driver.Stats{Tags: []driver.TagStats{tag("a", 0, 0), tag("b", 0, 0)}}
		p := &Page{title: "shop", stats: func() (driver.Stats, error) {
			now := s
			now.Tags = append(now.Tags[:0:0], s.Tags...)
			now.Tags[0].IDs = int64(1000 * time.Since(began).Seconds())
			return now, nil
		}}
		// The first look takes a moment, and tells a rate.
		wants(t, text(get(t, p, "/")), "1,000 ids a second", "250 ids issued", "a 1,000", "b 0")
		if d := time.Since(began); d != firstLook {
			t.Errorf("the first look took %v", d)
		}
		// So does one after nobody looked for an hour.
		time.Sleep(time.Hour)
		s.Tags[1].IDs = 7_000_000
		wants(t, text(get(t, p, "/")), "1,000 ids a second")

		// Many who look do not make the history long or the rates wrong.
		for range 3000 {
			time.Sleep(100 * time.Millisecond)
			get(t, p, "/")
		}
		if n := len(p.history.notes); n > int(2*span/every) || p.history.rate("a") < 999 || p.history.rate("a") > 1001 {
			t.Errorf("%d notes, %f a second", n, p.history.rate("a"))
		}
		// A counter that begins anew is no negative rate.
		began = time.Now()
		time.Sleep(time.Second)
		get(t, p, "/")
		if r := p.history.rate("a"); r < 0 {
			t.Errorf("%f a second", r)
		}
	})
}

// TestRun: the charts begin before somebody looks.
func TestRun(t *testing.T) {
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
		time.Sleep(2 * span)
		c := p.history.chart("a", 120, 28)
		if c.Most != 10 || strings.Count(c.Line, ",") != 2*int(span/every) || !strings.HasPrefix(c.Line, "0.0,1.0 2.0,1.0 ") || !strings.HasSuffix(c.Line, " 120.0,1.0") {
			t.Errorf("%+v", c)
		}
	})
}

func TestWords(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "0 s ago", 90 * time.Second: "90 s ago", -54 * time.Second: "in 54 s", 10 * time.Minute: "10 min ago", 5 * time.Hour: "5 h ago",
	} {
		if got := relative(now.Add(-d), now); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 1<<63 - 1: "9,223,372,036,854,775,807"} {
		if got := number(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	for r, want := range map[float64]string{0: "0", 0.34: "0.3", 9.96: "10.0", 12.4: "12", 12345.6: "12,346"} {
		if got := perSecond(r); got != want {
			t.Errorf("%f: %q", r, got)
		}
	}
}
