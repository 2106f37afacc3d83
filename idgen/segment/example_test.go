package segment_test

import (
	"context"
	"fmt"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

func ExampleNew() {
	store := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "orders", MaxID: 1, Step: 1000})
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

// Ids of a row of leaf_alloc. Nothing is fetched before the first id is requested.
func ExampleNewAllocStore() {
	db := sqlx.MustOpen("mysql", "app:secret@tcp(127.0.0.1:3306)/shop")
	defer db.Close()
	orders := segment.New(segment.NewAllocStore(db, "leaf_alloc"), "orders", nil)
	defer orders.Close()
	fmt.Println(orders.Stats().Fetches, "ranges fetched")
	// Output: 0 ranges fetched
}

// Ids of a row of t_sequence.
func ExampleNewSequenceStore() {
	db := sqlx.MustOpen("mysql", "app:secret@tcp(127.0.0.1:3306)/shop")
	defer db.Close()
	invoices := segment.New(segment.NewSequenceStore(db, "t_sequence"), "invoices", nil)
	defer invoices.Close()
	fmt.Println(invoices.Stats().Fetches, "ranges fetched")
	// Output: 0 ranges fetched
}
