package nacos_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/nacos-group/nacos-sdk-go/v2/clients/config_client"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos"
)

// Snowflake ids with worker ids from Nacos, as in docs/worker-ids.md.
func Example() {
	// also needed: import _ "github.com/leafsql/leafsql/nacos"
	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=events:id:snowflake"+
		"&leafWorker=nacos(n1:8848,n2:8848)&leafNacosNamespace=leafsql")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close() // releases the worker id
}

// A service that is registered in Nacos already passes its own clients and its own
// address. No request is sent to Nacos before the first INSERT that needs an id.
func ExampleOpen() {
	var (
		configs config_client.IConfigClient // the application's client
		names   naming_client.INamingClient
	)
	cfg, err := driver.ParseDSN("app:secret@tcp(127.0.0.1:3306)/shop?leafTables=events:id:snowflake")
	if err != nil {
		log.Fatal(err)
	}
	cfg.WorkerSource = func(ctx context.Context) (worker.Source, error) {
		return nacos.Open(ctx, nacos.Config{
			ConfigClient: configs,
			NamingClient: names,
			Instance:     nacos.Instance{IP: "10.0.0.7", Port: 8080},
		})
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close() // releases the worker id, and does not close the clients
	fmt.Println(connector.Worker().Phase)
	// Output: idle
}
