package segment

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

// Options of a Generator. The zero value of a field means its default.
type Options struct {
	Timeout time.Duration // how long the store has to answer; 5 s, and after a try that it did not, more: up to 12 times as long
	Logger  *slog.Logger  // told when the store is away while ids are in memory, and back; slog.Default()
}

// Generator issues the ids of one tag. It is safe for concurrent use.
type Generator struct {
	cur atomic.Pointer[segment] // read by every call, so away from what changes
	_   [120]byte

	store   Store
	tag     string
	timeout time.Duration // of the first try
	log     *slog.Logger
	ctx     context.Context // of the fetches; ends with Close
	cancel  context.CancelFunc
	tasks   sync.WaitGroup // the fetch under way

	mu       sync.Mutex
	queue    []span        // fetched, to be used after cur's, none adjoining the one before it
	within   time.Duration // how long the next try may take
	pace     pace
	seen     int64   // the end of the highest range fetched
	top      int64   // the row stands here or above: seen, or what a look at it told
	raised   bool    // a range was asked for because of a key
	floor    int64   // the lowest id that may still be issued
	least    int64   // the lowest id to be kept of what the fetch under way brings, else 0
	columns  []int64 // the highest ids that the columns hold, ascending: see Fit
	life     int     // how often Restart was called: what was asked for before counts no more
	waiters  []*waiter
	fetching bool
	retry    *time.Timer   // the next attempt while the store is away, else nil
	pause    time.Duration // the last one's length
	failure  error         // of the last fetch, nil if it went well
	warned   bool          // the log knows of the failure
	closed   bool
	stats    Stats // IDs, Dropped: but for cur's
}

// Stats of a Generator since it was made.
type Stats struct {
	Fetches   int64 // ranges fetched
	Failures  int64 // fetches that failed
	Jumps     int64 // ranges for which the row was moved up by a margin, as after a fail-over
	IDs       int64 // ids issued
	Dropped   int64 // ids fetched and given up: at Close, by Skip, or too few for a block
	Waits     int64 // calls of Next and Skip that waited for the store
	Step      int64 // the last fetch's step; 0 before the first
	Remaining int64 // ids in memory

	Current Range // what ids are issued from; empty before the first range
	Left    int64 // ids of Current that are still to be issued
	Queued  Range // what comes after it, as far as it is in memory
	Err     error // of the last fetch, nil where it went well
}

// New returns a generator for tag. Nothing is fetched before the first Next.
func New(store Store, tag string, opts *Options) *Generator {
	g := &Generator{store: store, tag: tag, timeout: 5 * time.Second, log: slog.Default(), floor: 1}
	if opts != nil && opts.Timeout > 0 {
		g.timeout = opts.Timeout
	}
	g.within = g.timeout
	if opts != nil && opts.Logger != nil {
		g.log = opts.Logger
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.cur.Store(new(segment))
	return g
}

// Next implements idgen.Generator; n is at most 2^31-1. A block is taken from one
// range or from two that adjoin. Next fails with *idgen.CountError, idgen.ErrClosed,
// the context's error, *UnavailableError, or what Store.Fetch names.
func (g *Generator) Next(ctx context.Context, n int) (int64, error) {
	s, used := g.cur.Load(), int64(0)
	if n == 1 {
		// Reads after the addition would wait for it. A mark is never above size, so
		// an old one does.
		base, mark := s.base, s.mark.Load()
		if used = s.used.Add(1); used <= mark {
			return base + used, nil
		}
	}
	return g.next(ctx, s, n, used)
}

// next goes on where Next cannot answer at once: n is not 1, or the used-th id of s,
// which may not exist, is past the mark.
func (g *Generator) next(ctx context.Context, s *segment, n int, used int64) (int64, error) {
	first := s.base + used
	switch {
	case n < 1 || n > maxRowStep:
		return 0, &idgen.CountError{N: n, Max: maxRowStep}
	case n == 1:
		if used > s.size {
			return g.wait(ctx, 1)
		}
	default:
		var ok bool
		if first, ok = s.take(int64(n)); !ok {
			return g.wait(ctx, int64(n))
		}
	}
	if s.used.Load() > s.mark.Load() {
		g.look(s)
	}
	return first, nil
}

// closeWait is how long Close waits for a fetch to end that was told to.
const closeWait = 4 * time.Second

// Close ends fetching and fails the calls that wait. The ids still in memory are never
// issued. It waits for the fetch under way, but not for one that does not end with its
// context.
func (g *Generator) Close() error {
	g.mu.Lock()
	g.closed = true
	if g.retry != nil {
		g.retry.Stop()
	}
	g.empty()
	g.fail(idgen.ErrClosed)
	g.mu.Unlock()
	g.cancel()
	ended := make(chan struct{})
	go func() {
		g.tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeWait):
	}
	return nil
}

// Stats returns what the generator did so far.
func (g *Generator) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.cur.Load()
	taken := s.taken()
	stats := g.stats
	stats.IDs += taken - s.skipped
	stats.Dropped += s.skipped
	stats.Left = s.size - taken
	stats.Remaining = stats.Left
	stats.Err = g.failure
	if s.size > 0 {
		stats.Current = Range{Start: s.base + 1, End: s.end(), Step: g.stats.Step}
	}
	for i, q := range g.queue {
		stats.Remaining += q.size()
		if i == 0 {
			stats.Queued = Range{Start: q.start, Step: g.stats.Step}
		}
		stats.Queued.Start, stats.Queued.End = min(stats.Queued.Start, q.start), max(stats.Queued.End, q.end)
	}
	return stats
}
