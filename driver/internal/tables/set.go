// Package tables holds the tables that a configuration names on one server, their
// descriptions from the server, and the sources of their ids.
//
//	set := tables.New(config, catalog, store, snowflakes)
//	err := set.Learn(ctx, conn, "shop")
//	desc, err := set.Schema.Load().Lookup(ctx, set.NormalizeName("shop", "orders")) // nil: nothing to fill
//	err = desc.Draw(ctx, session, &block)
//
// In the order in which they build on one another:
//
//	describe.go  data that plans need about a table
//	schema.go    cached descriptions of tables, and their refresh
//	learn.go     data that is read before the first statement
//	inspect.go   the same decisions for the command, without a statement
//
// The package parses no statements of the application. It uses the application's connection for
// one query only: the highest key of a table that this connection has locked.
package tables

import (
	"context"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/counters"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/idgen"
)

// A Set holds the tables that a configuration names on one server. All connections of a
// Connector share it. It is safe for concurrent use after Learn.
type Set struct {
	counters.Counters

	// DefaultDB is the database of rules that name no database, in the form of NormalizeName. Learn sets it and
	// Server.Settings.
	DefaultDB string
	Server    staged.Server

	Schema atomic.Pointer[Schema] // the current schema
	Used   atomic.Bool            // a statement has used the schema since the last refresh

	rules []rules.Rule // the first match applies

	ctx    context.Context // context of background work; ends with Close
	cancel context.CancelFunc

	learned  atomic.Bool
	learning *semaphore.Weighted // weight 1, held by Learn
}

// New returns the set of a configuration. It sends no queries. The caller has to close the set.
func New(cfg rules.Config, c *catalog.Catalog, store *ids.Store, snowflakes idgen.Generator) *Set {
	set := &Set{
		Counters: counters.Counters{Config: cfg, Catalog: c, Store: store, Snowflakes: snowflakes},
		Server:   staged.Server{Catalog: c},
		rules:    rules.BySpecificity(cfg.Rules), learning: semaphore.NewWeighted(1),
	}
	set.ctx, set.cancel = context.WithCancel(context.Background())
	set.Schema.Store(set.newSchema(nil))
	return set
}

// newSchema returns an empty schema. tags may be nil.
func (set *Set) newSchema(tags map[string]string) *Schema {
	return &Schema{set: set, tags: tags, tables: make(map[catalog.Name]*tableLookup)}
}

// IsEmpty reports whether the configuration names no tables, so that there is nothing to fill.
func (set *Set) IsEmpty() bool { return !set.Config.Auto && len(set.rules) == 0 }

// Close ends the background work and closes the catalog. The error is only for logs.
func (set *Set) Close() error {
	set.cancel()
	return set.Catalog.Close()
}

// NormalizeName returns the name of a table in the form in which this server compares names: in lower case if
// the server ignores case.
func (set *Set) NormalizeName(db, table string) catalog.Name {
	if set.Catalog.FoldsCase {
		db, table = strings.ToLower(db), strings.ToLower(table)
	}
	return catalog.Name{DB: db, Table: table}
}
