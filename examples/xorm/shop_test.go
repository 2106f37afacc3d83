package shop_test

import (
	"fmt"
	"testing"

	"xorm.io/xorm"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/examples/internal/shopdb"
	shop "github.com/leafsql/leafsql/examples/xorm"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
		db, err := shop.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		stored := func(cs ...shop.Customer) {
			t.Helper()
			for _, c := range cs {
				shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email, name FROM customers WHERE id = %d", c.ID), c.Email+" "+c.Name)
			}
		}

		ann := shop.Customer{Email: "ann@x", Name: "Ann"}
		if check(shop.Add(db, &ann)); ann.ID != shopdb.FirstCustomer {
			t.Errorf("id = %d, want %d", ann.ID, shopdb.FirstCustomer)
		}
		own := shop.Customer{ID: 7, Email: "own@x", Name: "Own"}
		check(shop.Add(db, &own))
		each := []shop.Customer{{Email: "a"}, {Email: "b"}}
		check(shop.AddEach(db, each))
		stored(append(each, ann, own)...)

		check(shop.AddAll(db, []shop.Customer{{Email: "c"}, {Email: "d"}, {Email: "e"}}))
		shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email, id - %d FROM customers WHERE email IN ('c', 'd', 'e') ORDER BY id", each[1].ID), "c 1", "d 2", "e 3")
		var ids []driver.GeneratedIDs
		ctx := driver.WithGeneratedIDs(t.Context(), &ids)
		check(shop.AddAll(db.Context(ctx), []shop.Customer{{Email: "f"}, {Email: "g"}}))
		if len(ids) != 1 || ids[0].N != 2 {
			t.Fatalf("ids = %v, want one event with 2 rows", ids)
		}
		stored(shop.Customer{ID: ids[0].First, Email: "f"}, shop.Customer{ID: ids[0].First + 1, Email: "g"})

		put := shop.Customer{Email: "ann@x", Name: "Anna"}
		if check(shop.Put(db, &put)); put.ID != ann.ID {
			t.Errorf("upsert of an existing row: id %d, want %d", put.ID, ann.ID)
		}
		fresh := shop.Customer{Email: "fresh@x", Name: "Fresh"}
		check(shop.Put(db, &fresh))
		stored(put, fresh)

		tx := shop.Customer{Email: "tx@x", Name: "Tx"}
		_, err = db.Transaction(func(s *xorm.Session) (any, error) {
			if err := shop.Add(s, &tx); err != nil {
				return nil, err
			}
			var id int64
			if _, err := s.SQL("SELECT LAST_INSERT_ID()").Get(&id); err != nil || id != tx.ID {
				t.Errorf("LAST_INSERT_ID() is %d, %v; want %d", id, err, tx.ID)
			}
			// Rows from maps, and several beans in one call.
			if _, err := s.Table("customers").Insert(map[string]any{"email": "map@x", "name": "Map"}); err != nil {
				return nil, err
			}
			if _, err := s.Table("customers").Insert([]map[string]any{{"email": "m1", "name": "M"}, {"email": "m2", "name": "M"}}); err != nil {
				return nil, err
			}
			return s.Insert(&shop.Customer{Email: "b1"}, &[]shop.Customer{{Email: "b2"}, {Email: "b3"}})
		})
		check(err)
		stored(tx)
		shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email FROM customers WHERE id > %d ORDER BY id", tx.ID), "map@x", "m1", "m2", "b1", "b2", "b3")
	})
}
