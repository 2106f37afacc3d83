package ids

import (
	"context"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/control"
)

// A Tag names a counter: a row of leaf_alloc, or of t_sequence.
type Tag struct {
	Name     string // biz_tag, or the sequence's name
	Sequence bool
}

// A Counter issues the ids of a tag with its store's only generator for the tag. It is safe for
// concurrent use.
type Counter struct {
	Tag
	*segment.Generator
	control.Control                     // internal methods of the generator
	Rows            control.Rows        // table of the counter's row; nil if a store without rows replaces leaf_alloc
	RowLock         *semaphore.Weighted // weight 1, held while the row is looked up and added
	TableLock       *semaphore.Weighted // weight 1, one for all counters of the store; held while the table is created

	store     *Store
	databases map[string]bool // databases of the tables that the counter fills, as server/db; guarded by store.mu
}

// Counter returns the store's only counter of a tag, and creates it on the first call.
func (s *Store) Counter(tag Tag) *Counter {
	s.mu.Lock()
	c, known := s.counters[tag]
	if !known {
		c = &Counter{Tag: tag, store: s, RowLock: semaphore.NewWeighted(1), TableLock: s.tableLock, databases: make(map[string]bool)}
		from := s.segments
		switch {
		case tag.Sequence:
			from, c.Rows = s.sequences, control.SequenceRowsOf(s.sequences)
		case s.Alloc != nil:
			c.Rows = s.Alloc
		}
		c.Generator = segment.New(from, tag.Name, &segment.Options{Logger: s.Logger})
		c.Control = control.Of(c.Generator)
		s.counters[tag] = c
	}
	s.mu.Unlock()
	if !known {
		s.warnSameTag(tag)
	}
	return c
}

// existingCounter returns the counter of a tag, nil if Counter has not created it.
func (s *Store) existingCounter(tag Tag) *Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters[tag]
}

// Counters returns the counters that Counter has created, in any order.
func (s *Store) Counters() []*Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.counters))
}

// Table returns the table of the counter's row.
func (c *Counter) Table() string {
	if c.Sequence {
		return SequenceTable
	}
	return c.store.Table
}

// Row returns the counter's row for a caller that is about to draw ids from it. For leaf_alloc, the generator
// needs no other read before its first fetch. If there is no row, the error is a *segment.UnknownTagError.
func (c *Counter) Row(ctx context.Context) (control.Row, error) {
	if c.Sequence {
		return c.Rows.Row(ctx, c.Name)
	}
	maxID, step, err := c.ReadRow(ctx)
	return control.Row{Tag: c.Name, MaxID: maxID, Step: step}, err
}

// AddDatabase records that the counter's ids fill a table in a database of a server.
func (c *Counter) AddDatabase(server, db string) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.databases[server+"/"+strings.ToLower(db)] = true
}

// FirstUnfetched returns the lowest first id of a new row for the tag. It is above all ids of the tag that pools of this
// process have fetched. The error wraps ctx's.
func (c *Counter) FirstUnfetched(ctx context.Context) (above int64, err error) {
	for s := range eachOpenStore {
		same := s.existingCounter(c.Tag)
		if same == nil || s != c.store && !s.Home.isSame(c.store.Home) {
			continue
		}
		k, err := same.FirstUnused(ctx)
		if err != nil {
			return 0, err
		}
		above = max(above, k)
	}
	return above, nil
}
