// Command writer inserts rows through mysql-leaf until it is killed or its standard input ends.
//
//	writer DSN NUMBER
//
// Tests of fail-overs run it as the processes of an application. They also build it in older versions of this repository, so it
// uses only packages and names that exist there.
//
// A row has the writer's number and a number n. Every third row is inserted into events, which has no unique key. The others
// are written with REPLACE into orders, in which a duplicate id overwrites a row. The writer prints n and the id of each
// acknowledged row, and a ! and the error of a failed statement. It does not reuse the n of a failed statement, since the row
// may be stored.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
)

// timeout is the time limit of a statement.
const timeout = 10 * time.Second

func main() {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	mysql.SetLogger(log.New(io.Discard, "", 0)) // connections break
	db, err := sql.Open(driver.Name, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for n := 1; ; n++ {
		id, err := insert(db, n)
		if err != nil {
			fmt.Println("!", strings.ReplaceAll(err.Error(), "\n", "; "))
			time.Sleep(10 * time.Millisecond)
			continue
		}
		fmt.Println(n, id)
		time.Sleep(time.Millisecond)
	}
}

func insert(db *sql.DB, n int) (id int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	into := "REPLACE INTO orders"
	if n%3 == 0 {
		into = "INSERT INTO events"
	}
	result, err := db.ExecContext(ctx, fmt.Sprintf("%s (writer, n) VALUES (%s, %d)", into, os.Args[2], n))
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}
