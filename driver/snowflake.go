package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	workermysql "github.com/leafsql/leafsql/idgen/worker/mysql"
)

// snowflakes is one generator with its worker id, which pools with an equal
// source share: a second lease would waste a worker id. Nothing is leased
// before the first id is drawn.
type snowflakes struct {
	*snowflake.Generator
	key    snowflakeKey
	lease  time.Duration
	refs   int             // guarded by sharedSnowflakes.Mutex; 0: it is closing
	before <-chan struct{} // closed when that of an equal one before was given back
	over   chan struct{}   // closed when the worker id was, and that before
	store  *segments       // whose database holds the leases; nil: another source does
}

var sharedSnowflakes = struct {
	sync.Mutex
	m map[snowflakeKey]*snowflakes
}{m: make(map[snowflakeKey]*snowflakes)}

// snowflakeKey is equal for configurations that mean the same worker id.
type snowflakeKey struct {
	source string  // leafWorker with its options
	own    *Config // of a WorkerSource, which nobody shares: functions have no equality
	layout snowflake.Layout
}

// defaultWorker is the source of worker ids where leafWorker names none.
const defaultWorker = "mysql()"

// newSnowflakes makes or shares the generator on the source that cfg names, or
// on the database that store is in; nil where nothing takes snowflakes.
func newSnowflakes(cfg *Config, store *segments) (*snowflakes, error) {
	named := cfg.Worker != "" || cfg.WorkerSource != nil
	if !named && !slices.ContainsFunc(cfg.Tables, Rule.takesSnowflakes) {
		return nil, nil
	}
	key := snowflakeKey{layout: snowflake.Leaf}
	var err error
	if cfg.Snowflake != "" {
		if key.layout, err = snowflake.ParseLayout(cfg.Snowflake); err != nil {
			return nil, &ConfigError{"leafSnowflake", strings.TrimPrefix(err.Error(), "leafsql: "), ""}
		}
	}
	open := cfg.WorkerSource
	switch name, address, _ := worker.ParseSpec(cmp.Or(cfg.Worker, defaultWorker)); {
	case open != nil:
		key.own, store = cfg, nil
	case name != "mysql":
		store = nil
		if open, err = worker.Lookup(cfg.Worker, worker.Options(cfg.WorkerOptions)); err != nil {
			return nil, &ConfigError{"leafWorker", strings.TrimPrefix(err.Error(), "leafsql: "),
				"import the source's package for its effect, for example _ \"github.com/leafsql/leafsql/nacos\""}
		}
		key.source = sourceKey(cfg)
	case address != "" || len(cfg.WorkerOptions) > 0:
		return nil, &ConfigError{"leafWorker", "mysql() takes no address and no parameters", "its table is beside leaf_alloc: name that with leafAllocTable, and its database with leafStore"}
	default:
		open = store.workers(cfg)
		key.source = fmt.Sprintf("mysql()\x00%t\x00%s", cfg.Create, store.key)
		if store.key == "" || store.key[0] == 0 { // that of a connector whose database is not known
			key.own = cfg
		}
	}
	sharedSnowflakes.Lock()
	defer sharedSnowflakes.Unlock()
	other := sharedSnowflakes.m[key]
	if other != nil && other.refs > 0 {
		if other.lease != cfg.Lease {
			return nil, &ConfigError{"leafLease", fmt.Sprintf("another pool of this process holds its worker id from the same source for %v, not %v", other.lease, cfg.Lease),
				"give all pools the same leafLease"}
		}
		other.refs++
		return other, nil
	}
	s := &snowflakes{key: key, lease: cfg.Lease, refs: 1, over: make(chan struct{}), store: store}
	if other != nil {
		s.before = other.over
	} else {
		nobody := make(chan struct{})
		close(nobody)
		s.before = nobody
	}
	after := func(ctx context.Context) (worker.Source, error) {
		select {
		case <-s.before:
			return open(ctx)
		case <-ctx.Done():
			return worker.Source{}, fmt.Errorf("leafsql: worker id: an earlier pool has not given it back: %w", context.Cause(ctx))
		}
	}
	s.Generator, err = snowflake.New(key.layout, after, worker.Config{
		Lease: cfg.Lease, NewRegistry: cfg.NewRegistry, State: cfg.State, Logger: cfg.logger(),
	})
	if err != nil {
		return nil, &ConfigError{"leafLease", strings.TrimPrefix(err.Error(), "leafsql: "), "write for example 60s"}
	}
	if store != nil {
		store.retain()
	}
	sharedSnowflakes.m[key] = s
	return s, nil
}

// workers opens the source of worker ids in the table beside leaf_alloc.
func (s *segments) workers(cfg *Config) func(context.Context) (worker.Source, error) {
	table := "leaf_worker"
	if db, _, ok := strings.Cut(cmp.Or(s.table, cfg.AllocTable), "."); ok {
		table = db + "." + table
	}
	return func(context.Context) (worker.Source, error) {
		return workermysql.Open(s.dbs[0], workermysql.Config{Table: table, Create: cfg.Create, Name: s.where}), nil
	}
}

// sourceKey is equal for configurations whose leafWorker means the same.
func sourceKey(cfg *Config) string {
	parts := []string{cfg.Worker, cfg.State}
	for _, k := range slices.Sorted(maps.Keys(cfg.WorkerOptions)) {
		parts = append(parts, k, cfg.WorkerOptions[k])
	}
	return strings.Join(parts, "\x00")
}

// release gives the worker id back when the last connector lets go.
func (s *snowflakes) release() error {
	if s == nil {
		return nil
	}
	sharedSnowflakes.Lock()
	s.refs--
	last := s.refs == 0
	sharedSnowflakes.Unlock()
	if !last {
		return nil
	}
	err := s.Close()
	if s.store != nil {
		err = errors.Join(err, s.store.release())
	}
	<-s.before
	sharedSnowflakes.Lock()
	defer sharedSnowflakes.Unlock()
	close(s.over)
	if sharedSnowflakes.m[s.key] == s {
		delete(sharedSnowflakes.m, s.key)
	}
	return err
}

// Worker says what is known of the worker id that snowflakes of this Connector
// are made with: its Phase is worker.Idle and its Worker -1 as long as no id
// was needed, or none can be.
func (c *Connector) Worker() worker.Status {
	if c.ids.snowflakes == nil {
		return worker.Status{Worker: -1}
	}
	return c.ids.snowflakes.Worker()
}
