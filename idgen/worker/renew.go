package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// renew tries once to extend the lease, which had not ended at now. It raises the slot's bound, the latest time
// that may go into an id. An *UnavailableError means that the worker id is lost. Otherwise again is the pause before
// the next call of renew. doc.go explains the terms and the labels "// mutation: NAME".
func (e *engine) renew(ctx context.Context, h *heldSlot, now time.Time) (again time.Duration, err error) {
	if h.mayHaveRestored && e.isTooLate(h) { // mutation: given up
		return e.untilRenewal(), errTooLate
	}
	again = jitter(e.host, 2*e.minPause, 6*e.minPause)
	hw, res, err := e.raiseBound(ctx, h, h.doc, h.expectedVer, now)
	if res == swapped {
		return e.untilRenewal(), nil
	}
	r := e.get(ctx, h.slot) // mutation: read
	if res == refused && r.err == nil && errors.Is(err, errContended) {
		err = refusedError(h, r)
	}
	switch {
	case r.err != nil:
		if r.err.Error() != err.Error() { // a registry that is unavailable fails both in the same way
			err = fmt.Errorf("%w; reading the document: %w", errprefix.Trim(err), errprefix.Trim(r.err))
		}
	case h.mayHaveWritten(r.doc): // mutation: nonce
		// One of this process's puts wrote the document, perhaps the last put. The next put
		// expects the document's version. The bound is not raised, because this is only a read.
		h.expectedVer = r.ver
		if res == unclear && r.doc.HighWater.Equal(hw) {
			again = jitter(e.host, e.minPause/16, e.minPause/2) // only the reply was lost; reads may show a refused document for minutes
		}
	case h.wasRefused(r.doc): // the registry returned a document that it refused, or a copy of this process wrote it
		h.expectedVer = h.confirmedVer
	case r.doc.Nonce == h.doc.Nonce:
		return 0, lostError(h.slot, r.doc, errClone)
	case res == refused && e.hasLost(h, r):
		failed := e.putBack(ctx, h, r)
		if failed == nil {
			return e.untilRenewal(), nil
		}
		err = fmt.Errorf("%w; putting it back: %w", errprefix.Trim(err), errprefix.Trim(failed))
	case r.doc.HighWater.After(h.doc.HighWater):
		return 0, lostError(h.slot, r.doc, nil)
	}
	return again, err
}

// untilRenewal returns the time from one renewal to the next. It is random, so that processes that took their worker ids
// in the same second do not renew in the same second from then on.
func (e *engine) untilRenewal() time.Duration {
	if e.timing.renewSpread == 0 {
		return e.timing.renewEvery
	}
	return jitter(e.host, e.timing.renewEvery-e.timing.renewSpread, e.timing.renewEvery)
}

// raiseBound puts y with a later high water, and raises the bound if the put is acknowledged.
func (e *engine) raiseBound(ctx context.Context, h *heldSlot, y Doc, expected Version, now time.Time) (hw time.Time, res outcome, err error) {
	bound := now.Add(e.lease)
	y.HighWater = latest(bound, h.highestSent.Add(tick)) // mutation: text
	h.highestSent = y.HighWater                          // mutation: sent
	h.unconfirmedTimes = append(h.unconfirmedTimes, y.HighWater)
	v, res, err := e.put(ctx, h.slot, y, expected) // mutation: decided
	if res == swapped {
		if err = e.checkRestored(ctx, h); err != nil {
			res = unclear
		}
		y.Registry = h.registry.id
	}
	switch res {
	case swapped: // mutation: confirmed
		h.confirm(y, v, bound)
	case refused:
		h.unconfirmedTimes = h.unconfirmedTimes[:len(h.unconfirmedTimes)-1]
		h.refusedTimes = append(h.refusedTimes, y.HighWater)
	}
	return y.HighWater, res, err
}

// release marks the slot's document as free; last is the latest time in ids that may have been issued. Nothing
// depends on its success: other processes can take the slot some time after its lease has ended.
func (e *engine) release(ctx context.Context, h *heldSlot, last time.Time) {
	free := h.doc
	free.HighWater, free.Free = last, true // mutation: freed
	_, res, err := e.put(ctx, h.slot, free, h.expectedVer)
	if res != refused || !errors.Is(err, errContended) {
		return
	}
	// The last renewal's reply may have been lost.
	if r := e.get(ctx, h.slot); r.err == nil && h.owns(r) {
		e.put(ctx, h.slot, free, r.ver)
	}
}
