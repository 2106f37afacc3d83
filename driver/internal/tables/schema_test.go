package tables

import (
	"testing"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/rules"
)

// TestForgetDropsPendingLookups: a new schema after Forget does not have pending lookups of other
// tables, since their outcome is stored in the old schema.
func TestForgetDropsPendingLookups(t *testing.T) {
	looking, known := catalog.Name{DB: "shop", Table: "t"}, catalog.Name{DB: "shop", Table: "u"}
	s := New(rules.Config{}, nil, nil, nil).Schema.Load()
	s.tables[looking] = &tableLookup{}
	s.tables[known] = &tableLookup{finished: true}
	n, forgot := s.without(func(catalog.Name) bool { return false })
	if n.tables[looking] != nil || n.tables[known] == nil || forgot {
		t.Errorf("tables = %v, forgot %v; want only the known table, and false", n.tables, forgot)
	}
	if _, forgot = s.without(func(name catalog.Name) bool { return name == looking }); !forgot {
		t.Error("forgot = false for a table with a pending lookup, want true")
	}
}
