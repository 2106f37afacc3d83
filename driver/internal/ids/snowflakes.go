package ids

import (
	"context"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// SnowflakesConfig configures the generator of OpenSnowflakes.
type SnowflakesConfig struct {
	Layout snowflake.Layout
	Worker worker.Config // Lease, NewRegistry, AnyClock, State and Logger

	// Open opens the source of worker ids. If Open is nil, the source is the table leaf_worker next
	// to the leaf_alloc of Store. If Create is set, a missing leaf_worker is created.
	Open   func(context.Context) (worker.Source, error)
	Source string // equal for configurations with the same source; "": the generator is not shared
	Store  *Store
	Create bool
}

// Snowflakes is one generator with its worker id. Pools with an equal source
// share it, because a second lease would waste a worker id. The worker id is leased
// when the first id is requested.
type Snowflakes struct {
	*snowflake.Generator
	Lease time.Duration // lease of the first opener's configuration
	key   snowflakesKey
}

// snowflakesKey is equal for configurations that share a worker id.
type snowflakesKey struct {
	layout snowflake.Layout
	source string
	store  storeKey
	create bool
	own    *SnowflakesConfig // identifies a source that is not shared, since functions cannot be compared
}

var snowflakes = shared[snowflakesKey, *Snowflakes]{close: func(s *Snowflakes) error { return s.Generator.Close() }}

// OpenSnowflakes returns a new generator, or an open one with an equal configuration. The caller has to close it,
// before the Store of cfg. Errors come from snowflake.New, for cfg.Layout and cfg.Worker.
func OpenSnowflakes(cfg SnowflakesConfig) (*Snowflakes, error) {
	key := snowflakesKey{layout: cfg.Layout, source: cfg.Source}
	open := cfg.Open
	switch {
	case open == nil:
		key.store, key.create = cfg.Store.key, cfg.Create
		open = cfg.Store.workerOpener(cfg.Create)
	case cfg.Source == "":
		key.own = &cfg
	}
	return snowflakes.get(key, func(before <-chan struct{}) (*Snowflakes, error) {
		g, err := snowflake.New(cfg.Layout, openAfter(before, open), cfg.Worker)
		return &Snowflakes{g, cfg.Worker.Lease, key}, err
	})
}

// openAfter returns a function that waits until before is closed, that is, until earlier generators with an equal source are closed,
// and then calls open.
func openAfter(before <-chan struct{}, open func(context.Context) (worker.Source, error)) func(context.Context) (worker.Source, error) {
	if before == nil {
		return open
	}
	return func(ctx context.Context) (worker.Source, error) {
		select {
		case <-before:
			return open(ctx)
		case <-ctx.Done():
			return worker.Source{}, fmt.Errorf("leafsql: worker id: an earlier pool has not released it: %w", context.Cause(ctx))
		}
	}
}

// Close ends one use of the generator. The last user's Close releases the worker id. The error is useful only in logs.
func (s *Snowflakes) Close() error { return snowflakes.release(s.key) }
