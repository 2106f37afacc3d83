package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/driver/internal/session"
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

// TestOnlyRepeatedQueriesAreCached: a query is repeated from its second call on, until many other queries have been passed.
func TestOnlyRepeatedQueriesAreCached(t *testing.T) {
	r := new(recentQueries)
	for i := range 3 {
		if got, want := r.isRepeated("SELECT 1"), i > 0; got != want {
			t.Errorf("call %d: isRepeated = %v, want %v", i+1, got, want)
		}
	}
	for i := range 100_000 {
		if query := fmt.Sprint("INSERT INTO t VALUES ", i); r.isRepeated(query) {
			t.Errorf("isRepeated(%s) = true, want false for a new query", query)
		}
	}
	if r.isRepeated("SELECT 1") {
		t.Error("isRepeated = true after 100,000 other queries, want false")
	}
}

// TestLongQueriesAreNotHashed: a query that is too long for the cache is not recorded as a recent query.
func TestLongQueriesAreNotHashed(t *testing.T) {
	set := tables.New(rules.Config{Rules: []rules.Rule{{Table: "orders"}}}, catalog.New(nil), nil, nil)
	for length, want := range map[int]bool{1000: true, 128 << 10: false} {
		var plans Plans
		p := New(session.New(nil, "shop", insert.Settings{}), set, &plans)
		query := "SELECT '" + strings.Repeat("x", length) + "'"
		if _, err := p.Statement(t.Context(), query); err != nil {
			t.Fatal(err)
		}
		if got := plans.recent.isRepeated(query); got != want {
			t.Errorf("query of %d bytes: recorded = %v, want %v", len(query), got, want)
		}
	}
}
