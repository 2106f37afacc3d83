package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// A shop is an ordinary application on *sql.DB, written once and without code for leafsql: not one line differs
// between its run with AUTO_INCREMENT and its run with mysql-leaf.
type shop struct{ db *sql.DB }

// tables are the shop's tables, parents first.
var tables = []string{"customers", "products", "orders", "order_items"}

// schema returns the statements that create the tables; key completes the primary key's column:
// "AUTO_INCREMENT" or empty.
func schema(key string) []string {
	return []string{
		`CREATE TABLE customers (id BIGINT NOT NULL ` + key + ` PRIMARY KEY, name VARCHAR(50) NOT NULL)`,
		`CREATE TABLE products (id BIGINT NOT NULL ` + key + ` PRIMARY KEY, sku VARCHAR(50) NOT NULL UNIQUE, price INT NOT NULL, stock INT NOT NULL)`,
		`CREATE TABLE orders (id BIGINT NOT NULL ` + key + ` PRIMARY KEY, customer_id BIGINT NOT NULL, total INT NOT NULL)`,
		`CREATE TABLE order_items (id BIGINT NOT NULL ` + key + ` PRIMARY KEY, order_id BIGINT NOT NULL, product_id BIGINT NOT NULL, pieces INT NOT NULL, price INT NOT NULL)`,
	}
}

// addCustomers inserts all names with one statement and returns the first id; the others follow
// it.
func (s shop) addCustomers(ctx context.Context, names ...string) (first int64, err error) {
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}
	res, err := s.db.ExecContext(ctx, "INSERT INTO customers (name) VALUES (?)"+strings.Repeat(", (?)", len(names)-1), args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// addStock adds pieces of a new or known product to the stock, and returns the product's id.
func (s shop) addStock(ctx context.Context, sku string, price, pieces int) (id int64, err error) {
	res, err := s.db.ExecContext(ctx, `INSERT INTO products (sku, price, stock) VALUES (?, ?, ?)
		ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), price = VALUES(price), stock = stock + VALUES(stock)`, sku, price, pieces)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

type item struct {
	product       int64
	pieces, price int
}

// order inserts an order and its items in one transaction. The items refer to their order by SQL's own
// LAST_INSERT_ID().
func (s shop) order(ctx context.Context, customer int64, items ...item) (id int64, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()

	total := 0
	rows := make([]string, len(items))
	var args []any
	for i, it := range items {
		total += it.pieces * it.price
		rows[i] = "(LAST_INSERT_ID(), ?, ?, ?)"
		args = append(args, it.product, it.pieces, it.price)
	}
	res, err := tx.ExecContext(ctx, "INSERT INTO orders (customer_id, total) VALUES (?, ?)", customer, total)
	if err != nil {
		return 0, err
	}
	if id, err = res.LastInsertId(); err != nil {
		return 0, err
	}
	if _, err = tx.ExecContext(ctx, "INSERT INTO order_items (order_id, product_id, pieces, price) VALUES "+strings.Join(rows, ", "), args...); err != nil {
		return 0, err
	}
	return id, tx.Commit()
}

// runDay runs a day of business: customers are added, goods arrive, some of them twice, and every customer
// orders.
func (s shop) runDay(ctx context.Context, customers ...string) error {
	first, err := s.addCustomers(ctx, customers...)
	if err != nil {
		return fmt.Errorf("add customers: %w", err)
	}
	tea, err := s.addStock(ctx, "tea", 700, 10)
	if err != nil {
		return fmt.Errorf("receive goods: %w", err)
	}
	cup, err := s.addStock(ctx, "cup", 1200, 5)
	if err != nil {
		return fmt.Errorf("receive goods: %w", err)
	}
	again, err := s.addStock(ctx, "tea", 750, 10) // an upsert that updates
	if err != nil {
		return fmt.Errorf("receive goods: %w", err)
	}
	if again != tea {
		return fmt.Errorf("tea is product %d and, received again, %d", tea, again)
	}
	for i := range customers {
		if _, err := s.order(ctx, first+int64(i), item{tea, 2, 750}, item{cup, i + 1, 1200}); err != nil {
			return fmt.Errorf("order: %w", err)
		}
	}
	return nil
}
