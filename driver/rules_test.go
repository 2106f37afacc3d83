package driver

import (
	"cmp"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
)

func TestParseRules(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []Rule
		back string // String of the first, where it differs from in
		err  string
	}{
		{in: "orders", want: []Rule{{Table: "orders", Kind: Segment}}},
		{in: "shop.orders:id", want: []Rule{{Database: "shop", Table: "orders", Column: "id", Kind: Segment}}},
		{in: "orders::snowflake", want: []Rule{{Table: "orders", Kind: Snowflake}}},
		{in: "orders:id:segment", want: []Rule{{Table: "orders", Column: "id", Kind: Segment}}, back: "orders:id"},
		{in: "order_*::segment(orders)", want: []Rule{{Table: "order_*", Kind: Segment, Tag: "orders"}}},
		{in: "a:id:sequence(seq_a)", want: []Rule{{Table: "a", Column: "id", Kind: Sequence, Tag: "seq_a"}}},
		{in: "a:id:sequence", err: `unknown generator "sequence"`},
		{in: "a, s*.b", want: []Rule{{Table: "a", Kind: Segment}, {Database: "s*", Table: "b", Kind: Segment}}, back: "a"},
		{in: "", err: "names no table"},
		{in: "a,", err: "names no table"},
		{in: ".a", err: "before the dot is empty"},
		{in: "a:id:uuid", err: `unknown generator "uuid"; known are segment`},
		{in: "a:id:segment()", err: "unknown generator"},
		{in: "a:id:segment(" + strings.Repeat("x", 129) + ")", err: "128"},
		{in: "auto,a", err: "auto stands alone"},
		{in: "a,none", err: "none stands alone"},
		{in: "`a`", err: "without quotes"},
		{in: "a,a:id", err: "two rules"},
		{in: "!tmp_*", want: []Rule{{Table: "tmp_*", Exclude: true}}},
		{in: "*,!shop.tmp_*", want: []Rule{{Table: "*", Kind: Segment}, {Database: "shop", Table: "tmp_*", Exclude: true}}, back: "*"},
		{in: "!a:id", err: "names no column"},
		{in: "orders;items", err: "separated by commas"},
		{in: "a\tb", err: "without quotes and spaces"},
	} {
		got, err := parseRules(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("parseRules(%q) = %v, want an error with %q", tt.in, err, tt.err)
			}
			continue
		}
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("parseRules(%q) = %+v, %v", tt.in, got, err)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("parseRules(%q)[%d] = %+v, want %+v", tt.in, i, got[i], tt.want[i])
			}
		}
		if want := cmp.Or(tt.back, tt.in); got[0].String() != want {
			t.Errorf("parseRules(%q)[0].String() = %q, want %q", tt.in, got[0].String(), want)
		}
	}
}

func TestMoreSpecificRulesWin(t *testing.T) {
	rules, err := parseRules("*:a,order_*:b,order_2024_*:c,order_2024_01:d,shop.order_2024_01:e")
	if err != nil {
		t.Fatal(err)
	}
	c := &Connector{cfg: &Config{}, rules: bySpecificity(rules)}
	c.defaultDB = "shop"
	for _, tt := range []struct{ db, table, want string }{
		{"shop", "x", "a"}, {"shop", "order_1", "b"}, {"shop", "order_2024_02", "c"},
		{"shop", "order_2024_01", "e"}, {"other", "order_1", ""},
	} {
		r, ok := c.rule(newSchema(nil), catalog.Name{DB: tt.db, Table: tt.table})
		if r.Column != tt.want || ok != (tt.want != "") {
			t.Errorf("%s.%s: rule %+v, %v; want column %q", tt.db, tt.table, r, ok, tt.want)
		}
	}
}

func TestExclusionsWin(t *testing.T) {
	rules, err := parseRules("*,order_map:id,!order_*,!shop.log")
	if err != nil {
		t.Fatal(err)
	}
	c := &Connector{cfg: &Config{}, rules: bySpecificity(rules), defaultDB: "shop"}
	for table, want := range map[string]bool{"orders": true, "order_1": false, "order_map": false, "log": false, "logs": true} {
		if _, ok := c.rule(newSchema(nil), catalog.Name{DB: "shop", Table: table}); ok != want {
			t.Errorf("%s: %v", table, ok)
		}
	}
}

func TestDefaultTag(t *testing.T) {
	for in, want := range map[string]string{
		"orders": "orders", "shop.orders": "orders", "order_*": "order_*", "orders:id:segment(x)": "x", "*": "some", "*:id:segment(all)": "all", "s*.*": "some",
	} {
		rules, err := parseRules(in)
		if err != nil || rules[0].tag("some") != want {
			t.Errorf("%s: tag %q, %v; want %q", in, rules[0].tag("some"), err, want)
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
