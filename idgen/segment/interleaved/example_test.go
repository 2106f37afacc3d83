package interleaved_test

import (
	"fmt"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/interleaved"
)

// Ids of two leaf_alloc, so that either server may be away.
func ExampleNew() {
	var tables []interleaved.Table
	for _, host := range []string{"ids0", "ids1"} { // all processes name them in this order
		db := sqlx.MustOpen("mysql", "app:secret@tcp("+host+":3306)/leaf")
		defer db.Close()
		tables = append(tables, interleaved.Table{DB: db, Name: "leaf_alloc"})
	}
	both := interleaved.New(tables, false, nil)
	defer both.Close()
	orders := segment.New(both, "orders", nil)
	defer orders.Close()
	fmt.Println(orders.Stats().Fetches, "ranges fetched")
	// Output: 0 ranges fetched
}
