package shop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/uptrace/bun"

	shop "github.com/leafsql/leafsql/examples/bun"
	"github.com/leafsql/leafsql/examples/internal/shopdb"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
		db, err := shop.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx := t.Context()
		stored := func(cs ...shop.Customer) {
			t.Helper()
			for _, c := range cs {
				shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email, name FROM customers WHERE id = %d", c.ID), c.Email+" "+c.Name)
			}
		}

		ann := shop.Customer{Email: "ann@x", Name: "Ann's ?"}
		if err := shop.Add(ctx, db, &ann); err != nil || ann.ID != shopdb.FirstCustomer {
			t.Fatalf("Add() = %v with %+v, want nil and the id %d", err, ann, shopdb.FirstCustomer)
		}
		batch := []shop.Customer{{Email: "bob@x", Name: `B\'ob`}, {Email: "cy@x"}, {Email: "di@x"}}
		if err := shop.AddAll(ctx, db, &batch); err != nil {
			t.Fatal(err)
		}
		stored(append(batch, ann)...)

		own := []shop.Customer{{ID: 7, Email: "own7"}, {ID: 8, Email: "own8"}}
		if err := shop.AddAll(ctx, db, &own); err != nil || own[0].ID != 7 || own[1].ID != 8 {
			t.Errorf("AddAll() = %v with %+v, want nil and the keys 7 and 8", err, own)
		}
		stored(own...)
		// Without RETURNING bun counts up from LastInsertId over all rows,
		// including those with a key: the stored rows are right, but the IDs
		// that bun sets are not.
		mixed := []shop.Customer{{Email: "m1"}, {ID: 9, Email: "m2"}, {Email: "m3"}}
		if err := shop.AddAll(ctx, db, &mixed); err != nil {
			t.Fatal(err)
		}
		shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email, id - %d FROM customers WHERE email IN ('m1', 'm2', 'm3') ORDER BY email", mixed[0].ID),
			"m1 0", fmt.Sprintf("m2 %d", 9-mixed[0].ID), "m3 1")

		cy := shop.Customer{Email: "cy@x", Name: "Cyrus"}
		if err := shop.Put(ctx, db, &cy); err != nil || cy.ID != batch[1].ID {
			t.Errorf("upsert of an existing row: %+v, %v; want id %d", cy, err, batch[1].ID)
		}
		eve := shop.Customer{Email: "eve@x", Name: "Eve"}
		if err := shop.Put(ctx, db, &eve); err != nil {
			t.Fatal(err)
		}
		stored(cy, eve)

		taken := shop.Customer{Email: "eve@x", Name: "Other"}
		if added, err := shop.AddNew(ctx, db, &taken); err != nil || added || taken.ID != 0 {
			t.Errorf("AddNew() of an existing email = %t, %v with %+v, want false, nil and no id", added, err, taken)
		}
		free := shop.Customer{Email: "free@x", Name: "Free"}
		if added, err := shop.AddNew(ctx, db, &free); err != nil || !added {
			t.Errorf("AddNew() of a new email = %t, %v, want true, nil", added, err)
		}
		stored(eve, free)

		err = db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			row := map[string]any{"email": "map@x", "name": "Map"}
			if _, err := tx.NewInsert().Model(&row).Table("customers").Exec(ctx); err != nil {
				return err
			}
			// Values computed by the database, and raw SQL with arguments.
			if _, err := tx.NewRaw("INSERT INTO customers (email, name) VALUES (?, UPPER(?))", "raw@x", "raw").Exec(ctx); err != nil {
				return err
			}
			_, err := tx.NewInsert().Model(&shop.Customer{Email: "r@x", Name: "x"}).Value("name", "CONCAT(?, '!')", "R").Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		shopdb.WantRows(t, dsn, "SELECT name FROM customers WHERE email IN ('map@x', 'raw@x', 'r@x') AND id > 1000 ORDER BY id", "Map", "RAW", "R!")
	})
}
