package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/testutil/promtooltest"
)

// TestProxyNamesPassThePrometheusLinter: Prometheus' own checker finds no fault, and every metric is sent, except the limit that a server announces.
func TestProxyNamesPassThePrometheusLinter(t *testing.T) {
	cfg, err := driver.ParseDSN("u@tcp(127.0.0.1:1)/d?leafTables=none")
	if err != nil {
		t.Fatal(err)
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer connector.Close()
	server, err := proxy.New(proxy.Config{Connector: connector, Server: "127.0.0.1:1", MaxConnections: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	text := exposition(t, NewProxyCollector(server, "proxy"))
	promtooltest.Run(t, strings.NewReader(text), "check", "metrics")
	for _, m := range proxyMetricRows {
		if sent := strings.Contains(text, "\nleafsql_"+m.name+"{"); sent == (m.name == "proxy_max_connect_errors") {
			t.Errorf("%s is sent: %v, want %v", m.name, sent, m.name != "proxy_max_connect_errors")
		}
	}
	wantLines(t, text, `leafsql_proxy_connections_limit{db_name="proxy"} 7`, `leafsql_proxy_statements_filled_total{db_name="proxy"} 0`)
}

// TestProxyPagesListAllMetrics: both pages of the proxy list its metrics, in the collector's order.
func TestProxyPagesListAllMetrics(t *testing.T) {
	var want []string
	for _, m := range proxyMetricRows {
		want = append(want, "leafsql_"+m.name)
	}
	for _, file := range []string{"proxy.md", "zh-CN/proxy.md"} {
		text, err := os.ReadFile("../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile("(?m)^\\| `(leafsql_\\w+)` \\|[^|\n]+\\|$").FindAllStringSubmatch(string(text), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists\n%s\nwant the collector's\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
