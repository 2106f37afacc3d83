package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/internal/part"
)

// renew tries once to raise the bound, which at now had not ended. After an
// error it is to be tried again a while later, unless it says that the worker id is lost.
func (e *engine) renew(ctx context.Context, h *hold, now time.Time) (again time.Duration, err error) {
	again = e.jitter(2*e.pause, 6*e.pause)
	hw, res, err := e.raise(ctx, h, h.doc, h.ver, now)
	if res == swapped {
		return e.lengths.renew, nil
	}
	r := e.get(ctx, h.slot) // mutation: read
	if res == refused && errors.Is(err, errContended) {
		err = refusedError(h, r)
	}
	switch {
	case r.err != nil:
		err = fmt.Errorf("%w; reading it: %w", part.Of(err), part.Of(r.err))
	case h.wrote(r.doc): // mutation: nonce
		// One of our own puts, perhaps this one. It is where the next one goes
		// on from; it raises nothing.
		h.ver = r.ver
		if res == unclear && r.doc.HighWater.Equal(hw) {
			again = e.jitter(e.pause/16, e.pause/2) // only its reply was lost; a refusal may be served for minutes
		}
	case h.refused(r.doc): // served all the same, or written by a copy of this process
		h.ver = h.sure
	case r.doc.Nonce == h.doc.Nonce:
		return 0, lostError(h.slot, owner(r.doc.Owner), errClone)
	case res == refused && e.lacking(h, r):
		if back, putErr := e.putBack(ctx, h, r); back {
			return e.lengths.renew, nil
		} else if putErr != nil {
			err = fmt.Errorf("%w; putting it back: %w", part.Of(err), part.Of(putErr))
		}
	case r.doc.HighWater.After(h.doc.HighWater):
		return 0, lostError(h.slot, owner(r.doc.Owner), nil)
	}
	return again, err
}

// raise puts y with a higher high water, and raises the bound if that is told true.
func (e *engine) raise(ctx context.Context, h *hold, y Doc, expected Version, now time.Time) (hw time.Time, res outcome, err error) {
	bound := now.Add(e.lease)
	y.HighWater = latest(bound, h.sent.Add(tick)) // mutation: text
	h.sent = y.HighWater                          // mutation: sent
	h.unconfirmed = append(h.unconfirmed, y.HighWater)
	v, res, err := e.put(ctx, h.slot, y, expected)                                         // mutation: decided
	if res == swapped && e.source.Inserts && e.late(h, now) && !e.still(ctx, h.registry) { // mutation: late insert
		res, err = unclear, errVoid
	}
	switch res {
	case swapped: // mutation: confirmed
		h.confirm(y, v, bound)
	case refused:
		h.unconfirmed = h.unconfirmed[:len(h.unconfirmed)-1]
		h.denied = append(h.denied, y.HighWater)
	}
	return y.HighWater, res, err
}

// release gives the slot back; ids up to last may have been issued. Nothing
// depends on its success: a slot that stays held is taken over after its bound.
func (e *engine) release(ctx context.Context, h *hold, last time.Time) {
	free := h.doc
	free.HighWater, free.Free = last, true // mutation: freed
	_, res, err := e.put(ctx, h.slot, free, h.ver)
	if res != refused || !errors.Is(err, errContended) {
		return
	}
	// The last renewal's reply may have been lost.
	if r := e.get(ctx, h.slot); r.err == nil && h.is(r) {
		e.put(ctx, h.slot, free, r.ver)
	}
}

// releaseFor is how long an application that ends waits for the registry.
const releaseFor = 5 * time.Second

// hold keeps a slot until it is lost or the keeper is closed, which gives it
// back.
func (k *Keeper) hold() {
	e, h := k.engine, k.held
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	k.tell(ctx, true)
	lost := k.keep(ctx)
	cancel()
	e.claim = h
	// Once the status is published nothing more is issued, and what was issued
	// can be asked for.
	if lost == nil {
		k.closed()
		ctx, cancel := e.host.within(context.WithoutCancel(k.ctx), min(e.call, releaseFor))
		defer cancel()
		e.release(ctx, h, k.issued())
	} else {
		k.lost(lost)
	}
	k.tell(ctx, false)
}

// lost publishes the end of a lease that could not be kept.
func (k *Keeper) lost(lost *UnavailableError) {
	k.engine.log.Warn("leafsql: worker id lost", "worker", lost.Worker, "err", part.Text(lost))
	k.next.Phase, k.next.Limit, k.next.Err, k.next.quarantine = phaseSearching, time.Time{}, nil, nil
	if lost.Owner == "" && lost.Cause != nil { // the registry was away all the time
		k.next.Err, k.next.Next = lost, k.clock.now()
	}
	k.publish()
}

// issued is the latest time that can have been issued under a slot.
func (k *Keeper) issued() time.Time {
	h := k.held
	switch {
	case !h.used:
		return h.floor // mutation: unused
	case k.cfg.Issued == nil:
		return latest(h.floor, h.bound)
	}
	return latest(h.floor, k.cfg.Issued())
}

// keep renews a slot until ctx ends, which gives nil, or it is lost.
func (k *Keeper) keep(ctx context.Context) *UnavailableError {
	var (
		e, h    = k.engine, k.held
		taken   = e.now()
		renewal = taken.Add(e.lengths.renew)
		failed  error // of the last renewal
	)
	h.walk = taken
	if h.registry.made >= len(e.slots) {
		h.walk = never
	}
	// Who held a worker id before knows that somebody was running.
	h.alone = h.alone && k.next.Since.IsZero()
	k.next.Phase, k.next.Worker, k.next.Since, k.next.Start, k.next.Next = phaseWaiting, h.slot, taken, h.start, renewal
	k.quarantine(h.start.Sub(taken))
	for ctx.Err() == nil {
		if !e.now().Before(h.start) && !h.used {
			h.used, k.class = true, ""
			k.next.Phase, k.next.Err = phaseHolding, failed
			e.log.Info("leafsql: worker id taken", "worker", h.slot, "until", h.bound, "registry", e.source.Name)
		}
		if h.used {
			k.next.Limit = h.bound // mutation: limit
		}
		k.publish()
		k.compareClocks(ctx)
		wake := earliest(renewal, h.walk, h.bound.Add(tick))
		if !h.used {
			wake = earliest(wake, h.start)
		}
		if wait := wake.Sub(e.now()); wait > 0 && e.host.sleep(ctx, wait) != nil {
			break
		}
		now := e.now()
		switch {
		case now.After(h.bound):
			return lostError(h.slot, "", failed)
		case !now.Before(renewal):
			again, err := e.renew(ctx, h, now)
			if lost, ok := errors.AsType[*UnavailableError](err); ok {
				return lost
			}
			k.renewed(failed, err)
			if failed, renewal = err, e.now().Add(again); err == nil {
				renewal = now.Add(again)
			}
			k.next.Next = renewal
		case !now.Before(h.walk):
			h.walk = k.walk(ctx, taken)
		}
	}
	return nil
}

// never is after everything.
var never = time.UnixMilli(1 << 62)

// quarantine says how long there are no ids, and why.
func (k *Keeper) quarantine(wait time.Duration) {
	h := k.held
	q := quarantineError(h.slot, h.start, h.unknown)
	k.next.quarantine = q
	if k.next.Err != nil { // statements don't wait any more
		k.next.Err = q
	}
	if wait < time.Second {
		return
	}
	way := ""
	if h.unknown && h.alone {
		way = "; leafNewRegistry=true declares that the registry is new and nobody is running"
	}
	k.engine.log.Info("leafsql: "+part.Text(q)+way, "wait", wait.Round(time.Millisecond))
}

// renewed publishes and logs what became of a renewal.
func (k *Keeper) renewed(before, err error) {
	h := k.held
	switch left := h.bound.Sub(k.clock.now()).Round(time.Millisecond); {
	case err != nil && before == nil:
		k.engine.log.Warn("leafsql: the worker id is not renewed; ids go on until its bound", "worker", h.slot, "left", left, "err", part.Text(err))
	case err == nil && before != nil:
		k.engine.log.Info("leafsql: the worker id is renewed again", "worker", h.slot, "until", h.bound)
	}
	if h.used {
		k.next.Err = err
	}
}

// walk makes some of the missing slots, and says when it goes on.
func (k *Keeper) walk(ctx context.Context, taken time.Time) time.Time {
	e, h := k.engine, k.held
	fresh := h.fresh && e.now().Before(taken.Add(e.lease)) // was declared of that time
	switch done, err := e.prepare(ctx, h.registry.id, fresh); {
	case done:
		return never
	case err != nil: // a registry in trouble is not to be asked for more
		return e.now().Add(e.jitter(e.lease/2, e.lease))
	case fresh: // others are on their way
		return e.now()
	}
	return e.now().Add(e.jitter(e.pause/2, 2*e.pause))
}

// compareClocks asks for the registry's time, at first and when this machine's
// clock has jumped.
func (k *Keeper) compareClocks(ctx context.Context) {
	e := k.engine
	if e.source.Time == nil {
		return
	}
	drift := e.clock.drift()
	if (drift - k.drift).Abs() < time.Second {
		return
	}
	ctx, cancel := e.host.within(ctx, 2*time.Second)
	defer cancel()
	theirs, err := e.source.Time(ctx)
	if err != nil {
		return
	}
	k.drift, k.next.ClockOffset = drift, e.now().Sub(theirs).Round(time.Millisecond)
	k.publish()
	if k.next.ClockOffset.Abs() > e.skew/2 {
		e.log.Warn("leafsql: this machine's clock and the registry's are far apart: ids have this machine's time, and a worker id that was used ahead of time is blocked until then; set the clock right and start the process again",
			"ahead", k.next.ClockOffset, "registry", e.source.Name)
	}
}
