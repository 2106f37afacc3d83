package worker

import (
	"context"
	"time"
)

// A registry that loses documents, by a wipe or a fail-over, takes nobody's
// worker id: a holder whose document is missing writes it again by
// compare-and-set. Whoever takes the slot meanwhile waits for the lease and the
// skew, and issues only what a put allows that is told true when the skew is over.
// What a holder puts back arrives before that, or is not sent: so one of the two
// is refused before both issue.

// lacking reports whether r shows that the registry has lost h's document, and
// that nobody has used the slot since. Where a missing document takes any put,
// a renewal has written it again already.
func (e *engine) lacking(h *hold, r reading) bool {
	if r.ver == "" {
		return !e.source.Inserts
	}
	return r.doc.unused() || r.doc.Free && !r.doc.HighWater.After(h.floor) // what it was taken from, or older
}

// late reports whether a put that is decided on at now, and writes where h's
// document was lost, may arrive so long after the last one told true that
// somebody else is past the quarantine. A third of the skew is for its way. Where
// the grace is below the skew, it may be late at any time: somebody whose clock
// is ahead may have taken the slot over before it was lost.
func (e *engine) late(h *hold, now time.Time) bool {
	return e.grace < e.skew || now.After(h.bound.Add(min(e.lease, e.skew-e.skew/3)-e.lease))
}

// putBack writes h's document again over what r shows.
func (e *engine) putBack(ctx context.Context, h *hold, r reading) error {
	reg, err := e.registry(ctx)
	if err != nil {
		return err
	}
	now := e.now()
	if e.late(h, now) { // mutation: late
		return errLate
	}
	h.registry, h.doc.Registry, h.walk = reg, reg.id, now.Add(e.courtesy)
	if _, _, err := e.raise(ctx, h, h.doc, r.ver, now); err != nil {
		return err
	}
	e.log.Warn("leafsql: the registry had lost the document of a worker id that is held; it is put back, and ids go on", "worker", h.slot, "registry", e.source.Name)
	return nil
}

// still reports whether the registry is the one of before: it was not wiped.
func (e *engine) still(ctx context.Context, before registry) bool {
	r := e.get(ctx, RegistrySlot)
	return r.err == nil && r.doc.Nonce == before.doc.Nonce
}
