package workertest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// process is a layer between a keeper and the registry that simulates a process and its
// machine. To shift the machine's clock, it changes the times in
// documents that are read or written, and in ids.
type process struct {
	k          *kit
	slots      worker.Slots
	src        worker.Source
	clockShift time.Duration // time by which its clock is ahead

	cut   atomic.Bool  // the process cannot reach the registry
	dead  atomic.Bool  // the process crashed: no more of its calls reach the registry
	slow  atomic.Int64 // delay of replies, regardless of the context
	lose  atomic.Int64 // number of replies to writes that are still to be lost
	close sync.Once

	before func(slot int) // called once, before its first write to a slot

	keeper *worker.Keeper
	worker int // the first worker id that it held
	mu     sync.Mutex
	last   time.Time // the latest time in its ids
}

var errCut = errors.New("cut off from the registry")

// open starts a process with a clock that is ahead by a duration.
func (k *kit) open(ahead time.Duration) *process {
	k.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		p, err := k.tryOpen(ahead)
		if err == nil {
			return p
		}
		if time.Now().After(until) { // Open may return an error if the registry answers late
			k.Fatalf("Open: %v", err)
		}
	}
}

func (k *kit) tryOpen(ahead time.Duration) (*process, error) {
	src, err := k.Open(k.timeoutContext(patience))
	if err != nil {
		return nil, err
	}
	p := &process{k: k, slots: src.Slots, src: src, clockShift: ahead}
	k.Cleanup(func() {
		if p.keeper != nil {
			p.keeper.Close()
		}
		p.Close()
	})
	return p, nil
}

// source returns the process's source of worker ids.
func (p *process) source(context.Context) (worker.Source, error) {
	src := p.src
	src.Slots, src.Close = p, func() error { p.Close(); return nil }
	if identity := src.Identity; identity != nil {
		src.Identity = func(ctx context.Context) (string, error) {
			if p.cut.Load() || p.dead.Load() {
				return "", errCut
			}
			return identity(ctx)
		}
	}
	if told := src.OnChange; told != nil {
		src.OnChange = func(ctx context.Context, slot int, d worker.Doc, held bool) {
			if !p.dead.Load() {
				told(ctx, slot, shifted(d, p.clockShift), held)
			}
		}
	}
	return src, nil
}

// unavailable returns the UnavailableError with a reason in err, or nil.
func unavailable(err error, reason string) *worker.UnavailableError {
	if e, ok := errors.AsType[*worker.UnavailableError](err); ok && e.Reason == reason {
		return e
	}
	return nil
}

// acquire takes a worker id and retries failed searches. It closes the keeper and returns
// the error if no worker id is free, or if ctx ends.
func (p *process) acquire(ctx context.Context, cfg worker.Config) error {
	cfg.Lease = cmp.Or(cfg.Lease, lease)
	cfg.Workers = cmp.Or(cfg.Workers, 1)
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Issued = func() time.Time { p.mu.Lock(); defer p.mu.Unlock(); return p.last }
	k, err := worker.Keep(p.source, cfg)
	if err != nil {
		return err
	}
	for {
		s, err := k.Wait(ctx)
		if err == nil {
			p.keeper, p.worker = k, s.Worker
			return nil
		}
		if unavailable(err, "taken") != nil || unavailable(err, "ahead") != nil || s == nil {
			k.Close()
			return err
		}
		select {
		case <-s.Changed():
		case <-ctx.Done():
			k.Close()
			return err
		}
	}
}

// lease is twice the minimum, so that a machine that pauses for seconds loses no worker id.
const lease = 12 * time.Second

// waitForCalls waits until all calls in progress have ended.
func waitForCalls() { time.Sleep(lease/12 + time.Second) }

// hold starts a process with a worker id.
func (k *kit) hold(ahead time.Duration, cfg worker.Config) *process {
	k.Helper()
	return k.holdWith(ahead, cfg, func(*process) {})
}

// holdWith is like hold, but calls prepare before the process searches for a worker id. If the
// registry is unreliable, it retries, since the release of a worker id may have failed.
func (k *kit) holdWith(ahead time.Duration, cfg worker.Config, prepare func(*process)) *process {
	k.Helper()
	for until := time.Now().Add(25 * max(lease, cfg.Lease)); ; time.Sleep(time.Second) {
		p := k.open(ahead)
		prepare(p)
		err := p.acquire(k.timeoutContext(patience), cfg)
		if err == nil {
			return p
		}
		if !k.Unreliable || time.Now().After(until) {
			k.Fatalf("no worker id: %v", err)
		}
		k.Logf("no worker id yet: %v", err)
	}
}

// now returns the time of the process's machine.
func (p *process) now() time.Time { return time.UnixMilli(p.keeper.UnixMilli()) }

// holds reports whether ids may be issued.
func (p *process) holds() bool { return p.keeper.Status().Phase == "holding" }

// limit returns the latest time that may be put into an id, or zero if no id may be issued.
func (p *process) limit() time.Time { return p.keeper.Status().Limit }

// issue puts all times up to now into ids.
func (p *process) issue() { p.issueUpTo(p.now()) }

// issueAll puts all times that the lease allows into ids.
func (p *process) issueAll() { p.issueUpTo(p.limit()) }

// issueUpTo issues ids with all times up to a time, as a generator does: it reads the status before and after it
// records the times.
func (p *process) issueUpTo(to time.Time) {
	s := p.keeper.Status()
	if to.After(s.Limit) {
		to = s.Limit
	}
	p.mu.Lock()
	from := p.last.Add(time.Millisecond)
	if from.Before(s.Start) {
		from = s.Start
	}
	if to.Before(from) {
		p.mu.Unlock()
		return
	}
	p.last = to
	p.mu.Unlock()
	if now := p.keeper.Status(); now.Worker == s.Worker && !from.Before(now.Start) && !to.After(now.Limit) {
		p.k.ledger.add(p, s.Worker, from, to)
	}
}

// crash ends the process without releasing its worker id.
func (p *process) crash() {
	p.dead.Store(true)
	p.keeper.Close()
	p.Close()
}

func (p *process) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	if p.cut.Load() || p.dead.Load() {
		return worker.Doc{}, "", errCut
	}
	d, v, err := p.slots.Get(ctx, slot)
	return shifted(d, -p.clockShift), v, err
}

func (p *process) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if p.cut.Load() || p.dead.Load() {
		return "", false, &worker.NotWrittenError{Err: errCut}
	}
	if before := p.before; before != nil && slot >= 0 {
		p.before = nil
		before(slot)
	}
	v, ok, err := p.slots.Put(ctx, slot, shifted(d, p.clockShift), expected)
	time.Sleep(time.Duration(p.slow.Load()))
	if slot >= 0 && p.lose.Add(-1) >= 0 {
		return "", false, errCut
	}
	return v, ok, err
}

func (p *process) Close() {
	p.close.Do(func() {
		if p.src.Close != nil {
			p.src.Close()
		}
	})
}

// shifted returns d with its time shifted. It does not change documents without a time.
func shifted(d worker.Doc, by time.Duration) worker.Doc {
	if d.HighWater.UnixMilli() > 0 {
		d.HighWater = d.HighWater.Add(by)
	}
	return d
}

// ledger records the times that all processes issued, by worker id, in order.
type ledger struct {
	mu  sync.Mutex
	all map[int][]span
}

type span struct{ from, to time.Time }

// add records a span of times, and fails the test if any of them was issued before
// with the same worker id.
func (l *ledger) add(p *process, id int, from, to time.Time) {
	from, to = from.Add(p.clockShift), to.Add(p.clockShift)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[int][]span)
	}
	spans := l.all[id]
	// after is the index of the first span that does not end before the new span begins. Usually there is none.
	after, _ := slices.BinarySearchFunc(spans, from, func(s span, from time.Time) int { return s.to.Compare(from) })
	if after < len(spans) && !spans[after].from.After(to) {
		p.k.Errorf("worker id %d: times from %v to %v issued twice", id, from, to)
		return
	}
	l.all[id] = slices.Insert(spans, after, span{from, to})
}
