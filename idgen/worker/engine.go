package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/internal/part"
)

// tick is the unit of timestamps in ids.
const tick = time.Millisecond

// lengths are the protocol's.
type lengths struct {
	lease time.Duration // how far a renewal carries the bound beyond now
	renew time.Duration // from one renewal to the next
	grace time.Duration // an expired slot is left to its owner this long; safety does not need it
	skew  time.Duration // at least the difference of two machines' clocks plus the life of a message
	call  time.Duration // what one call to the registry may take
	ahead time.Duration // how far beyond now a lease is to be used up in a burst
	pause time.Duration // between tries, at least; others are multiples of it
}

// lengthsFor gives those of a registry on the network.
func lengthsFor(lease time.Duration) lengths {
	return lengths{lease: lease, renew: lease / 6, grace: 2 * lease, skew: time.Minute, call: lease / 12, ahead: lease / 2, pause: 250 * time.Millisecond}
}

// localLengths are for a registry on the same machine, held under a lock of the
// operating system: one clock, no messages, and a write takes milliseconds.
var localLengths = lengths{lease: 3 * time.Second, renew: time.Second, call: time.Second, ahead: 1500 * time.Millisecond, pause: 250 * time.Millisecond}

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

	seen map[int]reading // by searches since the last one that looked at all slots
	turn int             // of the slots that take turns
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
// a change mends says itself what to do.
func (e *engine) unread(what string, err error) error {
	wayOut := "; see whether it runs and can be reached"
	if _, ok := errors.AsType[*UnusableError](err); ok {
		wayOut = ""
	}
	return fmt.Errorf("leafsql: registry of worker ids%s: %s: %w%s", inParentheses(e.source.Name), what, part.Of(err), wayOut)
}

func (e *engine) put(ctx context.Context, slot int, d Doc, expected Version) (Version, Result, error) {
	one, cancel := e.host.within(ctx, e.call)
	defer cancel()
	v, res, err := e.source.Slots.Put(one, slot, d, expected) // mutation: compare-and-set
	err = e.silent(ctx, err)
	switch {
	case err != nil:
	case res == Refused:
		err = errContended
	case res == Unknown:
		err = errors.New("no clear answer")
	}
	return v, res, err
}

// registry is what the registry's own document says.
type registry struct {
	reading
	id   string // what documents written now say
	made int    // so many slots have documents, in order
}

// madeMark stands in the registry's document between the terms and the number
// of slots made.
const madeMark = "; slots made: "

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
		if _, res, _ := e.put(ctx, RegistrySlot, d, ""); res == OK {
			e.log.Warn("leafsql: a new registry of worker ids was made; if there should be one already, this process looks in the wrong place", "registry", e.source.Name)
		}
		if r = e.get(ctx, RegistrySlot); r.err == nil && r.ver == "" {
			return registry{}, fmt.Errorf("leafsql: the registry's document is still missing after it was created: %w", errContended)
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

// Prepare makes all documents of a new registry, so that the first processes
// need not wait out an unknown history. Like Config.NewRegistry it declares
// that nobody who uses the registry is running. Of cfg it needs Workers, Lease
// and Layout as those processes will have them.
func Prepare(ctx context.Context, open func(context.Context) (Source, error), cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	src, err := open(ctx)
	if err != nil {
		return err
	}
	defer src.close()
	e, err := newEngine(src, &cfg, &clock{host: cfg.host})
	if err != nil {
		return err
	}
	for {
		reg, err := e.registry(ctx)
		if err != nil {
			return err
		}
		switch done, err := e.prepare(ctx, reg.id, true); {
		case done:
			return nil
		case err != nil && e.host.sleep(ctx, e.pause) != nil: // a registry may be busy with a document
			return fmt.Errorf("leafsql: preparing the registry of worker ids: %w", part.Of(err))
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// prepare makes the next few slots that have no document, or an unknown one, so
// that processes to come need not wait out an unknown history. All processes
// get on together: the registry's document says how far they are. It reports
// whether nothing is left to be done.
func (e *engine) prepare(ctx context.Context, id string, fresh bool) (done bool, err error) {
	reg, err := e.registry(ctx)
	if err != nil || reg.id != id || reg.made >= len(e.slots) {
		return err == nil, err
	}
	upTo := min(reg.made+readAtOnce, len(e.slots))
	batch := make([]int, 0, readAtOnce)
	for slot := reg.made; slot < upTo; slot++ {
		batch = append(batch, slot)
	}
	rs := e.read(ctx, batch)
	failed := make([]error, len(batch))
	e.host.each(len(batch), func(i int) {
		if rs[i].err == nil {
			failed[i] = e.spare(ctx, id, fresh, rs[i])
		}
	})
	unread := 0
	for i, r := range rs {
		if failed[i] != nil {
			return false, failed[i]
		}
		if r.err != nil {
			unread++ // one alone may be unreadable, and must not stop the others
			err = r.err
		}
	}
	if unread > 1 || unread == len(batch) {
		return false, err
	}
	d := reg.doc
	d.Registry, d.HighWater, d.Owner = id, latest(d.HighWater.Add(tick), e.now()), e.terms+madeMark+strconv.Itoa(upTo)
	_, res, err := e.put(ctx, RegistrySlot, d, reg.ver)
	if res == Unknown {
		return false, err
	}
	return res == OK && upTo == len(e.slots), nil
}

// spare makes a slot one that can be taken without waiting, quarantined from
// now on if need be.
func (e *engine) spare(ctx context.Context, id string, fresh bool, r reading) error {
	if r.ver == "" {
		if r = e.create(ctx, r.slot); r.err != nil {
			return r.err
		}
	}
	for range 3 { // a put is refused where another process was there at the same time, and by some registries without a reason
		if !r.doc.Free || !unknown(r.doc, id) {
			return nil
		}
		d := Doc{Nonce: r.doc.Nonce, HighWater: e.quarantine(e.now()), Free: true, Owner: e.owner, Registry: id} // mutation: prepared
		if fresh {
			d.HighWater = e.now()
		}
		if r.doc.unused() {
			d.Nonce = spareNonce
		} else {
			d.HighWater = latest(d.HighWater, r.doc.HighWater) // mutation: prepared again
		}
		_, res, err := e.put(ctx, r.slot, d, r.ver)
		switch res {
		case OK:
			return nil
		case Unknown:
			return err
		}
		if r = e.get(ctx, r.slot); r.err != nil {
			return r.err
		}
	}
	return errContended
}

// create writes the document of unknown history into a missing slot. Whether
// it was this call that wrote it does not matter, nor if several did.
func (e *engine) create(ctx context.Context, slot int) reading {
	_, _, err := e.put(ctx, slot, initial(), "")
	r := e.get(ctx, slot)
	if r.err == nil && r.ver == "" {
		r.err = fmt.Errorf("still missing after it was created: %w", cmp.Or(err, errContended))
	}
	return r
}

// jitter is a random length, lo … hi.
func (e *engine) jitter(lo, hi time.Duration) time.Duration { return jitter(e.host, lo, hi) }

func jitter(h host, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(h.random()%uint64(hi-lo+1)).Truncate(tick)
}

func latest(t time.Time, more ...time.Time) time.Time {
	for _, o := range more {
		if o.After(t) {
			t = o
		}
	}
	return t
}

func earliest(t time.Time, more ...time.Time) time.Time {
	for _, o := range more {
		if o.Before(t) {
			t = o
		}
	}
	return t
}
