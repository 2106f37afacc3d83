package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/mysql"
)

// Snowflakes without a DSN. Nothing connects before the first id.
func ExampleOpen() {
	db, err := sql.Open("mysql", "app:secret@tcp(127.0.0.1:3306)/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	open := func(context.Context) (worker.Source, error) {
		return mysql.Open(db, mysql.Config{Create: true}), nil
	}
	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println(ids.Worker().Phase)
	// Output: idle
}
