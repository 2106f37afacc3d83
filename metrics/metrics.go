// Package metrics exports the statistics of a pool of mysql-leaf, which
// driver.StatsOf returns, to Prometheus.
//
//	prometheus.MustRegister(metrics.NewCollector(db, "shop"))
//
// A scrape sends nothing to a server. If several pools of a process share a leaf_alloc, each pool
// reports the same figures for its tags, with its own db_name. Alerts and a dashboard
// for these metrics are in the repository's folder contrib.
//
// This package is separate from package driver, so that programs without Prometheus do not
// link its client. Package otelmetrics exports the same statistics to OpenTelemetry. Neither
// measures statements; otelsql and similar packages do, as the repository's examples/otelsql
// shows.
package metrics

import (
	"database/sql"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/keyusage"
	"github.com/leafsql/leafsql/internal/version"
)

// collector is a prometheus.Collector of one pool.
type collector struct {
	db      *sql.DB
	metrics map[string]metric
}

// A metricRow describes one metric.
type metricRow struct {
	name, help string
	labels     []string
	kind       prometheus.ValueType
}

// describe returns the metrics of a table, by their names without the prefix.
func describe(table []metricRow, name string) map[string]metric {
	all := make(map[string]metric)
	for _, m := range table {
		all[m.name] = metric{prometheus.NewDesc("leafsql_"+m.name, m.help, m.labels, prometheus.Labels{"db_name": name}), m.kind}
	}
	return all
}

type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// NewCollector returns the collector of a pool that was opened with
// mysql-leaf. The name becomes the label db_name, as in Prometheus' own
// collector of sql.DBStats. If the statistics cannot be read, a scrape returns only
// leafsql_up with the value 0, and leafsql_build_info. Counters keep their values after the pool's Close.
func NewCollector(db *sql.DB, name string) prometheus.Collector {
	return &collector{db, describe(metricRows, name)}
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

var (
	perTable  = []string{"table"}
	perTag    = []string{"tag", "generator"}
	perSource = []string{"source"}
)

// metricRows lists all metrics, by name without the prefix.
var metricRows = []metricRow{
	{"up", "1 if the pool's figures could be read. 0 if the pool does not use mysql-leaf, or if a package wraps the driver and no connection was free within 5 s.", nil, gauge},

	{"build_info", "The version of leafsql in the program; always 1.", []string{"version", "goversion"}, gauge},

	{"table_info", "The source of a table's keys; always 1.", []string{"table", "generator", "tag"}, gauge},
	{"table_key_used_ratio", "The highest fetched id divided by the highest value of the key column, from 0 to 1; absent if the ids are not from segments, or if none was fetched.", perTable, gauge},
	{"table_statements_total", "Statements whose rows got ids.", perTable, counter},
	{"table_ids_total", "Ids that rows got.", perTable, counter},
	{"table_refused_total", "Statements that were not run, because they cannot be filled or no ids were available. The table is empty if it is unknown.", perTable, counter},
	{"table_last_refused_timestamp_seconds", "Time of the last refused statement; absent if there is none.", perTable, gauge},

	{"tag_ids_total", "Ids issued.", perTag, counter},
	{"tag_dropped_ids_total", "Ids fetched and dropped.", perTag, counter},
	{"tag_fetches_total", "Ranges fetched.", perTag, counter},
	{"tag_fetch_failures_total", "Fetches that failed.", perTag, counter},
	{"tag_jumps_total", "Fetches that moved the row up by a margin, for example after a fail-over.", perTag, counter},
	{"tag_fetch_failing", "1 if the last fetch failed, else 0.", perTag, gauge},
	{"tag_waits_total", "Calls that found no id in memory and waited for a fetch.", perTag, counter},
	{"tag_remaining_ids", "Ids in memory.", perTag, gauge},
	{"tag_step_ids", "Ids of the last fetch.", perTag, gauge},
	{"tag_highest_id", "The highest id fetched.", perTag, gauge},

	{"worker_held", "1 if a worker id is held, else 0, also before the first snowflake.", perSource, gauge},
	{"worker_failing", "1 if the last search for a worker id or its last renewal failed, else 0.", perSource, gauge},
	{"worker_start_timestamp_seconds", "Time of the first id; in the future while the process waits, because other processes may issue ids up to then; absent if it is unknown.", perSource, gauge},
	{"worker_id", "The worker id; absent if there is none.", perSource, gauge},
	{"worker_limit_timestamp_seconds", "Time of the lease's end, the limit for ids unless the lease is renewed; absent if it is unknown.", perSource, gauge},
	{"worker_clock_offset_seconds", "Seconds that this machine's clock is ahead of the registry's clock.", perSource, gauge},
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		to <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s, err := driver.StatsOf(c.db)
	emitter{c.metrics, to}.stats(s, err)
}

// emitter sends metrics.
type emitter struct {
	metrics map[string]metric
	to      chan<- prometheus.Metric
}

func (e emitter) send(name string, v float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD") // a table's name has the bytes of the statement, which may not be UTF-8
	}
	m := e.metrics[name]
	e.to <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
}

func (e emitter) stats(s driver.Stats, err error) {
	e.send("up", boolValue(err == nil))
	e.send("build_info", 1, version.Current(), runtime.Version())
	for _, t := range s.Tables {
		if used := keyusage.Fraction(t, s.Tags); used > 0 {
			e.send("table_key_used_ratio", used, t.Name)
		}
		e.send("table_info", 1, t.Name, t.Generator, t.Tag)
		e.send("table_statements_total", float64(t.Statements), t.Name)
		e.send("table_ids_total", float64(t.IDs), t.Name)
		e.send("table_refused_total", float64(t.Refused), t.Name)
		if !t.LastRefused.IsZero() {
			e.send("table_last_refused_timestamp_seconds", seconds(t.LastRefused), t.Name)
		}
	}
	for _, t := range s.Tags {
		labels := []string{t.Tag, keyusage.Generator(t)}
		e.send("tag_ids_total", float64(t.IDs), labels...)
		e.send("tag_dropped_ids_total", float64(t.Dropped), labels...)
		e.send("tag_fetches_total", float64(t.Fetches), labels...)
		e.send("tag_fetch_failures_total", float64(t.Failures), labels...)
		e.send("tag_jumps_total", float64(t.Jumps), labels...)
		e.send("tag_fetch_failing", boolValue(t.Err != nil), labels...)
		e.send("tag_waits_total", float64(t.Waits), labels...)
		e.send("tag_remaining_ids", float64(t.Remaining), labels...)
		e.send("tag_step_ids", float64(t.Step), labels...)
		if highest := keyusage.HighestID(t); highest > 0 {
			e.send("tag_highest_id", float64(highest), labels...)
		}
	}
	if w := s.Worker; w != nil {
		e.send("worker_held", boolValue(w.Phase == "holding"), w.Source)
		e.send("worker_failing", boolValue(w.Err != nil), w.Source)
		e.send("worker_clock_offset_seconds", w.ClockOffset.Seconds(), w.Source)
		if w.Worker >= 0 {
			e.send("worker_id", float64(w.Worker), w.Source)
		}
		if !w.Start.IsZero() {
			e.send("worker_start_timestamp_seconds", seconds(w.Start), w.Source)
		}
		if !w.Limit.IsZero() {
			e.send("worker_limit_timestamp_seconds", seconds(w.Limit), w.Source)
		}
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
