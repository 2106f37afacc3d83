package ids

import (
	"context"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// SnowflakesConfig says how snowflakes are made.
type SnowflakesConfig struct {
	Layout snowflake.Layout
	Worker worker.Config // Lease, NewRegistry, State and Logger

	// Open opens the source of worker ids. nil: the table leaf_worker beside the
	// leaf_alloc of Store, which is made if Create says so.
	Open   func(context.Context) (worker.Source, error)
	Source string // equal for an equal Open; "": nobody shares this one
	Store  *Store
	Create bool
}

// Snowflakes are one generator with its worker id, which pools with an equal
// source share: a second lease would waste a worker id. Nothing is leased
// before the first id is drawn.
type Snowflakes struct {
	*snowflake.Generator
	Lease time.Duration // of who opened it first
	key   snowflakesKey
}

// snowflakesKey is equal for configurations that mean the same worker id.
type snowflakesKey struct {
	layout snowflake.Layout
	source string
	store  storeKey
	create bool
	own    *SnowflakesConfig // of a source that nobody shares: functions have no equality
}

var snowflakes = shared[snowflakesKey, *Snowflakes]{close: func(s *Snowflakes) error { return s.Generator.Close() }}

// OpenSnowflakes opens or shares a generator. Who passes a Store closes it after the
// generator. The error is about the Worker part of cfg.
func OpenSnowflakes(cfg SnowflakesConfig) (*Snowflakes, error) {
	key := snowflakesKey{layout: cfg.Layout, source: cfg.Source}
	open := cfg.Open
	switch {
	case open == nil:
		key.store, key.create = cfg.Store.key, cfg.Create
		open = cfg.Store.workers(cfg.Create)
	case cfg.Source == "":
		key.own = &cfg
	}
	return snowflakes.get(key, func(before <-chan struct{}) (*Snowflakes, error) {
		g, err := snowflake.New(cfg.Layout, after(before, open), cfg.Worker)
		return &Snowflakes{g, cfg.Worker.Lease, key}, err
	})
}

// after opens a source once an equal one was given back.
func after(before <-chan struct{}, open func(context.Context) (worker.Source, error)) func(context.Context) (worker.Source, error) {
	if before == nil {
		return open
	}
	return func(ctx context.Context) (worker.Source, error) {
		select {
		case <-before:
			return open(ctx)
		case <-ctx.Done():
			return worker.Source{}, fmt.Errorf("leafsql: worker id: an earlier pool has not given it back: %w", context.Cause(ctx))
		}
	}
}

// Close lets go of the generator: its last user gives the worker id back.
func (s *Snowflakes) Close() error { return snowflakes.release(s.key) }
