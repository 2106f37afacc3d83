package driver

import "sync/atomic"

// Stats counts what a Connector did since it was made.
type Stats struct {
	Statements int64 // INSERTs that got ids
	IDs        int64 // ids they got
	Fetches    int64 // ranges fetched from leaf_alloc, by all that share it
}

type counters struct{ statements, ids atomic.Int64 }

func (c *counters) filled(n int) {
	c.statements.Add(1)
	c.ids.Add(int64(n))
}

// Stats returns the counts so far.
func (c *Connector) Stats() Stats {
	return Stats{
		Statements: c.stats.statements.Load(),
		IDs:        c.stats.ids.Load(),
		Fetches:    c.ids.segments.fetches(),
	}
}

func (s *segments) fetches() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.tags {
		n += g.Stats().Fetches
	}
	return n
}
