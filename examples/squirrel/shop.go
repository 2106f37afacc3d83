// Package shop uses mysql-leaf through Squirrel: it builds the SQL, and
// database/sql runs it.
package shop

import (
	"context"
	"database/sql"

	sq "github.com/Masterminds/squirrel"

	"github.com/leafsql/leafsql/driver"
)

// Open opens the shop. Squirrel's default placeholder is MySQL's.
func Open(dsn string) (*sql.DB, error) {
	return sql.Open(driver.Name, dsn)
}

// Add stores a customer and returns its id.
func Add(ctx context.Context, db sq.BaseRunner, email, name string) (id int64, err error) {
	return lastID(sq.Insert("customers").Columns("email", "name").Values(email, name).RunWith(db).ExecContext(ctx))
}

// AddMap is like Add, for a row whose columns are known only at run time.
func AddMap(ctx context.Context, db sq.BaseRunner, row map[string]any) (id int64, err error) {
	return lastID(sq.Insert("customers").SetMap(row).RunWith(db).ExecContext(ctx))
}

// AddAll stores customers, by email, with one statement and returns the first
// id; the others follow it.
func AddAll(ctx context.Context, db sq.BaseRunner, emails ...string) (first int64, err error) {
	insert := sq.Insert("customers").Columns("email", "name")
	for _, email := range emails {
		insert = insert.Values(email, sq.Expr("UPPER(?)", email))
	}
	return lastID(insert.RunWith(db).ExecContext(ctx))
}

// Put stores a customer, or renames the one with the same email, and returns
// the id of the row.
func Put(ctx context.Context, db sq.BaseRunner, email, name string) (id int64, err error) {
	return lastID(sq.Insert("customers").Columns("email", "name").Values(email, name).
		Suffix("ON DUPLICATE KEY UPDATE name = ?", name).RunWith(db).ExecContext(ctx))
}

func lastID(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}
