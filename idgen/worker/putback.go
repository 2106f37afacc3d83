package worker

import (
	"context"
	"errors"
)

// A registry that loses documents, by a wipe or a fail-over, takes nobody's
// worker id: a holder whose document is missing writes it again by
// compare-and-set. Whoever takes the slot meanwhile waits for the lease and the
// skew, and issues only what a put allows that is decided on when the skew is over,
// and told true. What a holder puts back is told true before that, or counts for
// nothing: so one of the two is refused before both issue. It may arrive at any
// time, if the process was stopped. So it says that it is of no registry, which is
// unknown history to whoever comes, until a renewal follows it.

// lacking reports whether r shows that the registry has lost h's document, and
// that nobody has used the slot since. Where a missing document takes any put,
// a renewal has written it again already.
func (e *engine) lacking(h *hold, r reading) bool {
	if r.ver == "" {
		return !e.source.Inserts
	}
	return r.doc.unused() || r.doc.Free && !r.doc.HighWater.After(h.floor) // what it was taken from, or older
}

// late reports whether somebody else may be past the quarantine now, if h's
// document was lost right after the last put that was told true. A third of the
// skew is for the way of that one's take. Where the grace is below the skew, it may
// be late at any time: somebody whose clock is ahead may have taken the slot over
// before it was lost. A hold that is in quarantine itself puts nothing back: the
// one from before may be doing so.
func (e *engine) late(h *hold) bool {
	return !h.used || e.grace < e.skew || e.now().After(h.bound.Add(min(e.lease, e.skew-e.skew/3)-e.lease)) // mutation: late
}

// putBack writes h's document again over what r shows.
func (e *engine) putBack(ctx context.Context, h *hold, r reading) error {
	reg, err := e.registry(ctx)
	if err != nil {
		return err
	}
	now := e.now()
	if e.late(h) {
		return errLate
	}
	e.adopt(h, reg)
	h.lost = true
	y := h.doc
	y.Registry = "" // mutation: mark
	_, _, err = e.raise(ctx, h, y, r.ver, now)
	return err
}

// adopt has h's documents say from now on that they are of a registry that has
// lost the one before.
func (e *engine) adopt(h *hold, reg registry) {
	h.registry, h.doc.Registry, h.fresh, h.walk = reg, reg.id, false, e.now().Add(e.courtesy) // another registry than the one declared new
	e.log.Warn("leafsql: the registry has lost the document of a worker id that is held; this process puts it back", "worker", h.slot, "registry", e.source.Name)
}

// void gives an error if a put that was told true must not raise the bound: it may
// have written a lost document again, after others were past the quarantine.
func (e *engine) void(ctx context.Context, h *hold) error {
	if !e.source.Inserts {
		if h.lost && e.late(h) { // mutation: told late
			return errLate
		}
		return nil
	}
	reg, err := e.registry(ctx)
	_, away := errors.AsType[*awayError](err)
	switch late := e.late(h); {
	case err == nil && reg.id == h.registry.id, away && !late: // not even a look is possible, and it is early
		return nil
	case late:
		h.lost = true
		return errLate
	case err == nil:
		e.adopt(h, reg)
	}
	return err
}
