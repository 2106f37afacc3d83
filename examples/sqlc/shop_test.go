package shop_test

import (
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/examples/internal/shopdb"
	shop "github.com/leafsql/leafsql/examples/sqlc"
	"github.com/leafsql/leafsql/examples/sqlc/shopsql"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
		db, err := shop.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		prepared, err := shopsql.Prepare(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		defer prepared.Close()
		for i, q := range []*shopsql.Queries{shopsql.New(db), prepared} {
			run(t, q, i)
		}
		cs := []shopsql.Customer{{Email: "x"}, {ID: 7, Email: "y"}, {Email: "z"}}
		if err := shop.Import(t.Context(), db, cs); err != nil {
			t.Fatal(err)
		}
		for _, c := range cs {
			shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email FROM customers WHERE id = %d", c.ID), c.Email)
		}
	})
}

func run(t *testing.T, q *shopsql.Queries, round int) {
	ctx := t.Context()
	at := func(name string) string { return fmt.Sprintf("%s@%d", name, round) }
	must := func(id int64, err error) int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	want := func(id int64, email, name string) {
		t.Helper()
		if c, err := q.Customer(ctx, id); err != nil || c.Email != email || c.Name != name {
			t.Errorf("customer %d: %+v, %v; want %s %s", id, c, err, email, name)
		}
	}
	ann := must(q.AddCustomer(ctx, shopsql.AddCustomerParams{Email: at("ann"), Name: "Ann"}))
	if ann < shopdb.FirstCustomer {
		t.Errorf("id = %d, want at least %d", ann, shopdb.FirstCustomer)
	}
	want(ann, at("ann"), "Ann")
	first := must(q.AddTwoCustomers(ctx, shopsql.AddTwoCustomersParams{Email1: at("bob"), Name1: "Bob", Email2: at("cy"), Name2: "Cy"}))
	want(first, at("bob"), "Bob")
	want(first+1, at("cy"), "Cy")
	for range 2 { // updates the row, then leaves it unchanged
		if id := must(q.PutCustomer(ctx, shopsql.PutCustomerParams{Email: at("cy"), Name: "Cyrus"})); id != first+1 {
			t.Errorf("upsert of an existing row: id %d, want %d", id, first+1)
		}
	}
	want(first+1, at("cy"), "Cyrus")
	want(must(q.PutCustomer(ctx, shopsql.PutCustomerParams{Email: at("eve"), Name: "Eve"})), at("eve"), "Eve")
}
