package statuspage

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/chromiumtest"
)

var pictures = flag.String("pictures", "", "folder to keep what the browser shows in")

// tag returns a tag with a range of a thousand ids, of which used are used.
func tag(name string, start, used int64) driver.TagStats {
	return driver.TagStats{Tag: name, Stats: segment.Stats{
		Fetches: start/1000%100_000 + 1, IDs: start + used, Step: 1000, Remaining: 2000 - used, Left: 1000 - used,
		Current: segment.Range{Start: start, End: start + 1000, Step: 1000}, Queued: segment.Range{Start: start + 1000, End: start + 2000, Step: 1000},
	}}
}

var away = &segment.UnavailableError{Tag: "orders", Cause: errors.New("dial tcp 10.1.2.3:3306: connect: connection refused")}

// shop returns the statistics of an everyday application.
func shop() driver.Stats {
	orders, items := tag("orders", 4_200_000, 310), tag("order_items", 19_871_000, 955)
	customers := tag("customers", 12_000, 11)
	customers.Queued = segment.Range{}
	return driver.Stats{
		Tags: []driver.TagStats{customers, items, orders},
		Tables: []driver.TableStats{
			{Name: "shop.customers", Generator: "segment", Tag: "customers", Statements: 12_011, IDs: 12_011},
			{Name: "shop.events", Generator: "snowflake", Statements: 88_120, IDs: 1_400_212},
			{Name: "shop.order_items", Generator: "segment", Tag: "order_items", Statements: 4_200_310, IDs: 19_871_955},
			{Name: "shop.orders", Generator: "segment", Tag: "orders", Statements: 4_200_310, IDs: 4_200_310},
		},
		Worker: &driver.WorkerStats{
			Source: "nacos", Layout: snowflake.Leaf,
			Status: worker.Status{Phase: "holding", Worker: 217, Limit: time.Now().Add(54 * time.Second), ClockOffset: -3 * time.Millisecond},
		},
	}
}

func failing() driver.Stats {
	s := shop()
	s.Tags[2].Err, s.Tags[2].Failures, s.Tags[2].Remaining = away, 12, 690
	s.Tags[2].Queued = segment.Range{}
	s.Tables[3].Refused, s.Tables[3].LastRefused = 31, time.Now().Add(-12*time.Second)
	s.Tables[3].LastRefusal = "cannot get an id: no ids for tag \"orders\": dial tcp 10.1.2.3:3306: connect: connection refused"
	s.Worker.Err = errors.New("leafsql: renewing worker id 217: the registry is away: context deadline exceeded")
	return s
}

func many() driver.Stats {
	var s driver.Stats
	for i := range 200 {
		s.Tags = append(s.Tags, tag(fmt.Sprintf("order_items_%03d", i), int64(i)*1_000_000, int64(i)*5))
	}
	return s
}

func long() driver.Stats {
	name := strings.Repeat("a_very_long_name_of_a_table_", 5)[:128]
	far := tag(name, 9_223_372_036_854_000_000, 500)
	return driver.Stats{
		Tags: []driver.TagStats{far, tag("订单_"+strings.Repeat("订", 100), 1, 5)},
		Tables: []driver.TableStats{{Name: strings.Repeat("database_", 7) + "." + strings.Repeat("table_", 10), Generator: "segment", Tag: name,
			Refused: 1, LastRefused: time.Now(), LastRefusal: strings.Repeat("why ", 100)}},
	}
}

// page serves statistics in which ids are issued continuously.
func page(t testing.TB, of func() driver.Stats) *httptest.Server {
	p := &Page{title: "shop on app-1"}
	began := time.Now().Add(-historySpan)
	stats := func(now time.Time) driver.Stats {
		s := of()
		for i := range s.Tags {
			x := now.Sub(began).Seconds()
			s.Tags[i].IDs += int64(x*40*float64(i+1) + 300*x*x/float64(i+2)/20)
		}
		return s
	}
	p.stats = func() (driver.Stats, error) { return stats(time.Now()), nil }
	for at := began; at.Before(time.Now()); at = at.Add(noteInterval) {
		p.history.note(at, stats(at).Tags)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server
}

func keep(t *testing.T, name string, png []byte) {
	if *pictures == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBrowserRendersPages: a browser renders every page as expected, and logs no
// error.
func TestBrowserRendersPages(t *testing.T) {
	windows := map[string]chromiumtest.Window{
		"desktop":      {},
		"desktop-dark": {Dark: true},
		"phone":        {Width: 390, Height: 1800},
		"narrow":       {Width: 320, Height: 2400},
		"phone-dark":   {Width: 390, Height: 1800, Dark: true},
		"chinese":      {Height: 1100, Language: "zh-CN"},
	}
	for name, of := range map[string]func() driver.Stats{
		"shop": shop, "failing": failing, "many": many, "long": long, "empty": func() driver.Stats { return driver.Stats{} },
	} {
		server := page(t, of)
		for kind, w := range windows {
			if (name == "many" || name == "long" || name == "empty") && (kind == "desktop-dark" || kind == "phone" || kind == "narrow" || kind == "chinese") {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				seen := chromiumtest.OpenPage(t, server.URL+"?id=1234567890123456789", w)
				keep(t, name+"-"+kind, seen.PNG)
				if len(seen.Console) > 0 {
					t.Errorf("the browser complains: %q, want no seen.Console", seen.Console)
				}
				if !strings.Contains(seen.DOM, "shop on app-1") || strings.Contains(seen.DOM, "查找 tag") != (kind == "chinese") {
					t.Errorf("the page is\n%s\nwant text with \"shop on app-1\" and strings.Contains(seen.DOM, \"查找 tag\") = %v", seen.DOM, kind == "chinese")
				}
			})
		}
	}
}

// TestPageUpdatesItself: the page in the browser updates the figures by itself.
func TestPageUpdatesItself(t *testing.T) {
	var looks atomic.Int64
	server := page(t, func() driver.Stats {
		s := shop()
		s.Tags[0].Step = looks.Add(1)
		return s
	})
	seen := chromiumtest.OpenPage(t, server.URL, chromiumtest.Window{For: 9 * time.Second})
	m := regexp.MustCompile(`data-name="Step">([\d,]+)<`).FindStringSubmatch(seen.DOM)
	if len(seen.Console) > 0 || m == nil {
		t.Fatalf("%q\n%s\nwant no seen.Console and m set", seen.Console, seen.DOM)
	}
	if n, _ := strconv.Atoi(m[1]); n < int(2*historySpan/noteInterval)/2+3 { // requests of the page itself
		t.Errorf("after 9 s the page shows look %d, want at least %v", n, int(2*historySpan/noteInterval)/2+3)
	}
}

// hostile is a name that tries to inject code into the page.
const hostile = `</td><script>console.log("pwned")</script><img src=x onerror="console.log('pwned')"><style>body{display:none}</style><a href="javascript:alert(1)">"'` + "`{{.Title}}"

// TestHostileNamesAreText: names and errors are text, also to a browser.
func TestHostileNamesAreText(t *testing.T) {
	s := driver.Stats{
		Tags:   []driver.TagStats{tag(hostile, 1000, 1)},
		Tables: []driver.TableStats{{Name: hostile, Generator: hostile, Tag: hostile, Refused: 1, LastRefused: time.Now(), LastRefusal: hostile}},
		Worker: &driver.WorkerStats{Status: worker.Status{Phase: hostile, Err: errors.New(hostile)}, Source: hostile, Layout: snowflake.Leaf},
	}
	s.Tags[0].Err = errors.New(hostile)
	p := &Page{title: hostile, stats: func() (driver.Stats, error) { return s, nil }}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	h := url.QueryEscape(hostile)
	for _, target := range []string{server.URL, server.URL + "?tag=" + h + "&id=" + h} {
		seen := chromiumtest.OpenPage(t, target, chromiumtest.Window{})
		if len(seen.Console) > 0 {
			t.Errorf("%s: the browser logged %q, want nothing", target, seen.Console)
		}
		if strings.Count(seen.DOM, "<script") != 1 || strings.Count(seen.DOM, "<style") != 1 || strings.Contains(seen.DOM, "<img") || strings.Contains(seen.DOM, "<a ") {
			t.Errorf("%s: there are elements that are not the page's:\n%s\nwant strings.Count(seen.DOM, \"<script\") = 1, strings.Count(seen.DOM, \"<style\") = 1, no text with \"<img\" and no text with \"<a \"", target, seen.DOM)
		}
	}
}

// TestPolicyBlocksInjectedCode: the browser would not run code that was injected into the page.
func TestPolicyBlocksInjectedCode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", policy)
		fmt.Fprintf(w, `<p>page</p><script>console.log("pwned")</script><style>p{color:red}</style><p style="color:red"><img src=/x onerror="console.log('pwned')"><script src=/x></script>`)
	}))
	t.Cleanup(server.Close)
	seen := chromiumtest.OpenPage(t, server.URL, chromiumtest.Window{})
	if len(seen.Console) < 5 {
		t.Errorf("the browser complains of %d things: %q, want len(seen.Console) at least 5", len(seen.Console), seen.Console)
	}
	for _, line := range seen.Console {
		if strings.HasPrefix(line, `"pwned`) || !strings.Contains(line, "Content Security Policy") {
			t.Errorf("the browser logged %s, want no prefix `\"pwned` and text with \"Content Security Policy\"", line)
		}
	}
}
