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

// A Counter is what ids of a tag are drawn from, with the one generator of its store.
type Counter struct {
	Tag
	*segment.Generator
	control.Control                     // of the generator
	Rows            Rows                // where its row is, nil where it has none
	Turn            *semaphore.Weighted // of 1, held while the row is looked for and added

	store *Store
	feeds map[string]bool // the databases of its tables; guarded by store.mu
}

// Counter returns the one counter of a tag.
func (s *Store) Counter(tag Tag) *Counter {
	s.mu.Lock()
	c, known := s.counters[tag]
	if !known {
		c = &Counter{Tag: tag, store: s, Turn: semaphore.NewWeighted(1), feeds: make(map[string]bool)}
		from := s.segments
		switch {
		case tag.Sequence:
			from, c.Rows = s.sequences, s.sequences
		case s.Alloc != nil:
			c.Rows = s.Alloc
		}
		c.Generator = segment.New(from, tag.Name, &segment.Options{Logger: s.log})
		c.Control = control.Of(c.Generator)
		s.counters[tag] = c
	}
	s.mu.Unlock()
	if !known {
		s.warnOther(tag)
	}
	return c
}

// known is the counter of a tag, nil as long as nobody wanted it.
func (s *Store) known(tag Tag) *Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters[tag]
}

// Counters are those that somebody wanted.
func (s *Store) Counters() []*Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.counters))
}

// Table is the table that the row is in.
func (c *Counter) Table() string {
	if c.Sequence {
		return SequenceTable
	}
	return c.store.Table
}

// Row returns the row for a caller that is about to draw from it. On leaf_alloc it is the
// look that the generator needs before its first fetch.
func (c *Counter) Row(ctx context.Context) (segment.Row, error) {
	if c.Sequence {
		return c.Rows.Row(ctx, c.Name)
	}
	maxID, step, err := c.Look(ctx)
	return segment.Row{Tag: c.Name, MaxID: maxID, Step: step}, err
}

// Feeds notes that it feeds a table in a database of a server.
func (c *Counter) Feeds(server, db string) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.feeds[server+"/"+strings.ToLower(db)] = true
}

// AboveAll is where the row may begin when it is added: above all that any pool of this
// process knows to be taken.
func (c *Counter) AboveAll(ctx context.Context) (above int64, err error) {
	for s := range living {
		same := s.known(c.Tag)
		if same == nil || s != c.store && !s.home.same(c.store.home) {
			continue
		}
		k, err := same.Above(ctx)
		if err != nil {
			return 0, err
		}
		above = max(above, k)
	}
	return above, nil
}
