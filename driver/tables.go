package driver

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
)

const (
	refreshEvery  = 45 * time.Second // what is known of a table is younger than a minute
	refreshAgain  = 5 * time.Second  // after a failure
	lookupTimeout = time.Minute      // a slow server needs seconds for each reply

	planEntries = 4096    // texts in one plan cache
	planBytes   = 8 << 20 // their bytes
	planCaches  = 64      // databases in use and settings with a cache of their own
)

// A schema is what a Connector knows of tables, and the plans made from that.
// It grows as statements name tables. When something in it is no longer true
// the Connector gets another one without it: connections tell by the pointer
// that their plans are out of date.
type schema struct {
	tags map[string]string // under leafTables=auto: table or db.table -> tag

	mu     sync.Mutex
	tables map[catalog.Name]*tableLookup
	plans  map[planKey]*plancache.Cache[*statement]
}

// planKey is what the reading of a text depends on besides the tables.
type planKey struct {
	db       string
	settings insert.Settings
}

// A tableLookup is one look at a table, shared by all who need it meanwhile.
type tableLookup struct {
	done     chan struct{} // closed when the rest is set
	finished bool          // done is closed; guarded by the mu of the schema that it was begun in
	seen     *seenTable    // nil: there is no such table
	table    *insert.Table // nil: nothing to fill, or no such table
	err      error
}

// A seenTable is what a server shows of a table.
type seenTable struct {
	*catalog.Table
	triggers map[string]insert.Effects // of those of each event, and of what they call
}

func newSchema(tags map[string]string) *schema {
	return &schema{
		tags:   tags,
		tables: make(map[catalog.Name]*tableLookup),
		plans:  make(map[planKey]*plancache.Cache[*statement]),
	}
}

// cache returns the plans of sessions with the same database and settings.
func (s *schema) cache(key planKey) *plancache.Cache[*statement] {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.plans[key]
	if !ok {
		if len(s.plans) >= planCaches { // a database for each tenant, say: any one goes
			for k := range s.plans {
				delete(s.plans, k)
				break
			}
		}
		p = plancache.New[*statement](planEntries, planBytes)
		s.plans[key] = p
	}
	return p
}

// without returns the schema without what is known of some tables, and without
// any plan. It says too whether something was known of them.
func (s *schema) without(stale func(catalog.Name) bool) (n *schema, known bool) {
	n = newSchema(s.tags)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.tables {
		switch {
		case stale(name):
			known = true
		case l.finished: // one that is under way removes itself from s alone if it fails
			n.tables[name] = l
		}
	}
	return n, known
}

// forget makes the next statements that name some tables look at them again.
func (c *Connector) forget(stale func(catalog.Name) bool) {
	for {
		s := c.schema.Load()
		if n, known := s.without(stale); !known || c.schema.CompareAndSwap(s, n) {
			return
		}
	}
}

// fold is a name as names compare on this server.
func (c *Connector) fold(db, table string) catalog.Name {
	if c.foldsCase {
		db, table = strings.ToLower(db), strings.ToLower(table)
	}
	return catalog.Name{DB: db, Table: table}
}

// lookup says what a name means: the configured table, nil where nothing is to
// be filled, errUnseenTable where the catalog has no such table.
func (c *Connector) lookup(ctx context.Context, s *schema, name catalog.Name) (*insert.Table, error) {
	rule, ok := c.rule(s, name)
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	l, ok := s.tables[name]
	if !ok {
		l = &tableLookup{done: make(chan struct{})}
		s.tables[name] = l
		// Its outcome is for all who wait: no statement's context ends it.
		go c.look(s, rule, name, l)
	}
	s.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
		return nil, &catalogFailure{what: "table " + name.String(), err: ctx.Err()}
	}
	if l.err == nil && l.seen == nil {
		return nil, errUnseenTable
	}
	return l.table, l.err
}

// errUnseenTable says that the catalog has no such table: it does not exist, or
// is a temporary one, or the user may not see it.
var errUnseenTable = errors.New("leafsql: no such table in the catalog")

// look asks the catalog for one table. Nothing of a failure is kept: once the
// table is mended, the next statement works.
func (c *Connector) look(s *schema, rule Rule, name catalog.Name, l *tableLookup) {
	ctx, cancel := context.WithTimeout(c.ctx, lookupTimeout)
	defer cancel()
	seen, err := c.see(ctx, []catalog.Name{name})
	if err != nil {
		l.err = catalogError("the columns of table "+name.String(), err)
	} else if l.seen = seen[name]; l.seen != nil {
		l.table, l.err = c.describe(rule, name, l.seen)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.finished = true; l.err != nil || l.seen == nil {
		delete(s.tables, name)
	}
	close(l.done)
}

// see looks at tables, at their triggers and at what these call.
func (c *Connector) see(ctx context.Context, names []catalog.Name) (map[catalog.Name]*seenTable, error) {
	tables, err := c.catalog.Tables(ctx, names)
	if err != nil {
		return nil, err
	}
	seen := make(map[catalog.Name]*seenTable, len(tables))
	for name, t := range tables {
		s := &seenTable{t, make(map[string]insert.Effects)}
		for _, tr := range t.Triggers {
			e := c.effects(c.program(name.DB, tr.Text, tr.SQLMode))
			if err := c.follow(ctx, &e); err != nil {
				return nil, err
			}
			all := s.triggers[tr.Event]
			all.Add(e)
			s.triggers[tr.Event] = all
		}
		seen[name] = s
	}
	return seen, nil
}

// rule finds the rule that counts for a table.
func (c *Connector) rule(s *schema, name catalog.Name) (Rule, bool) {
	if c.cfg.Auto {
		tag, ok := s.tags[name.String()]
		if !ok && name.DB == c.defaultDB {
			tag, ok = s.tags[name.Table]
		}
		return Rule{Table: name.Table, Kind: Segment, Tag: tag}, ok
	}
	for _, r := range c.rules {
		inDB := name.DB == c.defaultDB || c.defaultDB == ""
		if r.Database != "" {
			inDB = wildcard(r.Database, name.DB)
		}
		if inDB && wildcard(r.Table, name.Table) {
			if r.Database+c.defaultDB+r.Tag == "" { // tables of other databases have counters of their own
				r.Tag = name.DB + "." + r.tag(name.Table)
			}
			return r, !r.Exclude
		}
	}
	return Rule{}, false
}

// mayMean says whether a bare name means a configured table in some database.
func (c *Connector) mayMean(s *schema, table string) bool {
	table = c.fold("", table).Table
	for tag := range s.tags {
		if tag == table || strings.HasSuffix(tag, "."+table) {
			return true
		}
	}
	return slices.ContainsFunc(c.rules, func(r Rule) bool { return !r.Exclude && wildcard(r.Table, table) })
}

// refresh reads all known tables again, by one query, and forgets those that
// are not as they were. Statements go on with what is known meanwhile; where
// the server does not answer they go on with it longer.
func (c *Connector) refresh() error {
	ctx, cancel := context.WithTimeout(c.ctx, lookupTimeout)
	defer cancel()
	old := c.schema.Load()
	tags := old.tags
	if c.cfg.Auto {
		var err error
		if tags, err = c.readTags(ctx); err != nil {
			return err
		}
	}
	old.mu.Lock()
	known := maps.Clone(old.tables)
	maps.DeleteFunc(known, func(_ catalog.Name, l *tableLookup) bool { return !l.finished })
	old.mu.Unlock()
	seen, err := c.see(ctx, slices.Collect(maps.Keys(known)))
	if err != nil {
		return err
	}
	if !maps.Equal(old.tags, tags) {
		c.schema.Store(newSchema(tags))
		return nil
	}
	c.forget(func(name catalog.Name) bool {
		l, ok := known[name]
		return ok && !reflect.DeepEqual(l.seen, seen[name])
	})
	return nil
}

// keepFresh refreshes the schema until the Connector is closed. Tables that no
// statement used meanwhile are forgotten instead.
func (c *Connector) keepFresh() {
	wait := refreshEvery
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = refreshEvery
		if !c.used.Swap(false) {
			c.forget(func(catalog.Name) bool { return true })
		}
		if c.refresh() != nil {
			wait = refreshAgain
		}
	}
}

// readTags reads leaf_alloc's tags, by the names of tables they may mean.
func (c *Connector) readTags(ctx context.Context) (map[string]string, error) {
	rows, err := c.store.Alloc.Tags(ctx)
	if err != nil {
		return nil, err
	}
	tags := make(map[string]string, len(rows))
	for _, r := range rows {
		tags[c.fold("", r.Tag).Table] = r.Tag
	}
	return tags, nil
}
