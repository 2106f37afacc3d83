package shop_test

import (
	"slices"
	"testing"

	"github.com/leafsql/leafsql/examples/internal/shopdb"
	shop "github.com/leafsql/leafsql/examples/sqlx"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		db, err := shop.Open(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()

		ann := shop.Customer{Email: "ann@x", Name: "Ann"}
		if err := shop.Add(ctx, db, &ann); err != nil || ann.ID != shopdb.FirstCustomer {
			t.Fatalf("Add() = %v with %+v, want nil and the id %d", err, ann, shopdb.FirstCustomer)
		}
		batch := []shop.Customer{{Email: "bob@x", Name: "Bob"}, {Email: "cy@x", Name: "Cy"}, {Email: "di@x", Name: "Di"}}
		if err := shop.AddAll(ctx, db, batch); err != nil {
			t.Fatal(err)
		}
		cy := shop.Customer{Email: "cy@x", Name: "Cyrus"}
		if err := shop.Put(ctx, db, &cy); err != nil || cy.ID != batch[1].ID {
			t.Errorf("upsert of an existing row: %+v, %v; want id %d", cy, err, batch[1].ID)
		}
		eve := shop.Customer{Email: "eve@x", Name: "Eve"}
		if err := shop.Put(ctx, db, &eve); err != nil {
			t.Fatal(err)
		}
		want := []shop.Customer{ann, batch[0], cy, batch[2], eve}
		got, err := shop.Find(ctx, db, ann.ID, batch[0].ID, batch[1].ID, batch[2].ID, eve.ID)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
		}

		// The other ways in which sqlx executes: statements, transactions, rows
		// with keys, MustExec.
		st, err := db.PrepareNamedContext(ctx, "INSERT INTO customers (id, email, name) VALUES (:id, :email, :name)")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		st.MustExecContext(ctx, shop.Customer{ID: 5, Email: "f@x", Name: "F"})
		id, err := st.MustExecContext(ctx, map[string]any{"id": nil, "email": "g@x", "name": "G"}).LastInsertId()
		if err != nil {
			t.Fatal(err)
		}
		tx := db.MustBeginTx(ctx, nil)
		defer tx.Rollback()
		next, err := tx.MustExecContext(ctx, tx.Rebind("INSERT INTO customers (email, name) VALUES (?, ?)"), "h@x", "H").LastInsertId()
		if err != nil || next != id+1 {
			t.Errorf("id = %d, %v, want %d", next, err, id+1)
		}
		var sqlID int64
		if err := tx.GetContext(ctx, &sqlID, "SELECT LAST_INSERT_ID()"); err != nil || sqlID != next {
			t.Errorf("LAST_INSERT_ID() is %d, %v; want %d", sqlID, err, next)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		got, err = shop.Find(ctx, db, 5, id, next)
		if want := []shop.Customer{{5, "f@x", "F"}, {id, "g@x", "G"}, {next, "h@x", "H"}}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
		}
	})
}
