package read

import (
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

func TestTargetsListsWrittenTables(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{"INSERT INTO orders (a) VALUES (1)", "[shop.orders]"},
		{"BEGIN INSERT IGNORE `b`.`orders` SELECT * FROM items; REPLACE LOW_PRIORITY log SET a = 1; END", "[b.orders shop.log]"},
		{"BEGIN IF NEW.a > 1 THEN INSERT INTO orders VALUES (NULL); END IF; END", "[shop.orders]"},
		{"UPDATE orders SET a = REPLACE(a, 'x', 'y'), b = INSERT(b, 1, 1, 'x')", "[]"},
		{"CREATE OR REPLACE TABLE orders (a INT)", "[]"},
		{"LOAD DATA INFILE 'x' IGNORE INTO TABLE orders", "[shop.orders]"},
		{"SELECT 'INSERT INTO orders VALUES (1)'", "[]"},
		{"BEGIN PREPARE s FROM 'INSERT INTO orders VALUES (1)'; EXECUTE s; END", "[shop.orders]"},
		{"EXECUTE IMMEDIATE CONCAT('INSERT INTO orders', ' VALUES (1)')", "[shop.orders]"},
		{"SELECT t.insert FROM t -- INSERT INTO orders", "[]"},
		{"INSERT", "[]"},
		{"BEGIN INSERT INTO log VALUES ('INSERT INTO orders VALUES (1)'); EXECUTE IMMEDIATE @x; END", "[shop.log shop.orders]"},
		{"INSERT INTO orders VALUES ('it''s", "[shop.orders]"},
	} {
		if got := fmt.Sprint(FindTargets(tt.body, "shop", insert.Settings{})); got != tt.want {
			t.Errorf("FindTargets(%s) = %s, want %s", tt.body, got, tt.want)
		}
	}
	if got := fmt.Sprint(FindTargets(`INSERT INTO "orders" VALUES (1)`, "", insert.Settings{ANSIQuotes: true})); got != "[.orders]" {
		t.Errorf("FindTargets() under ANSI_QUOTES = %s, want [.orders]", got)
	}
}
