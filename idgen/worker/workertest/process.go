package workertest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// process stands between a lease and the registry, as the machine does that a
// process runs on. Its clock is shifted where a clock shows: in the times of
// the documents, as read and as written, and in those of the ids.
type process struct {
	k     *kit
	slots worker.Slots
	src   worker.Source
	shift int64 // how far its clock is ahead, ms

	cut   atomic.Bool  // it reaches nobody
	dead  atomic.Bool  // it crashed: nobody hears of it any more
	slow  atomic.Int64 // replies take so long, whatever the context says
	lose  atomic.Int64 // replies of so many writes get lost
	close sync.Once

	before func(slot int) // called once, before its first write

	lease *worker.Lease
	last  atomic.Int64
}

var errCut = errors.New("cut off from the registry")

// open starts a process whose clock is ahead by so much.
func (k *kit) open(ahead time.Duration) *process {
	k.Helper()
	p, err := k.tryOpen(ahead)
	if err != nil {
		k.Fatalf("Open: %v", err)
	}
	return p
}

func (k *kit) tryOpen(ahead time.Duration) (*process, error) {
	src, err := k.Open(k.within(patience))
	if err != nil {
		return nil, err
	}
	p := &process{k: k, slots: src.Slots, src: src, shift: ahead.Milliseconds()}
	k.Cleanup(func() {
		if p.lease != nil {
			p.lease.Close()
		}
		p.Close()
	})
	return p, nil
}

// source is what the process takes its lease from.
func (p *process) source() worker.Source {
	src := p.src
	src.Slots = p
	if held := src.Held; held != nil {
		src.Held = func(ctx context.Context, h worker.Holding) {
			if !p.dead.Load() {
				h.Doc = shifted(h.Doc, p.shift)
				held(ctx, h)
			}
		}
	}
	return src
}

// acquire takes a lease; on success the process has it, else its source is
// closed.
func (p *process) acquire(ctx context.Context, cfg worker.Config) error {
	cfg.Bound = cmp.Or(cfg.Bound, bound)
	cfg.Workers = cmp.Or(cfg.Workers, 1)
	cfg.Logger = slog.New(slog.DiscardHandler)
	l, err := worker.Acquire(ctx, p.source(), cfg)
	if err == nil {
		p.have(l)
	}
	return err
}

func (p *process) have(l *worker.Lease) {
	p.lease = l
	p.last.Store(l.Start() - 1)
	if err := l.Bind(p.last.Load); err != nil {
		p.k.Error(err)
	}
}

// bound is the least that a lease may have.
const bound = 6 * time.Second

// hold starts a process with a lease.
func (k *kit) hold(ahead time.Duration, cfg worker.Config) *process {
	k.Helper()
	return k.holdWith(ahead, cfg, func(*process) {})
}

// holdWith prepares the process before it looks for a lease. Where the registry
// is not reliable a worker id may not have been given back, and it tries again.
func (k *kit) holdWith(ahead time.Duration, cfg worker.Config, prepare func(*process)) *process {
	k.Helper()
	for until := time.Now().Add(25 * max(bound, cfg.Bound)); ; time.Sleep(time.Second) {
		p := k.open(ahead)
		prepare(p)
		err := p.acquire(k.within(patience), cfg)
		if err == nil {
			return p
		}
		if !k.Unreliable || time.Now().After(until) {
			k.Fatalf("no lease: %v", err)
		}
		k.Logf("no lease yet: %v", err)
	}
}

// issue puts all timestamps up to now into ids.
func (p *process) issue() { p.upTo(p.lease.Now()) }

// burst puts all timestamps into ids that the lease allows.
func (p *process) burst() { p.upTo(p.lease.Limit()) }

// upTo issues as a generator does: it asks for the limit before and after it
// has marked what it issues.
func (p *process) upTo(to int64) {
	from := p.last.Load() + 1
	to = min(to, p.lease.Limit())
	if to < from {
		return
	}
	p.last.Store(to)
	if p.lease.Limit() >= to {
		p.k.ledger.add(p, from, to)
	}
}

// crash ends the process without a word to the registry.
func (p *process) crash() {
	p.dead.Store(true)
	p.lease.Close()
	p.Close()
}

func (p *process) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	if p.cut.Load() || p.dead.Load() {
		return worker.Doc{}, "", errCut
	}
	d, v, err := p.slots.Get(ctx, slot)
	return shifted(d, -p.shift), v, err
}

func (p *process) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, worker.Result, error) {
	if p.cut.Load() || p.dead.Load() {
		return "", worker.Refused, errCut
	}
	if before := p.before; before != nil {
		p.before = nil
		before(slot)
	}
	v, r, err := p.slots.Put(ctx, slot, shifted(d, p.shift), expected)
	time.Sleep(time.Duration(p.slow.Load()))
	if p.lose.Add(-1) >= 0 {
		return "", worker.Unknown, errCut
	}
	return v, r, err
}

func (p *process) Anchor(ctx context.Context) (string, error) {
	a, ok := p.slots.(worker.Anchorer)
	switch {
	case !ok:
		return "", nil
	case p.cut.Load() || p.dead.Load():
		return "", errCut
	}
	return a.Anchor(ctx)
}

func (p *process) Close() error {
	p.close.Do(func() {
		if c, ok := p.slots.(io.Closer); ok {
			c.Close()
		}
	})
	return nil
}

// shifted leaves documents without a time as they are.
func shifted(d worker.Doc, ms int64) worker.Doc {
	if d.HW != 0 {
		d.HW += ms
	}
	return d
}

// ledger is what all processes issued, by worker id.
type ledger struct {
	mu  sync.Mutex
	all map[int][]span
}

type span struct {
	by       *process
	from, to int64 // as the process's own clock says
}

// add books a span, and is an error of the test if another process issued any
// of it under the same worker id.
func (l *ledger) add(p *process, from, to int64) {
	from, to = from+p.shift, to+p.shift
	id := p.lease.Worker()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.all[id] {
		if from <= o.to && o.from <= to {
			p.k.Errorf("worker id %d: timestamps %d … %d issued twice", id, max(from, o.from), min(to, o.to))
		}
	}
	if l.all == nil {
		l.all = make(map[int][]span)
	}
	l.all[id] = append(l.all[id], span{p, from, to})
}
