package snowflake_test

import (
	"context"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

func ExampleNew() {
	ctx := context.Background()
	open, err := worker.Lookup("static(7)", nil)
	if err != nil {
		panic(err)
	}
	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
	if err != nil {
		panic(err)
	}
	defer ids.Close()

	first, err := ids.Next(ctx, 3) // first, first+1 and first+2
	if err != nil {
		panic(err)
	}
	parts, _ := snowflake.Leaf.Decompose(first)
	fmt.Println(parts.Worker, time.Since(parts.Time) < time.Minute)
	// Output: 7 true
}

func ExampleLayout_Decompose() {
	twitter, err := snowflake.ParseLayout("41-5+5-12")
	if err != nil {
		panic(err)
	}
	parts, err := twitter.Decompose(1541815603606036480)
	if err != nil {
		panic(err)
	}
	fmt.Println(parts.Time.UTC().Format(time.RFC3339Nano))
	fmt.Println(parts.Datacenter, parts.Worker, parts.Sequence)
	// Output:
	// 2022-06-28T16:07:40.105Z
	// 11 26 0
}

func ExampleParseLayout() {
	layout, err := snowflake.ParseLayout("40-5+7-11@2024-01-01")
	if err != nil {
		panic(err)
	}
	fmt.Println(layout)
	fmt.Println(layout.Workers(), "workers until", layout.End().UTC().Year())
	// Output:
	// 40-5+7-11@1704067200000
	// 4096 workers until 2058
}
