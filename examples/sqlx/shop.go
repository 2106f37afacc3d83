// Package shop uses mysql-leaf through sqlx: named rows, a named batch, an
// upsert.
package shop

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/driver"
)

// sqlx chooses placeholders by driver name. It uses ? for unknown names too,
// except in sqlx.BindType, which some libraries call.
func init() { sqlx.BindDriver(driver.Name, sqlx.QUESTION) }

// Customer is a row of customers. ID is 0 until it is stored.
type Customer struct {
	ID    int64  `db:"id"`
	Email string `db:"email"`
	Name  string `db:"name"`
}

// Open connects to the shop.
func Open(ctx context.Context, dsn string) (*sqlx.DB, error) {
	return sqlx.ConnectContext(ctx, driver.Name, dsn)
}

// Add stores a customer and sets its ID. The key is 0, which requests an id
// like NULL and DEFAULT do; omitting the column works as well.
func Add(ctx context.Context, db *sqlx.DB, c *Customer) error {
	res, err := db.NamedExecContext(ctx, "INSERT INTO customers (id, email, name) VALUES (:id, :email, :name)", c)
	if err != nil {
		return err
	}
	c.ID, err = res.LastInsertId()
	return err
}

// AddAll stores new customers with one statement and sets their IDs. The ids
// of a statement are consecutive, and LastInsertId is the first.
func AddAll(ctx context.Context, db *sqlx.DB, cs []Customer) error {
	res, err := db.NamedExecContext(ctx, "INSERT INTO customers (email, name) VALUES (:email, :name)", cs)
	if err != nil {
		return err
	}
	first, err := res.LastInsertId()
	for i := range cs {
		cs[i].ID = first + int64(i)
	}
	return err
}

// Put stores a customer, or renames the one with the same email. ID is set to
// the stored row's id in both cases.
func Put(ctx context.Context, db *sqlx.DB, c *Customer) error {
	res, err := db.NamedExecContext(ctx, "INSERT INTO customers (email, name) VALUES (:email, :name) ON DUPLICATE KEY UPDATE name = VALUES(name)", c)
	if err != nil {
		return err
	}
	c.ID, err = res.LastInsertId()
	return err
}

// Find loads customers by their ids.
func Find(ctx context.Context, db *sqlx.DB, ids ...int64) (cs []Customer, err error) {
	query, args, err := sqlx.In("SELECT id, email, name FROM customers WHERE id IN (?) ORDER BY id", ids)
	if err != nil {
		return nil, err
	}
	return cs, db.SelectContext(ctx, &cs, db.Rebind(query), args...)
}
