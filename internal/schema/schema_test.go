package schema

import (
	"strings"
	"testing"
)

// A table's name reaches the SQL quoted, whatever is in it.
func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"leaf_alloc":     "`leaf_alloc`",
		"ids.leaf_alloc": "`ids`.`leaf_alloc`",
		"a`b.c.d":        "`a``b`.`c.d`",
	} {
		got := Quote(name)
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		for _, sql := range []string{LeafAlloc(got), LeafWorker(got)} {
			if !strings.HasPrefix(sql, "CREATE TABLE IF NOT EXISTS "+want+" (") {
				t.Error(sql)
			}
		}
	}
}
