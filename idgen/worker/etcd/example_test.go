package etcd_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/etcd"
)

// Snowflakes without a DSN. Nothing connects before the first id.
func ExampleOpen() {
	open := func(context.Context) (worker.Source, error) {
		return etcd.Open(etcd.Config{Servers: []string{"h1:2379", "h2:2379", "h3:2379"}})
	}
	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Worker().Phase)
	// Output: idle
}
