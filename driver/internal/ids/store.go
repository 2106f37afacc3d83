// Package ids holds where ids come from, shared by all pools of the process: the
// generators that draw on one leaf_alloc ([Store]), and the snowflakes that are made
// with one worker id ([Snowflakes]).
//
//	store, err := ids.OpenStore(ids.StoreConfig{Key: dsn, Connector: connector, Table: "leaf_alloc"})
//	first, err := store.Counter(ids.Tag{Name: "orders"}).Next(ctx, 3)
//	err = store.Close()
//
// Opening the same Store or Snowflakes twice gives the same one, which is closed when its
// last user closes it. The package knows no tables, rules or DSNs, and reads no row
// before an id is wanted.
package ids

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/driver/internal/ownpool"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/worker"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
	"github.com/leafsql/leafsql/internal/quote"
)

// SequenceTable is the table of sequences.
const SequenceTable = "t_sequence"

// storeConns bounds a store's pool. Fetches of one tag are one at a time, so
// this many tags can fetch at once.
const storeConns = 4

// StoreConfig says where counters are.
type StoreConfig struct {
	Connector driver.Connector // of the database, which also holds t_sequence and leaf_worker
	Table     string           // [db.]leaf_alloc there
	Key       string           // equal for configurations with the same Connector and Table; "": nobody shares this one
	Name      string           // of the database, for people
	Home      Home

	Replacement segment.Store // instead of leaf_alloc and t_sequence
	Logger      *slog.Logger
}

// A Store is one leaf_alloc with the generators that draw on it. Pools of one
// process that name the same one share it, and so the segments: two pools must
// not each draw ranges that one of them would waste. Leases of worker ids that
// are kept beside it share its connections.
type Store struct {
	Name  string              // of the database, for people
	Table string              // there, as SQL on any connection names it
	Alloc *segment.AllocStore // nil where something else replaces it
	Epoch atomic.Int64        // changes when rows that were looked at may be gone

	key       storeKey
	home      Home
	db        *sql.DB
	sequences *segment.SequenceStore // nil where there is a replacement
	segments  segment.Store          // Alloc, or the replacement
	log       *slog.Logger
	warned    bool // guarded by telling

	mu       sync.Mutex
	counters map[Tag]*Counter
}

// storeKey is equal for configurations that mean the same counters.
type storeKey struct {
	database string
	own      *StoreConfig // of a store that nobody shares
}

// Rows are the rows of leaf_alloc or of t_sequence.
type Rows interface {
	segment.Store
	Create(ctx context.Context) error
	EnsureWithin(ctx context.Context, tag string, next, step, highest int64) error
	Row(ctx context.Context, tag string) (segment.Row, error)
}

var stores = shared[storeKey, *Store]{close: (*Store).end}

// OpenStore opens or shares a store. Nothing connects yet.
func OpenStore(cfg StoreConfig) (*Store, error) {
	key := storeKey{database: cfg.Key}
	if cfg.Key == "" || cfg.Replacement != nil {
		key.own = &cfg
	}
	return stores.get(key, func(<-chan struct{}) (*Store, error) { return newStore(key, cfg), nil })
}

func newStore(key storeKey, cfg StoreConfig) *Store {
	s := &Store{Name: cfg.Name, Table: cfg.Table, key: key, home: cfg.Home, log: cfg.Logger, counters: make(map[Tag]*Counter)}
	s.Epoch.Store(1)
	alive.Store(s, nil)
	s.db = ownpool.Open(cfg.Connector, storeConns)
	if s.segments = cfg.Replacement; s.segments == nil {
		db := sqlx.NewDb(s.db, "mysql")
		s.Alloc, s.sequences = segment.NewAllocStore(db, s.Table), segment.NewSequenceStore(db, SequenceTable)
		s.Alloc.Logger, s.segments = s.log, s.Alloc
	}
	return s
}

// workers opens the source of worker ids in the table beside leaf_alloc.
func (s *Store) workers(create bool) func(context.Context) (worker.Source, error) {
	table := "leaf_worker"
	if db, _ := quote.Split(s.Table); db != "" {
		table = db + "." + table
	}
	return func(context.Context) (worker.Source, error) {
		return workermysql.Open(s.db, workermysql.Config{Table: table, Create: create, Name: s.Name, Logger: s.log}), nil
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
	for _, c := range s.counters {
		closing.Go(func() { c.Close() })
	}
	closing.Wait()
	alive.Delete(s)
	return s.db.Close()
}
