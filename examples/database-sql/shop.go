// Package shop uses mysql-leaf through database/sql alone: one row, a batch,
// an upsert, a prepared statement, and a parent with its children in one
// transaction. Compared with go-sql-driver/mysql only the driver's name and
// the DSN change.
package shop

import (
	"context"
	"database/sql"
	"strings"

	"github.com/leafsql/leafsql/driver"
)

// Customer is a row of customers. ID is 0 until it is stored.
type Customer struct {
	ID    int64
	Email string
	Name  string
}

// Open opens the shop. The DSN is go-sql-driver's with leafTables added:
// app:secret@tcp(127.0.0.1:3306)/shop?leafTables=customers,orders
func Open(dsn string) (*sql.DB, error) {
	return sql.Open(driver.Name, dsn)
}

// Add stores a customer and sets its ID.
func Add(ctx context.Context, db *sql.DB, c *Customer) error {
	res, err := db.ExecContext(ctx, "INSERT INTO customers (email, name) VALUES (?, ?)", c.Email, c.Name)
	if err != nil {
		return err
	}
	c.ID, err = res.LastInsertId()
	return err
}

// AddAll stores customers with one statement and sets their IDs. The ids of a
// statement are consecutive, and LastInsertId is the first.
func AddAll(ctx context.Context, db *sql.DB, cs []Customer) error {
	if len(cs) == 0 {
		return nil
	}
	args := make([]any, 0, 2*len(cs))
	for _, c := range cs {
		args = append(args, c.Email, c.Name)
	}
	text := "INSERT INTO customers (email, name) VALUES (?, ?)" + strings.Repeat(", (?, ?)", len(cs)-1)
	res, err := db.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	first, err := res.LastInsertId()
	if err != nil {
		return err
	}
	for i := range cs {
		cs[i].ID = first + int64(i)
	}
	return nil
}

// Put stores a customer, or renames the one with the same email. ID is set to
// the stored row's id in both cases, without id = LAST_INSERT_ID(id).
func Put(ctx context.Context, db *sql.DB, c *Customer) error {
	res, err := db.ExecContext(ctx, "INSERT INTO customers (email, name) VALUES (?, ?) ON DUPLICATE KEY UPDATE name = VALUES(name)", c.Email, c.Name)
	if err != nil {
		return err
	}
	c.ID, err = res.LastInsertId()
	return err
}

// Import stores customers one by one through a prepared statement. Customers
// with a key keep it.
func Import(ctx context.Context, db *sql.DB, cs []Customer) error {
	st, err := db.PrepareContext(ctx, "INSERT INTO customers (id, email, name) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer st.Close()
	for i := range cs {
		res, err := st.ExecContext(ctx, cs[i].ID, cs[i].Email, cs[i].Name)
		if err != nil {
			return err
		}
		if cs[i].ID == 0 { // 0 requests an id, like NULL and DEFAULT
			if cs[i].ID, err = res.LastInsertId(); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddWithOrders stores a customer and its orders in one transaction, in which
// SQL itself reads the new customer's id. The ids of the orders are returned
// through the context.
func AddWithOrders(ctx context.Context, db *sql.DB, c *Customer, totals ...int64) (orders []driver.GeneratedIDs, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	res, err := tx.ExecContext(ctx, "INSERT INTO customers (email, name) VALUES (?, ?)", c.Email, c.Name)
	if err != nil {
		return nil, err
	}
	if c.ID, err = res.LastInsertId(); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "SET @customer = LAST_INSERT_ID()"); err != nil {
		return nil, err
	}
	ctx = driver.WithGeneratedIDs(ctx, &orders)
	for _, total := range totals {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (customer_id, total) VALUES (@customer, ?)", total); err != nil {
			return nil, err
		}
	}
	return orders, tx.Commit()
}
