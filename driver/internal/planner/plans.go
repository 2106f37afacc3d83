package planner

import (
	"sync"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
	"github.com/leafsql/leafsql/driver/internal/tables"
)

const (
	planEntries = 4096    // texts in one plan cache
	planBytes   = 4 << 20 // bytes of these and their plans
	planCaches  = 64      // databases in use and settings with a cache of their own
	maxOwnPlans = 64      // that a connection keeps for itself
)

// Plans are what the connections of a set share: the plans made from what is known of the
// tables now.
type Plans struct {
	mu     sync.Mutex
	schema *tables.Schema
	caches map[planKey]*plancache.Cache[*Statement]

	permitted Permissions
}

// planKey is what the reading of a text depends on besides the tables.
type planKey struct {
	db       string
	settings insert.Settings
}

// of returns the plans of sessions with the same database and settings. They begin anew with
// each schema; a connection that has not gone over to the newest one yet has its own till then.
func (s *Plans) of(set *tables.Set, schema *tables.Schema, key planKey) *plancache.Cache[*Statement] {
	if schema != set.Schema.Load() {
		return plancache.New[*Statement](maxOwnPlans, planBytes/planCaches)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schema != schema {
		s.schema, s.caches = schema, make(map[planKey]*plancache.Cache[*Statement])
	}
	c, ok := s.caches[key]
	if !ok {
		if len(s.caches) >= planCaches { // a database for each tenant, say: any one goes
			for k := range s.caches {
				delete(s.caches, k)
				break
			}
		}
		c = plancache.New[*Statement](planEntries, planBytes)
		s.caches[key] = c
	}
	return c
}
