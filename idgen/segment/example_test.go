package segment_test

import (
	"context"
	"fmt"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

func ExampleGenerator() {
	store := segmenttest.NewMemory(segment.Row{Tag: "orders", MaxID: 1, Step: 1000})
	orders := segment.New(store, "orders", nil)
	defer orders.Close()

	ctx := context.Background()
	one, _ := orders.Next(ctx, 1)
	first, _ := orders.Next(ctx, 3)
	fmt.Println(one)
	fmt.Println(first, first+1, first+2)
	// Output:
	// 1
	// 2 3 4
}
