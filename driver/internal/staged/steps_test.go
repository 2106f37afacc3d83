package staged

import (
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// TestCopyOfNumberedStageUsesNoWindow: the window takes about as long as the rest of the copy.
func TestCopyOfNumberedStageUsesNoWindow(t *testing.T) {
	table := &insert.Table{Key: "id", IntegerKey: true}
	for _, tt := range []struct {
		key        int
		duplicates insert.Duplicates
		columns    []string
		want       string
	}{
		{-1, insert.Fail, []string{"a"}, "INSERT INTO t (`a`, `id`) SELECT `a`, LAST_INSERT_ID(201)+(leafsql_n-1) FROM stage ORDER BY leafsql_n"},
		{0, insert.Fail, []string{"id", "a"}, "INSERT INTO t (`id`, `a`) SELECT IF((`id` IS NULL OR `id` = 0), LAST_INSERT_ID(201)+(leafsql_n-1), `id`), `a` FROM stage ORDER BY leafsql_n"},
		{-1, insert.Update, []string{"a"}, "INSERT INTO t (`a`, `id`) SELECT leafsql_1, LAST_INSERT_ID(201)+(leafsql_k) FROM (SELECT `a` leafsql_1, leafsql_n-1 leafsql_k, leafsql_n FROM stage) leafsql_s ORDER BY leafsql_n"},
	} {
		in := &insert.Insert{Table: table, Duplicates: tt.duplicates, Staging: &insert.Staging{Columns: tt.columns, Key: tt.key, Head: [2]string{"INSERT", " INTO t"}}}
		in.Way = insert.IDInText
		if got, _ := CopyQuery(in, "stage", "", insert.Block{First: 201, N: 1000, Numbered: true}); got != tt.want {
			t.Errorf("key %d, duplicates %d:\ngot  %s\nwant %s", tt.key, tt.duplicates, got, tt.want)
		}
	}
}
