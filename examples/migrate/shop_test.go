package shop_test

import (
	"testing"

	"github.com/leafsql/leafsql/examples/internal/shopdb"
	shop "github.com/leafsql/leafsql/examples/migrate"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServersWith(t, nil, func(t *testing.T, dsn string) {
		for range 2 { // the second time there is nothing to migrate
			db, err := shop.Open(dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
		}
		shopdb.WantRows(t, dsn, "SELECT id, email FROM customers ORDER BY id", "1001 ann@x", "1002 bob@x", "1003 cy@x")
		shopdb.WantRows(t, dsn, "SELECT version, dirty FROM schema_migrations", "2 0")

		db, err := shop.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		res, err := db.Exec("INSERT INTO customers VALUES ('fr', NULL, 'di@x', 'Di')")
		if err != nil {
			t.Fatal(err)
		}
		id, err := res.LastInsertId()
		if err != nil || id <= 1003 {
			t.Errorf("id = %d, %v, want one above 1003", id, err)
		}
		shopdb.WantRows(t, dsn, "SELECT country, email FROM customers WHERE id > 1003", "fr di@x")
		if err := shop.Down(dsn); err != nil {
			t.Fatal(err)
		}
		shopdb.WantRows(t, dsn, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()", "schema_migrations")
	})
}
