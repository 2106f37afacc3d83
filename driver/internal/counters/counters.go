// Package counters gives the rows of tables their ids, and keeps their counters above the keys in use.
//
//	c := &counters.Counters{Config: config, Catalog: catalog, Store: store}
//	t, err := c.Table(rule, name, fit)
//	err = t.Draw(ctx, session, &block)
//
// In the order in which they build on one another:
//
//	errors.go    why ids cannot be had
//	counts.go    what was given and refused
//	counters.go  what all tables share
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

// Counters hold the data that all tables of a configuration share.
type Counters struct {
	Config     rules.Config
	Catalog    *catalog.Catalog
	Store      *ids.Store
	Snowflakes idgen.Generator // nil: nothing takes them
	Counts     Counts

	said sync.Map // what the log was told, and is told once: string -> struct{}
}

// once is the logger for what is said once for each key.
func (c *Counters) once(key string) *slog.Logger {
	if _, said := c.said.LoadOrStore(key, struct{}{}); said {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log()
}

// Log is the configuration's or, if that has none, the program's as it is now.
func (c *Counters) Log() *slog.Logger {
	return cmp.Or(c.Config.Logger, slog.Default())
}
