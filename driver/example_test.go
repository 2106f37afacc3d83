package driver_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
)

// Insert two rows and read their ids, as in the README.
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

// Two shards share one leaf_alloc, so an id is never in both.
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

// Collect all ids that statements generate.
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

// Set a custom generator, store or logger in a Config.
func ExampleNewConnector() {
	cfg, err := driver.ParseDSN("app:secret@tcp(127.0.0.1:3306)/shop")
	if err != nil {
		log.Fatal(err)
	}
	cfg.Tables = []driver.Rule{{Table: "orders"}, {Table: "events", Kind: driver.Snowflake}}
	cfg.Worker = "static(7)"
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector) // which connects at its first statement
	defer db.Close()
	fmt.Println(connector.Worker().Phase)
	// Output: idle
}

// Parse a DSN into a Config.
func ExampleParseDSN() {
	cfg, err := driver.ParseDSN("app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders,events:id:snowflake")
	if err != nil {
		log.Fatal(err)
	}
	for _, rule := range cfg.Tables {
		fmt.Println(rule)
	}
	fmt.Println(cfg) // without the password
	// Output:
	// orders
	// events:id:snowflake
	// leafsql tcp(127.0.0.1:3306)/shop leafTables=orders,events:id:snowflake
}

// Change the defaults, and format them as a DSN.
func ExampleNewConfig() {
	cfg := driver.NewConfig()
	cfg.MySQL.User, cfg.MySQL.Net, cfg.MySQL.Addr, cfg.MySQL.DBName = "app", "tcp", "db0:3306", "shop"
	cfg.Tables = []driver.Rule{{Table: "order_*", Column: "id"}}
	fmt.Println(cfg.FormatDSN())
	// Output: app@tcp(db0:3306)/shop?leafTables=order_%2A%3Aid
}

// Register settings that a DSN cannot express under a name for DSNs.
func ExampleRegisterConfig() {
	driver.RegisterConfig("quiet", &driver.Config{Tables: []driver.Rule{{Table: "orders"}}, Logger: slog.New(slog.DiscardHandler)})
	cfg, err := driver.ParseDSN("app:secret@tcp(127.0.0.1:3306)/shop?leafConfig=quiet")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cfg.Tables)
	// Output: [orders]
}

// Take the worker id before the first request, within a minute.
func ExampleReady() {
	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=events:id:snowflake")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := driver.Ready(ctx, db); err != nil {
		log.Fatal(err)
	}
}

// Read the statistics of a pool.
func ExampleStatsOf() {
	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	stats, err := driver.StatsOf(db)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(stats.Tables), "tables were written")
	// Output: 0 tables were written
}

// Wrap another connector, here go-sql-driver's with a dial function.
func ExampleWrap() {
	cfg := driver.NewConfig()
	cfg.MySQL.User, cfg.MySQL.Net, cfg.MySQL.Addr, cfg.MySQL.DBName = "app", "tcp", "db0:3306", "shop"
	cfg.MySQL.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:3306")
	}
	inner, err := mysql.NewConnector(cfg.MySQL)
	if err != nil {
		log.Fatal(err)
	}
	connector, err := driver.Wrap(inner, cfg)
	if err != nil {
		log.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	fmt.Println(len(connector.Stats().Tags), "tags in use")
	// Output: 0 tags in use
}

var db *sql.DB // opened as in the package's example
