package quote

import "testing"

// No character in a name or a string ends it.
func TestQuotedNamesEndAtTheirQuote(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Name("id"), "`id`"},
		{Name("a`b"), "`a``b`"},
		{Qualified("shop", "a.b"), "`shop`.`a.b`"},
		{Table("leaf_alloc"), "`leaf_alloc`"},
		{Table("ids.leaf_alloc"), "`ids`.`leaf_alloc`"},
		{Table("a`b.c.d"), "`a``b.c`.`d`"},
		{Names(nil), ""},
		{Names([]string{"a", "b`"}), "`a`, `b```"},
		{String(`it's a \`), `'it''s a \\'`},
		{Literal("a'"), "_utf8mb4 X'6127'"},
	} {
		if c.got != c.want {
			t.Errorf("quoted text = %s, want %s", c.got, c.want)
		}
	}
}
