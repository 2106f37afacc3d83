// Package shop uses mysql-leaf through bun: one row, a batch, upserts.
package shop

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"

	"github.com/leafsql/leafsql/driver"
)

// A Customer's key has nullzero, so that bun sends DEFAULT for 0. autoincrement
// makes bun read LastInsertId; it also makes CreateTable write AUTO_INCREMENT,
// so create the table in a migration.
type Customer struct {
	bun.BaseModel `bun:"table:customers"`

	ID    int64  `bun:"id,pk,autoincrement"`
	Email string `bun:"email,notnull,unique"`
	Name  string `bun:"name,notnull"`
}

// Open opens the shop. The caller closes it.
func Open(dsn string) (*bun.DB, error) {
	pool, err := sql.Open(driver.Name, dsn)
	if err != nil {
		return nil, err
	}
	return bun.NewDB(pool, mysqldialect.New()), nil
}

// Add stores a customer and sets its ID.
func Add(ctx context.Context, db bun.IDB, c *Customer) error {
	_, err := db.NewInsert().Model(c).Exec(ctx)
	return err
}

// AddAll stores customers with one statement and sets their IDs.
func AddAll(ctx context.Context, db bun.IDB, cs *[]Customer) error {
	_, err := db.NewInsert().Model(cs).Exec(ctx)
	return err
}

// Put stores a customer, or renames the one with the same email. ID is set to
// the stored row's id in both cases.
func Put(ctx context.Context, db bun.IDB, c *Customer) error {
	_, err := db.NewInsert().Model(c).On("DUPLICATE KEY UPDATE").Set("name = VALUES(name)").Exec(ctx)
	return err
}

// AddNew stores a customer unless the email exists already, and reports whether it
// did.
func AddNew(ctx context.Context, db bun.IDB, c *Customer) (added bool, err error) {
	res, err := db.NewInsert().Model(c).Ignore().Exec(ctx)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}
