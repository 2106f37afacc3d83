package shop_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"

	shop "github.com/leafsql/leafsql/examples/database-sql"
	"github.com/leafsql/leafsql/examples/internal/shopdb"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
		for _, params := range []string{"", "&interpolateParams=true", "&clientFoundRows=true&multiStatements=true"} {
			t.Run(params, func(t *testing.T) { run(t, dsn, params) })
		}
	})
}

func run(t *testing.T, dsn, params string) {
	shopdb.Exec(t, dsn, "DELETE FROM orders", "DELETE FROM customers")
	db, err := shop.Open(dsn + params)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()

	ann := shop.Customer{Email: "ann@x", Name: "Ann"}
	if err := shop.Add(ctx, db, &ann); err != nil {
		t.Fatal(err)
	}
	first := ann.ID // later runs continue in the same range
	if first < shopdb.FirstCustomer {
		t.Fatalf("id = %d, want at least %d", first, shopdb.FirstCustomer)
	}
	shopdb.WantRows(t, dsn, "SELECT id = "+str(first)+", email FROM customers", "1 ann@x")

	batch := []shop.Customer{{Email: "bob@x", Name: "Bob"}, {Email: "cy@x", Name: "Cy"}, {Email: "di@x", Name: "Di"}}
	if err := shop.AddAll(ctx, db, batch); err != nil {
		t.Fatal(err)
	}
	for i, c := range batch {
		if c.ID != first+1+int64(i) {
			t.Errorf("id of row %d of the batch = %d, want %d", i, c.ID, first+1+int64(i))
		}
		shopdb.WantRows(t, dsn, "SELECT email FROM customers WHERE id = "+str(c.ID), c.Email)
	}

	again := shop.Customer{Email: "cy@x", Name: "Cyrus"}
	for range 2 { // updates the row, then leaves it unchanged
		if err := shop.Put(ctx, db, &again); err != nil || again.ID != batch[1].ID {
			t.Errorf("upsert of an existing row: id %d, %v; want %d", again.ID, err, batch[1].ID)
		}
	}
	eve := shop.Customer{Email: "eve@x", Name: "Eve"}
	if err := shop.Put(ctx, db, &eve); err != nil {
		t.Fatal(err)
	}
	shopdb.WantRows(t, dsn, "SELECT name FROM customers WHERE id IN ("+str(again.ID)+", "+str(eve.ID)+") ORDER BY id", "Cyrus", "Eve")

	own := []shop.Customer{{Email: "f@x"}, {ID: 7, Email: "g@x"}, {Email: "h@x"}}
	if err := shop.Import(ctx, db, own); err != nil {
		t.Fatal(err)
	}
	if own[1].ID != 7 || own[2].ID != own[0].ID+1 {
		t.Errorf("imported rows = %+v, want the key 7 kept, and consecutive ids around it", own)
	}
	for _, c := range own {
		shopdb.WantRows(t, dsn, "SELECT email FROM customers WHERE id = "+str(c.ID), c.Email)
	}

	ivy := shop.Customer{Email: "ivy@x", Name: "Ivy"}
	orders, err := shop.AddWithOrders(ctx, db, &ivy, 10, 20, 30)
	if err != nil || len(orders) != 3 {
		t.Fatalf("AddWithOrders() = %v, %v, want 3 orders", orders, err)
	}
	shopdb.WantRows(t, dsn, "SELECT id, total, customer_id = "+str(ivy.ID)+" FROM orders ORDER BY total",
		str(orders[0].First)+" 10 1", str(orders[1].First)+" 20 1", str(orders[2].First)+" 30 1")

	var dup *mysql.MySQLError
	if err := shop.Add(ctx, db, &shop.Customer{Email: "ann@x"}); !errors.As(err, &dup) || dup.Number != 1062 {
		t.Errorf("duplicate email: %v, want the server's own error", err)
	}
}

func str(id int64) string { return strconv.FormatInt(id, 10) }
