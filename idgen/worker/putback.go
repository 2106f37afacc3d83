package worker

import (
	"context"
	"errors"
)

// No process loses its worker id if a registry loses documents in a wipe or a fail-over: the holder of the
// worker id puts its lost document back, by compare-and-set. In the meantime another process may take the
// slot. It issues ids only after the lease and the skew (60 s), and only after an acknowledged put that it sent
// after the skew. The holder's put counts only if it is acknowledged before that time. So one of the two puts is
// refused before both processes issue ids. If the holder was paused, its put may arrive at any time. Therefore the
// document that it puts back has no Registry: other processes treat its history as unknown until the
// holder renews it. doc.go explains the terms and the labels "// mutation: NAME".

// hasLost reports whether r shows that the registry has lost h's document, and
// that no process has used the slot since. If the source sets Inserts, a missing document
// does not count as lost, because the next renewal writes it again.
func (e *engine) hasLost(h *heldSlot, r reading) bool {
	if r.ver == "" {
		return !e.source.Inserts
	}
	return r.doc.isUnused() || r.doc.Free && !r.doc.HighWater.After(h.floor) // the document from which h was taken, or an older one
}

// isTooLate reports whether another process may issue ids with h's worker id by now, if the registry lost h's
// document right after the last acknowledged put: the other process's quarantine may have ended. A third of the
// skew is reserved for the time of the other process's take. If the grace is shorter than the skew, the
// result is always true, since a process with a fast clock may have taken the slot
// before the document was lost. The result is also true during h's own quarantine, since the
// previous holder may be putting its document back.
func (e *engine) isTooLate(h *heldSlot) bool {
	return !h.mayHaveIssued || e.grace < e.skew || e.now().After(h.bound.Add(min(e.lease, e.skew-e.skew/3)-e.lease)) // mutation: late
}

// putBack writes h's document again over the document in r.
func (e *engine) putBack(ctx context.Context, h *heldSlot, r reading) error {
	reg, err := e.readRegistry(ctx)
	if err != nil {
		return err
	}
	now := e.now()
	if e.isTooLate(h) {
		return errTooLate
	}
	e.adoptRegistry(h, reg)
	h.mayHaveRestored = true
	y := h.doc
	y.Registry = "" // mutation: mark
	_, _, err = e.raiseBound(ctx, h, y, r.ver, now)
	return err
}

// adoptRegistry makes h's next documents contain the identity of reg, after the registry's
// identity has changed.
func (e *engine) adoptRegistry(h *heldSlot, reg registry) {
	h.registry, h.doc.Registry, h.declaredNew, h.nextPrepare = reg, reg.id, false, e.now().Add(e.restoreWait) // reg was not declared new
	e.log.Warn("leafsql: the registry has lost the document of a worker id that this process holds; the process writes it again", "worker_id", h.slot, "registry", e.source.Name)
}

// checkRestored returns an error if an acknowledged put must not raise the bound: it may have
// restored a lost document so late that another process already issues ids with the worker id.
func (e *engine) checkRestored(ctx context.Context, h *heldSlot) error {
	if !e.source.Inserts {
		if h.mayHaveRestored && e.isTooLate(h) { // mutation: told late
			return errTooLate
		}
		return nil
	}
	reg, err := e.readRegistry(ctx)
	_, away := errors.AsType[*unreachableError](err)
	switch late := e.isTooLate(h); {
	case err == nil && reg.id == h.registry.id, away && !late: // the registry cannot be read, but it is early enough
		return nil
	case late:
		h.mayHaveRestored = true
		return errTooLate
	case err == nil:
		e.adoptRegistry(h, reg)
	}
	return err
}
