package segment

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

// Options of a Generator. Zero values mean the defaults.
type Options struct {
	Timeout time.Duration // time limit of a request to the store; default 5 s. After a timeout the next limit is longer, up to 12 times Timeout
	Logger  *slog.Logger  // logs when fetches fail while no call waits for them, and when they work again; default slog.Default()
}

// Generator issues the ids of one tag. It is safe for concurrent use. It has to be closed.
type Generator struct {
	cur atomic.Pointer[segment] // read by every call, so kept apart from fields that change
	_   [120]byte

	store   Store
	tag     string
	timeout time.Duration // time limit of the first request to the store
	log     *slog.Logger
	ctx     context.Context // context of the fetches; ends with Close
	cancel  context.CancelFunc
	tasks   sync.WaitGroup // the fetch in progress

	mu         sync.Mutex
	queue      []span        // fetched spans to be used after cur; spans that adjoin are merged
	tryLimit   time.Duration // time limit of the next request
	pace       pace
	seen       int64   // end of the highest range fetched
	rowNext    int64   // lower bound of the row's next id: the highest value fetched or read
	raised     bool    // a range has been requested because of a call of Skip
	floor      int64   // lowest id that may still be issued
	fetchFloor int64   // lower ids of the fetch in progress will be discarded; 0 if there is no limit
	columns    []int64 // highest ids that the columns hold, ascending: see Fit
	restarts   int     // number of calls of Restart; the results of requests that began before a call are discarded
	waiters    []*waiter
	fetching   bool
	retry      *time.Timer   // starts the next attempt while the store is unavailable; else nil
	pause      time.Duration // length of the last pause
	failure    error         // error of the last fetch; nil if it succeeded
	warned     bool          // the failure has been logged
	closed     bool
	stats      Stats // IDs and Dropped without the ids of cur
}

// Stats are the counters of a Generator since New, and its current state.
type Stats struct {
	Fetches   int64 // ranges fetched
	Failures  int64 // fetches that failed
	Jumps     int64 // fetches that also raised the row's next id by a margin, as after a fail-over
	IDs       int64 // ids issued
	Dropped   int64 // ids fetched and discarded: at Close, by Skip, or because they were too few for a call
	Waits     int64 // calls of Next and Skip that waited for the store
	Step      int64 // step of the last fetch; 0 before the first
	Remaining int64 // ids in memory

	Current Range // the range from which ids are issued; empty before the first range
	Left    int64 // ids of Current that have not been issued
	Queued  Range // the range in memory after Current; empty if there is none
	Err     error // error of the last fetch; nil if it succeeded
}

// New returns a generator for tag. It fetches nothing before the first Next. opts may be nil. Callers have to
// close the generator.
func New(store Store, tag string, opts *Options) *Generator {
	g := &Generator{store: store, tag: tag, timeout: 5 * time.Second, log: slog.Default(), floor: 1}
	if opts != nil && opts.Timeout > 0 {
		g.timeout = opts.Timeout
	}
	g.tryLimit = g.timeout
	if opts != nil && opts.Logger != nil {
		g.log = opts.Logger
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.cur.Store(new(segment))
	return g
}

// Next implements idgen.Generator; n is at most 2^31-1. The ids come from one range or from two that adjoin.
// Next fails with *idgen.CountError, idgen.ErrClosed, the context's error, *UnavailableError, or an error that
// Store.Fetch names.
func (g *Generator) Next(ctx context.Context, n int) (int64, error) {
	s, used := g.cur.Load(), int64(0)
	if n == 1 {
		// These reads come first, since reads after the addition would wait for it. Even an outdated checkAt is at most size.
		base, checkAt := s.base, s.checkAt.Load()
		if used = s.used.Add(1); used <= checkAt {
			return base + used, nil
		}
	}
	return g.next(ctx, s, n, used)
}

// next continues Next if n is not 1, or if used, the number of ids taken from s, is higher than checkAt. It may even be
// higher than the number of ids in s.
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
	if s.used.Load() > s.checkAt.Load() {
		g.tryPrefetch(s)
	}
	return first, nil
}

// closeWait limits how long Close waits for a canceled fetch to end.
const closeWait = 4 * time.Second

// Close stops fetching, and calls that wait fail with idgen.ErrClosed. The ids still in memory are never
// issued. Close waits up to 4 s for a fetch in progress to end. It always returns nil.
func (g *Generator) Close() error {
	g.mu.Lock()
	g.closed = true
	if g.retry != nil {
		g.retry.Stop()
	}
	g.discardAll()
	g.failWaiters(idgen.ErrClosed)
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

// Stats returns the generator's counters and state.
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
