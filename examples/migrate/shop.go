// Package shop runs golang-migrate with mysql-leaf: the migrations create the
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

// Open migrates the shop up and opens it. dsn is the application's DSN, with
// leafTables.
//
// The pool of the migrations also names its tables in leafTables: with
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
	defer m.Close() // also closes the pool
	if err := m.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return nil, err
	}
	return sql.Open(driver.Name, dsn)
}

// Down reverts all migrations.
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
