// Package shop uses mysql-leaf with code that sqlc generated: shopsql, from
// schema.sql and query.sql. The queries are the same as with AUTO_INCREMENT.
package shop

import (
	"context"
	"database/sql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/examples/sqlc/shopsql"
)

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.30.0 generate

// Open opens the shop. shopsql.New(db) returns its queries, and shopsql.Prepare
// the same as prepared statements. The caller closes it.
func Open(dsn string) (*sql.DB, error) {
	return sql.Open(driver.Name, dsn)
}

// Import stores customers in one transaction, and sets the ids of those that
// have none.
func Import(ctx context.Context, db *sql.DB, cs []shopsql.Customer) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	q := shopsql.New(tx)
	for i, c := range cs {
		res, err := q.ImportCustomer(ctx, shopsql.ImportCustomerParams{
			ID:    sql.NullInt64{Int64: c.ID, Valid: c.ID != 0},
			Email: c.Email,
			Name:  c.Name,
		})
		if err != nil {
			return err
		}
		if c.ID == 0 {
			if cs[i].ID, err = res.LastInsertId(); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}
