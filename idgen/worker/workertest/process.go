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

// process stands between a keeper and the registry, as the machine does that a
// process runs on. Its clock is shifted where a clock shows: in the times of
// the documents, as read and as written, and in those of the ids.
type process struct {
	k     *kit
	slots worker.Slots
	src   worker.Source
	shift time.Duration // how far its clock is ahead

	cut   atomic.Bool  // it reaches nobody
	dead  atomic.Bool  // it crashed: nobody hears of it any more
	slow  atomic.Int64 // replies take so long, whatever the context says
	lose  atomic.Int64 // replies of so many writes get lost
	close sync.Once

	before func(slot int) // called once, before its first write to a slot

	keeper *worker.Keeper
	worker int // the worker id it held first
	mu     sync.Mutex
	last   time.Time // issued
}

var errCut = errors.New("cut off from the registry")

// open starts a process whose clock is ahead by so much.
func (k *kit) open(ahead time.Duration) *process {
	k.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		p, err := k.tryOpen(ahead)
		if err == nil {
			return p
		}
		if time.Now().After(until) { // a registry that answers late may be no error of Open, or be one
			k.Fatalf("Open: %v", err)
		}
	}
}

func (k *kit) tryOpen(ahead time.Duration) (*process, error) {
	src, err := k.Open(k.within(patience))
	if err != nil {
		return nil, err
	}
	p := &process{k: k, slots: src.Slots, src: src, shift: ahead}
	k.Cleanup(func() {
		if p.keeper != nil {
			p.keeper.Close()
		}
		p.Close()
	})
	return p, nil
}

// source is what the process takes its worker id from.
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
				told(ctx, slot, shifted(d, p.shift), held)
			}
		}
	}
	return src, nil
}

// unavailable is the error that gives a reason for there being no worker id, nil if err has none.
func unavailable(err error, reason string) *worker.UnavailableError {
	if e, ok := errors.AsType[*worker.UnavailableError](err); ok && e.Reason == reason {
		return e
	}
	return nil
}

// acquire takes a worker id, however often a search fails, unless one saw that
// none is to be had. Then the process is over.
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

// lease is twice the least: a machine that stands still for seconds costs no worker id.
const lease = 12 * time.Second

// heard waits until replies have come, or are given up, to what was asked before.
func heard() { time.Sleep(lease/12 + time.Second) }

// hold starts a process with a worker id.
func (k *kit) hold(ahead time.Duration, cfg worker.Config) *process {
	k.Helper()
	return k.holdWith(ahead, cfg, func(*process) {})
}

// holdWith prepares the process before it looks for a worker id. Where the
// registry is not reliable one may not have been given back, and it tries again.
func (k *kit) holdWith(ahead time.Duration, cfg worker.Config, prepare func(*process)) *process {
	k.Helper()
	for until := time.Now().Add(25 * max(lease, cfg.Lease)); ; time.Sleep(time.Second) {
		p := k.open(ahead)
		prepare(p)
		err := p.acquire(k.within(patience), cfg)
		if err == nil {
			return p
		}
		if !k.Unreliable || time.Now().After(until) {
			k.Fatalf("no worker id: %v", err)
		}
		k.Logf("no worker id yet: %v", err)
	}
}

// now is the time of the process's machine.
func (p *process) now() time.Time { return time.UnixMilli(p.keeper.UnixMilli()) }

// holds reports whether ids may be issued.
func (p *process) holds() bool { return p.keeper.Status().Phase == "holding" }

// limit is the latest time that may be issued; a zero one if none may.
func (p *process) limit() time.Time { return p.keeper.Status().Limit }

// issue puts all times up to now into ids.
func (p *process) issue() { p.upTo(p.now()) }

// burst puts all times into ids that the lease allows.
func (p *process) burst() { p.upTo(p.limit()) }

// upTo issues as a generator does: it asks for the status before and after it
// has marked what it issues.
func (p *process) upTo(to time.Time) {
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

// crash ends the process without a word to the registry.
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
	return shifted(d, -p.shift), v, err
}

func (p *process) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if p.cut.Load() || p.dead.Load() {
		return "", false, &worker.NotWrittenError{Err: errCut}
	}
	if before := p.before; before != nil && slot >= 0 {
		p.before = nil
		before(slot)
	}
	v, ok, err := p.slots.Put(ctx, slot, shifted(d, p.shift), expected)
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

// shifted leaves documents without a time as they are.
func shifted(d worker.Doc, by time.Duration) worker.Doc {
	if d.HighWater.UnixMilli() > 0 {
		d.HighWater = d.HighWater.Add(by)
	}
	return d
}

// ledger is what all processes issued, by worker id: in order, and nothing twice.
type ledger struct {
	mu  sync.Mutex
	all map[int][]span
}

type span struct{ from, to time.Time }

// add books a span, and is an error of the test if another process issued any
// of it under the same worker id.
func (l *ledger) add(p *process, id int, from, to time.Time) {
	from, to = from.Add(p.shift), to.Add(p.shift)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[int][]span)
	}
	spans := l.all[id]
	// The first that does not end before this one begins: most often there is none.
	after, _ := slices.BinarySearchFunc(spans, from, func(s span, from time.Time) int { return s.to.Compare(from) })
	if after < len(spans) && !spans[after].from.After(to) {
		p.k.Errorf("worker id %d: times from %v to %v issued twice", id, from, to)
		return
	}
	l.all[id] = slices.Insert(spans, after, span{from, to})
}
