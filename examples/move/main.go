// Command move moves orders, with their items and notes, from one database to another while the shop's program runs:
//
//	FROM='user:password@tcp(db0:3306)/shop' TO='user:password@tcp(db1:3306)/shop' go run ./move 'customer % 2 = 1'
//
// The rows keep their keys, which no other row has on either side. An order is deleted from the first database once the
// other one has it, so that the command can be interrupted and run again. As long as an order is on both sides, the
// original counts: finish an interrupted move before you move in the other direction.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// tables lists the tables, and the columns with the order of a row. A table comes after the
// tables that its foreign keys refer to.
var tables = []struct{ name, order string }{{"orders", "id"}, {"items", "order_id"}, {"notes", "order_id"}}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("move: say which orders, as in WHERE")
	}
	from, to := open(os.Getenv("FROM")), open(os.Getenv("TO"))
	moved := 0
	for last := "0"; ; {
		ids, err := move(from, to, "id > "+last+" AND ("+os.Args[1]+")")
		if server, ok := errors.AsType[*mysql.MySQLError](err); ok && server.Number == 1213 { // a deadlock with the shop's program
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		if len(ids) == 0 {
			break
		}
		moved, last = moved+len(ids), ids[len(ids)-1]
	}
	fmt.Println("orders moved:", moved)
}

// open opens a database. Times are read and written in UTC, whatever the time zones of the two servers are.
func open(dsn string) *sql.DB {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		log.Fatal(err)
	}
	if cfg.Params == nil {
		cfg.Params = make(map[string]string)
	}
	cfg.Params["time_zone"] = "'+00:00'"
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	return sql.OpenDB(connector)
}

// move moves up to a hundred orders, and returns their ids. It locks them meanwhile: a program that changes an order
// waits, and then finds it in the other database. After a deadlock, which rolls one of the transactions back, it can be
// called again.
func move(from, to *sql.DB, where string) (ids []string, err error) {
	ctx := context.Background()
	committed := &sql.TxOptions{Isolation: sql.LevelReadCommitted} // locks no other rows
	source, err := from.BeginTx(ctx, committed)
	if err != nil {
		return nil, err
	}
	defer source.Rollback()
	if ids, err = lockOrders(source, where); err != nil || len(ids) == 0 {
		return nil, err
	}
	target, err := to.BeginTx(ctx, committed)
	if err != nil {
		return nil, err
	}
	defer target.Rollback()
	if err := deleteOrders(target, ids); err != nil { // copies of an interrupted move, or of a clone
		return nil, err
	}
	for _, t := range tables {
		if err := copyRows(source, target, t.name, t.order+" IN ("+strings.Join(ids, ",")+")"); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if err := target.Commit(); err != nil {
		return nil, err
	}
	if err := deleteOrders(source, ids); err != nil {
		return nil, err
	}
	return ids, source.Commit()
}

func lockOrders(tx *sql.Tx, where string) (ids []string, err error) {
	rows, err := tx.Query("SELECT id FROM orders WHERE " + where + " ORDER BY id LIMIT 100 FOR UPDATE")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func deleteOrders(tx *sql.Tx, ids []string) error {
	for _, t := range slices.Backward(tables) {
		if _, err := tx.Exec("DELETE FROM " + t.name + " WHERE " + t.order + " IN (" + strings.Join(ids, ",") + ")"); err != nil {
			return err
		}
	}
	return nil
}

func copyRows(from, to *sql.Tx, table, where string) error {
	rows, err := from.Query("SELECT * FROM " + table + " WHERE " + where)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	insert := "INSERT INTO " + table + " (`" + strings.Join(columns, "`, `") + "`) VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")"
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(sql.NullString)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			return err
		}
		if _, err := to.Exec(insert, values...); err != nil {
			return err
		}
	}
	return rows.Err()
}
