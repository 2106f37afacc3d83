// Package databases opens what a DSN of mysql-leaf names, and its shards: the
// databases whose tables one leaf_alloc feeds, and the one that holds it.
//
//	set, err := databases.Open(ctx, dsn, shards)
//	defer set.Close()
//	for _, s := range set.Shards { … }
//
// It fills nothing, takes no id and no worker id. Its errors name the server and
// the user, and show no password.
package databases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/interleaved"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/spec"
)

// A Set is the databases that one leaf_alloc feeds.
type Set struct {
	Shards []*Shard // the first is the one of -dsn
	Store  *Store   // the first of Stores
	Stores []*Store // one leaf_alloc, or several that share the ids
}

// Several reports whether the ids come from several leaf_alloc (leafStore=A|B|C).
func (s *Set) Several() bool { return len(s.Stores) > 1 }

// Interleaved is what several stores are together.
func (s *Set) Interleaved() *interleaved.Store {
	all := lo.Map(s.Stores, func(o *Store, _ int) interleaved.Table {
		return interleaved.Table{DB: sqlx.NewDb(o.DB, "mysql"), Name: o.Plain()}
	})
	return interleaved.New(all, false, slog.New(slog.DiscardHandler))
}

// RowErrors says which rows of the i-th store give no ids because of what they say of the
// several stores that they are, or are not, named with.
func (s *Set) RowErrors(ctx context.Context, i int) ([]*segment.RowError, error) {
	if !s.Several() {
		return segment.NewAllocStore(sqlx.NewDb(s.Store.DB, "mysql"), s.Store.Plain()).RowErrors(ctx)
	}
	stores := s.Interleaved()
	defer stores.Close()
	return stores.RowErrors(ctx, i)
}

// AllStores is an error where a store does not answer: what is written has to be written
// to all of them.
func (s *Set) AllStores() error {
	for _, store := range s.Stores {
		if store.Away != nil {
			return fmt.Errorf("%w; all stores of leafStore have to answer for this", store.Away)
		}
	}
	return nil
}

// A Shard is one database with tables that get ids.
type Shard struct {
	*Server
	Config *driver.Config
	Own    bool // its DSN has leaf parameters of its own
}

// A Store is a database that holds leaf_alloc.
type Store struct {
	*Server
	Database, Table string
	Away            error // that it does not answer; of one store alone Open fails with it
}

// Plain is the table's name without quotes, db.table.
func (s *Store) Plain() string { return s.Database + "." + s.Table }

// Workers is the table of worker ids beside it.
func (s *Store) Workers() *Store { return &Store{s.Server, s.Database, "leaf_worker", s.Away} }

// LeasesHere reports whether the worker ids of the shard's snowflakes come from the table
// beside leaf_alloc: leafWorker=mysql(), which is the default.
func (s *Shard) LeasesHere() bool {
	if s.Config.Worker == "" {
		return slices.ContainsFunc(s.Config.Tables, func(r driver.Rule) bool { return r.Kind == driver.Snowflake })
	}
	name, _, _ := spec.Parse(s.Config.Worker)
	return name == "mysql"
}

// Name is the table's, as SQL writes it on any connection of the server.
func (s *Store) Name() string { return quote.In(s.Database, s.Table) }

// Open connects to the database of dsn, to the shards, and to the leaf_alloc that
// dsn names. A shard's DSN without leaf parameters has those of dsn.
func Open(ctx context.Context, dsn string, shards []string) (set *Set, err error) {
	set = &Set{}
	defer func() {
		if err != nil {
			set.Close()
		}
	}()
	for i, text := range append([]string{dsn}, shards...) {
		text, err := Lookup(text)
		if err != nil {
			return set, err
		}
		cfg, err := Parse(text)
		if err != nil {
			return set, err
		}
		own := i == 0 || hasLeafParams(text)
		if !own {
			first := set.Shards[0].Config
			inner := cfg.MySQL
			cfg = first.Clone()
			cfg.MySQL = inner
			if cfg.Store == "" {
				cfg.Store = first.MySQL.FormatDSN()
			}
		}
		server, err := connect(ctx, cfg.MySQL)
		if err != nil {
			return set, err
		}
		for _, other := range set.Shards {
			if other.ID == server.ID && other.Database == server.Database {
				server.DB.Close()
				return set, fmt.Errorf("leafsql: -shard %s: it is the database of -dsn, or of another -shard; name each database once", server.Label)
			}
		}
		set.Shards = append(set.Shards, &Shard{Server: server, Config: cfg, Own: own})
	}
	if set.Stores, err = openStores(ctx, set.Shards[0]); err == nil {
		set.Store = set.Stores[0]
	}
	return set, err
}

// Lookup is a DSN given on the command line: env:NAME stands for the value of an
// environment variable, which other users of the machine do not see.
func Lookup(dsn string) (string, error) {
	name, ok := strings.CutPrefix(dsn, "env:")
	if !ok {
		return dsn, nil
	}
	if v := os.Getenv(name); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("leafsql: the environment variable %s is not set; put the DSN there", name)
}

// Parse reads a DSN. What go-sql-driver says of it names no way out.
func Parse(dsn string) (*driver.Config, error) {
	cfg, err := driver.ParseDSN(dsn)
	if err != nil && !strings.HasPrefix(err.Error(), "leafsql: ") {
		err = fmt.Errorf("leafsql: the DSN cannot be read: %w; write user:password@tcp(host:3306)/database", err)
	}
	return cfg, err
}

func hasLeafParams(dsn string) bool {
	inner, err := mysql.ParseDSN(dsn)
	return err == nil && slices.ContainsFunc(slices.Collect(maps.Keys(inner.Params)), func(k string) bool { return strings.HasPrefix(k, "leaf") })
}

// OtherStore finds where the leaf_alloc that a shard's own DSN names is not the set's:
// the first one that differs, or is missing or too many. Both are "" where all are the same.
func (s *Set) OtherStore(ctx context.Context, shard *Shard) (theirs, ours string, err error) {
	if !shard.Own || shard == s.Shards[0] {
		return "", "", nil
	}
	others, err := openStores(ctx, shard)
	if err != nil {
		return "", "", err
	}
	defer closeStores(others, shard.Server)
	where := func(stores []*Store, i int) string {
		if i >= len(stores) {
			return "no store more"
		}
		return stores[i].Name() + " on " + stores[i].Label
	}
	for i := range max(len(others), len(s.Stores)) {
		if i < len(others) && i < len(s.Stores) && others[i].same(s.Stores[i]) {
			continue
		}
		return where(others, i), where(s.Stores, i), nil
	}
	return "", "", nil
}

// same reports whether two stores are one; of one that is away only its address tells.
func (s *Store) same(o *Store) bool {
	if s.Database != o.Database || s.Table != o.Table {
		return false
	}
	if s.Away != nil || o.Away != nil {
		return s.Label == o.Label
	}
	return s.ID == o.ID
}

// openStores opens each leaf_alloc of a shard's DSN. Of several, one may be away.
func openStores(ctx context.Context, shard *Shard) (stores []*Store, err error) {
	defer func() {
		if err != nil {
			closeStores(stores, shard.Server)
		}
	}()
	dsns := strings.Split(shard.Config.Store, "|")
	away := 0
	for _, dsn := range dsns {
		store := &Store{Server: shard.Server, Database: shard.Database, Table: shard.Config.AllocTable}
		if dsn != "" {
			cfg, err := Parse(dsn)
			if err != nil {
				return stores, err
			}
			store.Server, store.Away = connect(ctx, cfg.MySQL)
			if store.Away != nil {
				if away++; away == len(dsns) {
					return stores, store.Away
				}
				store.Server = &Server{Label: Label(cfg.MySQL), Database: cfg.MySQL.DBName}
				if store.DB, err = open(cfg.MySQL, session); err != nil {
					return stores, err
				}
			}
			store.Database = store.Server.Database
		}
		stores = append(stores, store)
		if db, table, ok := strings.Cut(store.Table, "."); ok {
			store.Database, store.Table = db, table
		}
		if store.Database == "" {
			return stores, errors.New("leafsql: the DSN names no database that could hold leaf_alloc; add it, or leafStore, or leafAllocTable=db.leaf_alloc")
		}
	}
	return stores, nil
}

// closeStores closes those that have a pool of their own.
func closeStores(stores []*Store, shards *Server) {
	for _, store := range stores {
		if store.Server != shards {
			store.DB.Close()
		}
	}
}

// Close closes all connections.
func (s *Set) Close() {
	for _, shard := range s.Shards {
		shard.DB.Close()
	}
	for _, store := range s.Stores {
		store.DB.Close()
	}
}
