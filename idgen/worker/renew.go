package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// renew tries once to raise the bound, which had not ended at now. After an
// error the caller retries later, unless the error means that the worker id is lost.
func (e *engine) renew(ctx context.Context, h *hold, now time.Time) (again time.Duration, err error) {
	if h.lost && e.late(h) { // mutation: given up
		return e.lengths.renew, errLate
	}
	again = jitter(e.host, 2*e.pause, 6*e.pause)
	hw, res, err := e.raise(ctx, h, h.doc, h.ver, now)
	if res == swapped {
		return e.lengths.renew, nil
	}
	r := e.get(ctx, h.slot) // mutation: read
	if res == refused && r.err == nil && errors.Is(err, errContended) {
		err = refusedError(h, r)
	}
	switch {
	case r.err != nil:
		err = fmt.Errorf("%w; reading it: %w", errprefix.Trim(err), errprefix.Trim(r.err))
	case h.wrote(r.doc): // mutation: nonce
		// One of this hold's puts, perhaps the last one. The next put continues
		// from it, but it does not raise the bound.
		h.ver = r.ver
		if res == unclear && r.doc.HighWater.Equal(hw) {
			again = jitter(e.host, e.pause/16, e.pause/2) // only the reply was lost; a refused document may be served for minutes
		}
	case h.refused(r.doc): // served nevertheless, or written by a copy of this process
		h.ver = h.sure
	case r.doc.Nonce == h.doc.Nonce:
		return 0, lostError(h.slot, r.doc, errClone)
	case res == refused && e.lacking(h, r):
		failed := e.putBack(ctx, h, r)
		if failed == nil {
			return e.lengths.renew, nil
		}
		err = fmt.Errorf("%w; putting it back: %w", errprefix.Trim(err), errprefix.Trim(failed))
	case r.doc.HighWater.After(h.doc.HighWater):
		return 0, lostError(h.slot, r.doc, nil)
	}
	return again, err
}

// raise puts y with a higher high water, and raises the bound if the put is acknowledged.
func (e *engine) raise(ctx context.Context, h *hold, y Doc, expected Version, now time.Time) (hw time.Time, res outcome, err error) {
	bound := now.Add(e.lease)
	y.HighWater = latest(bound, h.sent.Add(tick)) // mutation: text
	h.sent = y.HighWater                          // mutation: sent
	h.unconfirmed = append(h.unconfirmed, y.HighWater)
	v, res, err := e.put(ctx, h.slot, y, expected) // mutation: decided
	if res == swapped {
		if err = e.void(ctx, h); err != nil {
			res = unclear
		}
		y.Registry = h.registry.id
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

// release returns the slot; ids with times up to last may have been issued. Nothing
// depends on its success: other processes take over the slot after its bound.
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
