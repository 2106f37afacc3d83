package server

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/internal/version"
	"github.com/leafsql/leafsql/testutil/chromiumtest"
	"github.com/leafsql/leafsql/testutil/promtooltest"
)

var pictures = flag.String("pictures", "", "folder to keep what the browser shows in")

// TestMetricsCount: the metrics are well formed, and count.
func TestMetricsCount(t *testing.T) {
	_, dsn := createDatabase(t, 100, "orders")
	_, server := startServer(t, Config{DSN: dsn})
	get(t, server+"/api/segment/get/orders").wantBody(t, "1000")
	get(t, server+"/api/segment/get/nosuch").wantProblem(t, 404, "unknown-tag")
	a := get(t, server+"/metrics")
	for _, line := range []string{
		`leafsql_up{db_name="serve"} 1`,
		`leafsql_tag_ids_total{db_name="serve",generator="segment",tag="orders"} 1`,
		`leafsql_http_requests_total{code="200",endpoint="segment"} 1`,
		`leafsql_http_requests_total{code="404",endpoint="segment"} 1`,
		`leafsql_http_request_duration_seconds_count{endpoint="segment"} 2`,
	} {
		if !strings.Contains(a.body, line+"\n") {
			t.Errorf("metrics = %s\nwant the line %s", a.body, line)
		}
	}
	promtooltest.Run(t, strings.NewReader(a.body), "check", "metrics")
}

// TestPageShowsDatabaseWithTokenOnly: the page links to the others and shows leafsql's version, but the database only to readers
// with a token.
func TestPageShowsDatabaseWithTokenOnly(t *testing.T) {
	const store = "app:s3cret@tcp(127.0.0.1:1)/"
	for _, c := range []struct{ dsn, place string }{
		{unreachableDSN, "127.0.0.1:1/away"},
		{unreachableDSN + "?leafStore=" + url.QueryEscape(store+"a"), "127.0.0.1:1/a"},
	} {
		for _, token := range []string{"", "t0ken"} {
			_, server := startServer(t, Config{DSN: c.dsn, Token: token})
			a := get(t, server+"/", "Authorization", "Bearer "+token, "Accept-Encoding", "gzip")
			if a.header.Get("Content-Encoding") != "gzip" {
				t.Errorf("header = %v, want gzip", a.header)
			}
			a = get(t, server+"/", "Authorization", "Bearer "+token, "Accept-Encoding", "identity")
			if strings.Contains(a.body, c.place) != (token != "") || strings.Contains(a.body, "s3cret") || !strings.Contains(a.body, "leafsql "+version.Current()+", up for 0 s") {
				t.Errorf("page = %s\nwant the version, the database only with a token, and no secret", a.body)
			}
			for _, link := range []string{"cache", "db", "metrics"} {
				if !strings.Contains(a.body, `<a href="`+link+`">`) {
					t.Errorf("page has no link to %s, want one:\n%s", link, a.body)
				}
				if a := get(t, server+"/"+link, "Authorization", "Bearer "+token); a.code == 404 {
					t.Errorf("%s: answer = %+v, want another status than 404", link, a)
				}
			}
		}
	}
}

// TestPageWorksInABrowser: the page at / works in a browser, while ids are drawn and after the database became unreachable. It
// shows no secret.
func TestPageWorksInABrowser(t *testing.T) {
	db, dsn := createDatabase(t, 2000, "orders", "order_items", "customers")
	proxy, dsn := startNetProxy(t, dsn)
	exec(t, db, "UPDATE leaf_alloc SET max_id = 4200000 WHERE biz_tag = 'orders'")
	_, server, _ := runServer(t, Config{DSN: dsn + "?leafWorker=static(7)&leafNewRegistry=true", Timeout: 100 * time.Millisecond})
	draw := func() {
		for range 300 {
			for _, path := range []string{"segment/get/orders?n=3", "segment/get/order_items?n=17", "segment/get/customers", "snowflake/get/x"} {
				get(t, server+"/api/"+path)
			}
		}
	}
	look := func(name, path, title string, w chromiumtest.Window) {
		t.Helper()
		seen := chromiumtest.OpenPage(t, server+path, w)
		if len(seen.Console) > 0 || !strings.Contains(seen.DOM, "order_items") || !strings.Contains(seen.DOM, "<h1>"+title+"</h1>") || strings.Contains(seen.DOM, "@tcp") {
			t.Errorf("%s: console = %q, want it empty, and the title %s and order_items but no address in the page:\n%s", name, seen.Console, title, seen.DOM)
		}
		if *pictures != "" {
			if err := os.WriteFile(filepath.Join(*pictures, name+".png"), seen.PNG, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		draw()
		time.Sleep(time.Second) // the charts are updated once a second
	}
	const page, english = "/?id=1234567890123456789", "Ids over HTTP"
	look("serve-light", page, english, chromiumtest.Window{Height: 1100})
	look("serve-dark", page, english, chromiumtest.Window{Height: 1100, Dark: true})
	look("serve-phone", page, "HTTP 发号服务", chromiumtest.Window{Width: 390, Height: 1800, Language: "zh-CN"})
	look("cache-dark", "/cache", "Ranges in memory", chromiumtest.Window{Dark: true})
	look("cache-phone", "/cache", "Ranges in memory", chromiumtest.Window{Width: 390})
	look("db-chinese", "/db", "leaf_alloc 的行", chromiumtest.Window{Language: "zh-CN"})
	look("db-phone", "/db", "Rows of leaf_alloc", chromiumtest.Window{Width: 390, Dark: true})
	proxy.Down()
	waitFor(t, "an outage", func() bool { return get(t, server+"/api/segment/get/orders?n=1000").code == 503 })
	look("serve-away", page, english, chromiumtest.Window{Width: 390, Height: 1800, Dark: true})
}
