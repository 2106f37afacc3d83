package staged

import (
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
)

func TestSetsKey(t *testing.T) {
	for body, want := range map[string]bool{
		"SET NEW.id = 5": true,
		"BEGIN SET @a = 1, NEW.`ID` = (SELECT 1); END":                 true,
		"BEGIN IF NEW.id = 0 THEN SET NEW.a = NEW.id; END IF; END":     false,
		"SET NEW.a = 5, @x = NEW.id":                                   false,
		"BEGIN IF 1 THEN SET new . id := UUID_SHORT(); END IF; END":    true,
		"UPDATE t SET a = NEW.id":                                      false,
		"SET NEW.a = IF(1, 2, NEW.id), NEW.b = 3":                      false,
		"BEGIN SELECT n INTO NEW.id FROM cnt; END":                     true,
		"BEGIN SELECT NEW.id INTO @x; SELECT NEW.id FROM cnt; END":     false,
		"BEGIN CALL p(1, NEW.id); END":                                 true,
		"BEGIN :NEW.id := 5; END":                                      true,
		"SET NEW.a = CASE WHEN 1 THEN 2 ELSE 3 END, NEW.id = 5":        true,
		"BEGIN UPDATE cnt SET n = n + 1; SET NEW.id = (SELECT 1); END": true,
	} {
		if got := new(Programs).SetsKey(catalog.Trigger{Text: body}, "id"); got != want {
			t.Errorf("%s: sets the key %v, want %v", body, got, want)
		}
	}
}
