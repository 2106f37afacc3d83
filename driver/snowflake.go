package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// snowflakes is one generator with its worker id, which pools with an equal
// source share: a second lease would waste a worker id. Nothing is leased
// before the first id is drawn.
type snowflakes struct {
	*snowflake.Generator
	key    snowflakeKey
	refs   int             // guarded by sharedSnowflakes.Mutex; 0: it is closing
	before <-chan struct{} // closed when that of an equal one before was given back
	over   chan struct{}   // closed when the worker id was, and that before
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

// newSnowflakes makes or shares the generator on the source that cfg names,
// nil where it names none.
func newSnowflakes(cfg *Config) (*snowflakes, error) {
	if cfg.Worker == "" && cfg.WorkerSource == nil {
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
	if open != nil {
		key.own = cfg
	} else if open, err = worker.Lookup(cfg.Worker, worker.Options(cfg.WorkerOptions)); err != nil {
		return nil, &ConfigError{"leafWorker", strings.TrimPrefix(err.Error(), "leafsql: "),
			"import the source's package for its effect, for example _ \"github.com/leafsql/leafsql/nacos\""}
	} else {
		key.source = sourceKey(cfg)
	}
	sharedSnowflakes.Lock()
	defer sharedSnowflakes.Unlock()
	other := sharedSnowflakes.m[key]
	if other != nil && other.refs > 0 {
		other.refs++
		return other, nil
	}
	s := &snowflakes{key: key, refs: 1, over: make(chan struct{})}
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
	sharedSnowflakes.m[key] = s
	return s, nil
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
