// Package ids holds the sources of ids, shared by all pools of the process: the
// generators with counters in one leaf_alloc ([Store]), and the snowflake generators with
// one worker id each ([Snowflakes]).
//
//	store, err := ids.OpenStore(ids.StoreConfig{Key: dsn, Connector: connector, Table: "leaf_alloc"})
//	first, err := store.Counter(ids.Tag{Name: "orders"}).Next(ctx, 3)
//	err = store.Close()
//
// Opening an equal Store or Snowflakes again returns the same value, which is closed when its
// last user closes it. The package does not depend on tables, rules or DSNs, and reads no row
// before an id is requested.
package ids

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/worker"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/quote"
)

// SequenceTable is the table of sequences.
const SequenceTable = "t_sequence"

// storeConns is the size of a store's pool. A tag makes one fetch at a time, so
// this many tags can fetch at once.
const storeConns = 4

// StoreConfig is the location of the counters.
type StoreConfig struct {
	Connector driver.Connector // opens connections to the database of t_sequence, leaf_worker and leaf_alloc
	Table     string           // [db.]leaf_alloc there
	Key       string           // equal for configurations with the same Connector and Table; "": the store is not shared
	Name      string           // name of the database, for messages
	Home      Home

	Replacement segment.Store // used instead of leaf_alloc and t_sequence; nil: no replacement
	Logger      *slog.Logger
}

// A Store is one leaf_alloc with the generators that fetch ids from it. Pools of one
// process with the same configuration share the store and its segments: with a store
// for each pool, ranges would be wasted. Leases of worker ids in the same database
// use the store's connections. A Store is safe for concurrent use.
type Store struct {
	StoreConfig
	Alloc control.AllocRows // nil if there is a replacement
	Epoch atomic.Int64      // changes when rows that were read may have been deleted

	key       storeKey
	db        *sql.DB
	sequences segment.Store // nil if there is a replacement
	segments  segment.Store // leaf_alloc, or the replacement
	warned    bool          // guarded by warnMu
	tableLock *semaphore.Weighted

	mu       sync.Mutex
	counters map[Tag]*Counter
}

// storeKey is equal for configurations with the same counters.
type storeKey struct {
	database string
	own      *StoreConfig // identifies a store that is not shared
}

var stores = shared[storeKey, *Store]{close: (*Store).closeAll}

// OpenStore returns a new store, or an open one with an equal configuration. The caller has to close it.
// OpenStore does not connect to the database, and always returns a nil error.
func OpenStore(cfg StoreConfig) (*Store, error) {
	key := storeKey{database: cfg.Key}
	if cfg.Key == "" || cfg.Replacement != nil {
		key.own = &cfg
	}
	return stores.get(key, func(<-chan struct{}) (*Store, error) { return newStore(key, cfg), nil })
}

func newStore(key storeKey, cfg StoreConfig) *Store {
	s := &Store{StoreConfig: cfg, key: key, tableLock: semaphore.NewWeighted(1), counters: make(map[Tag]*Counter)}
	s.Epoch.Store(1)
	openStores.Store(s, nil)
	s.db = pool.Open(cfg.Connector, storeConns)
	if s.segments = cfg.Replacement; s.segments == nil {
		db := sqlx.NewDb(s.db, "mysql")
		alloc := segment.NewAllocStore(db, s.Table)
		alloc.Logger = s.Logger
		s.segments, s.sequences, s.Alloc = alloc, segment.NewSequenceStore(db, SequenceTable), control.AllocRowsOf(alloc)
	}
	return s
}

// workerOpener returns the function that opens the source of worker ids in leaf_worker, in leaf_alloc's database.
func (s *Store) workerOpener(create bool) func(context.Context) (worker.Source, error) {
	table := "leaf_worker"
	if db, _ := quote.Split(s.Table); db != "" {
		table = db + "." + table
	}
	return func(context.Context) (worker.Source, error) {
		return workermysql.Open(s.db, workermysql.Config{Table: table, Create: create, Name: s.Name, Logger: s.Logger}), nil
	}
}

// Close ends one use of the store. The last user's Close closes the generators and the store's pool. The error is
// the pool's, and useful only in logs.
func (s *Store) Close() error { return stores.release(s.key) }

// closeAll closes the generators and then the pool. It closes the generators concurrently, since each
// may take a while if the server does not answer.
func (s *Store) closeAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range s.counters {
		closing.Go(func() { c.Close() })
	}
	closing.Wait()
	openStores.Delete(s)
	return s.db.Close()
}
