// Package snowflake makes ids from the time, a leased worker id and a sequence.
//
//	open, err := worker.Lookup("static(7)", nil)
//	if err != nil {
//		return err
//	}
//	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
//	if err != nil {
//		return err
//	}
//	defer ids.Close()
//	first, err := ids.Next(ctx, 3) // first, first+1 and first+2
//
// The ids of one generator always ascend, even if its worker id is lost and it takes
// another one. In a burst, the time in ids may run ahead of the clock by at most
// worker.Status.Ahead plus the time that a call has waited. It never exceeds the
// lease's limit. If the clock is set back while the process runs, the time in ids does not go
// back. If the clock was set back between two runs, the generator waits until the clock has caught up,
// or returns a worker.UnavailableError with the time at which the clock will have caught up.
//
// The package does not choose worker ids. The lease, the right to use a worker id for a limited time, guarantees
// that only one process uses the worker id. Ids of different workers are ordered only by time, to the millisecond.
//
// The comment "// mutation: after marking" names a change that TestMutations of package worker applies to its line;
// the tests have to fail with it.
package snowflake

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/errprefix"
)

// Generator issues ids of one layout with one worker id at a time. It
// implements idgen.Generator and is safe for concurrent use. Callers must Close it.
type Generator struct {
	layout      Layout
	idsPerMilli int64 // ids in a millisecond
	keeper      *worker.Keeper
	view        atomic.Pointer[view]
	_           [64]byte

	// last is the place of the last id that was issued, with any worker id. A place is an id without its worker
	// id: the ms since the epoch and the sequence, as one number. The next place is last+1.
	last atomic.Int64
	_    [64]byte
}

// view is a keeper's status in the units of the generator.
type view struct {
	status *worker.Status
	since  time.Time // when the worker id was taken
	worker int64     // the worker id, shifted to its bits
	start  int64     // the first ms since the epoch that may be used
	limit  int64     // the last ms; negative if none may be used
	ahead  int64     // how far ids may run ahead of the clock without waiting, in ms
}

// allowedAhead returns by how many ms the ids of a call may run ahead of the clock after the call has waited for
// waited ms. The time waited is added so that each call succeeds at some time, even while other calls need more ids
// than a millisecond has.
func (v *view) allowedAhead(waited int64) int64 {
	if v.ahead == 0 { // there is no document that would record that ids with a later time were issued
		return 0
	}
	return v.ahead + waited
}

// EpochError is returned if the clock is before the layout's Begin or after its End.
type EpochError struct{ Begin, End time.Time }

func (e *EpochError) Error() string {
	return fmt.Sprintf("leafsql: snowflake: the clock is outside the layout's time, %s to %s; set the clock or use a layout with a later epoch",
		e.Begin.UTC().Format(time.RFC3339), e.End.UTC().Format(time.RFC3339))
}

// Unwrap returns idgen.ErrExhausted.
func (e *EpochError) Unwrap() error { return idgen.ErrExhausted }

// LeaseError is returned if no id may be issued now, because no worker id is held or its
// lease ends too early. Later calls succeed after the next successful search or renewal.
type LeaseError struct {
	Worker int       // the worker id held, or held last; -1: there was none yet
	Next   time.Time // time of the next search or renewal; zero: one is in progress
	Cause  error     // error of the last search or renewal, such as *worker.UnavailableError
}

func (e *LeaseError) Error() string {
	s := "leafsql: snowflake: no id may be issued: " + errprefix.TrimText(e.Cause)
	if e.Next.IsZero() {
		return s + "; a retry is in progress"
	}
	return s + "; the next attempt is at " + e.Next.Format(time.TimeOnly)
}

// Unwrap returns the Cause.
func (e *LeaseError) Unwrap() error { return e.Cause }

// New returns a generator that leases its worker id from the source that open
// returns. The first Next calls open. New sets cfg's Workers,
// Layout, Check and Issued. It returns the errors of Layout.Validate and worker.Keep.
// Callers have to close the generator.
func New(layout Layout, open func(context.Context) (worker.Source, error), cfg worker.Config) (*Generator, error) {
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	if layout.End().Before(time.Now().AddDate(5, 0, 0)) {
		cmp.Or(cfg.Logger, slog.Default()).Warn("leafsql: snowflake: the layout's time ends soon; plan for a later epoch", "layout", layout, "end", layout.End().UTC())
	}
	g := &Generator{layout: layout, idsPerMilli: 1 << layout.Sequence}
	g.last.Store(g.idsPerMilli - 1) // the epoch's first millisecond is not used: it contains the id 0
	cfg.Workers, cfg.Layout, cfg.Check, cfg.Issued = layout.Workers(), layout.String(), layout.checkTime, g.issued
	var err error
	if g.keeper, err = worker.Keep(open, cfg); err != nil {
		return nil, err
	}
	g.view.Store(&view{})
	return g, nil
}

// Close releases the worker id in its registry, and waits up to 5 s for this. Next fails with idgen.ErrClosed
// afterwards. The error comes from closing the source, and is only for logs.
func (g *Generator) Close() error { return g.keeper.Close() }

// Layout returns the layout of the ids.
func (g *Generator) Layout() Layout { return g.layout }

// Worker returns the current status of the worker id.
func (g *Generator) Worker() worker.Status { return *g.keeper.Status() }

// issued returns the latest time in the ids that were issued or are being issued.
func (g *Generator) issued() time.Time {
	return time.UnixMilli(g.layout.Epoch + g.last.Load()>>g.layout.Sequence)
}

// currentView returns the keeper's current status.
func (g *Generator) currentView() *view {
	was, s := g.view.Load(), g.keeper.Status()
	if was.status == s {
		return was
	}
	v := &view{status: s, worker: int64(s.Worker) << g.layout.Sequence, start: was.start, limit: -1, ahead: s.Ahead.Milliseconds()}
	if s.Phase == "holding" {
		v.limit = s.Limit.UnixMilli() - g.layout.Epoch
		if !s.Since.Equal(was.since) { // ids ascend even if the new worker id is lower
			v.start = max(s.Start.UnixMilli()-g.layout.Epoch, g.last.Load()>>g.layout.Sequence+1)
		}
		v.since = s.Since
	}
	g.view.Store(v)
	return v
}

// Next returns the first of n consecutive ids; n is at most 2^Layout.Sequence. Until ctx ends it waits
// for the clock, and also for a worker id unless a search has failed.
// Errors are an idgen.CountError, a LeaseError, an
// EpochError, idgen.ErrClosed, or ctx's. After an error nothing has changed.
func (g *Generator) Next(ctx context.Context, n int) (int64, error) {
	if n < 1 || int64(n) > g.idsPerMilli {
		return 0, &idgen.CountError{N: n, Max: int(g.idsPerMilli)}
	}
	var (
		seq    = g.layout.Sequence
		v      = g.currentView()
		now    = g.keeper.UnixMilli() - g.layout.Epoch
		waited int64 // ms
	)
	for {
		last := g.last.Load()
		first := g.placeAfter(last, max(now, v.start), int64(n))
		end := first + int64(n) - 1
		ms := end >> seq
		if ms > now+v.allowedAhead(waited) || ms > v.limit || g.layout.overflows(ms) {
			var err error
			if waited, err = g.wait(ctx, int64(n), waited); err != nil {
				return 0, err
			}
			v, now = g.currentView(), g.keeper.UnixMilli()-g.layout.Epoch
			continue
		}
		if !g.last.CompareAndSwap(last, end) {
			continue
		}
		// The worker id may have been lost or released since v was read. The last issued time
		// that was recorded at its release may then be earlier than the time of these ids.
		was := v.worker
		if v = g.currentView(); v.worker == was && ms >= v.start && ms <= v.limit { // mutation: after marking
			return ms<<(g.layout.Worker+seq) | was | first&(g.idsPerMilli-1), nil
		}
		now = g.keeper.UnixMilli() - g.layout.Epoch
	}
}

// placeAfter returns the first place for n ids. It is after the place last and not before the time now.
func (g *Generator) placeAfter(last, now, n int64) int64 {
	first := last + 1
	if uint64(first) < uint64(now)<<g.layout.Sequence { // see Layout.overflows
		return now<<g.layout.Sequence + startOffset(now, g.idsPerMilli-n+1)
	}
	if first&(g.idsPerMilli-1)+n > g.idsPerMilli {
		first = (first | (g.idsPerMilli - 1)) + 1
	}
	return first
}

// startOffset returns the first sequence to use in a millisecond; it is below room. It looks random, so that
// the ids of a table with few inserts are spread evenly over any number of shards, even
// if its rows are added at regular intervals.
func startOffset(ms, room int64) int64 {
	h := uint64(ms) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h ^= h >> 32
	return int64((h & (1<<32 - 1)) * uint64(room) >> 32)
}

// wait waits until Next may succeed, and returns the ms that this call of Next has waited in total. It returns an
// error if Next cannot succeed.
func (g *Generator) wait(ctx context.Context, n, waited int64) (int64, error) {
	began := g.keeper.UnixMilli() - waited
	for {
		if s, err := g.keeper.Wait(ctx); err != nil {
			return 0, waitError(s, err)
		}
		v, now := g.currentView(), g.keeper.UnixMilli()
		waited, now = now-began, now-g.layout.Epoch
		ms := (g.placeAfter(g.last.Load(), max(now, v.start), n) + n - 1) >> g.layout.Sequence
		var pass <-chan time.Time // the clock has caught up; nil: waiting for the clock does not help
		switch early := ms - now - v.allowedAhead(waited); {
		case v.limit < 0: // the worker id was lost
			continue
		case g.layout.overflows(ms):
			return 0, &EpochError{time.UnixMilli(g.layout.Epoch), g.layout.End()}
		case early > 0:
			pass = time.After(time.Duration(early) * time.Millisecond)
		case ms <= v.limit:
			return waited, nil
		case v.status.Err != nil:
			return 0, leaseError(v.status, v.status.Err)
		}
		select {
		case <-pass:
		case <-v.status.Changed():
		case <-ctx.Done():
			return 0, fmt.Errorf("leafsql: snowflake: waiting for an id: %w", context.Cause(ctx))
		}
	}
}

// waitError returns the error of Next if no worker id is available. s is nil if the context
// ended.
func waitError(s *worker.Status, err error) error {
	switch {
	case s == nil:
		return err
	case s.Phase == "closed":
		return idgen.ErrClosed
	}
	return leaseError(s, err)
}

// leaseError returns a LeaseError. Its Next is zero if s.Next has passed: the attempt is in progress, and takes a
// while if the registry does not answer.
func leaseError(s *worker.Status, cause error) *LeaseError {
	e := &LeaseError{Worker: s.Worker, Cause: cause}
	if !s.Next.Before(time.Now()) {
		e.Next = s.Next
	}
	return e
}
