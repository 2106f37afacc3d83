package statuspage

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/inspect"
)

// pools are the pools of one page.
type pools struct {
	dbs map[string]*sql.DB // by name

	mu    sync.Mutex
	found map[string]*driver.Connector // by name
}

// A pool is one of the pools at one time.
type pool struct {
	name      string
	connector *driver.Connector
	err       error // the reason why there is no connector
}

// read returns all pools, sorted by name. It looks up each connector once: if another package wraps the driver, that
// takes a connection of the pool.
func (p *pools) read() []pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]pool, 0, len(p.dbs))
	for _, name := range slices.Sorted(maps.Keys(p.dbs)) {
		all = append(all, pool{name: name, connector: p.found[name]})
	}
	var lookups sync.WaitGroup
	for i := range all {
		if all[i].connector == nil {
			lookups.Go(func() {
				c, err := inspect.Pool(p.dbs[all[i].name])
				if all[i].err = err; err == nil {
					all[i].connector = c.(*driver.Connector)
				}
			})
		}
	}
	lookups.Wait()
	for _, pool := range all {
		if pool.err == nil {
			p.found[pool.name] = pool.connector
		}
	}
	return all
}

// stats returns the tags and tables of all pools. It fails if no pool can be read.
func (p *pools) stats() (driver.Stats, error) {
	var s driver.Stats
	var errs []error
	perStore := make(map[any][]driver.TagStats)
	for _, pool := range p.read() {
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
	if len(errs) == len(p.dbs) {
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

// leases returns the worker ids of the page, given the statistics of a page of one pool, and the pools that
// cannot be read.
func (p *Page) leases(s driver.Stats) (all []lease, unread []pool) {
	if p.pools == nil {
		if s.Worker != nil {
			all = append(all, lease{WorkerStats: *s.Worker})
		}
		return all, nil
	}
	at := make(map[idgen.Generator]int)
	for _, pool := range p.pools.read() {
		if pool.err != nil {
			unread = append(unread, pool)
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
	return all, unread
}
