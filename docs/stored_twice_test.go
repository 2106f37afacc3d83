package docs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestIDsStoredTwiceAreFound: the page's command and its SQL find an id that two shards have.
func TestIDsStoredTwiceAreFound(t *testing.T) {
	kinds := mysqltest.Kinds()
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			all := serversOf(t, kind)
			hosts := map[string]*mysqltest.Server{"shop0": all["db0"], "shop1": all["db1"]}
			create := "DROP DATABASE IF EXISTS shop;\nDROP DATABASE IF EXISTS shop_1;\nCREATE DATABASE shop_1;\n" + fmt.Sprintf(orders, "") + "CREATE TABLE shop_1.orders LIKE shop.orders;\n"
			runSQL(t, hosts, "-- on shop0 and shop1\n"+create)
			runSQL(t, hosts, "-- on shop0\nINSERT INTO shop.orders VALUES (1, 'a', 1), (4711, 'a', 1), (10, 'a', 1);\nINSERT INTO shop_1.orders VALUES (2, 'a', 1), (4711, 'b', 1);\n")
			runSQL(t, hosts, "-- on shop1\nINSERT INTO shop.orders VALUES (3, 'c', 1), (4711, 'c', 1);\n")
			dir := t.TempDir()
			writeClients(t, dir, hosts)
			var found []string
			for _, b := range readPage(t, haPage).blocks {
				if b.sub != "Ids stored twice" {
					continue
				}
				if b.lang == "sh" {
					s := shell{exports: "export PATH=" + dir + ":$PATH\n"}
					found = append(found, s.run(t, b.code))
					continue
				}
				db := open(t, hosts["shop0"])
				defer db.Close()
				var id, times int64
				if err := db.QueryRow(b.code).Scan(&id, &times); err != nil {
					t.Fatal(err)
				}
				found = append(found, fmt.Sprintln(id, times))
			}
			if want := []string{"4711\n", "4711 2\n"}; !slices.Equal(found, want) {
				t.Errorf("the page finds %q, want %q", found, want)
			}
		})
	}
}
