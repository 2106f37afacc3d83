// Package shop is an application whose tests are the example: one test with
// sqlmock in place of mysql-leaf, one on a real server, and one with fixed ids.
package shop

import (
	"context"
	"database/sql"
	"fmt"
)

// AddOrder stores a customer with one order in one transaction, and returns the
// order's id. It takes the pool from its caller, so that a test can pass another.
func AddOrder(ctx context.Context, db *sql.DB, email string, total int64) (order int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	customer, err := insert(ctx, tx, "INSERT INTO customers (email, name) VALUES (?, ?)", email, "")
	if err != nil {
		return 0, fmt.Errorf("adding customer %s: %w", email, err)
	}
	order, err = insert(ctx, tx, "INSERT INTO orders (customer_id, total) VALUES (?, ?)", customer, total)
	if err != nil {
		return 0, fmt.Errorf("adding an order of customer %d: %w", customer, err)
	}
	return order, tx.Commit()
}

func insert(ctx context.Context, tx *sql.Tx, text string, args ...any) (int64, error) {
	res, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}
