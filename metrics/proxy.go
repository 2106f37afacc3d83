package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leafsql/leafsql/proxy"
)

// proxyCollector is a prometheus.Collector of one proxy.
type proxyCollector struct {
	server  *proxy.Server
	metrics map[string]metric
}

// NewProxyCollector returns the collector of a proxy's own metrics. Register it in addition to the collector of
// the proxy's pool. The name becomes the label db_name.
func NewProxyCollector(server *proxy.Server, name string) prometheus.Collector {
	return &proxyCollector{server, describe(proxyMetricRows, name)}
}

// proxyMetricRows lists all metrics of a proxy.
var proxyMetricRows = []metricRow{
	{"proxy_connections", "Connected clients.", nil, gauge},
	{"proxy_connections_limit", "Maximum number of connected clients.", nil, gauge},
	{"proxy_accepted_total", "Clients that connected.", nil, counter},
	{"proxy_turned_away_total", "Clients that got error 1040, because there were too many.", nil, counter},
	{"proxy_failed_logins_total", "Logins that the server refused.", nil, counter},
	{"proxy_broken_off_logins_total", "Logins that the client did not complete.", nil, counter},
	{"proxy_broken_off_logins_in_a_row", "Logins that clients did not complete since the last completed login.", nil, gauge},
	{"proxy_max_connect_errors", "Number of incomplete logins in a row after which the server blocks the proxy's host; absent until it is known.", nil, gauge},
	{"proxy_unreachable_total", "Clients that found no server.", nil, counter},
	{"proxy_commands_passed_total", "Commands that were forwarded unchanged.", nil, counter},
	{"proxy_statements_filled_total", "Statements that got ids.", nil, counter},
	{"proxy_statements_refused_total", "Statements that were not run, because they cannot be filled.", nil, counter},
	{"proxy_statements_unfilled_total", "Statements that were not run, because no ids were available.", nil, counter},
	{"proxy_server_ends_total", "Connections that the server closed.", nil, counter},
	{"proxy_faults_total", "Sessions that ended because of a fault in the proxy.", nil, counter},
}

// Describe implements prometheus.Collector.
func (c *proxyCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *proxyCollector) Collect(to chan<- prometheus.Metric) {
	s, e := c.server.Stats(), emitter{c.metrics, to}
	for name, n := range map[string]int64{
		"proxy_connections": s.Connections, "proxy_connections_limit": s.MaxConnections, "proxy_accepted_total": s.Accepted,
		"proxy_turned_away_total": s.TurnedAway, "proxy_failed_logins_total": s.FailedLogins,
		"proxy_broken_off_logins_total": s.BrokenOff, "proxy_broken_off_logins_in_a_row": s.BrokenOffInARow,
		"proxy_unreachable_total": s.Unreachable, "proxy_commands_passed_total": s.Passed,
		"proxy_statements_filled_total": s.Filled, "proxy_statements_refused_total": s.Refused,
		"proxy_statements_unfilled_total": s.Unfilled, "proxy_server_ends_total": s.ServerEnds, "proxy_faults_total": s.Faults,
	} {
		e.send(name, float64(n))
	}
	if s.MaxConnectErrors > 0 {
		e.send("proxy_max_connect_errors", float64(s.MaxConnectErrors))
	}
}
