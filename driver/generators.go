package driver

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
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

	db    *sql.DB
	where string              // the database, for people
	alloc *segment.AllocStore // nil for a store of the caller's
	store segment.Store
	log   *slog.Logger

	mu   sync.Mutex
	tags map[string]*segment.Generator
}

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
			refs: 1, db: ownPool(own, storeConns), where: describe(cfg.MySQL), store: cfg.SegmentStore,
			log: cfg.logger(), tags: make(map[string]*segment.Generator),
		}, nil
	}
	connector, key, where := own, "", describe(cfg.MySQL)
	switch {
	case cfg.Store != "":
		store, err := ParseDSN(cfg.Store)
		if err != nil {
			return nil, &ConfigError{"leafStore", err.Error(), "it takes a go-sql-driver DSN"}
		}
		if connector, err = mysql.NewConnector(ownMySQL(store.MySQL)); err != nil {
			return nil, &ConfigError{"leafStore", err.Error(), "it takes a go-sql-driver DSN"}
		}
		key, where = store.MySQL.FormatDSN(), describe(store.MySQL)
	case cfg.MySQL != nil:
		key = cfg.MySQL.FormatDSN()
	}
	key += "\x00" + cfg.AllocTable

	shared.Lock()
	defer shared.Unlock()
	if s, ok := shared.segments[key]; ok && key[0] != 0 {
		s.refs++
		return s, nil
	}
	db := ownPool(connector, storeConns)
	alloc := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), cfg.AllocTable)
	s := &segments{
		key: key, refs: 1, db: db, where: where, alloc: alloc, store: alloc,
		log: cfg.logger(), tags: make(map[string]*segment.Generator),
	}
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

// retain adds an owner, who releases it.
func (s *segments) retain() {
	shared.Lock()
	defer shared.Unlock()
	s.refs++
}

// generator returns the one generator of a tag.
func (s *segments) generator(tag string) *segment.Generator {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.tags[tag]
	if !ok {
		g = segment.New(s.store, tag, &segment.Options{Logger: s.log})
		s.tags[tag] = g
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
	return s.db.Close()
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
func (g generators) alloc() *segment.AllocStore { return g.segments.alloc }

func (g generators) close() error {
	return errors.Join(g.segments.release(), g.snowflakes.release())
}
