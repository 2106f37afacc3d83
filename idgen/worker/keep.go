package worker

import (
	"context"
	"errors"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// releaseFor is the longest time that Close waits for the registry to return the worker id.
const releaseFor = 5 * time.Second

// hold keeps a slot until it is lost or the keeper is closed. Then it returns the
// slot.
func (k *Keeper) hold() {
	e, h := k.engine, k.held
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	k.tell(ctx, true)
	lost := k.keep(ctx)
	cancel()
	e.claim = h
	// After the status is published nothing more is issued, and Config.Issued returns
	// its final value.
	if lost == nil {
		k.closed()
		ctx, cancel := e.host.within(context.WithoutCancel(k.ctx), min(e.call, releaseFor))
		defer cancel()
		if !h.lost { // mutation: given back
			e.release(ctx, h, k.issued())
		}
	} else {
		k.lost(lost)
	}
	k.tell(ctx, false)
}

// lost publishes that the lease has ended.
func (k *Keeper) lost(lost *UnavailableError) {
	k.engine.log.Warn("leafsql: worker id lost", "worker", lost.Worker, "err", errprefix.TrimText(lost))
	k.next.Phase, k.next.Limit, k.next.Err = phaseSearching, time.Time{}, nil
	if lost.Owner == "" && lost.Cause != nil { // the registry never answered
		k.next.Err, k.next.Next = lost, k.clock.now()
	}
	k.publish()
}

// issued returns the latest time that can have been issued under the slot.
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

// keep renews a slot until ctx ends, and then returns nil, or until the slot is lost.
func (k *Keeper) keep(ctx context.Context) *UnavailableError {
	var (
		e, h    = k.engine, k.held
		taken   = e.now()
		renewal = taken.Add(e.lengths.renew)
		failed  error // error of the last renewal
	)
	h.walk = taken
	if h.registry.made >= len(e.slots) {
		h.walk = never
	}
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
			return lostError(h.slot, Doc{}, failed)
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

// never is later than every other time.
var never = time.UnixMilli(1 << 62)

// quarantine publishes and logs until when no ids are issued, and why.
func (k *Keeper) quarantine(wait time.Duration) {
	h := k.held
	q := quarantineError(h.slot, h.start, h.unknown)
	k.next.quarantine = q
	if k.next.Err != nil { // statements no longer wait
		k.next.Err = q
	}
	if wait >= time.Second {
		k.engine.log.Info("leafsql: "+errprefix.TrimText(q), "wait", wait.Round(time.Millisecond))
	}
}

// renewed publishes and logs the result of a renewal.
func (k *Keeper) renewed(before, err error) {
	h := k.held
	switch left := h.bound.Sub(k.clock.now()).Round(time.Millisecond); {
	case err != nil && before == nil:
		k.engine.log.Warn("leafsql: the worker id is not renewed; ids go on until its bound", "worker", h.slot, "left", left, "err", errprefix.TrimText(err))
	case err == nil && before != nil:
		k.engine.log.Info("leafsql: the worker id is renewed again", "worker", h.slot, "until", h.bound)
	}
	if h.used {
		k.next.Err = err
	}
}

// walk creates some of the missing slots, and returns the time of its next call.
func (k *Keeper) walk(ctx context.Context, taken time.Time) time.Time {
	e, h := k.engine, k.held
	fresh := h.fresh && e.now().Before(taken.Add(e.lease)) // the declaration holds for a lease only
	reg, err := e.registry(ctx)
	done := err == nil && reg.id != h.registry.id // a renewal adopts it, or the worker id is lost
	if err == nil && !done {
		done, err = e.prepare(ctx, reg, fresh)
	}
	switch {
	case done:
		return never
	case err != nil: // spare a registry with problems
		return e.now().Add(jitter(e.host, e.lease/2, e.lease))
	case fresh: // other processes are starting
		return e.now()
	}
	return e.now().Add(jitter(e.host, e.pause/2, 2*e.pause))
}

// compareClocks publishes how far this machine's clock is ahead of the registry's.
func (k *Keeper) compareClocks(ctx context.Context) {
	e := k.engine
	e.compareClocks(ctx, false)
	if k.next.ClockOffset == e.offset {
		return
	}
	k.next.ClockOffset = e.offset
	k.publish()
	if e.offset.Abs() > e.skew/2 {
		e.log.Warn("leafsql: this machine's clock and the registry's are far apart: ids have this machine's time, and a worker id that was used ahead of time is blocked until then; set the clock right and start the process again",
			"ahead", e.offset, "registry", e.source.Name)
	}
}
