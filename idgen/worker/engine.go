package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// engine takes and renews slots. It contains only the protocol. It relies only on
// acknowledged puts; reads are hints. doc.go explains the terms: slot, put, take, bound, high water, floor,
// history, quarantine, and the labels "// mutation: NAME".
type engine struct {
	timing
	source      Source
	slots       []int // slots to choose from, in the order in which they are tried
	terms       string
	check       func(now time.Time) error
	declaredNew bool // the registry was declared new
	owner       string
	host        host
	clock       *clock
	log         *slog.Logger

	// claim is a slot that may still belong to this process: either its lease has ended,
	// or the reply to the put that took it was lost.
	claim *heldSlot

	readings  map[int]reading // readings since the last search of all slots
	searchPos int             // position among the slots that are searched in turn
	waitedIn  string          // identity of the registry in which holders already had time to put back lost documents; "" after a take

	anyClock       bool          // take worker ids even if the clock is ahead of the registry's
	clockOffset    time.Duration // time by which the clock was ahead at the last comparison
	noRegistryTime bool          // the registry did not return its time at the last comparison
	lastDrift      time.Duration // clock.drift at the last comparison
}

func (e *engine) now() time.Time { return e.clock.now() }

// floorOf returns the latest time that may have been issued under r's document or
// under documents that were lost before it.
func (e *engine) floorOf(r reading, registry string, now time.Time) time.Time {
	d, used := r.doc, r.doc.HighWater
	if d.isUnused() {
		used = time.UnixMilli(0)
	}
	switch {
	case !hasUnknownHistory(d, registry) && e.claim.owns(r):
		return e.claim.doc.HighWater // mutation: own slot
	case !hasUnknownHistory(d, registry) && d.isUnused():
		return earliest(d.HighWater, e.quarantineEnd(now)) // mutation: spare
	case !hasUnknownHistory(d, registry):
		return used
	case e.declaredNew:
		return latest(used, now.Add(-tick))
	}
	return latest(used, e.quarantineEnd(now)) // mutation: quarantine
}

// hasUnknownHistory reports whether the earlier owners of d's slot are unknown, if registry is the
// registry's present identity.
func hasUnknownHistory(d Doc, registry string) bool {
	return d.IsInitial() || d.Registry != registry // mutation: unknown
}

// quarantineEnd returns a time after which no present owner can issue ids without a renewal, even if the
// registry has lost the owner's document.
func (e *engine) quarantineEnd(now time.Time) time.Time { return now.Add(e.lease + e.skew) }

// get and put make one call each. If the call takes too long, their error differs from the error for
// an ended context of the caller.

func (e *engine) get(ctx context.Context, slot int) reading {
	one, cancel := e.host.withTimeout(ctx, e.callTimeout)
	defer cancel()
	d, v, err := e.source.Slots.Get(one, slot)
	return reading{slot: slot, doc: d, ver: v, err: e.explainTimeout(ctx, err)}
}

func (e *engine) explainTimeout(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v", e.callTimeout)
	}
	return err
}

// unreadError returns the error for a part of the registry that could not be read. Its text
// gets a hint, unless err is an UnusableError or a hintedError, which have their own.
func (e *engine) unreadError(what string, err error) error {
	hint := "; check that it runs and can be reached"
	_, unusable := errors.AsType[*UnusableError](err)
	if _, ok := errors.AsType[hintedError](err); ok || unusable {
		hint = ""
	}
	return fmt.Errorf("leafsql: registry of worker ids%s: %s: %w%s", inParentheses(e.source.Name), what, errprefix.Trim(err), hint)
}

func (e *engine) put(ctx context.Context, slot int, d Doc, expected Version) (Version, outcome, error) {
	one, cancel := e.host.withTimeout(ctx, e.callTimeout)
	defer cancel()
	v, ok, err := e.source.Slots.Put(one, slot, d, expected) // mutation: compare-and-set
	res, err := outcomeOf(ok, err), e.explainTimeout(ctx, err)
	if res == refused && err == nil {
		err = errContended
	}
	return v, res, err
}

// registry is the content of the registry's own document.
type registry struct {
	reading
	id            string // Doc.Registry of documents that are written now
	preparedSlots int    // the slots 0 … preparedSlots-1 have a document with a known history
}

// readRegistry reads the registry's document, and creates it if it is missing.
func (e *engine) readRegistry(ctx context.Context) (registry, error) {
	if e.source.fixedID != nil {
		return registry{preparedSlots: 1}, nil
	}
	identity := ""
	if e.source.Identity != nil {
		one, cancel := e.host.withTimeout(ctx, e.callTimeout)
		defer cancel()
		var err error
		if identity, err = e.source.Identity(one); err != nil {
			return registry{}, &unreachableError{e.unreadError("reading its identity", e.explainTimeout(ctx, err))}
		}
	}
	r := e.get(ctx, RegistrySlot)
	if r.err == nil && r.ver == "" {
		d := Doc{Nonce: newNonce(e.host), HighWater: e.now(), Free: true, Owner: e.terms}
		_, res, err := e.put(ctx, RegistrySlot, d, "")
		if res == swapped {
			level := slog.LevelWarn
			if e.declaredNew { // the caller expects a new registry
				level = slog.LevelInfo
			}
			e.log.Log(ctx, level, "leafsql: a new registry of worker ids was created; if a registry existed before, check this process's leafWorker and its options", "registry", e.source.Name)
		}
		if r = e.get(ctx, RegistrySlot); r.err == nil && r.ver == "" {
			return registry{}, fmt.Errorf("leafsql: the registry's document is still missing after it was created: %w", errprefix.Trim(cmp.Or(err, errContended)))
		}
	}
	if r.err != nil {
		return registry{}, &unreachableError{e.unreadError("reading its document", r.err)}
	}
	reg := registry{reading: r, id: r.doc.Nonce}
	if identity != "" {
		sum := sha256.Sum256([]byte(r.doc.Nonce + "\n" + identity)) // mutation: identity
		reg.id = hex.EncodeToString(sum[:16])
	}
	terms, made, _ := strings.Cut(r.doc.Owner, preparedSeparator)
	if terms != e.terms { // mutation: terms
		return registry{}, termsError(e.source.Name, terms, e.terms)
	}
	if r.doc.Registry == reg.id {
		reg.preparedSlots, _ = strconv.Atoi(made) // 0 if it cannot be parsed
	}
	return reg, nil
}

// createInitial creates the document of a slot that has none, as initialDoc returns it, and reads the slot. It
// makes no difference if other processes have written the same document first.
func (e *engine) createInitial(ctx context.Context, slot int) reading {
	_, _, err := e.put(ctx, slot, initialDoc(), "")
	r := e.get(ctx, slot)
	if r.err == nil && r.ver == "" {
		r.err = fmt.Errorf("still missing after it was created: %w", errprefix.Trim(cmp.Or(err, errContended)))
	}
	return r
}

// preparedSeparator separates the lease terms and the number of prepared slots in the registry's
// document.
const preparedSeparator = "; slots made: "

// readBatch is the number of slots that a search reads concurrently. It reads the first slot
// alone, because this slot usually is free, or belonged to this process before.
const readBatch = 16

// readAll reads several slots concurrently.
func (e *engine) readAll(ctx context.Context, slots []int) []reading {
	rs := make([]reading, len(slots))
	e.host.forEach(len(slots), func(i int) { rs[i] = e.get(ctx, slots[i]) })
	return rs
}

// shuffledSlots returns the slots 0 … n-1 in an order that depends on a seed.
func shuffledSlots(n int, seed uint64) []int {
	return rand.New(rand.NewPCG(seed, seed)).Perm(n)
}

// heldSlot is a slot that this process has taken, until it is released or lost.
type heldSlot struct {
	slot            int
	floor           time.Time // the latest time in ids of earlier owners
	start           time.Time // the first time that this process may put into an id
	mayHaveIssued   bool      // this process may have issued ids with it
	unknownHistory  bool      // the history of the slot was unknown when it was taken
	declaredNew     bool      // the registry was declared new when the slot was taken
	registry        registry  // the registry when the slot was taken, or when doc was last put back
	nextPrepare     time.Time // time to create the next missing slots
	mayHaveRestored bool      // a put after the last confirmed one may have restored a lost document

	doc              Doc         // the last document that was confirmed
	confirmedVer     Version     // version of doc
	expectedVer      Version     // version that the next put expects: confirmedVer, or a later version that was read
	highestSent      time.Time   // highest high water ever sent, so that no text is sent twice
	unconfirmedTimes []time.Time // high waters sent since doc was confirmed, and not refused
	refusedTimes     []time.Time // high waters that were refused since doc was confirmed

	// bound is the latest time that this process may put into an id: the time of the decision to send the last
	// acknowledged put, plus the lease. During a quarantine the document's high water can be far later.
	// With such a bound, this process could still issue ids when the next owner's quarantine after a wipe has ended.
	bound time.Time
}

// owns reports whether r has a document that this process wrote for h, and that is not free. If so,
// no other process has taken the slot since, even if this process lost it.
func (h *heldSlot) owns(r reading) bool {
	return h != nil && r.slot == h.slot && !r.doc.Free && h.mayHaveWritten(r.doc)
}

// mayHaveWritten reports whether a put of this process can have written d: d is the confirmed document,
// an older document, or a document whose put got no reply. Any other document with the same nonce
// was written by a copy of this process, such as a second virtual machine that was started from a
// snapshot.
func (h *heldSlot) mayHaveWritten(d Doc) bool {
	return d.Nonce == h.doc.Nonce && (!d.HighWater.After(h.doc.HighWater) || slices.ContainsFunc(h.unconfirmedTimes, d.HighWater.Equal))
}

// wasRefused reports whether d is the document of a put for this slot that the registry
// refused.
func (h *heldSlot) wasRefused(d Doc) bool {
	return d.Nonce == h.doc.Nonce && slices.ContainsFunc(h.refusedTimes, d.HighWater.Equal)
}

// confirm records an acknowledged put.
func (h *heldSlot) confirm(d Doc, v Version, bound time.Time) {
	h.doc, h.confirmedVer, h.expectedVer, h.unconfirmedTimes, h.refusedTimes, h.mayHaveRestored = d, v, v, nil, nil, false
	h.bound = bound
}
