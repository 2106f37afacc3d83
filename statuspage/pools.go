package statuspage

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/inspect"
)

// retryPause is the shortest time between a failed look-up of a pool and the next one.
const retryPause = 30 * time.Second

// A lookup finds the connector of one pool. If another package wraps the driver, that takes a connection of the pool and
// can take seconds, so a result is reused: a connector forever, and an error at least for retryPause.
type lookup struct {
	name  string
	db    *sql.DB
	first chan struct{} // closed at the end of the first attempt

	mu      sync.Mutex
	result  pool // outcome of the last attempt
	next    time.Time
	running bool
}

// A pool is one of the pools at one time.
type pool struct {
	name      string
	connector *driver.Connector
	err       error // the reason why there is no connector
}

// newLookups returns a lookup for each pool, sorted by name.
func newLookups(dbs map[string]*sql.DB) []*lookup {
	all := make([]*lookup, 0, len(dbs))
	for _, name := range slices.Sorted(maps.Keys(dbs)) {
		all = append(all, &lookup{name: name, db: dbs[name], first: make(chan struct{})})
	}
	return all
}

// start begins an attempt if one is due.
func (l *lookup) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running || l.result.connector != nil || time.Now().Before(l.next) {
		return
	}
	l.running = true
	go func() {
		result := pool{name: l.name}
		c, err := inspect.Pool(l.db)
		if result.err = err; err == nil {
			result.connector = c.(*driver.Connector)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.next.IsZero() {
			close(l.first)
		}
		l.result, l.next, l.running = result, time.Now().Add(retryPause), false
	}()
}

// wait returns the last result. It only waits for the first attempt.
func (l *lookup) wait() pool {
	<-l.first
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.result
}

// readPools looks up all pools at the same time.
func readPools(lookups []*lookup) []pool {
	for _, l := range lookups {
		l.start()
	}
	all := make([]pool, 0, len(lookups))
	for _, l := range lookups {
		all = append(all, l.wait())
	}
	return all
}

// joinStats returns the tags and tables of all pools. It fails if no pool can be read.
func joinStats(pools []pool) (driver.Stats, error) {
	var s driver.Stats
	var errs []error
	perStore := make(map[any][]driver.TagStats)
	for _, pool := range pools {
		if pool.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", pool.name, pool.err))
			continue
		}
		own := pool.connector.Stats()
		for _, t := range own.Tables {
			if t.Name != "" { // otherwise the refused statement's table is unknown
				t.Name += " (" + pool.name + ")"
			}
			s.Tables = append(s.Tables, t)
		}
		store := inspect.Store(pool.connector)
		if _, shared := perStore[store]; shared {
			continue
		}
		perStore[store] = slices.Clone(own.Tags)
		for i := range own.Tags {
			own.Tags[i].Tag += " (" + pool.name + ")"
		}
		s.Tags = append(s.Tags, own.Tags...)
	}
	if len(errs) == len(pools) {
		return driver.Stats{}, errors.Join(errs...)
	}
	if len(perStore) == 1 {
		for _, tags := range perStore {
			s.Tags = tags
		}
	}
	return s, nil
}

// A lease is a worker id, and the names of the pools that use it, or "" for a page of one pool.
type lease struct {
	driver.WorkerStats
	Pools string
}

// leases returns the worker ids of the page, given the statistics of a page of one pool, or the pools of a page of
// several.
func leases(s driver.Stats, pools []pool) (all []lease) {
	if s.Worker != nil {
		all = append(all, lease{WorkerStats: *s.Worker})
	}
	at := make(map[idgen.Generator]int)
	for _, pool := range pools {
		if pool.err != nil {
			continue
		}
		g := pool.connector.Snowflake()
		if g == nil {
			continue
		}
		if i, shared := at[g]; shared {
			all[i].Pools += ", " + pool.name
			continue
		}
		if w := pool.connector.Stats().Worker; w != nil {
			at[g] = len(all)
			all = append(all, lease{*w, pool.name})
		}
	}
	return all
}
