package shop_test

import (
	"fmt"
	"testing"

	sq "github.com/Masterminds/squirrel"

	"github.com/leafsql/leafsql/examples/internal/shopdb"
	shop "github.com/leafsql/leafsql/examples/squirrel"
)

func TestShop(t *testing.T) {
	shopdb.RunOnServers(t, func(t *testing.T, dsn string) {
		pool, err := shop.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		cached := sq.NewStmtCache(pool)
		defer cached.Clear()
		ctx := t.Context()
		must := func(id int64, err error) int64 {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		for i, db := range []sq.BaseRunner{pool, cached} {
			at := func(name string) string { return fmt.Sprintf("%s@%d", name, i) }
			want := func(id int64, email, name string) {
				t.Helper()
				shopdb.WantRows(t, dsn, fmt.Sprintf("SELECT email, name FROM customers WHERE id = %d", id), email+" "+name)
			}
			ann := must(shop.Add(ctx, db, at("ann"), "Ann"))
			if ann < shopdb.FirstCustomer {
				t.Errorf("id = %d, want at least %d", ann, shopdb.FirstCustomer)
			}
			want(ann, at("ann"), "Ann")
			want(must(shop.AddMap(ctx, db, map[string]any{"email": at("map"), "name": "Map"})), at("map"), "Map")
			want(must(shop.AddMap(ctx, db, map[string]any{"id": nil, "email": at("null"), "name": "Null"})), at("null"), "Null")
			must(shop.AddMap(ctx, db, map[string]any{"id": 7 + i, "email": at("own"), "name": "Own"}))
			want(int64(7+i), at("own"), "Own")

			first := must(shop.AddAll(ctx, db, at("b"), at("c"), at("d")))
			for j, name := range []string{"b", "c", "d"} {
				want(first+int64(j), at(name), fmt.Sprintf("%c@%d", name[0]-'a'+'A', i))
			}
			for range 2 { // updates the row, then leaves it unchanged
				if id := must(shop.Put(ctx, db, at("ann"), "Anna")); id != ann {
					t.Errorf("upsert of an existing row: id %d, want %d", id, ann)
				}
			}
			want(must(shop.Put(ctx, db, at("eve"), "Eve")), at("eve"), "Eve")
		}
	})
}
