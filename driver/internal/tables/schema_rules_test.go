package tables

import (
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/rules"
)

func TestMoreSpecificRulesWin(t *testing.T) {
	set := New(rules.Config{Rules: []rules.Rule{{Table: "*", Column: "a"}, {Table: "order_*", Column: "b"}, {Table: "order_2024_*", Column: "c"},
		{Table: "order_2024_01", Column: "d"}, {Database: "shop", Table: "order_2024_01", Column: "e"}}}, nil, nil, nil)
	set.DefaultDB = "shop"
	for _, tt := range []struct{ db, table, want string }{
		{"shop", "x", "a"}, {"shop", "order_1", "b"}, {"shop", "order_2024_02", "c"},
		{"shop", "order_2024_01", "e"}, {"other", "order_1", ""},
	} {
		r, ok := set.Schema.Load().findRule(catalog.Name{DB: tt.db, Table: tt.table})
		if r.Column != tt.want || ok != (tt.want != "") {
			t.Errorf("%s.%s: rule %+v, %v; want column %q", tt.db, tt.table, r, ok, tt.want)
		}
	}
}

func TestExclusionsWin(t *testing.T) {
	set := New(rules.Config{Rules: []rules.Rule{{Table: "*"}, {Table: "order_map", Column: "id"}, {Table: "order_*", Exclude: true},
		{Database: "shop", Table: "log", Exclude: true}}}, nil, nil, nil)
	set.DefaultDB = "shop"
	for table, want := range map[string]bool{"orders": true, "order_1": false, "order_map": false, "log": false, "logs": true} {
		if _, ok := set.Schema.Load().findRule(catalog.Name{DB: "shop", Table: table}); ok != want {
			t.Errorf("findRule(%s) = %v, want %v", table, ok, want)
		}
	}
}
