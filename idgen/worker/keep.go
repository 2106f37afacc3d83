package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// releaseTimeout is the longest time that Close waits for the registry when it releases the worker id.
const releaseTimeout = 5 * time.Second

// holdSlot renews the slot until it is lost or the keeper is closed. If the keeper is closed,
// it releases the slot.
func (k *Keeper) holdSlot() {
	e, h := k.engine, k.held
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	k.notifyChange(ctx, true)
	lost := k.renewUntilLost(ctx)
	cancel()
	e.claim = h
	// Once the next status is published, no more ids are issued, and Config.Issued returns
	// its final value.
	if lost == nil {
		k.publishClosed()
		ctx, cancel := e.host.withTimeout(context.WithoutCancel(k.ctx), min(e.callTimeout, releaseTimeout))
		defer cancel()
		if !h.mayHaveRestored { // mutation: given back
			e.release(ctx, h, k.latestIssued())
		}
	} else {
		k.publishLost(lost)
	}
	k.notifyChange(ctx, false)
}

// publishLost publishes that the lease has ended.
func (k *Keeper) publishLost(lost *UnavailableError) {
	k.engine.log.Warn("leafsql: worker id lost", "worker_id", lost.Worker, "err", errprefix.TrimText(lost))
	k.next.Phase, k.next.Limit, k.next.Start, k.next.Err, k.next.quarantine = phaseSearching, time.Time{}, time.Time{}, nil, nil
	if lost.Owner == "" && lost.Cause != nil { // the registry never answered
		k.next.Err, k.next.Next = lost, k.clock.now()
	}
	k.publish()
}

// latestIssued returns the latest time that can have been issued under the slot.
func (k *Keeper) latestIssued() time.Time {
	h := k.held
	switch {
	case !h.mayHaveIssued:
		return h.floor // mutation: unused
	case k.cfg.Issued == nil:
		return latest(h.floor, h.bound)
	}
	return latest(h.floor, k.cfg.Issued())
}

// renewUntilLost renews the slot until it is lost or ctx ends. It returns nil if ctx ended.
func (k *Keeper) renewUntilLost(ctx context.Context) *UnavailableError {
	var (
		e, h    = k.engine, k.held
		taken   = e.now()
		renewal = taken.Add(e.untilRenewal())
		failed  error // error of the last renewal
	)
	h.nextPrepare = taken
	if h.registry.preparedSlots >= len(e.slots) {
		h.nextPrepare = farFuture
	}
	k.next.Phase, k.next.Worker, k.next.Since, k.next.Next = phaseWaiting, h.slot, taken, renewal
	k.publishQuarantine(taken, h.start, h.unknownHistory)
	for ctx.Err() == nil {
		if !e.now().Before(h.start) && !h.mayHaveIssued {
			h.mayHaveIssued, k.loggedClass = true, ""
			k.next.Phase, k.next.Err = phaseHolding, failed
			e.log.Info("leafsql: worker id acquired", "worker_id", h.slot, "until", h.bound, "registry", e.source.Name)
		}
		if h.mayHaveIssued {
			k.next.Limit = h.bound // mutation: limit
		}
		k.publish()
		k.compareClocks(ctx)
		wake := earliest(renewal, h.nextPrepare, h.bound.Add(tick))
		if !h.mayHaveIssued {
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
			k.reportRenewal(failed, err)
			if failed, renewal = err, e.now().Add(again); err == nil {
				renewal = now.Add(again)
			}
			k.next.Next = renewal
		case !now.Before(h.nextPrepare):
			h.nextPrepare = k.prepareMissing(ctx, taken)
		}
	}
	return nil
}

// farFuture is later than every other time.
var farFuture = time.UnixMilli(1 << 62)

// publishQuarantine sets the time before which no id is issued, and the reason, and logs them. The first line
// of a wait is a warning.
func (k *Keeper) publishQuarantine(now, start time.Time, unknownHistory bool) {
	q := quarantineError(k.next.Worker, start)
	if unknownHistory {
		q = unknownHistoryError(k.engine.source.Name, k.next.Worker, start)
	}
	k.next.Start, k.next.quarantine = start, q
	if k.next.Err != nil { // a search has failed, so Wait returns an error at once
		k.next.Err = q
	}
	if start.Sub(now) < time.Second {
		return
	}
	level := slog.LevelWarn
	if k.loggedClass == q.Reason {
		level = slog.LevelInfo
	}
	k.loggedClass = q.Reason
	k.cfg.Logger.Log(k.ctx, level, "leafsql: "+errprefix.TrimText(q), "until", start)
}

// reportRenewal publishes and logs the result of a renewal.
func (k *Keeper) reportRenewal(before, err error) {
	h := k.held
	switch left := h.bound.Sub(k.clock.now()).Round(time.Millisecond); {
	case err != nil && before == nil:
		k.engine.log.Warn("leafsql: the worker id's lease cannot be renewed; ids are issued until it ends", "worker_id", h.slot, "remaining", left.String(), "err", errprefix.TrimText(err))
	case err == nil && before != nil:
		k.engine.log.Info("leafsql: the worker id's lease is renewed again", "worker_id", h.slot, "until", h.bound)
	}
	if h.mayHaveIssued {
		k.next.Err = err
	}
}

// prepareMissing creates the documents of some slots that have none, and returns the time of its next call.
func (k *Keeper) prepareMissing(ctx context.Context, taken time.Time) time.Time {
	e, h := k.engine, k.held
	fresh := h.declaredNew && e.now().Before(taken.Add(e.lease)) // the declaration is valid only for the time of one lease
	reg, err := e.readRegistry(ctx)
	done := err == nil && reg.id != h.registry.id // a renewal adopts the new registry, or the worker id is lost
	if err == nil && !done {
		done, err = e.prepareNext(ctx, reg, fresh, readBatch)
	}
	switch {
	case done:
		return farFuture
	case err != nil: // do not add load to a registry with problems
		return e.now().Add(jitter(e.host, e.lease/2, e.lease))
	case fresh: // other processes are starting
		return e.now()
	}
	return e.now().Add(jitter(e.host, e.minPause/2, 2*e.minPause))
}

// compareClocks publishes how far this machine's clock is ahead of the registry's.
func (k *Keeper) compareClocks(ctx context.Context) {
	e := k.engine
	e.compareClocks(ctx, false)
	if k.next.ClockOffset == e.clockOffset {
		return
	}
	k.next.ClockOffset = e.clockOffset
	k.publish()
	if e.clockOffset.Abs() > e.skew/2 {
		e.log.Warn("leafsql: this machine's clock and the registry's differ: ids have this machine's time, and a worker id that was used ahead of time is blocked until that time; set the clock and restart the process",
			"ahead", e.clockOffset.String(), "registry", e.source.Name)
	}
}
