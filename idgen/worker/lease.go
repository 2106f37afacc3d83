// Package worker leases worker ids: small numbers that no two processes use
// for the same time. A lease carries a limit, the highest timestamp that may
// go into an id; only a compare-and-set confirmed by the registry raises it.
// Two processes that both believe they hold a worker id still issue disjoint
// ids, whatever their clocks say.
//
//	lease, err := worker.Open(ctx, "static(7)", worker.Config{State: "/var/lib/shop"})
//	if err != nil {
//		return err
//	}
//	ids, err := snowflake.New(snowflake.Leaf, lease)
//	...
//	defer ids.Close() // gives the lease back
//
// Sources are registered by name, as database/sql's drivers are: static(N),
// env(VAR) and ordinal() are built in, others come with a blank import. One
// lease serves one generator. To share a worker id, share the generator: this
// package does not look whether two leases of a process came from equal specs.
//
// It does not make ids, and it cannot help where a registry is set back to an
// older copy while owners live: wait two minutes before bringing one back.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how worker ids are leased. The zero value is good for a layout
// with 10 worker bits.
type Config struct {
	// Workers is how many worker ids the layout has: 0 … Workers-1 are leased.
	// 0 means 1024.
	Workers int

	// Bound is how far beyond now a confirmed write carries the limit, and so
	// how long the registry may be away; 0 means 60 s, the least is 6 s. All
	// processes of a registry must use the same. It is renewed every sixth of it.
	Bound time.Duration

	// NewRegistry declares that the registry is new and nobody is running, so
	// that this start need not wait out unknown history (Bound + 60 s). It is
	// for a first roll-out and for tests, not to be left on.
	NewRegistry bool

	// State is a directory for local state; "" keeps none. For static, env and
	// ordinal it is the registry. For others it lets a process that restarts
	// while the registry is away go on within its last bound. It must be on a
	// local disk that is never copied, rolled back or shared: an older copy
	// under a second process issues the same ids again.
	State string

	// Registry tells registries apart in State. Open fills it in; Acquire
	// needs it where State is set.
	Registry string

	// Options are the source's own.
	Options Options

	// Owner is written into the slot for people to read; "" means host and
	// process id.
	Owner string

	// Logger gets what happens in the background; nil means slog.Default().
	Logger *slog.Logger
}

// Lease is the right to use one worker id. It is handed up once and then
// speaks by Limit, Done and Err.
type Lease struct {
	h      *holding
	chain  *chain
	bound  atomic.Bool
	cancel context.CancelFunc
	done   chan struct{} // closed when no id may be issued any more
	err    error         // set before done is closed
	over   chan struct{} // closed when the slot was given back and Held was told
}

// chain is one opened source and the leases taken from it, one after another.
type chain struct {
	engine  *engine
	clock   clock
	began   time.Time
	workers int  // Config.Workers
	strict  bool // no id is of a time to come: nothing would remember it
	held    func(context.Context, Holding)
	close   func() error

	mu      sync.Mutex
	current *Lease
}

// Open opens the source that spec names, such as "static(7)" or
// "nacos(h1:8848,h2:8848)", and takes a worker id from it. It waits as long as
// ctx lets it for ids to become safe to issue: up to Bound + 60 s where the
// registry's history is unknown. Errors are a TakenError, a ClockError, or the
// registry's own.
func Open(ctx context.Context, spec string, cfg Config) (*Lease, error) {
	src, err := OpenSource(ctx, spec, cfg.Options)
	if err != nil {
		return nil, err
	}
	if cfg.Registry == "" {
		cfg.Registry = registryName(spec, cfg.Options)
	}
	return Acquire(ctx, src, cfg)
}

// Acquire takes a worker id from an opened source, which it closes when it
// fails or when the lease is over.
func Acquire(ctx context.Context, src Source, cfg Config) (*Lease, error) {
	c, err := newChain(src, cfg)
	if err != nil {
		if closer, ok := src.Slots.(io.Closer); ok {
			closer.Close()
		}
		return nil, err
	}
	l, err := c.take(ctx, nil)
	if err != nil {
		c.close()
		return nil, err
	}
	c.engine.fresh = false // was said of this start, not of successors
	return l, nil
}

// take acquires the chain's next lease and waits until its ids may be issued.
func (c *chain) take(ctx context.Context, before *Lease) (*Lease, error) {
	e := c.engine
	h, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	kept, cancel := context.WithCancel(context.Background())
	l := &Lease{h: h, chain: c, cancel: cancel, done: make(chan struct{}), over: make(chan struct{})}
	if err := h.publish(); err != nil {
		cancel()
		h.release(context.Background())
		return nil, err
	}
	go l.run(kept, before)

	wait := h.start - e.now()
	if wait > 1000 {
		why := "ids up to then may have been issued under this worker id"
		if h.blind {
			why = "nothing is known of the registry's past; leafNewRegistry=true declares that nobody is running"
		}
		e.log.Info("leafsql: waiting before the first id", "worker", h.slot, "wait", ms(wait), "why", why)
	}
	for ; wait > 0; wait = h.start - e.now() {
		t := time.NewTimer(ms(wait))
		select {
		case <-t.C:
		case <-l.done:
			t.Stop()
			l.end()
			return nil, l.err
		case <-ctx.Done():
			t.Stop()
			l.end()
			return nil, fmt.Errorf("leafsql: worker id %d: its ids are safe only in %v: %w; give the start that long", h.slot, ms(h.start-e.now()), context.Cause(ctx))
		}
	}
	c.mu.Lock()
	mine := c.current == before
	if mine {
		c.current = l
	}
	c.mu.Unlock()
	if !mine {
		l.end()
		return nil, before.noSuccessor()
	}
	return l, nil
}

// run keeps the lease until it is closed or lost.
func (l *Lease) run(ctx context.Context, before *Lease) {
	defer close(l.over)
	told := l.tell(ctx, before)
	l.h.hold(ctx, func(err error) {
		l.err = err
		if err == nil {
			l.err = ErrClosed
		} else {
			l.chain.engine.log.Warn("leafsql: worker id lost", "worker", l.h.slot, "err", err)
		}
		close(l.done)
		l.cancel()
	})
	<-told
	if l.chain.held != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		l.chain.held(ctx, Holding{Worker: l.h.slot, Doc: l.h.doc})
		cancel()
	}
}

// tell calls the source's Held in the background, after the lease before is
// wholly over. The channel is closed when it has returned.
func (l *Lease) tell(ctx context.Context, before *Lease) <-chan struct{} {
	told := make(chan struct{})
	h := Holding{Worker: l.h.slot, Doc: l.h.doc, Held: true}
	go func() {
		defer close(told)
		if before != nil {
			<-before.over
		}
		if l.chain.held != nil {
			l.chain.held(ctx, h)
		}
	}()
	return told
}

// end gives the slot back and leaves the source open.
func (l *Lease) end() {
	l.cancel()
	<-l.over
}

// Worker is the worker id.
func (l *Lease) Worker() int { return l.h.slot }

// Workers is how many worker ids this one was chosen from: a successor's is
// below it, too.
func (l *Lease) Workers() int { return l.chain.workers }

// Start is the first timestamp that may go into an id, in Unix ms.
func (l *Lease) Start() int64 { return l.h.start }

// Limit is the highest timestamp that may go into an id now, in Unix ms. It
// grows while the lease is renewed and is below every time once it is over.
// Whoever issues ids asks before and after it has marked them as issued (see
// Bind), and drops them if the limit fell below meanwhile.
func (l *Lease) Limit() int64 {
	limit := l.h.limit.Load()
	if l.chain.strict {
		limit = min(limit, l.Now())
	}
	return limit
}

// Now is the lease's time in Unix ms: the machine's clock, except that it
// never goes back while the process runs.
func (l *Lease) Now() int64 { return l.chain.clock.at(time.Since(l.chain.began)) }

// Ahead is how far beyond Now a burst should go, so that it does not run into
// the limit, which rises in steps.
func (l *Lease) Ahead() time.Duration { return ms(l.chain.engine.ahead) }

// Bind makes the caller the only one who issues ids under the lease. last is
// called when the lease ends, and says the highest timestamp issued or about
// to be. A second Bind is an error.
func (l *Lease) Bind(last func() int64) error {
	if !l.bound.CompareAndSwap(false, true) {
		return fmt.Errorf("leafsql: the lease of worker id %d already has a generator; share that", l.h.slot)
	}
	l.h.last.Store(&last)
	return nil
}

// Done is closed when the lease is over: closed or lost.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err says why the lease is over: nil while it is not, ErrClosed, or a
// LostError.
func (l *Lease) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// Successor takes another worker id from the same source after this lease was
// lost. The source then belongs to the successor; there is one at most, and
// none after Close.
func (l *Lease) Successor(ctx context.Context) (*Lease, error) {
	c := l.chain
	c.mu.Lock()
	mine := c.current == l
	c.mu.Unlock()
	if !mine {
		return nil, l.noSuccessor()
	}
	if l.Err() == nil {
		return nil, fmt.Errorf("leafsql: no successor of worker id %d: it was not lost; use its lease, or open another", l.h.slot)
	}
	return c.take(ctx, l)
}

func (l *Lease) noSuccessor() error {
	return fmt.Errorf("leafsql: no successor of worker id %d: it was closed or has one; use that, or open another lease", l.h.slot)
}

// Close ends the lease, gives the worker id back and closes the source. It
// waits for the registry, but not for long, and not being able to give the
// worker id back is no error: others take it over after its bound. A lease
// that has a successor leaves the source to that.
func (l *Lease) Close() error {
	l.end()
	c := l.chain
	c.mu.Lock()
	mine := c.current == l
	if mine {
		c.current = nil
	}
	c.mu.Unlock()
	if !mine {
		return nil
	}
	return c.close()
}

// newChain makes the engine for a source.
func newChain(src Source, cfg Config) (*chain, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 1024
	}
	if cfg.Workers < 0 {
		return nil, fmt.Errorf("leafsql: leases of %d worker ids: must be 1 or more; 0 means 1024", cfg.Workers)
	}
	if cfg.Bound == 0 {
		cfg.Bound = time.Minute
	}
	if cfg.Bound < 6*time.Second || cfg.Bound > time.Hour {
		return nil, fmt.Errorf("leafsql: a lease of %v: out of range; choose 6s … 1h", cfg.Bound)
	}
	if cfg.Owner == "" {
		host, _ := os.Hostname()
		cfg.Owner = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	c := &chain{began: time.Now(), workers: cfg.Workers, held: src.Held, close: func() error { return nil }}
	m := machine{began: c.began}
	e := &engine{
		timing: timingFor(cfg.Bound), last: src.Last, seed: m.random(), fresh: cfg.NewRegistry,
		owner: cfg.Owner, host: m, clock: &c.clock, log: cfg.Logger, spares: 256,
	}
	c.engine = e
	if src.fixed != nil {
		return c, c.local(*src.fixed, cfg)
	}
	if src.Slots == nil {
		return nil, errors.New("leafsql: a source of worker ids: it has no Slots; set Source.Slots")
	}
	e.slots = timed{src.Slots, ms(e.late)}
	e.workers = among(src.Workers, cfg.Workers)
	if src.Workers != nil {
		e.spares = 0
	}
	if closer, ok := src.Slots.(io.Closer); ok {
		c.close = closer.Close
	}
	if cfg.State != "" {
		if cfg.Registry == "" {
			return nil, errors.New("leafsql: Config.State: nothing tells this registry from others; set Config.Registry")
		}
		st, err := openState(cfg.State, cfg.Registry, cfg.Workers)
		if err != nil {
			return nil, err
		}
		e.state, e.ahead = st, reserve/4
		closeSlots := c.close
		c.close = func() error { return errors.Join(closeSlots(), st.Close()) }
	}
	return c, nil
}
