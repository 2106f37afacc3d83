package read

import (
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// TestTransientRefusalIsReturnedUnchanged: a transient refusal of a table is returned unchanged, even if the query might
// be read differently.
func TestTransientRefusalIsReturnedUnchanged(t *testing.T) {
	unfit := &insert.Refusal{Table: insert.TableName{DB: "shop", Table: "orders"}, Reason: "no primary key", Transient: true}
	schema := Schema{Table: func(_, name string) (*insert.Table, error) { return nil, unfit }}
	settings := insert.Settings{Version: 90000, SessionKnown: true, Charset: "gbk"}
	for _, text := range []string{"INSERT INTO orders (customer) VALUES ('ann')", "INSERT INTO orders (customer) VALUES ('\xb0\x5c')", `SET sql_mode = @m; INSERT INTO orders (customer) VALUES ("\"")`} {
		_, unknown, err := Parse(text, settings, schema)
		if refusal, ok := err.(*insert.Refusal); !ok || refusal.Reason != unfit.Reason || unknown {
			t.Errorf("Parse(%q) = unknown %v, error %v; want false, %v", text, unknown, err, unfit)
		}
	}
}
