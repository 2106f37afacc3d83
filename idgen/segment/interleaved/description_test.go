package interleaved

import (
	"testing"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
)

// TestDescription: rows keep the text that they were created with, so that it is read for good.
func TestDescription(t *testing.T) {
	for text, want := range map[string]description{
		"leafsql: store 2 of 3, blocks of 100000000, step 1000, life 0123456789abcdef, set fedcba9876543210": {2, 3, 100_000_000, 1000, "0123456789abcdef", "fedcba9876543210"},
		"leafsql: store 1 of 2, blocks of 100000000, step 1, life 00000000000000ff, set new":                 {1, 2, 100_000_000, 1, "00000000000000ff", ""},
	} {
		d, ok := parseDescription(text)
		if !ok || d != want || d.String() != text {
			t.Errorf("%s: %+v, %v, and written again %s", text, d, ok, d)
		}
		if place, stores, several := tagrow.StoreOf(text); place != want.member || stores != want.members || !several {
			t.Errorf("%s is of store %d of %d, %v", text, place, stores, several)
		}
	}
	if d, ok := parseDescription("Leaf's own"); ok {
		t.Error(d)
	}
	for _, text := range []string{"", "Leaf's own", "leafsql: store", "leafsql: stores of fruit"} {
		if _, _, several := tagrow.StoreOf(text); several {
			t.Error(text)
		}
	}
}
