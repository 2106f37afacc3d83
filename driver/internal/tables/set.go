// Package tables holds the tables that a configuration means on one server: which they
// are, what the server shows of them, and how their rows get ids.
//
//	set := tables.New(config, catalog, store, snowflakes)
//	err := set.Learn(ctx, conn, "shop")
//	desc, err := set.Schema.Load().Lookup(ctx, set.Name("shop", "orders")) // nil: nothing to fill
//	err = desc.Draw(ctx, session, &block)
//
// In the order in which they build on one another:
//
//	describe.go  what plans need of a table
//	schema.go    what is known of tables, and for how long
//	learn.go     what is read before the first statement
//	inspect.go   the same judgement for the command, without a statement
//
// It reads no statement of the application. It uses the application's connection for one
// question only: for the highest key of a table that this connection has locked.
package tables

import (
	"context"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/counters"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/idgen"
)

// A Set is the tables that a configuration means on one server. All connections of a
// Connector share it.
type Set struct {
	counters.Counters

	// Settings are the server's version, and DefaultDB is the database that bare rules
	// mean, as names compare: both are known once Learn has run.
	Settings  insert.Settings
	DefaultDB string

	Schema atomic.Pointer[Schema] // what is known now
	Used   atomic.Bool            // a statement used that since it was refreshed

	rules []rules.Rule // the first that matches counts

	ctx    context.Context // of what runs in the background; ends with Close
	cancel context.CancelFunc

	learned  atomic.Bool
	learning *semaphore.Weighted // of 1, held while that is done
}

// New returns the set of a configuration. It asks nothing yet.
func New(cfg rules.Config, c *catalog.Catalog, store *ids.Store, snowflakes idgen.Generator) *Set {
	set := &Set{
		Counters: counters.Counters{Config: cfg, Catalog: c, Store: store, Snowflakes: snowflakes},
		rules:    rules.BySpecificity(cfg.Rules), learning: semaphore.NewWeighted(1),
	}
	set.ctx, set.cancel = context.WithCancel(context.Background())
	set.Schema.Store(set.newSchema(nil))
	return set
}

func (set *Set) newSchema(tags map[string]string) *Schema {
	return &Schema{set: set, tags: tags, tables: make(map[catalog.Name]*tableLookup)}
}

// Programs returns a reader of the server's stored programs.
func (set *Set) Programs() *staged.Programs {
	return &staged.Programs{Catalog: set.Catalog, Server: set.Settings}
}

// Idle says that nothing is to be filled.
func (set *Set) Idle() bool { return !set.Config.Auto && len(set.rules) == 0 }

// Close ends what runs in the background, and the catalog.
func (set *Set) Close() error {
	set.cancel()
	return set.Catalog.Close()
}

// Name is a table's name as names compare on this server.
func (set *Set) Name(db, table string) catalog.Name {
	if set.Catalog.FoldsCase {
		db, table = strings.ToLower(db), strings.ToLower(table)
	}
	return catalog.Name{DB: db, Table: table}
}
