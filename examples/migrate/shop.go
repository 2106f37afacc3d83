// Package shop runs golang-migrate beside mysql-leaf: the migrations bring the
// tables and leaf_alloc, and may insert rows, which get their keys like any
// others.
package shop

import (
	"database/sql"
	"embed"
	"errors"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/mysql"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/leafsql/leafsql/driver"
)

//go:embed migrations
var migrations embed.FS

// Open opens the shop after migrating it up. dsn is the application's own,
// with leafTables.
//
// The pool of the migrations names its tables in leafTables as well: under
// leafTables=auto the first migration, which creates leaf_alloc, could not
// connect. A migration is one text of several statements, so the pool needs
// multiStatements.
func Open(dsn string) (*sql.DB, error) {
	pool, err := sql.Open(driver.Name, dsn+"&multiStatements=true")
	if err != nil {
		return nil, err
	}
	m, err := migrator(pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	defer m.Close() // and with it the pool
	if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return nil, err
	}
	return sql.Open(driver.Name, dsn)
}

// Down takes everything back.
func Down(dsn string) error {
	pool, err := sql.Open(driver.Name, dsn+"&multiStatements=true")
	if err != nil {
		return err
	}
	m, err := migrator(pool)
	if err != nil {
		pool.Close()
		return err
	}
	defer m.Close()
	return m.Down()
}

func migrator(pool *sql.DB) (*migrate.Migrate, error) {
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	target, err := mysql.WithInstance(pool, &mysql.Config{})
	if err != nil {
		return nil, err
	}
	return migrate.NewWithInstance("migrations", source, "mysql", target)
}
