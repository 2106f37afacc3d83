package rules

import (
	"strings"
	"testing"
)

func TestDefaultTagIsNamedAfterRule(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want string
	}{
		{Rule{Table: "orders"}, "orders"}, {Rule{Database: "shop", Table: "orders"}, "orders"}, {Rule{Table: "order_*"}, "order_*"},
		{Rule{Table: "orders", Tag: "x"}, "x"}, {Rule{Table: "*"}, "some"}, {Rule{Table: "*", Tag: "all"}, "all"},
		{Rule{Database: "s*", Table: "*"}, "some"},
	} {
		if tag := TagOf(tt.rule, "some"); tag != tt.want {
			t.Errorf("tag of %s = %q, want %q", tt.rule, tag, tt.want)
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
		if got, want := Match(pattern, name), slowWildcard(pattern, name); got != want {
			t.Errorf("Match(%q, %q) = %v, want %v", pattern, name, got, want)
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
