package tables

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
)

func TestMoreSpecificRulesWin(t *testing.T) {
	set := New(Config{Rules: []Rule{{Table: "*", Column: "a"}, {Table: "order_*", Column: "b"}, {Table: "order_2024_*", Column: "c"},
		{Table: "order_2024_01", Column: "d"}, {Database: "shop", Table: "order_2024_01", Column: "e"}}}, nil, nil, nil)
	set.DefaultDB = "shop"
	for _, tt := range []struct{ db, table, want string }{
		{"shop", "x", "a"}, {"shop", "order_1", "b"}, {"shop", "order_2024_02", "c"},
		{"shop", "order_2024_01", "e"}, {"other", "order_1", ""},
	} {
		r, ok := set.Schema.Load().rule(catalog.Name{DB: tt.db, Table: tt.table})
		if r.Column != tt.want || ok != (tt.want != "") {
			t.Errorf("%s.%s: rule %+v, %v; want column %q", tt.db, tt.table, r, ok, tt.want)
		}
	}
}

func TestExclusionsWin(t *testing.T) {
	set := New(Config{Rules: []Rule{{Table: "*"}, {Table: "order_map", Column: "id"}, {Table: "order_*", Exclude: true},
		{Database: "shop", Table: "log", Exclude: true}}}, nil, nil, nil)
	set.DefaultDB = "shop"
	for table, want := range map[string]bool{"orders": true, "order_1": false, "order_map": false, "log": false, "logs": true} {
		if _, ok := set.Schema.Load().rule(catalog.Name{DB: "shop", Table: table}); ok != want {
			t.Errorf("%s: %v", table, ok)
		}
	}
}

func TestDefaultTag(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want string
	}{
		{Rule{Table: "orders"}, "orders"}, {Rule{Database: "shop", Table: "orders"}, "orders"}, {Rule{Table: "order_*"}, "order_*"},
		{Rule{Table: "orders", Tag: "x"}, "x"}, {Rule{Table: "*"}, "some"}, {Rule{Table: "*", Tag: "all"}, "all"},
		{Rule{Database: "s*", Table: "*"}, "some"},
	} {
		if tag := tt.rule.tag("some"); tag != tt.want {
			t.Errorf("%s: tag %q, want %q", tt.rule, tag, tt.want)
		}
	}
}

func FuzzWildcard(f *testing.F) {
	for _, s := range [][2]string{{"*", ""}, {"a*b", "aXb"}, {"a*b*c", "abbc"}, {"order_*", "order_1"}, {"**", "x"}, {"a", "ab"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.Count(pattern, "*") > 4 || len(name) > 40 { // the model takes exponential time
			return
		}
		if got, want := wildcard(pattern, name), slowWildcard(pattern, name); got != want {
			t.Errorf("wildcard(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}

func slowWildcard(p, n string) bool {
	if p == "" {
		return n == ""
	}
	if p[0] == '*' {
		return slowWildcard(p[1:], n) || n != "" && slowWildcard(p, n[1:])
	}
	return n != "" && p[0] == n[0] && slowWildcard(p[1:], n[1:])
}
