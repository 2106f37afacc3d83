package ids

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/driver/internal/ownpool"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/worker"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
)

// SequenceTable is the table of sequences.
const SequenceTable = "t_sequence"

// storeConns bounds a store's pool. Fetches of one tag are one at a time, so
// this many tags can fetch at once.
const storeConns = 4

// A Database holds a leaf_alloc.
type Database struct {
	Connector driver.Connector
	Name      string // "": that of the connections
	Table     string // [db.]leaf_alloc there
}

// table is the table's name with its database, so that SQL in errors means the same
// on any connection. Names with a dot in them have no such form.
func (d Database) table() string {
	if d.Name == "" || strings.Contains(d.Name+d.Table, ".") {
		return d.Table
	}
	return d.Name + "." + d.Table
}

// StoreConfig says where counters are.
type StoreConfig struct {
	Databases []Database // several share the id space; the first also holds t_sequence and leaf_worker
	Key       string     // equal for configurations with the same Databases; "": nobody shares this one
	Name      string     // of the first database, for people
	Home      Home
	Create    bool // one of several that has lost its rows gets them again

	Replacement segment.Store // instead of leaf_alloc and t_sequence
	Logger      *slog.Logger
}

// A Store is one leaf_alloc with the generators that draw on it. Pools of one
// process that name the same one share it, and so the segments: two pools must
// not each draw ranges that one of them would waste. Leases of worker ids that
// are kept beside it share its connections.
type Store struct {
	Table string // of the first database, as SQL on any connection names it

	key  storeKey
	name string
	home Home

	dbs       []*sql.DB              // of Databases
	alloc     Alloc                  // nil for a replacement
	sequences *segment.SequenceStore // nil where there are several leaf_alloc, or a replacement
	segments  segment.Store          // alloc, or the replacement
	log       *slog.Logger
	epoch     atomic.Int64
	warned    bool // guarded by telling

	mu         sync.Mutex
	feeds      map[Counter]map[string]bool // the databases of their tables
	generators map[Counter]*segment.Generator
	creating   map[Counter]chan struct{} // holds a token while the row is looked for and added
}

// storeKey is equal for configurations that mean the same counters.
type storeKey struct {
	databases string
	restores  bool         // of several stores: what is lost is restored by who may
	own       *StoreConfig // of a store that nobody shares
}

// A Counter names a row that ids are drawn from: of leaf_alloc, or of t_sequence.
type Counter struct {
	Name     string // biz_tag, or the sequence's name
	Sequence bool
}

// Rows are the rows of leaf_alloc or of t_sequence.
type Rows interface {
	segment.Store
	Create(ctx context.Context) error
	Ensure(ctx context.Context, tag string, next, step int64) error
}

// Alloc is one leaf_alloc, or several.
type Alloc interface {
	Rows
	Tags(ctx context.Context) ([]segment.Row, error)
}

var stores = shared[storeKey, *Store]{close: (*Store).end}

// OpenStore opens or shares a store. Nothing connects yet.
func OpenStore(ctx context.Context, cfg StoreConfig) (*Store, error) {
	key := storeKey{databases: cfg.Key, restores: cfg.Create && len(cfg.Databases) > 1}
	if cfg.Key == "" || cfg.Replacement != nil {
		key.own = &cfg
	}
	return stores.get(ctx, key, func(<-chan struct{}) (*Store, error) { return newStore(key, cfg), nil })
}

func newStore(key storeKey, cfg StoreConfig) *Store {
	s := &Store{Table: cfg.Databases[0].table(), key: key, name: cfg.Name, log: cfg.Logger, home: cfg.Home, feeds: make(map[Counter]map[string]bool),
		generators: make(map[Counter]*segment.Generator), creating: make(map[Counter]chan struct{})}
	s.epoch.Store(1)
	alive.Store(s, nil)
	var allocs []*segment.AllocStore
	for _, d := range cfg.Databases {
		db := ownpool.Open(d.Connector, storeConns)
		s.dbs = append(s.dbs, db)
		allocs = append(allocs, segment.NewAllocStore(sqlx.NewDb(db, "mysql"), d.table()))
	}
	switch {
	case cfg.Replacement != nil:
		s.segments = cfg.Replacement
		return s
	case len(allocs) > 1:
		s.alloc = segment.NewInterleaved(allocs, cfg.Create, s.log)
	default:
		s.alloc = allocs[0]
		s.sequences = segment.NewSequenceStore(sqlx.NewDb(s.dbs[0], "mysql"), SequenceTable)
	}
	s.segments = s.alloc
	return s
}

// Generator returns the one generator of a counter.
func (s *Store) Generator(c Counter) *segment.Generator {
	g, made := s.generator(c)
	if made {
		s.warnOther(c)
	}
	return g
}

func (s *Store) generator(c Counter) (g *segment.Generator, made bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.generators[c]
	if !ok {
		store := s.segments
		if c.Sequence {
			store = s.sequences
		}
		g = segment.New(store, c.Name, &segment.Options{Logger: s.log})
		s.generators[c] = g
	}
	return g, !ok
}

// GeneratorFor is Generator for a column that holds no id above highest. Several stores,
// and replacements, may give any.
func (s *Store) GeneratorFor(c Counter, highest int64) *segment.Generator {
	g := s.Generator(c)
	if c.Sequence || s.alloc != nil && !s.Several() {
		g.Fit(highest)
	}
	return g
}

// Stats are those of all generators.
func (s *Store) Stats() map[Counter]segment.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := make(map[Counter]segment.Stats, len(s.generators))
	for c, g := range s.generators {
		stats[c] = g.Stats()
	}
	return stats
}

// Alloc is leaf_alloc, nil where something else replaces it.
func (s *Store) Alloc() Alloc { return s.alloc }

// Several reports whether several leaf_alloc share the id space.
func (s *Store) Several() bool { return len(s.dbs) > 1 }

// Rows are where a counter's row is, nil where it has none.
func (s *Store) Rows(sequence bool) Rows {
	switch {
	case sequence && s.sequences != nil:
		return s.sequences
	case !sequence && s.alloc != nil:
		return s.alloc
	}
	return nil
}

// ReadRow reads a counter's row, of several stores as it stands at the highest key.
func ReadRow(ctx context.Context, rows Rows, name string, highest int64) (segment.Row, error) {
	if s, ok := rows.(*segment.Interleaved); ok {
		return s.RowAt(ctx, name, highest)
	}
	return rows.(interface {
		Row(ctx context.Context, name string) (segment.Row, error)
	}).Row(ctx, name)
}

// Look is ReadRow for who is about to draw from the row. Of leaf_alloc alone it is the
// generator's own look, which it needs before its first fetch.
func (s *Store) Look(ctx context.Context, c Counter, highest int64) (segment.Row, error) {
	if c.Sequence || s.Several() {
		return ReadRow(ctx, s.Rows(c.Sequence), c.Name, highest)
	}
	r, err := s.Generator(c).Look(ctx)
	return segment.Row{Tag: c.Name, MaxID: r.Start, Step: r.Step}, err
}

// Create lets one at a time look for a counter's row and add it, until release is called.
// first is true for the first who does.
func (s *Store) Create(ctx context.Context, c Counter) (first bool, release func(), err error) {
	s.mu.Lock()
	turn, ok := s.creating[c]
	if !ok {
		turn = make(chan struct{}, 1)
		s.creating[c] = turn
	}
	s.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return !ok, func() { <-turn }, nil
	case <-ctx.Done():
		return false, nil, ctx.Err()
	}
}

// workers opens the source of worker ids in the table beside leaf_alloc.
func (s *Store) workers(create bool) func(context.Context) (worker.Source, error) {
	table := "leaf_worker"
	if db, _, ok := strings.Cut(s.Table, "."); ok {
		table = db + "." + table
	}
	return func(context.Context) (worker.Source, error) {
		return workermysql.Open(s.dbs[0], workermysql.Config{Table: table, Create: create, Name: s.name}), nil
	}
}

// Close lets go of the store: its last user ends the generators.
func (s *Store) Close() error { return stores.release(s.key) }

// end ends the generators at the same time, since a server that does not answer lets
// each take a while.
func (s *Store) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var closing sync.WaitGroup
	for _, g := range s.generators {
		closing.Go(func() { g.Close() })
	}
	closing.Wait()
	alive.Delete(s)
	var errs []error
	if c, ok := s.alloc.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	for _, db := range s.dbs {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}
