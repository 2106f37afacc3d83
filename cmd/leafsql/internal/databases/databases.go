// Package databases opens the databases that use one leaf_alloc: the database of a mysql-leaf DSN, the shards that are
// given with it, and the database that contains leaf_alloc.
//
//	set, err := databases.Open(ctx, dsn, shards)
//	defer set.Close()
//	for _, s := range set.Shards { … }
//
// The package only opens connections; it does not fetch ids or lease a worker id. Its errors are for people: they
// contain the server and the user, but no password.
package databases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/spec"
)

// A Set contains the databases that use one leaf_alloc.
type Set struct {
	Shards []*Shard // the first is the database of -dsn
	Store  *Store
}

// A Shard is a database with tables that get ids.
type Shard struct {
	*Server
	Config        *driver.Config
	HasLeafParams bool // its DSN has leaf parameters
}

// A Store is one of leafsql's own tables (leaf_alloc or leaf_worker) and the server that has it.
type Store struct {
	*Server
	Database, Table string
}

// PlainName returns the table's name without quotes, db.table.
func (s *Store) PlainName() string { return s.Database + "." + s.Table }

// LeaseTable returns the table of worker ids, leaf_worker, in the same database. It has the Server of s.
func (s *Store) LeaseTable() *Store { return &Store{s.Server, s.Database, "leaf_worker"} }

// UsesLeaseTable reports whether the worker ids of the shard's snowflakes come from LeaseTable:
// leafWorker=mysql(), which is the default.
func (s *Shard) UsesLeaseTable() bool {
	if s.Config.Worker == "" {
		return slices.ContainsFunc(s.Config.Tables, func(r driver.Rule) bool { return r.Kind == driver.Snowflake })
	}
	name, _, _ := spec.Parse(s.Config.Worker)
	return name == "mysql"
}

// LeasesWorkers reports whether processes with the shard's DSN lease worker ids. They do if a table has
// snowflakes, and leafsql serve does with leafTables=none. It returns false for fixed worker ids, which are not leased. It does not
// evaluate env(NAME), since the variable may not be set here.
func (s *Shard) LeasesWorkers() bool {
	cfg := s.Config
	switch name, _, _ := spec.Parse(cfg.Worker); name {
	case "static", "env", "ordinal":
		return false
	}
	return s.UsesLeaseTable() || cfg.Worker != "" && (cfg.None ||
		slices.ContainsFunc(cfg.Tables, func(r driver.Rule) bool { return r.Kind == driver.Snowflake }))
}

// QuotedName returns the table's quoted name for SQL on any connection of the server.
func (s *Store) QuotedName() string { return quote.Qualified(s.Database, s.Table) }

// Open connects to the database of dsn, to the shards, and to the leaf_alloc of dsn. A shard's DSN without leaf
// parameters inherits the leaf parameters of dsn. dsn and shards may have the form env:NAME. If Open returns no
// error, the caller has to call Close.
func Open(ctx context.Context, dsn string, shards []string) (set *Set, err error) {
	set = &Set{}
	defer func() {
		if err != nil {
			set.Close()
		}
	}()
	for i, text := range append([]string{dsn}, shards...) {
		text, err := ResolveDSN(text)
		if err != nil {
			return set, err
		}
		cfg, err := ParseDSN(text)
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
				return set, fmt.Errorf("leafsql: -shard %s: it has the database of -dsn or of another -shard; name each database once", server.Label)
			}
		}
		set.Shards = append(set.Shards, &Shard{Server: server, Config: cfg, HasLeafParams: own})
	}
	set.Store, err = openStore(ctx, set.Shards[0])
	return set, err
}

// ResolveDSN returns a DSN of the command line: env:NAME refers to an environment variable, which other users of
// the machine cannot see. It fails if the variable is unset or empty.
func ResolveDSN(dsn string) (string, error) {
	name, ok := strings.CutPrefix(dsn, "env:")
	if !ok {
		return dsn, nil
	}
	if v := os.Getenv(name); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("leafsql: the environment variable %s is not set; set it to the DSN", name)
}

// ParseDSN parses a DSN. It adds a hint to errors of go-sql-driver, which have none.
func ParseDSN(dsn string) (*driver.Config, error) {
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

// DifferingStore returns the names of two tables if they differ: theirs is the leaf_alloc of a shard's DSN, and ours is the
// leaf_alloc that the set uses. Both are "" if the tables are the same, or if the shard's DSN has no leaf parameters.
func (s *Set) DifferingStore(ctx context.Context, shard *Shard) (theirs, ours string, err error) {
	if !shard.HasLeafParams || shard == s.Shards[0] {
		return "", "", nil
	}
	other, err := openStore(ctx, shard)
	if err != nil {
		return "", "", err
	}
	if other.Server != shard.Server {
		defer other.DB.Close()
	}
	if other.ID == s.Store.ID && other.Database == s.Store.Database && other.Table == s.Store.Table {
		return "", "", nil
	}
	return other.QuotedName() + " on " + other.Label, s.Store.QuotedName() + " on " + s.Store.Label, nil
}

// openStore opens the leaf_alloc of a shard's DSN.
func openStore(ctx context.Context, shard *Shard) (*Store, error) {
	if shard.Config.Store != "" {
		return OpenStore(ctx, shard.Config.Store, shard.Config.AllocTable)
	}
	return newStore(shard.Server, shard.Config.AllocTable)
}

// OpenStore opens the leaf_alloc of a DSN. table is its name, [db.]table. The caller has to close the DB of the
// Store.
func OpenStore(ctx context.Context, dsn, table string) (*Store, error) {
	cfg, err := ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	server, err := connect(ctx, cfg.MySQL)
	if err != nil {
		return nil, err
	}
	store, err := newStore(server, table)
	if err != nil {
		server.DB.Close()
	}
	return store, err
}

func newStore(server *Server, table string) (*Store, error) {
	store := &Store{Server: server, Database: server.Database, Table: table}
	if db, table := quote.Split(table); db != "" {
		store.Database, store.Table = db, table
	}
	if store.Database == "" {
		return nil, errors.New("leafsql: the DSN has no database for leaf_alloc; add one, or set leafStore or leafAllocTable=db.leaf_alloc")
	}
	return store, nil
}

// Close closes all connections. It may be called more than once.
func (s *Set) Close() {
	for _, shard := range s.Shards {
		shard.DB.Close()
	}
	if s.Store != nil {
		s.Store.DB.Close()
	}
}
