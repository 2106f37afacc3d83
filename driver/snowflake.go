package driver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// acquireSlack is how long a search for a worker id may take beyond the
// longest wait that an unknown history asks for (the lease's bound + 60 s).
const acquireSlack = 30 * time.Second

// After a failed search statements fail with its error for a pause that grows
// from the one to the other, and half of it at random: the registry must not
// be asked once for each of them.
const minPause, maxPause = time.Second, 10 * time.Second

// A snowflakes is one worker id and the one generator on it, which pools with
// an equal source share: a second lease would waste a worker id. The id is
// searched in the background, so that no statement's deadline ends the search
// for the others.
type snowflakes struct {
	key   snowflakeKey
	refs  int // guarded by sharedSnowflakes.Mutex; 0: it is closing
	lease func(ctx context.Context) (*worker.Lease, error)
	wait  time.Duration // one search's time limit
	log   *slog.Logger

	after <-chan struct{} // closed when the equal one before is over; nil: there was none
	over  chan struct{}   // closed when the worker id, and that before, was given back

	gen atomic.Pointer[snowflake.Generator]

	mu     sync.Mutex
	search chan struct{} // closed when the search under way is over
	err    error         // of the last search
	pause  time.Duration // after it, if it failed
	again  time.Time     // when the pause is over
	closed bool
	ctx    context.Context // of the searches
	cancel context.CancelFunc
}

var sharedSnowflakes = struct {
	sync.Mutex
	m map[snowflakeKey]*snowflakes
}{m: make(map[snowflakeKey]*snowflakes)}

// snowflakeKey is equal for configurations that mean the same worker id.
type snowflakeKey struct {
	lease  *worker.Lease // Config.WorkerLease
	layout snowflake.Layout
	source string // where there is no lease
}

// newSnowflakes opens or shares the source that cfg names, nil where it names
// none. Nothing connects yet.
func newSnowflakes(cfg *Config) (*snowflakes, error) {
	if cfg.Worker == "" && cfg.WorkerLease == nil {
		return nil, nil
	}
	layout := snowflake.Leaf
	if cfg.Snowflake != "" {
		var err error
		if layout, err = snowflake.ParseLayout(cfg.Snowflake); err != nil {
			return nil, err
		}
	}
	s := &snowflakes{
		key: snowflakeKey{lease: cfg.WorkerLease, layout: layout}, refs: 1,
		wait: cfg.Lease + time.Minute + acquireSlack, log: cfg.logger(),
	}
	if lease := cfg.WorkerLease; lease != nil {
		s.lease = func(context.Context) (*worker.Lease, error) { return lease, nil }
		return s.share(), nil
	}
	name, _, err := worker.ParseSpec(cfg.Worker)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(worker.Registered(), name) {
		return nil, &ConfigError{"leafWorker", fmt.Sprintf("no worker-id source %q is registered, only %s (forgotten import?)", name, strings.Join(worker.Registered(), ", ")),
			"import the source's package for its effect, for example _ \"github.com/leafsql/leafsql/nacos\""}
	}
	wc := worker.Config{
		Workers: layout.Workers(), Bound: cfg.Lease, NewRegistry: cfg.NewRegistry, State: cfg.State,
		Options: worker.Options(cfg.WorkerOptions), Logger: cfg.logger(),
	}
	s.lease = func(ctx context.Context) (*worker.Lease, error) { return worker.Open(ctx, cfg.Worker, wc) }
	s.key.source = sourceKey(cfg)
	return s.share(), nil
}

// share gives the equal one that is in use, or s. The worker id of one that is
// closing has to be given back first.
func (s *snowflakes) share() *snowflakes {
	sharedSnowflakes.Lock()
	defer sharedSnowflakes.Unlock()
	if other, ok := sharedSnowflakes.m[s.key]; ok {
		if other.refs > 0 {
			other.refs++
			return other
		}
		s.after = other.over
	}
	s.over = make(chan struct{})
	s.ctx, s.cancel = context.WithCancel(context.Background())
	sharedSnowflakes.m[s.key] = s
	return s
}

// sourceKey is equal for configurations whose leafWorker means the same.
func sourceKey(cfg *Config) string {
	parts := []string{cfg.Worker, cfg.State}
	name, _, _ := worker.ParseSpec(cfg.Worker)
	if !slices.Contains([]string{"static", "env", "ordinal"}, name) { // which have a bound of their own
		parts = append(parts, cfg.Lease.String())
	}
	for _, k := range slices.Sorted(maps.Keys(cfg.WorkerOptions)) {
		parts = append(parts, k, cfg.WorkerOptions[k])
	}
	return strings.Join(parts, "\x00")
}

// Next implements idgen.Generator. Until there is a worker id it waits for the
// search, as long as ctx lets it, and fails with the search's error, at once
// during the pause after it.
func (s *snowflakes) Next(ctx context.Context, n int) (int64, error) {
	if g := s.gen.Load(); g != nil {
		return g.Next(ctx, n)
	}
	search, err := s.begin()
	if err != nil {
		return 0, err
	}
	select {
	case <-search:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err != nil {
			return 0, fmt.Errorf("leafsql: waiting for a worker id: %w; the last search failed: %w", ctx.Err(), s.err)
		}
		return 0, fmt.Errorf("leafsql: waiting for a worker id: %w", ctx.Err())
	}
	if g := s.gen.Load(); g != nil {
		return g.Next(ctx, n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return 0, s.err
}

// begin starts a search unless one is under way.
func (s *snowflakes) begin() (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, idgen.ErrClosed
	}
	if s.search != nil {
		return s.search, nil
	}
	if s.err != nil && time.Now().Before(s.again) {
		return nil, s.err
	}
	search := make(chan struct{})
	s.search = search
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.wait)
		defer cancel()
		gen, err := s.open(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended(gen, err)
		s.search = nil
		close(search)
	}()
	return search, nil
}

// ended takes what a search came to.
func (s *snowflakes) ended(gen *snowflake.Generator, err error) {
	if err == nil {
		s.gen.Store(gen)
		return
	}
	if s.ctx.Err() == nil && (s.err == nil || s.err.Error() != err.Error()) {
		s.log.Warn("leafsql: no worker id: " + strings.TrimPrefix(err.Error(), "leafsql: "))
	}
	s.err = err
	s.pause = min(max(2*s.pause, minPause), maxPause)
	s.again = time.Now().Add(s.pause/2 + rand.N(s.pause/2))
}

func (s *snowflakes) open(ctx context.Context) (*snowflake.Generator, error) {
	if s.after != nil {
		select {
		case <-s.after:
		case <-ctx.Done():
			return nil, fmt.Errorf("leafsql: worker id: an earlier pool has not given it back: %w", ctx.Err())
		}
	}
	lease, err := s.lease(ctx)
	if err != nil {
		return nil, err
	}
	gen, err := snowflake.New(s.key.layout, lease)
	if err != nil && s.key.lease == nil {
		lease.Close() // the caller's is there for the next search, and for release
	}
	return gen, err
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
	s.cancel()
	s.mu.Lock()
	s.closed = true
	search := s.search
	s.mu.Unlock()
	if search != nil {
		<-search
	}
	err := s.giveBack()
	if s.after != nil {
		<-s.after
	}
	sharedSnowflakes.Lock()
	defer sharedSnowflakes.Unlock()
	close(s.over)
	if sharedSnowflakes.m[s.key] == s {
		delete(sharedSnowflakes.m, s.key)
	}
	return err
}

func (s *snowflakes) giveBack() error {
	if g := s.gen.Load(); g != nil {
		return g.Close()
	}
	// The caller's lease is ours to give back, unless it has another generator.
	if l := s.key.lease; l != nil && l.Bind(func() int64 { return 0 }) == nil {
		return l.Close()
	}
	return nil
}
