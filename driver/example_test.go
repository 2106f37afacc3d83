package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/leafsql/leafsql/driver"
)

// The quick start of the README.
func Example() {
	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders&leafCreate=true")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	res, err := db.Exec("INSERT INTO orders (customer, total) VALUES (?, ?), (?, ?)", "ann", 1200, "bob", 900)
	if err != nil {
		log.Fatal(err)
	}
	first, err := res.LastInsertId() // the first row's id; the other rows' ids follow it
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("orders", first, "and", first+1)
}

// Two shards that share their ids.
func Example_shards() {
	const ids = "&leafStore=app:secret@tcp(ids:3306)%2Fleaf" // the one leaf_alloc of all shards
	var shards [2]*sql.DB
	for i, host := range []string{"db0", "db1"} {
		db, err := sql.Open("mysql-leaf", "app:secret@tcp("+host+":3306)/shop?leafTables=orders"+ids)
		if err != nil {
			log.Fatal(err)
		}
		defer db.Close()
		shards[i] = db
	}
}

// All ids of the statements under a context.
func ExampleWithGeneratedIDs() {
	var ids []driver.GeneratedIDs
	ctx := driver.WithGeneratedIDs(context.Background(), &ids)
	if _, err := db.ExecContext(ctx, "INSERT INTO orders (customer) VALUES ('ann'), ('bob')"); err != nil {
		log.Fatal(err)
	}
	for _, g := range ids {
		fmt.Printf("%s: %d … %d\n", g.Table, g.First, g.First+int64(g.N)-1)
	}
}

// Generators, a store or a logger of one's own go into a Config.
func ExampleNewConnector() {
	cfg, err := driver.ParseDSN("app:secret@tcp(127.0.0.1:3306)/shop")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Auto = false
	cfg.Tables = []driver.Rule{{Table: "orders"}, {Table: "events", Kind: driver.Snowflake}}
	cfg.Worker = "static(7)"
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
}

var db *sql.DB // opened as in the package's example
