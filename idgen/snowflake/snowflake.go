// Package snowflake makes ids from the time, a leased worker id and a sequence.
//
//	lease, err := worker.Open(ctx, "static(7)", worker.Config{Workers: snowflake.Leaf.Workers()})
//	if err != nil {
//		return err
//	}
//	ids, err := snowflake.New(snowflake.Leaf, lease)
//	if err != nil {
//		return err
//	}
//	defer ids.Close()
//	first, err := ids.Next(ctx, 3) // first, first+1 and first+2
//
// Ids of one generator only rise, also over a worker id lost and another taken.
// Their time may run ahead of the clock in a burst: as far as Lease.Ahead, for
// calls that had to wait by that wait more, and never beyond Lease.Limit.
// A clock set back while the process runs is not followed. One set back between
// two runs is for worker.Open to wait out, or to refuse with a worker.ClockError
// that says by how much.
//
// The package does not choose worker ids and does not know whether one is
// unique: that is what the lease is for. Ids of different workers are ordered
// by time alone, to the millisecond.
package snowflake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/worker"
)

// maxWait is how long Next waits for a lease to be renewed or replaced, at most.
const maxWait = 3 * time.Second

// Generator makes the ids of one layout under one lease and its successors.
// It implements idgen.Generator.
type Generator struct {
	layout Layout
	size   int64 // how many ids a millisecond has
	term   atomic.Pointer[term]
	failed atomic.Pointer[error] // why there is no successor yet

	stop context.CancelFunc
	over chan struct{} // closed when nothing follows the lease any more
}

// term is the time under one lease.
type term struct {
	lease  *worker.Lease
	worker int64 // shifted to its place
	ahead  int64 // ms
	epoch  int64 // Unix ms
	_      [64]byte

	// last is the last place given out. A place is ms since the epoch and
	// sequence in one number, so the next one is last+1.
	last atomic.Int64
	_    [64]byte
}

// EpochError says that the layout's time is used up, or has not begun.
type EpochError struct{ Begin, End time.Time }

func (e *EpochError) Error() string {
	return fmt.Sprintf("leafsql: snowflake: the layout has ids from %s to %s only; set the clock right or use a layout with a later epoch",
		e.Begin.UTC().Format(time.RFC3339), e.End.UTC().Format(time.RFC3339))
}

func (e *EpochError) Unwrap() error { return idgen.ErrExhausted }

// LeaseError says that no id may be issued now, as no worker id is held or its
// bound has not been confirmed. The generator goes on as soon as one is.
type LeaseError struct {
	Worker int   // the worker id held last
	Cause  error // may be nil
}

func (e *LeaseError) Error() string {
	s := fmt.Sprintf("leafsql: snowflake: the lease of worker id %d has not been renewed in time; ids go on when the registry answers", e.Worker)
	if e.Cause != nil {
		s = fmt.Sprintf("leafsql: snowflake: no worker id is held: %v; ids go on when one is", e.Cause)
	}
	return s
}

func (e *LeaseError) Unwrap() error { return e.Cause }

// New makes a generator, which becomes the lease's only one and owner: Close
// gives it back. If New fails the lease is still the caller's.
func New(layout Layout, lease *worker.Lease) (*Generator, error) {
	if err := layout.Validate(); err != nil {
		return nil, err
	}
	if n := lease.Workers(); n > layout.Workers() {
		return nil, fmt.Errorf("leafsql: snowflake layout %s: no room for %d worker ids; lease with Config.Workers %d", layout, n, layout.Workers())
	}
	now := time.UnixMilli(lease.Now())
	if begin := time.UnixMilli(layout.Epoch); !now.After(begin) || now.After(layout.End()) {
		return nil, &EpochError{begin, layout.End()}
	}
	if layout.End().Before(now.AddDate(5, 0, 0)) {
		slog.Warn("leafsql: snowflake: the layout's time ends soon; plan for a later epoch", "layout", layout, "end", layout.End().UTC())
	}
	g := &Generator{layout: layout, size: 1 << layout.Sequence, over: make(chan struct{})}
	if err := g.use(lease, 0); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	go g.follow(ctx, lease)
	return g, nil
}

// use begins a term above the place after.
func (g *Generator) use(l *worker.Lease, after int64) error {
	t := &term{
		lease: l, worker: int64(l.Worker()) << g.layout.Sequence,
		ahead: l.Ahead().Milliseconds(), epoch: g.layout.Epoch,
	}
	// The epoch's own millisecond is left out: it holds the id 0.
	start := max(l.Start()-t.epoch, 1) << g.layout.Sequence
	t.last.Store(max(start-1, after|(g.size-1)))
	if err := l.Bind(func() int64 { return t.epoch + t.last.Load()>>g.layout.Sequence }); err != nil {
		return err
	}
	g.term.Store(t)
	return nil
}

// follow takes another worker id whenever one was lost.
func (g *Generator) follow(ctx context.Context, l *worker.Lease) {
	defer close(g.over)
	const most = 10 * time.Second
	pause := time.Second
	for {
		select {
		case <-l.Done():
		case <-ctx.Done():
			return
		}
		if errors.Is(l.Err(), worker.ErrClosed) {
			return
		}
		next, err := l.Successor(ctx)
		if err == nil {
			// A lease that is over issues nothing: its last place is final.
			err = g.use(next, g.term.Load().last.Load())
		}
		if err == nil {
			l = next
			g.failed.Store(nil)
			pause = time.Second
			continue
		}
		g.failed.Store(&err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, most)
	}
}

// Close gives the lease back. Next fails with idgen.ErrClosed afterwards.
func (g *Generator) Close() error {
	g.stop()
	<-g.over
	return g.term.Load().lease.Close()
}

// Layout is how the ids are cut.
func (g *Generator) Layout() Layout { return g.layout }

// Next gives n consecutive ids, at most 2^Layout.Sequence. Where it must wait
// it does so under ctx: for time to pass, and for a lease, that 3 s at most.
// Errors are an idgen.CountError, a LeaseError, an EpochError, idgen.ErrClosed,
// or ctx's. After an error nothing has changed.
func (g *Generator) Next(ctx context.Context, n int) (int64, error) {
	if n < 1 || int64(n) > g.size {
		return 0, &idgen.CountError{N: n, Max: int(g.size)}
	}
	var (
		seq    = g.layout.Sequence
		t      = g.term.Load()
		now    = t.lease.Now() - t.epoch
		waited int64 // ms
	)
	for {
		last := t.last.Load()
		first := g.after(last, now, int64(n))
		end := first + int64(n) - 1
		ms := end >> seq
		// Who has waited may borrow that much more than who comes now. So
		// nobody starves when more is drawn than a millisecond has.
		if ms > now+t.ahead+waited || ms+t.epoch > t.lease.Limit() || g.layout.spent(ms) {
			var err error
			if waited, err = g.wait(ctx, int64(n), waited); err != nil {
				return 0, err
			}
			t = g.term.Load()
			now = t.lease.Now() - t.epoch
			continue
		}
		if !t.last.CompareAndSwap(last, end) {
			continue
		}
		// If the lease ended in between, what it gave back may not count these.
		if ms+t.epoch <= t.lease.Limit() {
			return ms<<(g.layout.Worker+seq) | t.worker | first&(g.size-1), nil
		}
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
	began := g.term.Load().lease.Now() - waited
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		t := g.term.Load()
		now := t.lease.Now() - t.epoch
		waited = now + t.epoch - began
		ms := (g.after(t.last.Load(), now, n) + n - 1) >> g.layout.Sequence
		held := t.lease.Err() == nil
		switch early := ms - t.ahead - now - waited; {
		case held && g.layout.spent(ms):
			return 0, &EpochError{time.UnixMilli(t.epoch), g.layout.End()}
		case held && early > 0:
			pause = time.Duration(early) * time.Millisecond
		case held && ms+t.epoch <= t.lease.Limit():
			return waited, nil
		case waited >= maxWait.Milliseconds():
			return 0, g.unleased(t)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-g.over:
			timer.Stop()
			return 0, idgen.ErrClosed
		case <-ctx.Done():
			timer.Stop()
			return 0, fmt.Errorf("leafsql: snowflake: waiting for an id: %w", context.Cause(ctx))
		}
	}
}

// unleased says why nothing may be issued.
func (g *Generator) unleased(t *term) error {
	e := &LeaseError{Worker: t.lease.Worker(), Cause: t.lease.Err()}
	if err := g.failed.Load(); err != nil {
		e.Cause = *err
	}
	return e
}
