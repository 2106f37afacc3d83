// Package shop uses mysql-leaf through ent: one row, a batch, upserts. Its
// subpackage ent is generated from ent/schema.
package shop

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/examples/ent/ent"
)

//go:generate go run entgo.io/ent/cmd/ent@v0.14.5 generate --feature sql/upsert ./ent/schema

// Open opens the shop. ent accepts any driver whose name begins with "mysql"
// for MySQL. The caller closes it.
func Open(dsn string) (*ent.Client, error) {
	drv, err := entsql.Open(driver.Name, dsn)
	if err != nil {
		return nil, err
	}
	return ent.NewClient(ent.Driver(drv)), nil
}

// Add stores a customer and returns it with its ID.
func Add(ctx context.Context, db *ent.Client, email, name string) (*ent.Customer, error) {
	return db.Customer.Create().SetEmail(email).SetName(name).Save(ctx)
}

// AddAll stores customers, by email, with one statement.
func AddAll(ctx context.Context, db *ent.Client, emails ...string) ([]*ent.Customer, error) {
	return db.Customer.MapCreateBulk(emails, func(c *ent.CustomerCreate, i int) {
		c.SetEmail(emails[i]).SetName(emails[i])
	}).Save(ctx)
}

// Put stores a customer, or renames the one with the same email. It returns the
// stored row's id in both cases.
func Put(ctx context.Context, db *ent.Client, email, name string) (id int64, err error) {
	return db.Customer.Create().SetEmail(email).SetName(name).OnConflict().UpdateNewValues().ID(ctx)
}
