package otelmetrics_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	_ "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/otelmetrics"
)

func ExampleRegister() {
	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=events:id:snowflake")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	reader := sdk.NewManualReader() // in a program, a PeriodicReader with an exporter
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	registration, err := otelmetrics.Register(db, "shop", provider)
	if err != nil {
		log.Fatal(err)
	}
	defer registration.Unregister()

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		log.Fatal(err)
	}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			fmt.Println(m.Name, m.Unit)
		}
	}
	// Unordered output:
	// leafsql.lease.status {lease}
	// leafsql.lease.failing 1
	// leafsql.lease.wait s
	// leafsql.lease.remaining s
	// leafsql.lease.clock_offset s
}
