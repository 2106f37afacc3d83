package otelmetrics

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// collect returns the value of each metric, by its name and attributes, and the keys of its attributes.
func collect(t *testing.T, reader sdk.Reader) (values map[string]float64, keys map[string][]attribute.Key) {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	values, keys = make(map[string]float64), make(map[string][]attribute.Key)
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(set attribute.Set, value float64) {
				values[m.Name+"{"+set.Encoded(attribute.DefaultEncoder())+"}"] = value
				for _, a := range set.ToSlice() {
					if !slices.Contains(keys[m.Name], a.Key) {
						keys[m.Name] = append(keys[m.Name], a.Key)
					}
				}
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value)
				}
			default:
				t.Errorf("data of %s = %T, want a sum or gauge", m.Name, data)
			}
		}
	}
	return values, keys
}

func wantValues(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s = %v, collected: %v; want %v in\n%v", name, v, ok, value, got)
		}
	}
}

func register(t *testing.T, db *sql.DB, name string, provider metric.MeterProvider) {
	t.Helper()
	registration, err := Register(db, name, provider)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := registration.Unregister(); err != nil {
			t.Error(err)
		}
	})
}

func open(t *testing.T, name, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(name, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestRegisterExportsFetchesAndLease(t *testing.T) {
	db := open(t, driver.Name, mysqltest.Database(t)+"?leafTables=t,s:id:snowflake&leafWorker=mysql()&leafCreate=true&leafNewRegistry=true")
	for _, text := range []string{
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 100, 1000)",
		"CREATE TABLE t (id SMALLINT PRIMARY KEY, a INT)",
		"CREATE TABLE s (id BIGINT PRIMARY KEY, a INT)",
		"INSERT INTO t (a) VALUES (1), (2)",
		"INSERT INTO s (a) VALUES (1)",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	var name string
	if err := db.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	reader := sdk.NewManualReader()
	register(t, db, "shop", sdk.NewMeterProvider(sdk.WithReader(reader)))
	table := func(table, generator string) string {
		return fmt.Sprintf("{db.client.connection.pool.name=shop,db.collection.name=%s.%s,leafsql.generator=%s}", name, table, generator)
	}
	shopTable := "db.client.connection.pool.name=shop,db.collection.name=" + name + ".t"
	got, _ := collect(t, reader)
	wantValues(t, got, map[string]float64{
		"leafsql.table.statements{" + shopTable + "}":                                                                        1,
		"leafsql.table.ids" + table("t", "segment"):                                                                          2,
		"leafsql.table.ids" + table("s", "snowflake"):                                                                        1,
		"leafsql.table.key.utilization" + table("t", "segment"):                                                              115. / 32767,
		"leafsql.tag.ids{db.client.connection.pool.name=shop,leafsql.generator=segment,leafsql.tag=t}":                       2,
		"leafsql.tag.fetches{db.client.connection.pool.name=shop,leafsql.generator=segment,leafsql.tag=t}":                   1,
		"leafsql.tag.fetches{db.client.connection.pool.name=shop,error.type=_OTHER,leafsql.generator=segment,leafsql.tag=t}": 0,
		"leafsql.tag.waits{db.client.connection.pool.name=shop,leafsql.generator=segment,leafsql.tag=t}":                     1,
		"leafsql.tag.remaining_ids{db.client.connection.pool.name=shop,leafsql.generator=segment,leafsql.tag=t}":             14,
		"leafsql.lease.status{db.client.connection.pool.name=shop,leafsql.lease.phase=holding,leafsql.lease.source=mysql}":   1,
		"leafsql.lease.status{db.client.connection.pool.name=shop,leafsql.lease.phase=searching,leafsql.lease.source=mysql}": 0,
		"leafsql.lease.failing{db.client.connection.pool.name=shop,leafsql.lease.source=mysql}":                              0,
	})
	if remaining := got["leafsql.lease.remaining{db.client.connection.pool.name=shop,leafsql.lease.source=mysql}"]; remaining <= 0 {
		t.Errorf("leafsql.lease.remaining = %v, want more than 0", remaining)
	}

	if _, err := db.Exec("DELETE FROM leaf_alloc"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO t (a) VALUES (1)" + strings.Repeat(", (1)", 2999)); err == nil {
		t.Fatal("INSERT of 3000 rows = nil, want an error: the row of leaf_alloc is deleted")
	}
	got, _ = collect(t, reader)
	wantValues(t, got, map[string]float64{
		"leafsql.table.statements{" + shopTable + ",error.type=_OTHER}":                                          1,
		"leafsql.tag.fetch_failing{db.client.connection.pool.name=shop,leafsql.generator=segment,leafsql.tag=t}": 1,
	})
	if failed := got["leafsql.tag.fetches{db.client.connection.pool.name=shop,error.type=_OTHER,leafsql.generator=segment,leafsql.tag=t}"]; failed < 1 {
		t.Errorf("failed fetches = %v, want at least 1", failed)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	closed, _ := collect(t, reader)
	for series, value := range got {
		name, _, _ := strings.Cut(strings.TrimPrefix(series, "leafsql."), "{")
		isCounter := slices.ContainsFunc(metricRows, func(row metricRow) bool { return row.name == name && row.kind == counter })
		if after, ok := closed[series]; isCounter && (!ok || after < value) {
			t.Errorf("after Close, %s = %v, collected: %v; want at least %v", series, after, ok, value)
		}
	}
}

// TestUnreadablePoolDoesNotStopOthers: the metrics of a pool are collected if the statistics of another pool cannot be read.
func TestUnreadablePoolDoesNotStopOthers(t *testing.T) {
	var handled []error
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { handled = append(handled, err) }))
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	register(t, open(t, "mysql", "u@tcp(127.0.0.1:1)/d"), "other", provider)
	register(t, open(t, driver.Name, "u@tcp(127.0.0.1:1)/d?leafTables=t:id:snowflake"), "shop", provider)
	got, _ := collect(t, reader)
	wantValues(t, got, map[string]float64{"leafsql.lease.status{db.client.connection.pool.name=shop,leafsql.lease.phase=idle,leafsql.lease.source=mysql}": 1})
	if len(handled) != 1 || !strings.Contains(handled[0].Error(), "leafsql: metrics of the pool other: ") {
		t.Errorf("handled errors = %v, want one for the pool other", handled)
	}
}

// collectFull collects statistics without a missing value.
func collectFull(t *testing.T) (map[string]float64, map[string][]attribute.Key) {
	t.Helper()
	reader := sdk.NewManualReader()
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test")
	all := instruments{make(map[string]metric.Int64Observable), make(map[string]metric.Float64Observable)}
	var observables []metric.Observable
	for _, row := range metricRows {
		o, err := all.create(meter, row)
		if err != nil {
			t.Fatal(err)
		}
		observables = append(observables, o)
	}
	now := time.Now()
	_, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		observation{all, to, semconv.DBClientConnectionPoolName("shop")}.stats(driver.Stats{
			Tables: []driver.TableStats{{Name: "shop.a\xff", Generator: "segment", Tag: "t", HighestKey: 50, Statements: 1, IDs: 2, Refused: 3}, {Name: "shop.b", Refused: 5}, {Refused: 4}},
			Tags: []driver.TagStats{{Tag: "t", Stats: segment.Stats{Fetches: 1, Failures: 2, IDs: 3, Dropped: 4, Waits: 5, Step: 6, Remaining: 7, Jumps: 8,
				Queued: segment.Range{Start: 30, End: 40}, Err: errors.New("away")}}, {Tag: "t", Sequence: true, Stats: segment.Stats{IDs: 30}}},
			Worker: &driver.WorkerStats{Source: "nacos", Status: worker.Status{Phase: "waiting", Worker: 7, Start: now.Add(90 * time.Second), Limit: now.Add(2 * time.Minute),
				ClockOffset: -1500 * time.Millisecond, Err: errors.New("away")}},
		}, now)
		return nil
	}, observables...)
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, reader)
}

func TestStatisticsBecomeMetrics(t *testing.T) {
	got, keys := collectFull(t)
	const pool, lease = "db.client.connection.pool.name=shop,", "{db.client.connection.pool.name=shop,leafsql.lease.source=nacos}"
	wantValues(t, got, map[string]float64{
		"leafsql.table.statements{" + pool + "db.collection.name=shop.a\uFFFD,error.type=_OTHER}":              3,
		"leafsql.table.statements{" + pool + "db.collection.name=shop.b,error.type=_OTHER}":                    5,
		"leafsql.table.statements{" + pool + "error.type=_OTHER}":                                              4,
		"leafsql.table.key.utilization{" + pool + "db.collection.name=shop.a\uFFFD,leafsql.generator=segment}": 0.78,
		"leafsql.tag.fetches{" + pool + "error.type=_OTHER,leafsql.generator=segment,leafsql.tag=t}":           2,
		"leafsql.tag.ids{" + pool + "leafsql.generator=segment,leafsql.tag=t}":                                 3,
		"leafsql.tag.ids{" + pool + "leafsql.generator=sequence,leafsql.tag=t}":                                30,
		"leafsql.tag.highest_id{" + pool + "leafsql.generator=segment,leafsql.tag=t}":                          39,
		"leafsql.tag.fetch_failing{" + pool + "leafsql.generator=segment,leafsql.tag=t}":                       1,
		"leafsql.lease.status{" + pool + "leafsql.lease.phase=waiting,leafsql.lease.source=nacos}":             1,
		"leafsql.lease.worker_id" + lease:                                                                      7,
		"leafsql.lease.failing" + lease:                                                                        1,
		"leafsql.lease.wait" + lease:                                                                           90,
		"leafsql.lease.remaining" + lease:                                                                      120,
		"leafsql.lease.clock_offset" + lease:                                                                   -1.5,
	})
	if ids, ok := got["leafsql.table.ids{"+pool+"db.collection.name=shop.b,leafsql.generator=}"]; ok {
		t.Errorf("ids of a table without a generator = %v, want no such series", ids)
	}
	for _, row := range metricRows {
		want := slices.Sorted(slices.Values(append(slices.Clone(row.attributes), semconv.DBClientConnectionPoolNameKey)))
		if got := slices.Sorted(slices.Values(keys["leafsql."+row.name])); !slices.Equal(got, want) {
			t.Errorf("attributes of leafsql.%s = %v, want %v", row.name, got, want)
		}
	}
}

// TestNamesFollowConventions: names consist of lower-case words in namespaces, and no name is the namespace of another.
func TestNamesFollowConventions(t *testing.T) {
	for _, row := range metricRows {
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*(\.[a-z]+(_[a-z]+)*)+$`).MatchString(row.name) || strings.HasSuffix(row.name, "_total") {
			t.Errorf("name of a metric = %s, want lower-case words without _total", row.name)
		}
		if !regexp.MustCompile(`^(1|s|\{[a-z]+\})$`).MatchString(row.unit) {
			t.Errorf("unit of %s = %s, want 1, s or a noun in braces", row.name, row.unit)
		}
		for _, other := range metricRows {
			if strings.HasPrefix(other.name, row.name+".") {
				t.Errorf("%s is a metric and the namespace of %s, want one of the two", row.name, other.name)
			}
		}
	}
}

// TestPagesListAllMetrics: both pages list the metrics with their units and attributes, in the order of registration.
func TestPagesListAllMetrics(t *testing.T) {
	var want []string
	for _, row := range metricRows {
		line := "`leafsql." + row.name + "` | `" + row.unit + "` |"
		for _, key := range row.attributes {
			line += " `" + string(key) + "`"
		}
		want = append(want, line)
	}
	for _, file := range []string{"serve.md", "zh-CN/serve.md"} {
		text, err := os.ReadFile("../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile("(?m)^\\| (`leafsql\\.[a-z._]+` \\| `[^`]+` \\|)([^|]*)\\|[^|\n]+\\|$").FindAllStringSubmatch(string(text), -1) {
			line := m[1]
			for _, key := range regexp.MustCompile("`[a-z._]+`").FindAllString(m[2], -1) {
				line += " " + key
			}
			got = append(got, line)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists\n%s\nwant\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
