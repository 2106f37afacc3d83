package tables

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/versions"
)

const (
	RefreshInterval      = 45 * time.Second // longest time between two refreshes: cached data of a table is less than a minute old
	refreshRetryInterval = 5 * time.Second  // interval after a failure
)

// A Schema holds the data that a Connector has read about tables; plans are made from it.
// It grows as statements name tables. If an entry may be outdated, the Connector gets
// a new Schema without this entry. Connections detect outdated plans because the pointer to the Schema
// has changed. A Schema is safe for concurrent use.
type Schema struct {
	set  *Set
	tags map[string]string // under leafTables=auto: table or db.table -> tag

	mu     sync.Mutex
	tables map[catalog.Name]*tableLookup
}

// A tableLookup is one lookup of a table, shared by all statements that need it.
type tableLookup struct {
	done     chan struct{}  // closed when the other fields are set
	finished bool           // done is closed; guarded by the mu of the schema that began the lookup
	found    *catalog.Table // nil: there is no such table
	table    *insert.Table  // nil: the table is not configured, or does not exist
	err      error
}

// without returns a new schema without the tables for which stale returns true. known reports whether s has an
// entry of such a table.
func (s *Schema) without(stale func(catalog.Name) bool) (n *Schema, known bool) {
	n = s.set.newSchema(s.tags)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.tables {
		switch {
		case stale(name):
			known = true
		case l.finished: // pending lookups are not copied: one that fails removes its entry from s, and would not remove it from n
			n.tables[name] = l
		}
	}
	return n, known
}

// Forget discards the entries of stale tables, so that the next statements that name them look them up again.
func (set *Set) Forget(stale func(catalog.Name) bool) {
	for {
		s := set.Schema.Load()
		if n, known := s.without(stale); !known || set.Schema.CompareAndSwap(s, n) {
			return
		}
	}
}

// Lookup returns the configured table of a name, or nil without an error if there is nothing to
// fill. name has to be from Set.NormalizeName. The error is ErrNotInCatalog if the catalog has no such table, a
// *catalog.Failure if the server does not answer or ctx ends, or the table's *insert.Refusal.
func (s *Schema) Lookup(ctx context.Context, name catalog.Name) (*insert.Table, error) {
	rule, ok := s.findRule(name)
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	l, ok := s.tables[name]
	if !ok {
		l = &tableLookup{done: make(chan struct{})}
		s.tables[name] = l
		// All waiting statements share the outcome, so no statement's context ends the lookup.
		go s.readTable(rule, name, l)
	}
	finished := l.finished
	s.mu.Unlock()
	if !finished { // most lookups are: Done may start a timer
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, &catalog.Failure{What: "table " + name.String(), Err: ctx.Err()}
		}
	}
	if l.err == nil && l.found == nil {
		return nil, ErrNotInCatalog
	}
	return l.table, l.err
}

// ErrNotInCatalog means that the catalog has no such table: it does not exist, or
// is a temporary table, or the user may not see it.
var ErrNotInCatalog = errors.New("leafsql: no such table in the catalog")

// readTable reads one table from the catalog. Failures are not cached: once the
// table is fixed, the next statement works.
func (s *Schema) readTable(rule rules.Rule, name catalog.Name, l *tableLookup) {
	ctx, cancel := context.WithTimeout(s.set.ctx, catalog.Timeout)
	defer cancel()
	seen, err := s.set.readTables(ctx, []catalog.Name{name})
	if err != nil {
		l.err = &catalog.Failure{What: "the columns of table " + name.String(), Err: err}
	} else if l.found = seen[name]; l.found != nil {
		l.table, l.err = s.set.describeTable(rule, name, l.found)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.finished = true; l.err != nil || l.found == nil {
		delete(s.tables, name)
	}
	close(l.done)
}

// readCatalog reads tables from the catalog. On servers with the bug MDEV-36026 it first finds out on which of the
// tables this user has the TRIGGER privilege. The triggers are then read on a new connection, because a connection
// has only the rights that were granted before it was opened.
func (set *Set) readCatalog(ctx context.Context, names []catalog.Name) (tables map[catalog.Name]*catalog.Table, err error) {
	_, matters := versions.HasNullColumnsBug(set.Server.Settings.MariaDB, set.Server.Settings.Version)
	var sees map[catalog.Name]bool
	if matters {
		sees, err = set.Catalog.FindTriggerRights(ctx, names)
	}
	if err == nil {
		tables, err = set.Catalog.Tables(ctx, names)
	}
	for name, t := range tables {
		t.TriggersHidden = matters && len(t.Triggers) == 0 && !sees[name] // if the user can see one trigger, there are no hidden ones
	}
	return tables, err
}

// readTables reads tables, their triggers and the routines that these call.
func (set *Set) readTables(ctx context.Context, names []catalog.Name) (map[catalog.Name]*catalog.Table, error) {
	tables, err := set.readCatalog(ctx, names)
	for name, t := range tables {
		for i, tr := range t.Triggers {
			if t.Triggers[i].Effects, err = set.Server.TriggerEffects(ctx, name.DB, tr); err != nil {
				return nil, err
			}
		}
	}
	return tables, err
}

// findRule returns the rule that applies to a table, and reports whether the table has to be filled.
func (s *Schema) findRule(name catalog.Name) (rules.Rule, bool) {
	set := s.set
	if set.Config.Auto {
		tag, ok := s.tags[name.String()]
		if !ok && name.DB == set.DefaultDB {
			tag, ok = s.tags[name.Table]
		}
		return rules.Rule{Table: name.Table, Kind: rules.Segment, Tag: tag}, ok
	}
	for _, r := range set.rules {
		inDB := name.DB == set.DefaultDB || set.DefaultDB == ""
		if r.Database != "" {
			inDB = rules.Match(r.Database, name.DB)
		}
		if inDB && rules.Match(r.Table, name.Table) {
			if r.Database+set.DefaultDB+r.Tag == "" { // each database has its own counters
				r.Tag = name.DB + "." + rules.TagOf(r, name.Table)
			}
			return r, !r.Exclude
		}
	}
	return rules.Rule{}, false
}

// MayBeConfigured reports whether a name without a database may mean a configured table in some database.
func (s *Schema) MayBeConfigured(table string) bool {
	table = s.set.NormalizeName("", table).Table
	for tag := range s.tags {
		if tag == table || strings.HasSuffix(tag, "."+table) {
			return true
		}
	}
	return slices.ContainsFunc(s.set.rules, func(r rules.Rule) bool { return !r.Exclude && rules.Match(r.Table, table) })
}

// IsConfigured reports whether a rule or a tag names the table, so that its rows are filled.
func (s *Schema) IsConfigured(name catalog.Name) bool {
	_, ok := s.findRule(name)
	return ok
}

// Refresh reads all known tables again, with one query for up to 100 tables, and forgets the tables that have
// changed. Statements continue to use the known tables in the meantime, and also if the server does not answer.
// After an error the known tables are unchanged.
func (set *Set) Refresh() error {
	ctx, cancel := context.WithTimeout(set.ctx, catalog.Timeout)
	defer cancel()
	old := set.Schema.Load()
	tags := old.tags
	if set.Config.Auto {
		var err error
		if tags, err = set.readTags(ctx); err != nil {
			return err
		}
	}
	old.mu.Lock()
	known := maps.Clone(old.tables)
	maps.DeleteFunc(known, func(_ catalog.Name, l *tableLookup) bool { return !l.finished })
	old.mu.Unlock()
	seen, err := set.readTables(ctx, slices.Collect(maps.Keys(known)))
	if err != nil {
		return err
	}
	if !maps.Equal(old.tags, tags) {
		set.Schema.Store(set.newSchema(tags))
		return nil
	}
	set.Forget(func(name catalog.Name) bool {
		l, ok := known[name]
		return ok && !reflect.DeepEqual(l.found, seen[name])
	})
	return nil
}

// refreshPeriodically refreshes the schema until the Connector is closed. If no statement has
// used the schema since the last time, it forgets all tables first. The intervals are random, so that processes that
// start together, or meet the same outage, do not refresh in the same second from then on.
func (set *Set) refreshPeriodically() {
	wait := rand.N(RefreshInterval)
	for {
		select {
		case <-set.ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = RefreshInterval - rand.N(RefreshInterval/4)
		if !set.Used.Swap(false) {
			set.Forget(func(catalog.Name) bool { return true })
		}
		if set.Refresh() != nil {
			wait = refreshRetryInterval
		}
	}
}

// readTags returns leaf_alloc's tags. The map's keys are the names of the tables that the tags may mean.
func (set *Set) readTags(ctx context.Context) (map[string]string, error) {
	rows, err := set.Store.Alloc.Tags(ctx)
	return lo.SliceToMap(rows, func(r control.Row) (name, tag string) { return set.NormalizeName("", r.Tag).Table, r.Tag }), err
}
