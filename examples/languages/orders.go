package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// writeOrders writes orders to both shards in turn, and prints the elapsed time in seconds.
func writeOrders() error {
	var inserts []*sql.Stmt
	for shard := range strings.SplitSeq(os.Getenv("SHARDS"), ",") {
		cfg := mysql.NewConfig()
		cfg.Net, cfg.Addr = "tcp", os.Getenv("DB_HOST")+":"+os.Getenv("DB_PORT")
		cfg.User, cfg.Passwd, cfg.DBName = os.Getenv("DB_USER"), os.Getenv("DB_PASSWORD"), shard
		db, err := sql.Open("mysql", cfg.FormatDSN())
		if err != nil {
			return err
		}
		defer db.Close()
		insert, err := db.Prepare("INSERT INTO orders (program, total) VALUES ('Go', ?)")
		if err != nil {
			return err
		}
		inserts = append(inserts, insert)
	}
	rows, err := strconv.Atoi(os.Getenv("ROWS"))
	if err != nil {
		return err
	}
	start := time.Now()
	for i := range rows {
		result, err := inserts[i%2].Exec(i)
		if err != nil {
			return err
		}
		if id, _ := result.LastInsertId(); id == 0 {
			return errors.New("an order without an id")
		}
	}
	fmt.Println(time.Since(start).Seconds())
	return nil
}
