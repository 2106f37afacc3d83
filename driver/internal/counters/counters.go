// Package counters issues the ids for the rows of tables, and keeps the counters above the keys in use.
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
//	table.go     ids for a statement's rows, and keys that move the counter
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
