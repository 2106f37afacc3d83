package check

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/inspect"
)

func TestOldServerIsAFinding(t *testing.T) {
	of := func(t inspect.Table) []*survey.Table {
		t.Database, t.Table = "shop", "orders"
		return []*survey.Table{{Table: t}}
	}
	orders, fine := of(inspect.Table{RefusesLoad: true}), of(inspect.Table{})
	for _, tt := range []struct {
		mariaDB   bool
		version   int
		triggered []*survey.Table
		code      string
		says      []string
	}{
		{false, 50744, nil, "server-old", []string{"MySQL 5.7.44", "MySQL 8.0"}},
		{true, 100123, fine, "server-old", []string{"MariaDB 10.1.23", "MariaDB 10.2"}},
		{false, 80033, fine, "", nil},
		{true, 100211, fine, "", nil},
		{true, 110405, nil, "", nil},
		{true, 110405, orders, "server-bug", []string{"MariaDB 11.4.5", "MDEV-36026", "shop.orders", "upgrade the server to 11.4.6"}},
		{true, 110405, of(inspect.Table{RefusesLoad: true, TriggersHidden: true}), "server-bug", []string{"MariaDB 11.4.5", "no right to see the triggers of shop.orders", "grant TRIGGER"}},
		{true, 110405, fine, "", nil},
		{true, 110406, fine, "", nil},
	} {
		found := findOldServer(nil, "db/shop", tt.mariaDB, tt.version, tt.triggered)
		if tt.code == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Code != tt.code || found[0].Server != "db/shop" {
			t.Errorf("findings for version %d = %+v, want %s", tt.version, found, tt.code)
			continue
		}
		for _, want := range tt.says {
			if text := found[0].Message + " " + found[0].Fix; !strings.Contains(text, want) {
				t.Errorf("text for version %d = %q, want %q in it", tt.version, text, want)
			}
		}
	}
}
