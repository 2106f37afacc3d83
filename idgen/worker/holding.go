package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// holding is one slot in this process's hands, from the take to the release.
type holding struct {
	engine *engine
	slot   int
	blind  bool // what the slot held when it was taken said nothing of the past
	start  int64

	doc  Doc     // ours, as it is known to be in the registry
	sure Version // and its version
	ver  Version // which the next put expects: a later one may have been read
	sent int64   // the highest hw ever sent: no text is sent twice
	open []int64 // those sent since doc was confirmed

	// bound is what the last put told OK in time allows: its hw, but never more
	// than W beyond the time it was sent. The hw can be far above that while an
	// unknown history is waited out; a bound as high would outlast the
	// quarantine of whoever comes after a wipe.
	bound int64

	resumed bool // from local state: used up to its bound, never renewed

	// last says the highest timestamp issued; nil if nobody was to issue.
	last atomic.Pointer[func() int64]

	// limit is the highest timestamp that may be issued now: the bound, and no
	// more than is reserved in local state. It only grows, until it is sealed.
	limit atomic.Int64

	renewals int // of which every walkEvery-th starts
	walked   int // the walk for spare documents: how far it is
	found    int // and how many it found free
}

// sealed is the limit of a lease that is over.
const sealed = math.MinInt64

// publish raises the limit as far as bound and local state allow.
func (h *holding) publish() error {
	e := h.engine
	limit := h.bound
	if e.state != nil {
		limit = min(limit, max(e.now(), h.start)+reserve)
		err := e.state.save(record{Slot: h.slot, Nonce: h.doc.Nonce, HW: h.bound, Reserved: limit})
		if err != nil {
			return fmt.Errorf("leafsql: local state of the worker id's lease: %w", unusable(err))
		}
	}
	h.limit.Store(max(limit, h.limit.Load()))
	return nil
}

// hold keeps the slot until ctx ends or it is lost, tells over which of them it
// was as soon as no id may be issued any more, and then gives the slot back.
func (h *holding) hold(ctx context.Context, over func(error)) {
	err := h.keep(ctx)
	h.seal()
	if err != nil {
		h.abandon() // before a successor has local state of its own
		over(err)
		return
	}
	over(nil)
	ctx, cancel := context.WithTimeout(context.Background(), ms(min(h.engine.late, releaseFor)))
	defer cancel()
	h.release(ctx)
}

// releaseFor is how long an application that ends waits for the registry.
const releaseFor = 5000

// keep renews the slot until ctx ends, which gives nil, or it is lost.
func (h *holding) keep(ctx context.Context) error {
	e := h.engine
	var failed, unsaved error
	for renewal := e.now() + e.renew; ; {
		wait := renewal - e.now()
		if h.resumed {
			wait = h.bound + 1 - e.now()
		}
		if e.state != nil {
			wait = min(wait, saveEvery)
		}
		if wait > 0 && e.host.sleep(ctx, ms(wait)) != nil || ctx.Err() != nil {
			return nil
		}
		now := e.now()
		if now > h.bound {
			return &LostError{Worker: h.slot, Cause: failed}
		}
		if now >= renewal && !h.resumed {
			var again int64
			again, failed = h.renew(ctx, now)
			if _, lost := errors.AsType[*LostError](failed); lost {
				return failed
			}
			renewal = e.now() + again
			if failed == nil {
				renewal = now + e.renew // however long it takes to prepare
				h.prepare(ctx)
			}
		}
		was := unsaved
		if unsaved = h.publish(); unsaved != nil && was == nil {
			e.log.Warn("leafsql: the worker id's lease can't go on: "+unsaved.Error(), "worker", h.slot)
		}
	}
}

// renew tries once to raise the bound, which at now had not ended. After an
// error it is to be tried again after so many ms, unless it is a LostError.
func (h *holding) renew(ctx context.Context, now int64) (again int64, err error) {
	e := h.engine
	bound := now + e.bound
	y := h.doc
	y.HW = max(h.sent+1, bound)
	h.sent = y.HW
	h.open = append(h.open, y.HW)
	v, res, err := e.put(ctx, now, h.slot, y, h.ver)
	if res == OK {
		h.doc, h.sure, h.ver, h.bound, h.open = y, v, v, bound, nil
		return 0, nil
	}
	err = fmt.Errorf("renewing it: %s: %w", res, cmp.Or(err, errors.New("the slot was not at the expected version")))
	again = e.jitter(500, 1500)
	r := e.get(ctx, h.slot)
	switch {
	case r.err != nil || r.ver == "":
	case r.doc.Nonce == h.doc.Nonce && !h.wrote(r.doc):
		return 0, &LostError{Worker: h.slot, Owner: owner(r.doc.Owner), Cause: errClone}
	case r.doc.Nonce == h.doc.Nonce:
		// One of our own puts, perhaps this one. It is where the next one goes
		// on from; it raises nothing. If that is refused as well, what was read
		// may be a put that was refused and is served all the same.
		if res == Refused && h.ver != h.sure {
			h.ver = h.sure
		} else {
			h.ver = r.ver
		}
		if res == Unknown && r.doc.Same(y) {
			again = e.jitter(20, 100) // only its reply was lost; a refusal may be served for minutes
		}
	case r.doc.HW > h.doc.HW:
		return 0, &LostError{Worker: h.slot, Owner: owner(r.doc.Owner), Cause: err}
	}
	return again, err
}

// wrote reports whether a document with our nonce can be ours: the one that was
// confirmed, an older one, or one whose reply was lost. If it can't, a copy of
// this process is running, such as a virtual machine's snapshot started beside
// it, and has the nonce as well.
func (h *holding) wrote(d Doc) bool {
	return d.HW <= h.doc.HW || slices.Contains(h.open, d.HW)
}

// walkEvery is how many renewals there are from one look for spare documents
// to the next.
const walkEvery = 60

// prepare keeps free documents ready, so that processes to come need not wait
// out an unknown history: a batch of slots at each call until enough are found.
func (h *holding) prepare(ctx context.Context) {
	e := h.engine
	if h.renewals%walkEvery == 0 {
		h.walked, h.found = 0, 0
	}
	h.renewals++
	if h.found >= e.spares {
		return
	}
	slots, err := e.order(ctx)
	if err != nil || h.walked >= len(slots) {
		return
	}
	batch := slots[h.walked:min(h.walked+readAtOnce, len(slots))]
	h.walked += len(batch)
	began := e.now()
	for _, r := range e.read(ctx, batch) {
		if r.err == nil && r.ver == "" {
			r = e.create(ctx, r.slot)
		}
		if r.err != nil || e.now()-began > e.late {
			return // a registry in trouble is not to be asked for more
		}
		if r.doc.IsInitial() {
			now := e.now()
			d := Doc{Nonce: newNonce(e.host), HW: e.quarantine(now), Free: true, Owner: e.owner}
			e.put(ctx, now, r.slot, d, r.ver)
		}
		if r.doc.Free {
			h.found++
		}
	}
}

// seal ends issuing and gives the highest timestamp that can have been issued.
func (h *holding) seal() int64 {
	h.limit.Store(sealed)
	last := h.start - 1
	if issued := h.last.Load(); issued != nil {
		last = max(last, (*issued)())
	}
	return last
}

// abandon is the end of a slot that was lost.
func (h *holding) abandon() {
	if h.engine.state != nil {
		h.engine.state.remove()
	}
}

// release gives the slot back. Nothing depends on its success: a slot that
// stays held is taken over after its bound.
func (h *holding) release(ctx context.Context) {
	e := h.engine
	last := h.seal()
	if h.resumed {
		// The registry was not there to be told. The rest of the bound stays
		// good for another restart.
		e.state.save(record{Slot: h.slot, Nonce: h.doc.Nonce, HW: h.bound, Reserved: last})
		return
	}
	if e.state != nil {
		if err := e.state.remove(); err != nil {
			e.log.Warn("leafsql: local state of the worker id's lease is still there; the worker id is not given back", "err", err)
			return
		}
	}
	now := e.now()
	if now > h.bound {
		return
	}
	free := h.doc
	free.HW, free.Free = last, true
	if _, res, _ := e.put(ctx, now, h.slot, free, h.ver); res != Refused {
		return
	}
	// The last renewal's reply may have been lost.
	if r := e.get(ctx, h.slot); r.err == nil && r.doc.Nonce == h.doc.Nonce && !r.doc.Free && h.wrote(r.doc) {
		e.put(ctx, now, h.slot, free, r.ver)
	}
}
