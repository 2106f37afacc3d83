// Package counters issues the ids for the rows of tables, and keeps the counters above the keys in use. A counter is a row
// of leaf_alloc or t_sequence, with its next id. To move a counter above a key is to raise its next id above the key. An
// explicit key is a key that the application's statement contains. The epoch of a store is a number that changes when rows
// of the store may have been lost. To draw ids is to reserve them for a statement.
//
//	c := &counters.Counters{Config: config, Catalog: catalog, Store: store}
//	t, err := c.Table(rule, name, fit)
//	err = t.Draw(ctx, session, &block)
//
// In the order in which they build on one another:
//
//	errors.go    errors
//	counts.go    numbers of issued ids and refused statements
//	counters.go  data that all tables share
//	table.go     ids for a statement's rows, and explicit keys
//	allocrow.go  the row of leaf_alloc, compared with the keys in use
package counters

import (
	"cmp"
	"log/slog"
	"sync"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/idgen"
)

// Counters holds the data that all tables of a configuration share.
type Counters struct {
	Config     rules.Config
	Catalog    *catalog.Catalog
	Store      *ids.Store
	Snowflakes idgen.Generator // generator of the rules of kind snowflake; nil: there is no such rule
	Counts     Counts

	logged sync.Map // keys of messages that are logged only once: string -> struct{}
}

// loggerOnce returns the logger on the first call with a key, and a logger that discards all messages on later calls.
func (c *Counters) loggerOnce(key string) *slog.Logger {
	if _, said := c.logged.LoadOrStore(key, struct{}{}); said {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log()
}

// Log returns the configuration's logger, or slog.Default() if it has none.
func (c *Counters) Log() *slog.Logger {
	return cmp.Or(c.Config.Logger, slog.Default())
}
