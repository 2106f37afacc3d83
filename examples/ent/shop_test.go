package shop_test

import (
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/examples/ent"
	"github.com/leafsql/leafsql/examples/ent/ent"
	"github.com/leafsql/leafsql/examples/internal/shopdb"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServersWith(t, shopdb.Alloc, func(t *testing.T, dsn string) {
		db, err := shop.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx := t.Context()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		stored := func(cs ...*ent.Customer) {
			t.Helper()
			for _, c := range cs {
				shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email, name FROM customers WHERE id = %d", c.ID), c.Email+" "+c.Name)
			}
		}
		check(db.Schema.Create(ctx))
		shopdb.WantRows(t, dsn, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND extra LIKE '%auto_increment%'", "0")

		ann, err := shop.Add(ctx, db, "ann@x", "Ann")
		check(err)
		if ann.ID != shopdb.FirstCustomer {
			t.Errorf("id = %d, want %d", ann.ID, shopdb.FirstCustomer)
		}
		batch, err := shop.AddAll(ctx, db, "bob@x", "cy@x", "di@x")
		check(err)
		stored(append(batch, ann)...)
		own, err := db.Customer.Create().SetID(7).SetEmail("own@x").SetName("Own").Save(ctx)
		check(err)
		owns, err := db.Customer.CreateBulk(
			db.Customer.Create().SetID(8).SetEmail("8").SetName("8"),
			db.Customer.Create().SetID(9).SetEmail("9").SetName("9")).Save(ctx)
		check(err)
		stored(append(owns, own)...)

		for range 2 { // updates the row, then leaves it unchanged
			id, err := shop.Put(ctx, db, "cy@x", "Cyrus")
			check(err)
			if id != batch[1].ID {
				t.Errorf("upsert of an existing row: id %d, want %d", id, batch[1].ID)
			}
		}
		id, err := shop.Put(ctx, db, "eve@x", "Eve")
		check(err)
		stored(&ent.Customer{ID: id, Email: "eve@x", Name: "Eve"}, &ent.Customer{ID: batch[1].ID, Email: "cy@x", Name: "Cyrus"})
		id, err = db.Customer.Create().SetEmail("eve@x").SetName("Other").OnConflict().Ignore().ID(ctx)
		check(err)
		stored(&ent.Customer{ID: id, Email: "eve@x", Name: "Eve"})
		check(db.Customer.CreateBulk(
			db.Customer.Create().SetEmail("eve@x").SetName("Eva"),
			db.Customer.Create().SetEmail("new@x").SetName("New")).OnConflict().UpdateNewValues().Exec(ctx))
		shopdb.WantRows(t, dsn, "SELECT name FROM customers WHERE email IN ('eve@x', 'new@x') AND id > 1000 ORDER BY id", "Eva", "New")

		tx, err := db.Tx(ctx)
		check(err)
		gone, err := shop.Add(ctx, tx.Client(), "gone@x", "Gone")
		check(err)
		check(tx.Rollback())
		last, err := shop.Add(ctx, db, "last@x", "Last")
		check(err)
		if last.ID <= gone.ID {
			t.Errorf("id = %d, want one above %d", last.ID, gone.ID)
		}
		stored(last)
	})
}
