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
// another one. In a burst their time may run ahead of the clock: by worker.Status.Ahead
// at most, plus the time that a call waited, if it had to. It never runs beyond the
// lease's limit. A clock set back while the process runs is not followed. One set back
// between two runs is waited out, or refused with a worker.UnavailableError that says
// until when.
//
// The package does not choose worker ids and does not know whether one is
// unique: that is what the lease is for. Ids of different workers are ordered
// by time alone, to the millisecond.
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
	"github.com/leafsql/leafsql/internal/part"
)

// Generator makes the ids of one layout with one worker id at a time. It
// implements idgen.Generator.
type Generator struct {
	layout Layout
	size   int64 // how many ids a millisecond has
	keeper *worker.Keeper
	view   atomic.Pointer[view]
	_      [64]byte

	// last is the last place given out, of whatever worker id. A place is ms
	// since the epoch and sequence in one number, so the next one is last+1.
	last atomic.Int64
	_    [64]byte
}

// view is a keeper's status in the generator's terms.
type view struct {
	status *worker.Status
	since  time.Time // when the worker id was taken
	worker int64     // shifted to its place
	start  int64     // the first ms since the epoch that may be used
	limit  int64     // the last; below every other where none may
	ahead  int64     // how far beyond now ids may go at once, in ms
}

// room is how far beyond now the ids of a call may go that has waited for so
// many ms: by that much more than those of one that comes now, so that nobody
// starves when more is drawn than a millisecond has.
func (v *view) room(waited int64) int64 {
	if v.ahead == 0 { // nothing would remember ids of a time to come
		return 0
	}
	return v.ahead + waited
}

// EpochError says that the layout's time is used up, or has not begun.
type EpochError struct{ Begin, End time.Time }

func (e *EpochError) Error() string {
	return fmt.Sprintf("leafsql: snowflake: the layout has ids from %s to %s only; set the clock right or use a layout with a later epoch",
		e.Begin.UTC().Format(time.RFC3339), e.End.UTC().Format(time.RFC3339))
}

func (e *EpochError) Unwrap() error { return idgen.ErrExhausted }

// LeaseError says that no id may be issued now, as no worker id is held or its
// limit has been reached. The generator goes on by itself as soon as one may.
type LeaseError struct {
	Worker int       // the worker id held, or held last; -1: none yet
	Next   time.Time // when the next search or renewal is; zero: it is under way
	Cause  error     // what the last one found, such as *worker.UnavailableError
}

func (e *LeaseError) Error() string {
	s := "leafsql: snowflake: no id may be issued: " + part.Text(e.Cause)
	if e.Next.IsZero() {
		return s + "; another try is under way"
	}
	return s + "; the next try is at " + e.Next.Format(time.TimeOnly)
}

func (e *LeaseError) Unwrap() error { return e.Cause }

// New makes a generator that leases its worker id from the source that open
// gives. Nothing is opened before the first Next. Of cfg it sets Workers,
// Layout, Check and Issued.
func New(layout Layout, open func(context.Context) (worker.Source, error), cfg worker.Config) (*Generator, error) {
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	if layout.End().Before(time.Now().AddDate(5, 0, 0)) {
		cmp.Or(cfg.Logger, slog.Default()).Warn("leafsql: snowflake: the layout's time ends soon; plan for a later epoch", "layout", layout, "end", layout.End().UTC())
	}
	g := &Generator{layout: layout, size: 1 << layout.Sequence}
	g.last.Store(g.size - 1) // the epoch's own millisecond is left out: it holds the id 0
	cfg.Workers, cfg.Layout, cfg.Check, cfg.Issued = layout.Workers(), layout.String(), layout.check, g.issued
	var err error
	if g.keeper, err = worker.Keep(open, cfg); err != nil {
		return nil, err
	}
	g.view.Store(&view{})
	return g, nil
}

// Close gives the worker id back. Next fails with idgen.ErrClosed afterwards.
func (g *Generator) Close() error { return g.keeper.Close() }

// Layout is how the ids are cut.
func (g *Generator) Layout() Layout { return g.layout }

// Worker is what is known of the worker id now.
func (g *Generator) Worker() worker.Status { return *g.keeper.Status() }

// issued is the latest time that an id has or is about to have.
func (g *Generator) issued() time.Time {
	return time.UnixMilli(g.layout.Epoch + g.last.Load()>>g.layout.Sequence)
}

// now is what the keeper says now.
func (g *Generator) now() *view {
	was, s := g.view.Load(), g.keeper.Status()
	if was.status == s {
		return was
	}
	v := &view{status: s, worker: int64(s.Worker) << g.layout.Sequence, start: was.start, limit: -1, ahead: s.Ahead.Milliseconds()}
	if s.Phase == "holding" {
		v.limit = s.Limit.UnixMilli() - g.layout.Epoch
		if !s.Since.Equal(was.since) { // ids rise, though this worker id may be lower
			v.start = max(s.Start.UnixMilli()-g.layout.Epoch, g.last.Load()>>g.layout.Sequence+1)
		}
		v.since = s.Since
	}
	g.view.Store(v)
	return v
}

// Next gives n consecutive ids, at most 2^Layout.Sequence. Where it must wait
// it does so under ctx: for time to pass, and for a worker id as long as
// nothing has failed. Errors are an idgen.CountError, a LeaseError, an
// EpochError, idgen.ErrClosed, or ctx's. After an error nothing has changed.
func (g *Generator) Next(ctx context.Context, n int) (int64, error) {
	if n < 1 || int64(n) > g.size {
		return 0, &idgen.CountError{N: n, Max: int(g.size)}
	}
	var (
		seq    = g.layout.Sequence
		v      = g.now()
		now    = g.keeper.UnixMilli() - g.layout.Epoch
		waited int64 // ms
	)
	for {
		last := g.last.Load()
		first := g.after(last, max(now, v.start), int64(n))
		end := first + int64(n) - 1
		ms := end >> seq
		if ms > now+v.room(waited) || ms > v.limit || g.layout.spent(ms) {
			var err error
			if waited, err = g.wait(ctx, int64(n), waited); err != nil {
				return 0, err
			}
			v, now = g.now(), g.keeper.UnixMilli()-g.layout.Epoch
			continue
		}
		if !g.last.CompareAndSwap(last, end) {
			continue
		}
		// The worker id may have been lost or given back in between; what was
		// given back may not count these ids.
		was := v.worker
		if v = g.now(); v.worker == was && ms >= v.start && ms <= v.limit { // mutation: after marking
			return ms<<(g.layout.Worker+seq) | was | first&(g.size-1), nil
		}
		now = g.keeper.UnixMilli() - g.layout.Epoch
	}
}

// after is the first place for n ids after last, and not before now.
func (g *Generator) after(last, now, n int64) int64 {
	first := last + 1
	if uint64(first) < uint64(now)<<g.layout.Sequence { // see Layout.spent
		return now<<g.layout.Sequence + offset(now, g.size-n+1)
	}
	if first&(g.size-1)+n > g.size {
		first = (first | (g.size - 1)) + 1
	}
	return first
}

// offset is where the sequence of a millisecond begins, below room: without a
// pattern, so that the ids of a quiet table spread over any number of shards,
// in whatever rhythm its rows come.
func offset(ms, room int64) int64 {
	h := uint64(ms) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h ^= h >> 32
	return int64((h & (1<<32 - 1)) * uint64(room) >> 32)
}

// wait returns when it is worth trying again, or an error if it won't be.
// waited is how many ms the call of Next has spent here.
func (g *Generator) wait(ctx context.Context, n, waited int64) (int64, error) {
	began := g.keeper.UnixMilli() - waited
	for {
		if s, err := g.keeper.Wait(ctx); err != nil {
			return 0, refusal(s, err)
		}
		v, now := g.now(), g.keeper.UnixMilli()
		waited, now = now-began, now-g.layout.Epoch
		ms := (g.after(g.last.Load(), max(now, v.start), n) + n - 1) >> g.layout.Sequence
		var pass <-chan time.Time // that time passes; nil: it does not help
		switch early := ms - now - v.room(waited); {
		case v.limit < 0: // lost meanwhile
			continue
		case g.layout.spent(ms):
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

// refusal is what Next says where no worker id can be had; s is nil if its
// context ended.
func refusal(s *worker.Status, err error) error {
	switch {
	case s == nil:
		return err
	case s.Phase == "closed":
		return idgen.ErrClosed
	}
	return leaseError(s, err)
}

// leaseError says when the next try is, unless that is past: it takes a while where the
// registry does not answer.
func leaseError(s *worker.Status, cause error) *LeaseError {
	e := &LeaseError{Worker: s.Worker, Cause: cause}
	if !s.Next.Before(time.Now()) {
		e.Next = s.Next
	}
	return e
}
