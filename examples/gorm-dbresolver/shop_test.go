package shop_test

import (
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/leafsql/leafsql/examples/gorm-dbresolver"
	"github.com/leafsql/leafsql/examples/internal/shopdb"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// runWithReplica calls fn with a separate database as replica that gets no row: a replica with
// an infinite delay.
func runWithReplica(t *testing.T, fn func(t *testing.T, primary string, db *gorm.DB)) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			primary, replica := server.Database(t)+"?"+shopdb.Params, server.Database(t)
			shopdb.Exec(t, primary, shopdb.Schema...)
			shopdb.Exec(t, primary, shopdb.Alloc...)
			shopdb.Exec(t, replica, shopdb.Schema...)
			db, err := shop.Open(primary, replica)
			if err != nil {
				t.Fatal(err)
			}
			pool, err := db.DB()
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			fn(t, primary, db)
		})
	}
}

func TestWritesGoToThePrimary(t *testing.T) {
	runWithReplica(t, func(t *testing.T, primary string, db *gorm.DB) {
		all := []shop.Customer{{Email: "ann@x", Name: "Ann"}, {Email: "bob@x", Name: "Bob"}}
		if err := db.Create(&all).Error; err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.ID < shopdb.FirstCustomer {
				t.Errorf("id = %d, want at least %d", c.ID, shopdb.FirstCustomer)
			}
			shopdb.WantRows(t, primary, fmt.Sprintf("SELECT email FROM customers WHERE id = %d", c.ID), c.Email)
		}
		if err := shop.Rename(db, "ann@x", "Anna"); err != nil {
			t.Error(err)
		}
		if c, err := shop.FindNow(db, "ann@x"); err != nil || c.ID != all[0].ID || c.Name != "Anna" {
			t.Errorf("FindNow() = %+v, %v, want Anna with the id %d", c, err, all[0].ID)
		}
		if c, err := shop.Find(db, "ann@x"); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("Find() on the replica = %+v, %v, want gorm.ErrRecordNotFound", c, err)
		}
		if err := db.Exec("INSERT INTO customers (email, name) SELECT 'copy', name FROM customers WHERE id = ?", all[0].ID).Error; err != nil {
			t.Error(err)
		}
		shopdb.WantRows(t, primary, "SELECT name FROM customers WHERE email = 'copy'", "Anna")
	})
}

// TestTextsThatGoToTheReplica: dbresolver decides by the beginning and the end of a
// text.
func TestTextsThatGoToTheReplica(t *testing.T) {
	runWithReplica(t, func(t *testing.T, _ string, db *gorm.DB) {
		if err := db.Create(&shop.Customer{Email: "ann@x"}).Error; err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]int{
			"SELECT COUNT(*) FROM customers":                        0,
			"SELECT COUNT(*) FROM customers FOR UPDATE":             1,
			"SELECT COUNT(*) FROM customers FOR UPDATE SKIP LOCKED": 0,
			"SELECT LAST_INSERT_ID()":                               0,
		} {
			var n int
			if err := db.Raw(text).Scan(&n).Error; err != nil || n != want {
				t.Errorf("%s = %d, %v, want %d", text, n, err, want)
			}
		}
	})
}
