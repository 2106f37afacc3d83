package servertest

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
)

// TestEqualTagsOfDifferentStoresAreWarnedOf: one warning is logged for two pools that would issue the same ids.
// There is none if the DSNs name the stores, which is taken as intended. The test does not connect.
func TestEqualTagsOfDifferentStoresAreWarnedOf(t *testing.T) {
	const a, b = "app:secret@tcp(a:3306)/shop?leafTables=orders", "app:secret@tcp(b:3306)/shop?leafTables=orders"
	const storeA, storeB = "&leafStore=app:secret@tcp(a:3306)%2Fshop", "&leafStore=app:secret@tcp(b:3306)%2Fshop"
	for _, c := range []struct {
		one, two string
		warns    bool
	}{
		{a, b, true},
		{a, b + storeB, true},
		{a, a + "&leafAllocTable=ids.leaf_alloc", true},
		{a, b + storeA, false},
		{a + storeA, b + storeB, false},
		{a, a + "&parseTime=true", false},
		{a, a + storeA, false},
	} {
		log := captureLog(t)
		var connectors []*driver.Connector
		for _, dsn := range []string{c.one, c.two} {
			cfg, err := driver.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}
			connector, err := driver.NewConnector(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer connector.Close()
			connectors = append(connectors, connector)
			connector.Segment("of " + dsn)
		}
		if log.String() != "" {
			t.Errorf("%s and %s: log without a tag in common, want none:\n%s", c.one, c.two, log)
		}
		for range 2 {
			for _, connector := range connectors {
				connector.Segment("orders")
				connector.Segment("items")
			}
		}
		said := log.String()
		want := 0
		if c.warns {
			want = 1
		}
		if n := strings.Count(said, "level=WARN"); n != want || strings.Contains(said, "secret") {
			t.Errorf("%s and %s: %d warnings, want %d without a secret:\n%s", c.one, c.two, n, want, said)
		}
		for _, part := range []string{"tag=orders", "leafStore=DSN", "tcp(a:3306)/shop"} {
			if c.warns && !strings.Contains(said, part) {
				t.Errorf("warning without %s, want it in\n%s", part, said)
			}
		}
		for _, connector := range connectors {
			connector.Close()
		}
	}
}
