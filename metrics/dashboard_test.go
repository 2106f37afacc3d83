//go:build dashboard

package metrics

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color/palette"
	"image/draw"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leafsql/leafsql/testutil/chromiumtest"
	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
	"github.com/leafsql/leafsql/testutil/process"
	"github.com/leafsql/leafsql/testutil/promtooltest"
)

// shopSQL creates the tables of the shop, and leaf_alloc with small steps, so that there are fetches to see.
const shopSQL = `CREATE DATABASE leaf;
CREATE TABLE leaf.leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL, step int NOT NULL, description varchar(256));
INSERT INTO leaf.leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 50), ('items', 1, 50), ('coupons', 12000000, 20), ('refunds', 1, 20);
CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer VARCHAR(64));
CREATE TABLE shop.items LIKE shop.orders;
CREATE TABLE shop.refunds LIKE shop.orders;
CREATE TABLE shop.coupons (id MEDIUMINT UNSIGNED PRIMARY KEY, customer VARCHAR(64));
CREATE TABLE shop.events LIKE shop.orders;`

const prometheusConfig = `global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: leafsql
  static_configs:
  - {targets: ["%s"], labels: {instance: shop}}
  - {targets: ["%s"], labels: {instance: ids}}
  - {targets: ["%s"], labels: {instance: proxy}}
`

// The stages of the picture. A new registry of worker ids makes the first process wait for 97.5 s with leases of 30 s.
const (
	before = 110 * time.Second // until the pool of refunds opens
	opened = 8 * time.Second   // until the store goes away
	away   = 25 * time.Second
	after  = 30 * time.Second
)

// sample finds a time and a value that is a number in an answer of Prometheus.
var sample = regexp.MustCompile(`\d,"[-+]?\d`)

// TestDashboard: each query of the dashboard finds data of processes that use leafsql. It draws the panels into docs/dashboard.png.
func TestDashboard(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--max-connect-errors=100"}})
	store := netfault.Start(t, server.Addr())
	admin := open(t, "mysql", server.DSN("")+"?multiStatements=true")
	if _, err := admin.Exec(shopSQL); err != nil {
		t.Fatal(err)
	}
	leafDSN := func(tables string) string {
		return server.DSN("shop") + "?leafTables=" + tables + "&leafCreate=true&leafLease=30s&leafStore=" + url.QueryEscape("root@tcp("+store.Addr()+")/leaf")
	}
	leafsql := filepath.Join(t.TempDir(), "leafsql")
	if out, err := exec.Command("go", "build", "-C", "../cmd/leafsql", "-buildvcs=false", "-o", leafsql, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ids, proxy, proxyMetrics := address(t), address(t), address(t)
	start(t, ids, leafsql, "serve", "-dsn", leafDSN("none"), "-listen", ids)
	start(t, proxy, leafsql, "proxy", "-dsn", leafDSN("items,refunds"), "-listen", proxy, "-metrics", proxyMetrics, "-fill-timeout", "2s")
	registry := prometheus.NewRegistry()
	shop := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(shop.Close)
	pool := func(name, tables string) *sql.DB {
		db := open(t, "mysql-leaf", leafDSN(tables))
		registry.MustRegister(NewCollector(db, name))
		return db
	}

	began := time.Now()
	config, prometheusAddr := filepath.Join(t.TempDir(), "prometheus.yml"), address(t)
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, shop.Listener.Addr(), ids, proxyMetrics), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, prometheusAddr, promtooltest.Find(t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+prometheusAddr)
	api := "http://" + prometheusAddr + "/api/v1/"
	db, clients := pool("shop", "orders,coupons,events:id:snowflake"), open(t, "mysql", "root@tcp("+proxy+")/shop")
	insert(t, db, "orders", 30)
	insert(t, db, "coupons", 3)
	insert(t, db, "events", 10)
	insert(t, clients, "items", 15)
	insert(t, open(t, "mysql", "nobody:wrong@tcp("+proxy+")/shop"), "items", 1)
	for kind, perSecond := range map[string]int{"segment": 12, "snowflake": 6} {
		repeat(t, perSecond, func() {
			if res, err := http.Get("http://" + ids + "/api/" + kind + "/get/orders"); err == nil {
				res.Body.Close()
			}
		})
	}
	time.Sleep(before)
	insert(t, pool("refunds", "refunds"), "refunds", 15)
	insert(t, clients, "refunds", 10)
	time.Sleep(opened)
	store.Down()
	time.Sleep(away)
	if err := store.Up(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)

	end := time.Now()
	text := read(t, "grafana/leafsql.json")
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ H, Y int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	var pools []string
	ask(t, api+"label/db_name/values?match[]=leafsql_up", &pools)
	replacer := strings.NewReplacer("$__rate_interval", "4s", "$db_name", "("+strings.Join(pools, "|")+")") // as Grafana for All, and scrapes every second
	results, charts, height := map[int][]json.RawMessage{}, 0, 0
	for _, p := range board.Panels {
		height = max(height, p.GridPos.Y+p.GridPos.H)
		if p.Type == "timeseries" {
			charts++
		}
		for _, target := range p.Targets {
			var r json.RawMessage
			ask(t, api+"query_range?"+url.Values{
				"query": {replacer.Replace(target.Expr)}, "start": {fmt.Sprint(began.Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"1"},
			}.Encode(), &r)
			if !sample.Match(r) {
				t.Errorf("%s: %s has no series with a number, want at least one", p.Title, target.Expr)
			}
			results[p.ID] = append(results[p.ID], r)
		}
	}
	if t.Failed() {
		return
	}
	data, err := json.Marshal(map[string]any{"board": json.RawMessage(text), "results": results, "start": began.Unix(), "end": end.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/dashboard.html") })
	mux.HandleFunc("/data.js", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "const data = %s", data) })
	mux.Handle("/uplot/", http.StripPrefix("/uplot/", http.FileServer(http.Dir("../.cache/dashboard/node_modules/uplot/dist"))))
	page := httptest.NewServer(mux)
	defer page.Close()
	seen := chromiumtest.OpenPage(t, page.URL, chromiumtest.Window{Height: 24*height + 50})
	if got := strings.Count(seen.DOM, "<canvas"); got != charts || len(seen.Console) > 0 {
		t.Fatalf("the page has %d charts, and the errors %q; want %d and none", got, seen.Console, charts)
	}
	shot, err := png.Decode(bytes.NewReader(seen.PNG))
	if err != nil {
		t.Fatal(err)
	}
	small, file := image.NewPaletted(shot.Bounds(), palette.WebSafe), new(bytes.Buffer) // a quarter of the bytes
	draw.Draw(small, small.Bounds(), shot, image.Point{}, draw.Src)
	if err := errors.Join((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(file, small), os.WriteFile("../docs/dashboard.png", file.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// ask decodes the data of an answer of Prometheus' API.
func ask(t *testing.T, url string, data any) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("GET %s = %q, %q, %v; want success", url, answer.Status, answer.Error, err)
	}
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func address(t *testing.T) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// start runs a program that listens at addr until the test ends.
func start(t *testing.T, addr, program string, args ...string) {
	t.Helper()
	p, err := process.New(process.Config{Name: filepath.Base(program), Command: func(string) *exec.Cmd { return exec.Command(program, args...) }, Ready: process.Accepts(addr)})
	if err != nil {
		t.Fatal(err)
	}
	p.Finish(t)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
}

// insert inserts rows into a table until the test ends. In the outage this fails.
func insert(t *testing.T, db *sql.DB, table string, perSecond int) {
	repeat(t, perSecond, func() {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		db.ExecContext(ctx, "INSERT INTO "+table+" (customer) VALUES ('ann')")
	})
}

// repeat calls f this often a second until the test ends, in several goroutines, so that a call that waits does not stop the others.
func repeat(t *testing.T, perSecond int, f func()) {
	for range 3 {
		go func() {
			for range time.Tick(3 * time.Second / time.Duration(perSecond)) {
				if t.Context().Err() != nil {
					return
				}
				f()
			}
		}()
	}
}
