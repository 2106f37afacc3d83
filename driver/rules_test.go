package driver

import (
	"cmp"
	"strings"
	"testing"
)

func TestParseRulesReadsAndRefusesRules(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []Rule
		back string // String of the first rule, if it differs from in
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
		{in: "auto,a", err: "auto cannot be combined"},
		{in: "a,none", err: "none cannot be combined"},
		{in: "`a`", err: "without quotes"},
		{in: "a,a:id", err: "two rules"},
		{in: "!tmp_*", want: []Rule{{Table: "tmp_*", Exclude: true}}},
		{in: "*,!shop.tmp_*", want: []Rule{{Table: "*", Kind: Segment}, {Database: "shop", Table: "tmp_*", Exclude: true}}, back: "*"},
		{in: "!a:id", err: "cannot have a column"},
		{in: "orders;items", err: "separated by commas"},
		{in: "a\tb", err: "a quote or a space"},
	} {
		got, err := parseRules(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("parseRules(%q) = %v, want an error with %q", tt.in, err, tt.err)
			}
			continue
		}
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("parseRules(%q) = %+v, %v; want %d rules", tt.in, got, err, len(tt.want))
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
