package insert

import (
	"fmt"
	"testing"
)

func TestTargets(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{"INSERT INTO orders (a) VALUES (1)", "[{shop orders}]"},
		{"BEGIN INSERT IGNORE `b`.`orders` SELECT * FROM items; REPLACE LOW_PRIORITY log SET a = 1; END", "[{b orders} {shop log}]"},
		{"BEGIN IF NEW.a > 1 THEN INSERT INTO orders VALUES (NULL); END IF; END", "[{shop orders}]"},
		{"UPDATE orders SET a = REPLACE(a, 'x', 'y'), b = INSERT(b, 1, 1, 'x')", "[]"},
		{"CREATE OR REPLACE TABLE orders (a INT)", "[]"},
		{"LOAD DATA INFILE 'x' IGNORE INTO TABLE orders", "[{shop orders}]"},
		{"SELECT 'INSERT INTO orders VALUES (1)'", "[]"},
		{"BEGIN PREPARE s FROM 'INSERT INTO orders VALUES (1)'; EXECUTE s; END", "[{shop orders}]"},
		{"EXECUTE IMMEDIATE CONCAT('INSERT INTO orders', ' VALUES (1)')", "[{shop orders}]"},
		{"SELECT t.insert FROM t -- INSERT INTO orders", "[]"},
		{"INSERT", "[]"},
		{"INSERT INTO orders VALUES ('it''s", "[{shop orders}]"},
	} {
		if got := fmt.Sprint(Program{Text: tt.body, DB: "shop"}.Targets()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, got, tt.want)
		}
	}
	if got := fmt.Sprint(Program{Text: `INSERT INTO "orders" VALUES (1)`, Settings: Settings{ANSIQuotes: true}}.Targets()); got != "[{ orders}]" {
		t.Errorf("under ANSI_QUOTES: %s", got)
	}
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(Program{Text: "select `shop`.`orders`.`id` AS `id` from `shop`.`orders`"}.Names())
	if got != "[{shop orders} {shop orders}]" {
		t.Error(got)
	}
}

func TestAssigns(t *testing.T) {
	for body, want := range map[string]bool{
		"SET NEW.id = 5": true,
		"BEGIN SET @a = 1, NEW.`ID` = (SELECT 1); END":              true,
		"BEGIN IF NEW.id = 0 THEN SET NEW.a = NEW.id; END IF; END":  false,
		"SET NEW.a = 5, @x = NEW.id":                                false,
		"BEGIN IF 1 THEN SET new . id := UUID_SHORT(); END IF; END": true,
		"UPDATE t SET a = NEW.id":                                   false,
	} {
		if got := (Program{Text: body}).Assigns("id"); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}
