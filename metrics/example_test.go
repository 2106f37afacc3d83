package metrics_test

import (
	"database/sql"
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/metrics"
	"github.com/leafsql/leafsql/proxy"
)

func ExampleNewCollector() {
	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(db, "shop"))

	families, err := registry.Gather() // as a scrape of /metrics does
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	// Output:
	// leafsql_build_info
	// leafsql_up
}

// The metrics of a proxy, in addition to those of its Connector.
func ExampleNewProxyCollector() {
	cfg, err := driver.ParseDSN("leaf:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders")
	if err != nil {
		log.Fatal(err)
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	p, err := proxy.New(proxy.Config{Connector: connector, Server: "127.0.0.1:3306"})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	prometheus.NewRegistry().MustRegister(metrics.NewProxyCollector(p, "shop"))
}
