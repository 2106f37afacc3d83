package counters

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// TestRefusedStatementsAreCountedByReason: a statement that was not run is counted for its table, with the reason. Errors of the server
// are not counted.
func TestRefusedStatementsAreCountedByReason(t *testing.T) {
	var c Counts
	c.CountRefusal(&insert.Refusal{Table: insert.TableName{DB: "shop", Table: "b"}, Reason: "why", Fix: "how"})
	c.CountRefusal(&FillError{Table: "shop.a", Rows: 1, Err: errors.New("away")})
	c.CountRefusal(errors.New("the server's"))
	all := c.Snapshot()
	if len(all) != 2 || all[0].Name != "shop.a" || all[0].LastRefusal != "away" ||
		all[1].Name != "shop.b" || all[1].LastRefusal != "why; how" || all[1].Refused != 1 || all[1].LastRefused.IsZero() {
		t.Errorf("counts = %+v, want shop.a with the refusal away, and shop.b with the refusal \"why; how\"", all)
	}
}
