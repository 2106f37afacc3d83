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

	"github.com/leafsql/leafsql/internal/part"
)

// engine takes and keeps slots. It is the protocol and nothing else: a put told
// OK is the only proof of anything, and reads are hints.
type engine struct {
	lengths
	source Source
	slots  []int // to choose from, in the order they are tried
	terms  string
	check  func(now time.Time) error
	fresh  bool // the registry is declared new
	owner  string
	host   host
	clock  *clock
	log    *slog.Logger

	// claim is a slot that was this process's and may still be: lost because
	// its bound ended, or taken by a put whose reply was lost.
	claim *hold

	seen   map[int]reading // by searches since the last one that looked at all slots
	turn   int             // of the slots that take turns
	waited string          // since the last take, in which registry, for holders to put back what was lost

	anyClock bool          // a clock that is ahead of the registry's is no reason to take nothing
	offset   time.Duration // how far it is ahead, as of the last look
	timeless bool          // the registry did not say its time then
	drift    time.Duration // of the machine's clocks then
}

func (e *engine) now() time.Time { return e.clock.now() }

// floor is the latest time that may have been issued under r's document or
// under what was lost before it.
func (e *engine) floor(r reading, registry string, now time.Time) time.Time {
	d, used := r.doc, r.doc.HighWater
	if d.unused() {
		used = time.UnixMilli(0)
	}
	switch {
	case !unknown(d, registry) && e.claim.is(r):
		return e.claim.doc.HighWater // mutation: own slot
	case !unknown(d, registry) && d.unused():
		return earliest(d.HighWater, e.quarantine(now)) // mutation: spare
	case !unknown(d, registry):
		return used
	case e.fresh:
		return latest(used, now.Add(-tick))
	}
	return latest(used, e.quarantine(now)) // mutation: quarantine
}

// unknown reports whether d says nothing about what was before it, in a
// registry with that identity.
func unknown(d Doc, registry string) bool {
	return d.IsInitial() || d.Registry != registry // mutation: unknown
}

// quarantine is above every bound that an owner unknown to the registry can
// hold now.
func (e *engine) quarantine(now time.Time) time.Time { return now.Add(e.lease + e.skew) }

// get and put are one call each. Where one takes too long the caller is not
// told that its own time is over.

func (e *engine) get(ctx context.Context, slot int) reading {
	one, cancel := e.host.within(ctx, e.call)
	defer cancel()
	d, v, err := e.source.Slots.Get(one, slot)
	return reading{slot: slot, doc: d, ver: v, err: e.silent(ctx, err)}
}

func (e *engine) silent(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v", e.call)
	}
	return err
}

// unread says what of the registry could not be read. An error that nothing but
// a change mends says itself what to do, and so does an advice.
func (e *engine) unread(what string, err error) error {
	wayOut := "; see whether it runs and can be reached"
	_, unusable := errors.AsType[*UnusableError](err)
	if _, ok := errors.AsType[advice](err); ok || unusable {
		wayOut = ""
	}
	return fmt.Errorf("leafsql: registry of worker ids%s: %s: %w%s", inParentheses(e.source.Name), what, part.Of(err), wayOut)
}

func (e *engine) put(ctx context.Context, slot int, d Doc, expected Version) (Version, outcome, error) {
	one, cancel := e.host.within(ctx, e.call)
	defer cancel()
	v, ok, err := e.source.Slots.Put(one, slot, d, expected) // mutation: compare-and-set
	res, err := outcomeOf(ok, err), e.silent(ctx, err)
	if res == refused && err == nil {
		err = errContended
	}
	return v, res, err
}

// registry is what the registry's own document says.
type registry struct {
	reading
	id   string // what documents written now say
	made int    // so many slots have documents, in order
}

// registry reads the registry's document, and creates it if it is missing.
func (e *engine) registry(ctx context.Context) (registry, error) {
	if e.source.fixed != nil {
		return registry{made: 1}, nil
	}
	identity := ""
	if e.source.Identity != nil {
		one, cancel := e.host.within(ctx, e.call)
		defer cancel()
		var err error
		if identity, err = e.source.Identity(one); err != nil {
			return registry{}, &awayError{e.unread("identity", e.silent(ctx, err))}
		}
	}
	r := e.get(ctx, RegistrySlot)
	if r.err == nil && r.ver == "" {
		d := Doc{Nonce: newNonce(e.host), HighWater: e.now(), Free: true, Owner: e.terms}
		_, res, err := e.put(ctx, RegistrySlot, d, "")
		if res == swapped {
			level := slog.LevelWarn
			if e.fresh { // the caller expects a new one
				level = slog.LevelInfo
			}
			e.log.Log(ctx, level, "leafsql: a new registry of worker ids was made; if there should be one already, this process looks in the wrong place", "registry", e.source.Name)
		}
		if r = e.get(ctx, RegistrySlot); r.err == nil && r.ver == "" {
			return registry{}, fmt.Errorf("leafsql: the registry's document is still missing after it was created: %w", part.Of(cmp.Or(err, errContended)))
		}
	}
	if r.err != nil {
		return registry{}, &awayError{e.unread("its document", r.err)}
	}
	reg := registry{reading: r, id: r.doc.Nonce}
	if identity != "" {
		sum := sha256.Sum256([]byte(r.doc.Nonce + "\n" + identity)) // mutation: identity
		reg.id = hex.EncodeToString(sum[:16])
	}
	terms, made, _ := strings.Cut(r.doc.Owner, madeMark)
	if terms != e.terms { // mutation: terms
		return registry{}, termsError(e.source.Name, terms, e.terms)
	}
	if r.doc.Registry == reg.id {
		reg.made, _ = strconv.Atoi(made) // one that can't be read: 0
	}
	return reg, nil
}

// create writes the document of unknown history into a missing slot. Whether
// it was this call that wrote it does not matter, nor if several did.
func (e *engine) create(ctx context.Context, slot int) reading {
	_, _, err := e.put(ctx, slot, initial(), "")
	r := e.get(ctx, slot)
	if r.err == nil && r.ver == "" {
		r.err = fmt.Errorf("still missing after it was created: %w", part.Of(cmp.Or(err, errContended)))
	}
	return r
}

// madeMark stands in the registry's document between the terms and the number
// of slots made.
const madeMark = "; slots made: "

// readAtOnce is how many slots a search reads at the same time, after the
// first, which more often than not is free, or was this process's before.
const readAtOnce = 16

// read gets several slots at once.
func (e *engine) read(ctx context.Context, slots []int) []reading {
	rs := make([]reading, len(slots))
	e.host.each(len(slots), func(i int) { rs[i] = e.get(ctx, slots[i]) })
	return rs
}

// shuffled gives the slots 0 … n-1 in an order that follows from a seed.
func shuffled(n int, seed uint64) []int {
	return rand.New(rand.NewPCG(seed, seed)).Perm(n)
}

// hold is one slot in this process's hands, from the take to the end.
type hold struct {
	slot     int
	floor    time.Time // the latest time that may have been issued before
	start    time.Time // the first that may be issued now
	used     bool      // ids may have been issued
	unknown  bool      // what the slot held when it was taken said nothing of the past
	fresh    bool      // it was taken in a registry declared new
	registry registry  // as of the take, or of the last time that doc was put back
	walk     time.Time // when to make the next missing slots
	lost     bool      // a put since doc was confirmed may have written where doc was missing

	doc         Doc         // ours, as it is known to be in the registry
	sure        Version     // and its version
	ver         Version     // which the next put expects: a later one may have been read
	sent        time.Time   // the highest high water ever sent: no text is sent twice
	unconfirmed []time.Time // those sent since doc was confirmed, and not refused
	denied      []time.Time // those that were refused since then

	// bound is what the last put told true allows: its high water, but never more
	// than the lease beyond the time it was decided on. The high water can be
	// far above that while an unknown history is waited out; a bound as high
	// would outlast the quarantine of whoever comes after a wipe.
	bound time.Time
}

// is reports whether a document is this hold's, though it may be lost: then
// nobody had the slot since.
func (h *hold) is(r reading) bool {
	return h != nil && r.slot == h.slot && !r.doc.Free && h.wrote(r.doc)
}

// wrote reports whether this hold can have written d: the document that was
// confirmed, an older one, or one whose reply was lost. One with its nonce that
// it did not write is of a copy of this process, such as a virtual machine's
// snapshot started beside it.
func (h *hold) wrote(d Doc) bool {
	return d.Nonce == h.doc.Nonce && (!d.HighWater.After(h.doc.HighWater) || slices.ContainsFunc(h.unconfirmed, d.HighWater.Equal))
}

// refused reports whether d is what a put of this hold wanted to write, and the
// registry said that it did not.
func (h *hold) refused(d Doc) bool {
	return d.Nonce == h.doc.Nonce && slices.ContainsFunc(h.denied, d.HighWater.Equal)
}

// confirm notes a put that was told true.
func (h *hold) confirm(d Doc, v Version, bound time.Time) {
	h.doc, h.sure, h.ver, h.unconfirmed, h.denied, h.lost = d, v, v, nil, nil, false
	h.bound = bound
}
