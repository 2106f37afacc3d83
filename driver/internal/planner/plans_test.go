package planner

import (
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/driver/internal/tables"
)

// TestPlansAreShared: sessions that read queries in the same way share their plans until the facts
// about tables change. A session with older facts gets plans that are not shared, and takes none from
// the others.
func TestPlansAreShared(t *testing.T) {
	set := tables.New(rules.Config{}, catalog.New(nil), nil, nil)
	var plans Plans
	old := set.Schema.Load()
	shop := plans.cacheOf(set, old, planKey{db: "shop"})
	if plans.cacheOf(set, old, planKey{db: "shop"}) != shop {
		t.Error("equal sessions have different plans, want the same")
	}
	if plans.cacheOf(set, old, planKey{db: "other"}) == shop || plans.cacheOf(set, old, planKey{db: "shop", settings: insert.Settings{ANSIQuotes: true}}) == shop {
		t.Error("sessions with another database or sql_mode share plans, want different ones")
	}
	set.Schema.Store(new(tables.Schema))
	if now := plans.cacheOf(set, set.Schema.Load(), planKey{db: "shop"}); now == shop || plans.cacheOf(set, set.Schema.Load(), planKey{db: "shop"}) != now {
		t.Error("plans after a change of tables are the old ones or not shared, want new shared ones")
	} else if plans.cacheOf(set, old, planKey{db: "shop"}) == now {
		t.Error("a session with older facts shares the plans, want its own")
	}
	for i := range 3 * planCaches {
		plans.cacheOf(set, set.Schema.Load(), planKey{settings: insert.Settings{Version: i}})
	}
	if n := len(plans.caches); n > planCaches {
		t.Errorf("%d caches, want at most %d", n, planCaches)
	}
}
