package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// Keeper leases one worker id of a source for this process, from the first use
// to Close. Its goroutine searches for a worker id, waits until its ids are later than those
// of all earlier owners, renews the lease, and searches again when the worker id is lost. It publishes its state
// as a Status.
// A Keeper is safe for concurrent use.
type Keeper struct {
	cfg   Config
	open  func(context.Context) (Source, error)
	clock clock

	status atomic.Pointer[Status]
	once   sync.Once // for the start, or for the end of a keeper that was never started
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
	err    error         // error of closing the source; set before done is closed

	// The following fields are used by the goroutine only.
	next           Status        // to be published
	engine         *engine       // nil until the source is open
	held           *heldSlot     // the slot taken last
	changeReported chan struct{} // closed when the last call of OnChange has returned
	loggedClass    string        // class of the failure or wait that was logged last
}

// Keep returns a Keeper of the source that open returns. The first Wait calls open, and
// Close closes the source. Keep returns an error if a value of cfg is out of range. Callers
// have to close the Keeper.
func Keep(open func(context.Context) (Source, error), cfg Config) (*Keeper, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	k := &Keeper{
		cfg: cfg, open: open, clock: clock{host: cfg.host}, done: make(chan struct{}), changeReported: make(chan struct{}),
		next: Status{Phase: phaseIdle, Worker: -1, Owner: cfg.Owner},
	}
	close(k.changeReported)
	k.clock.now()
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.publish()
	return k, nil
}

// start starts the search for a worker id. Further calls have no effect.
func (k *Keeper) start() { k.once.Do(func() { k.cfg.host.start(k.run) }) }

// Status returns the current status. It costs one atomic load.
func (k *Keeper) Status() *Status { return k.status.Load() }

// UnixMilli returns the keeper's time in Unix milliseconds, as used in ids. It is
// the machine's clock, except that it never goes back while the process runs.
func (k *Keeper) UnixMilli() int64 { return k.clock.unixMilli() }

// Wait starts the keeper and returns the status when ids may be issued. If a search has failed since
// the start, or since a worker id was lost, Wait does not wait: it returns the status and its Err at
// once. Err is an *UnavailableError, an *UnusableError, or an error of the source. If ctx ends first, the status
// is nil and the error wraps context.Cause(ctx).
func (k *Keeper) Wait(ctx context.Context) (*Status, error) {
	k.start()
	for {
		s := k.status.Load()
		switch {
		case s.Phase == phaseHolding:
			return s, nil
		case s.Err != nil:
			return s, s.Err
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("leafsql: no worker id yet: %w: %s", context.Cause(ctx), s.Reason())
		}
	}
}

// Close releases the worker id and closes the source. It waits up to 5 s for the
// registry. A failed release is not an error: other processes can take the worker id some time after
// its lease has ended. Close returns the error of closing the source, for logs.
func (k *Keeper) Close() error {
	k.cancel()
	k.once.Do(k.finish)
	<-k.done
	return k.err
}

// run runs as the keeper's goroutine.
func (k *Keeper) run() {
	defer k.finish()
	for k.searchUntilHeld() {
		k.holdSlot()
	}
}

// finish closes the source after the goroutine's last step.
func (k *Keeper) finish() {
	k.publishClosed()
	<-k.changeReported
	if k.engine != nil {
		k.err = k.engine.source.close()
	}
	close(k.done)
}

// publish replaces the status.
func (k *Keeper) publish() {
	s := k.next
	s.changed = make(chan struct{})
	if old := k.status.Swap(&s); old != nil {
		close(old.changed)
	}
}

// publishClosed publishes that no more ids may be issued.
func (k *Keeper) publishClosed() {
	k.next.Phase, k.next.Err, k.next.Limit, k.next.Next = phaseClosed, errClosed, time.Time{}, time.Time{}
	k.publish()
}

// searchUntilHeld searches until a slot is held and returns true, or returns false if the keeper is closed
// before that.
func (k *Keeper) searchUntilHeld() bool {
	r := retries{host: k.cfg.host, unit: k.cfg.timing.minPause, began: k.clock.now()}
	k.next.Phase = phaseSearching
	k.publish()
	for k.ctx.Err() == nil {
		err := k.searchOnce(r.slotLimit)
		if err == nil {
			return true
		}
		history, missing := errors.AsType[*missingHistoryError](err)
		if missing { // the pause after this wait is at most 2 units
			k.next.Next = history.began.Add(k.engine.restoreWait + 2*r.unit)
			k.publishQuarantine(history.began, k.engine.quarantineEnd(k.next.Next), true)
			k.publish()
			k.cfg.host.sleep(k.ctx, k.engine.restoreWait)
		}
		now := k.clock.now()
		pause, quiet := r.nextPause(err, now)
		if !quiet && !missing && k.ctx.Err() == nil {
			k.logFailure(err)
			k.next.Err, k.next.Next, k.next.quarantine, k.next.Start = err, now.Add(pause), nil, time.Time{}
			k.publish()
		}
		k.cfg.host.sleep(k.ctx, pause)
	}
	return false
}

// retries computes the pauses between failing searches.
type retries struct {
	host         host
	unit         time.Duration // the least pause
	began        time.Time
	searches     int // searches so far
	fullSearches int // consecutive searches that found every worker id taken
	slotLimit    int // number of slots for the next search; 0: all
}

// nextPause returns the pause after a failed search. If quiet is true, the error must not be
// published, because the next search will probably succeed.
func (r *retries) nextPause(err error, now time.Time) (pause time.Duration, quiet bool) {
	r.searches++
	if e, ok := errors.AsType[*UnavailableError](err); ok {
		// The failed search read every document. The next searches read only a few documents, about one
		// for each second of the pause before the search. Half of them are the documents whose leases end
		// first. Reads may be stale, so the first consecutive UnavailableError is not published.
		second := 4 * r.unit
		pause = min(second<<min(r.fullSearches, 5), 20*second)
		if e.Reason == "taken" {
			pause = min(pause, max(2*second, e.Until.Sub(now)+tick))
		}
		r.fullSearches++
		r.slotLimit = max(1, int(pause/second)-1) // the registry's own document is read too
		return pause, r.fullSearches == 1
	}
	r.fullSearches, r.slotLimit = 0, 0
	_, isUnusable := errors.AsType[*UnusableError](err)
	switch {
	case isUnusable:
		return jitter(r.host, 120*r.unit, 240*r.unit), false
	case errors.Is(err, errUnconfirmed):
		return 2 * r.unit, true
	case errors.Is(err, errContended), errors.Is(err, errRegistryChanged):
		return jitter(r.host, r.unit, r.unit<<min(r.searches, 3)), r.searches < 6
	}
	most := min(max(now.Sub(r.began)/30, 8*r.unit), 40*r.unit)
	return jitter(r.host, r.unit, min(r.unit<<min(r.searches, 6), most)), false
}

// openTimeout is the timeout for opening a source.
const openTimeout = 30 * time.Second

// searchOnce makes one search, and opens the source first if it is not open.
func (k *Keeper) searchOnce(slotLimit int) (err error) {
	if k.engine == nil {
		ctx, cancel := k.cfg.host.withTimeout(k.ctx, openTimeout)
		defer cancel()
		if k.engine, err = openEngine(ctx, k.open, &k.cfg, &k.clock); err != nil {
			return err
		}
		k.next.Registry, k.next.Ahead = k.engine.source.Name, k.engine.maxAhead
	}
	k.held, err = k.engine.search(k.ctx, slotLimit)
	return err
}

// logFailure logs why there is no worker id, unless the last line was of the same class.
func (k *Keeper) logFailure(err error) {
	class := fmt.Sprintf("%T", err)
	if e, ok := errors.AsType[*UnavailableError](err); ok {
		class = e.Reason
	}
	if class != k.loggedClass {
		k.loggedClass = class
		k.cfg.Logger.Warn("leafsql: no worker id: " + errprefix.TrimText(err))
	}
}

// notifyChange calls the source's OnChange in the background, after the previous call has
// returned.
func (k *Keeper) notifyChange(ctx context.Context, held bool) {
	onChange := k.engine.source.OnChange
	if onChange == nil {
		return
	}
	slot, d := k.held.slot, k.held.doc
	before, told := k.changeReported, make(chan struct{})
	k.changeReported = told
	go func() {
		defer close(told)
		<-before
		if !held {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
		}
		onChange(ctx, slot, d, held)
	}()
}
