package metrics

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/version"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/promtooltest"
)

// exposition returns the text that Prometheus scrapes.
func exposition(t *testing.T, collectors ...prometheus.Collector) string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("w.Code = %v, w.Body = %v, want w.Code = 200", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("metrics = \n%s\nwant the line %s", text, line)
		}
	}
}

func TestCollectorExportsAPool(t *testing.T) {
	dsn := mysqltest.Database(t)
	db, err := sql.Open(driver.Name, dsn+"?leafTables=t&multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL)",
		"INSERT INTO leaf_alloc VALUES ('t', 100, 1000)",
		"CREATE TABLE t (id SMALLINT PRIMARY KEY, a INT)",
		"INSERT INTO t (a) VALUES (1), (2)",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("WITH x AS (SELECT 1) INSERT INTO t (a) VALUES (4)"); !errors.Is(err, driver.ErrRefused) {
		t.Fatal(err)
	}
	var name string
	if err := db.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	text := exposition(t, NewCollector(db, "shop"))
	wantLines(t, text,
		`leafsql_up{db_name="shop"} 1`,
		`leafsql_build_info{db_name="shop",goversion="`+runtime.Version()+`",version="`+version.Current()+`"} 1`,
		`leafsql_table_info{db_name="shop",generator="segment",table="`+name+`.t",tag="t"} 1`,
		`leafsql_table_statements_total{db_name="shop",table="`+name+`.t"} 1`,
		`leafsql_table_ids_total{db_name="shop",table="`+name+`.t"} 2`,
		`leafsql_table_refused_total{db_name="shop",table="`+name+`.t"} 1`,
		`leafsql_table_key_used_ratio{db_name="shop",table="`+name+`.t"} `+fmt.Sprint(115./32767),
		`leafsql_tag_ids_total{db_name="shop",generator="segment",tag="t"} 2`,
		`leafsql_tag_fetches_total{db_name="shop",generator="segment",tag="t"} 1`,
		`leafsql_tag_remaining_ids{db_name="shop",generator="segment",tag="t"} 14`,
		`leafsql_tag_highest_id{db_name="shop",generator="segment",tag="t"} 115`,
		`leafsql_tag_fetch_failing{db_name="shop",generator="segment",tag="t"} 0`,
	)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wantLines(t, exposition(t, NewCollector(db, "shop")), // counters keep their values
		`leafsql_table_statements_total{db_name="shop",table="`+name+`.t"} 1`,
		`leafsql_table_ids_total{db_name="shop",table="`+name+`.t"} 2`,
		`leafsql_table_refused_total{db_name="shop",table="`+name+`.t"} 1`,
		`leafsql_tag_ids_total{db_name="shop",generator="segment",tag="t"} 2`,
		`leafsql_tag_dropped_ids_total{db_name="shop",generator="segment",tag="t"} 14`,
		`leafsql_tag_fetches_total{db_name="shop",generator="segment",tag="t"} 1`,
		`leafsql_tag_remaining_ids{db_name="shop",generator="segment",tag="t"} 0`,
	)
}

// TestTwoPoolsDifferInLabels: the metrics of two pools of one process differ in their labels.
func TestTwoPoolsDifferInLabels(t *testing.T) {
	var collectors []prometheus.Collector
	for _, name := range []string{"a", "b"} {
		db, err := sql.Open(driver.Name, "u@tcp(127.0.0.1:1)/d?leafTables=none")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		collectors = append(collectors, NewCollector(db, name))
	}
	wantLines(t, exposition(t, collectors...), `leafsql_up{db_name="a"} 1`, `leafsql_up{db_name="b"} 1`)
}

func TestPoolOfAnotherDriverIsRefused(t *testing.T) {
	db, err := sql.Open("mysql", "u@tcp(127.0.0.1:1)/d")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	wantLines(t, exposition(t, NewCollector(db, "shop")), `leafsql_up{db_name="shop"} 0`)
}

// full is a collector of figures without a missing value.
type full struct{ *collector }

func (c full) Collect(to chan<- prometheus.Metric) {
	at := time.Unix(1700000000, 500e6)
	emitter{c.metrics, to}.stats(driver.Stats{
		Tables: []driver.TableStats{{Name: "shop.\"a\"\n\xff", Generator: "segment", Tag: "t", HighestKey: 50, Statements: 1, IDs: 2, Refused: 3, LastRefused: at}},
		Tags: []driver.TagStats{{Tag: "t", Stats: segment.Stats{Fetches: 1, Failures: 2, IDs: 3, Dropped: 4, Waits: 5, Step: 6, Remaining: 7, Jumps: 8,
			Current: segment.Range{Start: 10, End: 20}, Queued: segment.Range{Start: 30, End: 40}, Err: errors.New("away")}}, {Tag: "t", Sequence: true}},
		Worker: &driver.WorkerStats{Source: "nacos", Status: worker.Status{Phase: "holding", Worker: 7, Start: at.Add(-time.Minute), Limit: at, ClockOffset: -1500 * time.Millisecond, Err: errors.New("away")}},
	}, nil)
}

// TestNamesPassThePrometheusLinter: Prometheus' own checker finds no fault, and every metric is sent.
func TestNamesPassThePrometheusLinter(t *testing.T) {
	text := exposition(t, full{NewCollector(nil, "shop").(*collector)})
	promtooltest.Run(t, strings.NewReader(text), "check", "metrics")
	for _, m := range metricRows {
		if !strings.Contains(text, "\nleafsql_"+m.name+"{") {
			t.Errorf("%s is never sent, want text with %q", m.name, "\nleafsql_"+m.name+"{")
		}
	}
	wantLines(t, text,
		`leafsql_table_last_refused_timestamp_seconds{db_name="shop",table="shop.\"a\"\n`+"\uFFFD"+`"} 1.7000000005e+09`,
		`leafsql_tag_highest_id{db_name="shop",generator="segment",tag="t"} 39`,
		`leafsql_tag_jumps_total{db_name="shop",generator="segment",tag="t"} 8`,
		`leafsql_table_key_used_ratio{db_name="shop",table="shop.\"a\"\n`+"\uFFFD"+`"} 0.78`,
		`leafsql_worker_held{db_name="shop",source="nacos"} 1`,
		`leafsql_worker_id{db_name="shop",source="nacos"} 7`,
		`leafsql_worker_start_timestamp_seconds{db_name="shop",source="nacos"} 1.6999999405e+09`,
		`leafsql_worker_limit_timestamp_seconds{db_name="shop",source="nacos"} 1.7000000005e+09`,
		`leafsql_worker_clock_offset_seconds{db_name="shop",source="nacos"} -1.5`)
}

const contrib = "../contrib/"

// TestAlertsFire: each alert fires in alerts_test.yml.
func TestAlertsFire(t *testing.T) {
	promtooltest.Run(t, nil, "check", "rules", contrib+"prometheus/alerts.yml")
	promtooltest.Run(t, nil, "test", "rules", contrib+"prometheus/alerts_test.yml")
	fired := regexp.MustCompile(`alertname: (\w+)\n +exp_alerts:\n +- exp_labels:`).FindAllStringSubmatch(read(t, "prometheus/alerts_test.yml"), -1)
	for _, alert := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, "prometheus/alerts.yml"), -1) {
		if !slices.ContainsFunc(fired, func(f []string) bool { return f[1] == alert[1] }) {
			t.Errorf("%s fires in no test, want at least one", alert[1])
		}
	}
}

// TestAlertsLinkToRunbooks: each alert links to its heading on the page of alerts, which exists in both languages.
func TestAlertsLinkToRunbooks(t *testing.T) {
	const page = "https://github.com/leafsql/leafsql/blob/main/docs/alerts.md#"
	alerts := regexp.MustCompile(`- alert: (\w+)\n(?: {8}.*\n)+`).FindAllStringSubmatch(read(t, "prometheus/alerts.yml"), -1)
	for _, file := range []string{"../docs/alerts.md", "../docs/zh-CN/alerts.md"} {
		var headings []string
		for _, h := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(read(t, file), -1) {
			headings = append(headings, h[1])
		}
		var names []string
		for _, a := range alerts {
			names = append(names, a[1])
			if !strings.Contains(a[0], "runbook_url: "+page+strings.ToLower(a[1])+"\n") {
				t.Errorf("%s has no runbook_url that points at its heading, want text with \"runbook_url: \"+page+strings.ToLower(a[1])+\"\\n\"", a[1])
			}
		}
		slices.Sort(names)
		slices.Sort(headings)
		if !slices.Equal(headings, names) {
			t.Errorf("%s has headings %q; want one for each alert, %q", file, headings, names)
		}
	}
}

// TestPagesListAllMetrics: both pages list the metrics that the collector registers, with their labels, in its order.
func TestPagesListAllMetrics(t *testing.T) {
	var want []string
	for _, m := range metricRows {
		row := "`leafsql_" + m.name + "` |"
		for _, label := range m.labels {
			row += " `" + label + "`"
		}
		want = append(want, row)
	}
	for _, file := range []string{"serve.md", "zh-CN/serve.md"} {
		text, err := os.ReadFile("../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile("(?m)^\\| (`leafsql_\\w+` \\|)([^|]*)\\|[^|\n]+\\|$").FindAllStringSubmatch(string(text), -1) {
			row := m[1]
			for _, label := range regexp.MustCompile("`\\w+`").FindAllString(m[2], -1) {
				row += " " + label
			}
			got = append(got, row)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists\n%s\nwant the collector's\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestContribNamesRealMetrics: alerts and dashboard name metrics that exist.
func TestContribNamesRealMetrics(t *testing.T) {
	known := map[string]bool{ // metrics of leafsql serve
		"leafsql_http_requests_total": true, "leafsql_http_request_duration_seconds_bucket": true,
		"leafsql_http_connections": true, "leafsql_http_connections_limit": true,
	}
	for _, m := range slices.Concat(metricRows, proxyMetricRows) {
		known["leafsql_"+m.name] = true
	}
	for _, file := range []string{"prometheus/alerts.yml", "prometheus/alerts_test.yml", "grafana/leafsql.json"} {
		found := make(map[string]bool)
		for _, name := range regexp.MustCompile(`leafsql_\w+`).FindAllString(read(t, file), -1) {
			found[name] = true
		}
		if len(found) == 0 {
			t.Errorf("%s names no metric, want len(found) other than 0", file)
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if !known[name] {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(contrib + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDashboardQueriesParse: Prometheus can parse its queries after Grafana has replaced its
// variables.
func TestDashboardQueriesParse(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/leafsql.json")), &board); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "1m", "$db_name", ".*").Replace(target.Expr)
			rules = append(rules, rule{fmt.Sprintf("dashboard:%d", len(rules)), expr})
		}
	}
	if len(rules) < 10 {
		t.Errorf("%d queries, want at least 10", len(rules))
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}}) // JSON is YAML too
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtooltest.Run(t, nil, "check", "rules", file)
}
