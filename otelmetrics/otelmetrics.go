// Package otelmetrics exports the statistics of a pool of mysql-leaf, which
// driver.StatsOf returns, to OpenTelemetry.
//
//	registration, err := otelmetrics.Register(db, "shop", otel.GetMeterProvider())
//
// A collection sends nothing to a server. Names, units and attributes follow
// OpenTelemetry's semantic conventions: db.client.connection.pool.name is the name of
// the pool, db.collection.name is a table, and error.type marks fetches that failed and
// statements that were not run. If several pools of a process share a leaf_alloc,
// each pool reports the same figures for its tags.
//
// This package creates no spans. A span of otelsql for an INSERT includes the wait for ids, as the
// repository's examples/otelsql shows. Package metrics exports the same statistics to
// Prometheus.
package otelmetrics

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/keyusage"
	"github.com/leafsql/leafsql/internal/version"
)

// Attributes that the semantic conventions do not have.
const (
	generatorKey = attribute.Key("leafsql.generator")
	tagKey       = attribute.Key("leafsql.tag")
	sourceKey    = attribute.Key("leafsql.lease.source")
	phaseKey     = attribute.Key("leafsql.lease.phase")
)

var (
	perTable = []attribute.Key{semconv.DBCollectionNameKey, generatorKey}
	perTag   = []attribute.Key{tagKey, generatorKey}
	perLease = []attribute.Key{sourceKey}
)

type kind int

const (
	counter kind = iota
	upDownCounter
	gauge
	floatGauge
)

// A metricRow describes one metric.
type metricRow struct {
	name, unit, help string
	kind             kind
	attributes       []attribute.Key // in addition to the pool's name
}

func withAttribute(keys []attribute.Key, key attribute.Key) []attribute.Key {
	return append(keys[:len(keys):len(keys)], key)
}

// metricRows lists all metrics, by name without the prefix "leafsql.".
var metricRows = []metricRow{
	{"table.statements", "{statement}", "Statements whose rows got ids, and, with error.type, statements that were not run.", counter, []attribute.Key{semconv.DBCollectionNameKey, semconv.ErrorTypeKey}},
	{"table.ids", "{id}", "Ids that rows got.", counter, perTable},
	{"table.key.utilization", "1", "The highest fetched id divided by the highest value of the key column; only for segments.", floatGauge, perTable},

	{"tag.ids", "{id}", "Ids issued.", counter, perTag},
	{"tag.dropped_ids", "{id}", "Ids fetched and dropped.", counter, perTag},
	{"tag.fetches", "{fetch}", "Ranges fetched, and, with error.type, fetches that failed.", counter, withAttribute(perTag, semconv.ErrorTypeKey)},
	{"tag.fetch_failing", "1", "1 if the last fetch failed, else 0.", gauge, perTag},
	{"tag.jumps", "{fetch}", "Fetches that moved the row up by a margin, as after a fail-over.", counter, perTag},
	{"tag.waits", "{call}", "Calls that found no id in memory and waited for a fetch.", counter, perTag},
	{"tag.remaining_ids", "{id}", "Ids in memory.", upDownCounter, perTag},
	{"tag.step", "{id}", "Ids of the last fetch.", gauge, perTag},
	{"tag.highest_id", "1", "The highest fetched id.", gauge, perTag},

	{"lease.status", "{lease}", "1 for the current phase of the lease of the worker id, 0 for the other phases.", upDownCounter, withAttribute(perLease, phaseKey)},
	{"lease.failing", "1", "1 if the last search for a worker id, or its last renewal, failed, else 0.", gauge, perLease},
	{"lease.worker_id", "1", "The worker id; absent if there is none.", gauge, perLease},
	{"lease.wait", "s", "Time until the first snowflake can be issued, because other processes may issue ids up to then; else 0.", floatGauge, perLease},
	{"lease.remaining", "s", "Time for which snowflakes can be issued unless the lease is renewed; 0 if none can be issued.", floatGauge, perLease},
	{"lease.clock_offset", "s", "How far this machine's clock is ahead of the registry's.", floatGauge, perLease},
}

// phases lists the values of worker.Status.Phase.
var phases = []string{"idle", "searching", "waiting", "holding", "closed"}

// Register registers the metrics of a pool that was opened with mysql-leaf. Each of them has the attribute
// db.client.connection.pool.name with the given name, which no other pool of the process may have. They are
// collected until the Registration's Unregister is called. If the statistics cannot be read, the
// pool has no metrics, and the error goes to OpenTelemetry's ErrorHandler. Counters keep their values after the
// pool's Close.
func Register(db *sql.DB, name string, provider metric.MeterProvider) (metric.Registration, error) {
	meter := provider.Meter("github.com/leafsql/leafsql/otelmetrics", metric.WithInstrumentationVersion(version.Current()), metric.WithSchemaURL(semconv.SchemaURL))
	all := instruments{make(map[string]metric.Int64Observable), make(map[string]metric.Float64Observable)}
	var observables []metric.Observable
	for _, row := range metricRows {
		o, err := all.create(meter, row)
		if err != nil {
			return nil, fmt.Errorf("leafsql: creating the metric leafsql.%s: %w", row.name, err)
		}
		observables = append(observables, o)
	}
	return meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		stats, err := driver.StatsOf(db)
		if err != nil {
			otel.Handle(fmt.Errorf("leafsql: metrics of the pool %s: %w", name, err)) // an error that is returned makes the SDK drop all metrics of the process
			return nil
		}
		observation{all, to, semconv.DBClientConnectionPoolName(name)}.stats(stats, time.Now())
		return nil
	}, observables...)
}

// instruments has the metrics by name without the prefix.
type instruments struct {
	ints   map[string]metric.Int64Observable
	floats map[string]metric.Float64Observable
}

func (i instruments) create(meter metric.Meter, row metricRow) (o metric.Observable, err error) {
	name, unit, help := "leafsql."+row.name, metric.WithUnit(row.unit), metric.WithDescription(row.help)
	switch row.kind {
	case counter:
		i.ints[row.name], err = meter.Int64ObservableCounter(name, unit, help)
	case upDownCounter:
		i.ints[row.name], err = meter.Int64ObservableUpDownCounter(name, unit, help)
	case gauge:
		i.ints[row.name], err = meter.Int64ObservableGauge(name, unit, help)
	case floatGauge:
		i.floats[row.name], err = meter.Float64ObservableGauge(name, unit, help)
		return i.floats[row.name], err
	}
	return i.ints[row.name], err
}

// observation passes one snapshot of the statistics to OpenTelemetry.
type observation struct {
	instruments
	to   metric.Observer
	pool attribute.KeyValue
}

func (o observation) int(name string, n int64, attributes ...attribute.KeyValue) {
	o.to.ObserveInt64(o.ints[name], n, metric.WithAttributes(append(attributes, o.pool)...))
}

func (o observation) float(name string, f float64, attributes ...attribute.KeyValue) {
	o.to.ObserveFloat64(o.floats[name], f, metric.WithAttributes(append(attributes, o.pool)...))
}

func (o observation) stats(s driver.Stats, now time.Time) {
	for _, t := range s.Tables {
		var table []attribute.KeyValue
		if t.Name != "" { // otherwise the table of refused statements is unknown
			table = []attribute.KeyValue{semconv.DBCollectionName(valid(t.Name))}
			o.int("table.statements", t.Statements, table...)
		}
		o.int("table.statements", t.Refused, append(table[:len(table):len(table)], semconv.ErrorTypeOther)...)
		if t.Generator == "" { // no row got an id yet
			continue
		}
		table = append(table, generatorKey.String(t.Generator))
		o.int("table.ids", t.IDs, table...)
		if used := keyusage.Fraction(t, s.Tags); used > 0 {
			o.float("table.key.utilization", used, table...)
		}
	}
	for _, t := range s.Tags {
		tag := []attribute.KeyValue{tagKey.String(valid(t.Tag)), generatorKey.String(keyusage.Generator(t))}
		o.int("tag.ids", t.IDs, tag...)
		o.int("tag.dropped_ids", t.Dropped, tag...)
		o.int("tag.fetches", t.Fetches, tag...)
		o.int("tag.fetches", t.Failures, tag[0], tag[1], semconv.ErrorTypeOther)
		o.int("tag.fetch_failing", intValue(t.Err != nil), tag...)
		o.int("tag.jumps", t.Jumps, tag...)
		o.int("tag.waits", t.Waits, tag...)
		o.int("tag.remaining_ids", t.Remaining, tag...)
		o.int("tag.step", t.Step, tag...)
		if highest := keyusage.HighestID(t); highest > 0 {
			o.int("tag.highest_id", highest, tag...)
		}
	}
	if s.Worker != nil {
		o.lease(s.Worker, now)
	}
}

func (o observation) lease(w *driver.WorkerStats, now time.Time) {
	source := sourceKey.String(w.Source)
	for _, phase := range phases {
		o.int("lease.status", intValue(w.Phase == phase), source, phaseKey.String(phase))
	}
	o.int("lease.failing", intValue(w.Err != nil), source)
	if w.Worker >= 0 {
		o.int("lease.worker_id", int64(w.Worker), source)
	}
	o.float("lease.wait", secondsUntil(w.Start, now), source)
	o.float("lease.remaining", secondsUntil(w.Limit, now), source)
	o.float("lease.clock_offset", w.ClockOffset.Seconds(), source)
}

// valid returns a name as UTF-8, which OpenTelemetry's protocol requires. A table's name has the bytes of the
// statement.
func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// secondsUntil returns the seconds from now to t, or 0 if t has passed or is zero.
func secondsUntil(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, t.Sub(now).Seconds())
}

func intValue(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
