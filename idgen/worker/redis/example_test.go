package redis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/redis"
)

// Snowflakes without a DSN. Nothing connects before the first id.
func ExampleOpen() {
	open := func(context.Context) (worker.Source, error) {
		return redis.Open(redis.Config{Servers: []string{"h1:6379", "h2:6379", "h3:6379"}})
	}
	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Worker().Phase)
	// Output: idle
}
