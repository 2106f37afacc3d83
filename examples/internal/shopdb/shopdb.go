// Package shopdb creates a small shop on real servers for the examples' tests:
// two tables without AUTO_INCREMENT, and their rows in leaf_alloc.
package shopdb

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// The first ids that leaf_alloc issues in a new shop.
const (
	FirstCustomer = 1001
	FirstOrder    = 5001
)

// Schema creates the shop's tables without AUTO_INCREMENT, so an INSERT fails if
// its key is not filled.
var Schema = []string{
	`CREATE TABLE customers (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(100) NOT NULL UNIQUE, name VARCHAR(100) NOT NULL, deleted_at DATETIME(3) NULL)`,
	`CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, customer_id BIGINT NOT NULL, total BIGINT NOT NULL, FOREIGN KEY (customer_id) REFERENCES customers (id))`,
}

// Alloc creates Leaf's own table with a row for each of the shop's tables.
var Alloc = []string{
	`CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)`,
	fmt.Sprintf(`INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('customers', %d, 100), ('orders', %d, 100)`, FirstCustomer, FirstOrder),
}

// Params are the parameters that an application adds to its DSN.
const Params = "leafTables=customers,orders"

// RunOnServers runs fn with the DSN of a new shop, on MariaDB and on MySQL.
func RunOnServers(t *testing.T, fn func(t *testing.T, dsn string)) {
	RunOnServersWith(t, append(append([]string(nil), Schema...), Alloc...), fn)
}

// RunOnServersWith is like RunOnServers, with setup instead of Schema and Alloc.
func RunOnServersWith(t *testing.T, setup []string, fn func(t *testing.T, dsn string)) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			dsn := target.Database(t) + "?parseTime=true"
			Exec(t, dsn, setup...)
			fn(t, dsn+"&"+Params)
		})
	}
}

// Exec runs statements without leafsql.
func Exec(t *testing.T, dsn string, stmts ...string) {
	t.Helper()
	db := openPlain(t, dsn)
	defer db.Close()
	for _, stmt := range stmts {
		if _, err := db.Exec(stmt); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
}

// WantRows fails the test unless a query returns these rows, each with its columns
// joined by spaces.
func WantRows(t *testing.T, dsn, query string, want ...string) {
	t.Helper()
	db := openPlain(t, dsn)
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		fields := make([]sql.NullString, len(names))
		dest := make([]any, len(names))
		for i := range fields {
			dest[i] = &fields[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		words := make([]string, len(names))
		for i, f := range fields {
			if words[i] = f.String; !f.Valid {
				words[i] = "NULL"
			}
		}
		got = append(got, strings.Join(words, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("%s\ngot\n%s\nwant\n%s", query, g, w)
	}
}

// openPlain opens the same database without leafsql.
func openPlain(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	name, _, _ := strings.Cut(dsn, "?")
	db, err := sql.Open("mysql", name)
	if err != nil {
		t.Fatal(err)
	}
	return db
}
