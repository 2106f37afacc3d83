package planner

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
	"github.com/leafsql/leafsql/driver/internal/tables"
)

const (
	planEntries     = 4096    // queries in one plan cache
	planBytes       = 4 << 20 // size of these queries and their plans
	planCaches      = 64      // number of caches, one for each database in use and settings
	maxPrivatePlans = 64      // plans in a cache that is not shared
)

// Plans are the plan caches that the connections of a set share, for the current facts about tables.
// The zero value is empty. Plans are safe for concurrent use.
type Plans struct {
	mu     sync.Mutex
	schema *tables.Schema
	caches map[planKey]*plancache.Cache[string, *Statement]
	recent recentQueries // planned queries

	permitted *plancache.Cache[permission, time.Time] // times at which permissions expire; nil until Guard is called
	unshared  uint64                                  // number of sessions so far that share no permissions
}

// planKey has the state on which a plan depends, except for the tables.
type planKey struct {
	db       string
	settings insert.Settings
	guarded  bool
}

// recentQueries recognizes queries that are repeated. Its elements are parts of the hashes of recent queries. Only plans of
// repeated queries are cached, to keep queries with changing literals out of the cache.
type recentQueries [planEntries]atomic.Uint32

// isRepeated reports whether one of the last calls had the same query.
func (r *recentQueries) isRepeated(query string) bool {
	h := maphash.String(hashSeed, query)
	return r[h%planEntries].Swap(uint32(h>>32)) == uint32(h>>32)
}

// cacheOf returns the cache for sessions with the same database and settings. The caches are replaced with
// each schema. A connection that still uses an older schema, or passes nil, gets a cache that is not shared.
func (s *Plans) cacheOf(set *tables.Set, schema *tables.Schema, key planKey) *plancache.Cache[string, *Statement] {
	if schema != set.Schema.Load() {
		return plancache.New[string, *Statement](maxPrivatePlans, planBytes/planCaches)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schema != schema {
		s.schema, s.caches = schema, make(map[planKey]*plancache.Cache[string, *Statement])
	}
	c, ok := s.caches[key]
	if !ok {
		if len(s.caches) >= planCaches { // evict an arbitrary cache; there may be a database for each tenant
			for k := range s.caches {
				delete(s.caches, k)
				break
			}
		}
		c = plancache.New[string, *Statement](planEntries, planBytes)
		s.caches[key] = c
	}
	return c
}
