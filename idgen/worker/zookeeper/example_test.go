package zookeeper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper"
)

// Snowflakes without a DSN. Nothing connects before the first id.
func ExampleOpen() {
	open := func(context.Context) (worker.Source, error) {
		return zookeeper.Open(zookeeper.Config{Servers: []string{"h1:2181", "h2:2181", "h3:2181"}})
	}
	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Worker().Phase)
	// Output: idle
}
