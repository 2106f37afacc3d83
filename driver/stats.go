package driver

import (
	"sync"
	"sync/atomic"

	"github.com/leafsql/leafsql/driver/internal/catalog"
)

// Stats counts what a Connector did since it was made.
type Stats struct {
	Statements int64 // INSERTs that got ids
	IDs        int64 // ids they got
	Fetches    int64 // ranges fetched from leaf_alloc, by all that share it
}

// counters are a Connector's, a table each: they outlive what is known of it.
type counters struct {
	mu     sync.Mutex
	tables map[string]*tableCounts
}

type tableCounts struct {
	statements, ids, refusals atomic.Int64
	lastRefusal               atomic.Pointer[string]
}

func (c *counters) of(name catalog.Name) *tableCounts { return c.named(name.String()) }

func (c *counters) named(name string) *tableCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tables[name]
	if !ok {
		if c.tables == nil {
			c.tables = make(map[string]*tableCounts)
		}
		t = new(tableCounts)
		c.tables[name] = t
	}
	return t
}

func (t *tableCounts) filled(n int) {
	t.statements.Add(1)
	t.ids.Add(int64(n))
}

// refused counts a statement that was refused.
func (c *counters) refused(r *RefusedError) {
	t := c.named(r.Table)
	t.refusals.Add(1)
	reason := r.Reason
	t.lastRefusal.Store(&reason)
}

// Stats returns the counts so far.
func (c *Connector) Stats() Stats {
	s := Stats{Fetches: c.ids.segments.fetches()}
	c.counts.mu.Lock()
	defer c.counts.mu.Unlock()
	for _, t := range c.counts.tables {
		s.Statements += t.statements.Load()
		s.IDs += t.ids.Load()
	}
	return s
}

func (s *segments) fetches() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.tags {
		n += g.Stats().Fetches
	}
	return n
}
