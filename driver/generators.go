package driver

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
)

// storeConns bounds a store's pool. Fetches of one tag are one at a time, so
// this many tags can fetch at once.
const storeConns = 4

// A segments is one leaf_alloc with the generators that draw on it. Connectors
// of one process that name the same one share it, and so the segments: two
// pools must not each draw ranges that one of them would waste. Leases of worker
// ids that are kept beside it share its pool.
type segments struct {
	key  string // "" is never shared
	refs int    // guarded by shared.Mutex

	dbs       []*sql.DB              // of leaf_alloc, else the application's; the first holds leaf_worker
	where     string                 // the first, for people
	table     string                 // the first's, with its database where leafStore names it
	alloc     allocStore             // nil for a store of the caller's
	sequences *segment.SequenceStore // nil where there are several leaf_alloc
	store     segment.Store
	log       *slog.Logger

	mu   sync.Mutex
	tags map[source]*segment.Generator
}

// source is what a generator draws from: a tag (Segment) or a Sequence.
type source struct{ kind, name string }

var shared = struct {
	sync.Mutex
	segments map[string]*segments
}{segments: make(map[string]*segments)}

// newSegments opens or shares the leaf_alloc that cfg names, with own as the
// connector for the application's database. Nothing connects yet. Its pool is
// never the application's: a fetch must not wait for a transaction that itself
// waits for ids.
func newSegments(cfg *Config, own driver.Connector) (*segments, error) {
	if cfg.SegmentStore != nil {
		return &segments{
			refs: 1, dbs: []*sql.DB{ownPool(own, storeConns)}, where: describe(cfg.MySQL), store: cfg.SegmentStore,
			log: cfg.logger(), tags: make(map[source]*segment.Generator),
		}, nil
	}
	connectors, key, where := []driver.Connector{own}, "", describe(cfg.MySQL)
	tables := []string{cfg.AllocTable}
	switch {
	case cfg.Store != "":
		connectors, tables = nil, nil
		for _, dsn := range cfg.stores() {
			store, err := ParseDSN(dsn)
			if err != nil {
				return nil, &ConfigError{"leafStore", err.Error(), "it takes a go-sql-driver DSN"}
			}
			connector, err := mysql.NewConnector(ownMySQL(store.MySQL))
			if err != nil {
				return nil, &ConfigError{"leafStore", err.Error(), "it takes a go-sql-driver DSN"}
			}
			if connectors = append(connectors, connector); len(connectors) == 1 {
				where = describe(store.MySQL)
			}
			tables = append(tables, inDatabase(store.MySQL.DBName, cfg.AllocTable))
			key += store.MySQL.FormatDSN() + "|"
		}
	case cfg.MySQL != nil:
		key = cfg.MySQL.FormatDSN() + "|"
	}
	key += "\x00" + cfg.AllocTable
	if cfg.Create && len(connectors) > 1 {
		key += "\x00create" // what is lost is restored by who may
	}

	shared.Lock()
	defer shared.Unlock()
	if s, ok := shared.segments[key]; ok && key[0] != 0 {
		s.refs++
		return s, nil
	}
	s := &segments{key: key, refs: 1, where: where, table: tables[0], log: cfg.logger(), tags: make(map[source]*segment.Generator)}
	var stores []*segment.AllocStore
	for i, connector := range connectors {
		db := ownPool(connector, storeConns)
		s.dbs = append(s.dbs, db)
		stores = append(stores, segment.NewAllocStore(sqlx.NewDb(db, "mysql"), tables[i]))
	}
	if len(stores) > 1 {
		s.alloc = segment.NewInterleaved(stores, &segment.InterleavedOptions{Restore: cfg.Create, Logger: s.log})
	} else {
		s.alloc = stores[0]
		s.sequences = segment.NewSequenceStore(sqlx.NewDb(s.dbs[0], "mysql"), sequenceTable)
	}
	s.store = s.alloc
	if key[0] != 0 {
		shared.segments[key] = s
	}
	return s, nil
}

// describe names a database for people, without secrets.
func describe(cfg *mysql.Config) string {
	if cfg == nil {
		return "MySQL"
	}
	return fmt.Sprintf("MySQL %s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
}

// inDatabase is a table's name with its database, so that SQL in errors means the same
// on any connection. Names with a dot in them have no such form.
func inDatabase(db, table string) string {
	if db == "" || strings.Contains(db+table, ".") {
		return table
	}
	return db + "." + table
}

// retain adds an owner, who releases it.
func (s *segments) retain() {
	shared.Lock()
	defer shared.Unlock()
	s.refs++
}

// generator returns the one generator of a tag, or of a sequence.
func (s *segments) generator(kind, name string) *segment.Generator {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := source{kind, name}
	g, ok := s.tags[from]
	if !ok {
		store := s.store
		if kind == Sequence {
			store = s.sequences
		}
		g = segment.New(store, name, &segment.Options{Logger: s.log})
		s.tags[from] = g
	}
	return g
}

// release ends the generators when the last connector lets go: at the same time, since
// a server that does not answer lets each take a while.
func (s *segments) release() error {
	shared.Lock()
	s.refs--
	last := s.refs <= 0
	if last && shared.segments[s.key] == s {
		delete(shared.segments, s.key)
	}
	shared.Unlock()
	if !last {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var closing sync.WaitGroup
	for _, g := range s.tags {
		closing.Go(func() { g.Close() })
	}
	closing.Wait()
	var errs []error
	if c, ok := s.alloc.(io.Closer); ok {
		errs = append(errs, c.Close())
	}
	for _, db := range s.dbs {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// generators are what a connector's tables draw from.
type generators struct {
	segments   *segments
	snowflakes *snowflakes // nil: no worker-id source
}

func newGenerators(cfg *Config, own driver.Connector) (g generators, err error) {
	if g.segments, err = newSegments(cfg, own); err != nil {
		return g, err
	}
	if g.snowflakes, err = newSnowflakes(cfg, g.segments); err != nil {
		g.segments.release() // in this order: a lease of the caller's stays open
	}
	return g, err
}

// alloc is nil where Config.SegmentStore replaces leaf_alloc.
func (g generators) alloc() allocStore { return g.segments.alloc }

func (g generators) close() error {
	return errors.Join(g.segments.release(), g.snowflakes.release())
}
