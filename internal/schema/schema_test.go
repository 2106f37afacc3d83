package schema

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/internal/quote"
)

// A table's name reaches the SQL quoted, whatever is in it.
func TestTableNamesAreQuoted(t *testing.T) {
	name := quote.Table("a`b.c")
	for _, sql := range []string{LeafAlloc(name), LeafWorker(name), Sequences(name)} {
		if !strings.HasPrefix(sql, "CREATE TABLE IF NOT EXISTS `a``b`.`c` (") {
			t.Errorf("SQL = %s, want CREATE TABLE of the quoted name", sql)
		}
	}
}
