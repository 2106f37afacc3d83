package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// reading is the result of reading one document, and its meaning for a search.
type reading struct {
	slot int
	doc  Doc
	ver  Version
	err  error

	state slotState
	floor time.Time // the latest time in ids that may have been issued with the worker id
}

// slotState classifies slots by what a search can do with them. A slot is one document of the registry, for one
// worker id. To take a slot is to write a document that makes this process its owner. doc.go explains the other terms,
// and the labels "// mutation: NAME".
type slotState int

const (
	slotUsable      slotState = iota // can be taken, and used at once
	slotUsableLater                  // can be taken if no slot is slotUsable, and used after a wait
	slotMissing                      // has no document; can be created and taken if no slot is slotUsable or slotUsableLater, and used after a wait
	slotHeld                         // another process holds it, or held it until a moment ago
	slotAhead                        // was used with a clock that was too far ahead to wait until its time has passed
	slotUnreadable                   // its document cannot be decoded, or the registry did not answer
)

// classify sets a reading's state.
func (e *engine) classify(r *reading, registry string) {
	now := e.now()
	r.floor = e.floorOf(*r, registry, now)
	switch {
	case r.err != nil:
		r.state = slotUnreadable
	case r.ver == "" && e.declaredNew:
		r.state = slotUsable
	case r.ver == "":
		r.state = slotMissing
	case r.floor.After(now.Add(2*e.lease + e.skew)):
		r.state = slotAhead
	case !r.doc.Free && !now.After(r.doc.HighWater.Add(e.grace)) && !e.claim.owns(*r):
		r.state = slotHeld
	case r.floor.After(now):
		r.state = slotUsableLater
	default:
		r.state = slotUsable
	}
}

// search reads slots and takes the first one that can be used at once, otherwise the
// one that can be used soonest. If slotLimit is 0, it may read all slots. After a search of all
// slots has found none, slotLimit is the number of slots to read: one half are the slots with the
// leases that are expected to end first, and the other half are the next slots in turn.
func (e *engine) search(ctx context.Context, slotLimit int) (*heldSlot, error) {
	now := e.now()
	if err := e.check(now); err != nil {
		return nil, err
	}
	reg, err := e.readRegistry(ctx)
	if err != nil {
		return nil, err
	}
	if slotLimit == 0 || e.readings == nil {
		slotLimit, e.readings = 0, make(map[int]reading, len(e.slots))
	}
	var (
		failed, unread error
		answered       bool
		waits          []reading // slots that can be used after a wait
		slots          = e.searchOrder(ctx, slotLimit)
	)
	for n := 1; len(slots) > 0; n = readBatch {
		batch := slots[:min(n, len(slots))]
		slots = slots[len(batch):]
		for _, r := range e.readAll(ctx, batch) {
			e.classify(&r, reg.id)
			e.readings[r.slot] = r
			answered = answered || r.err == nil
			switch r.state {
			case slotUsable:
				h, err := e.take(ctx, reg, r)
				if h != nil || !errors.Is(err, errContended) {
					return h, err
				}
				failed = err
			case slotUsableLater, slotMissing:
				waits = append(waits, r)
			case slotUnreadable:
				unread = cmp.Or(unread, e.unreadError(fmt.Sprintf("slot %d", r.slot), r.err))
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("leafsql: no worker id found: %w", errprefix.Trim(cmp.Or(failed, unread, context.Cause(ctx))))
			}
		}
		if !answered && n > 1 { // a single slot may be unreadable
			break
		}
	}
	if !answered && unread != nil {
		return nil, &unreachableError{unread}
	}
	slices.SortStableFunc(waits, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.state, b.state), a.floor.Compare(b.floor))
	})
	for _, r := range waits {
		if hasUnknownHistory(r.doc, reg.id) && e.waitedIn != reg.id { // processes with lost documents get enough time to write them again at their next renewal
			e.waitedIn = reg.id
			return nil, &missingHistoryError{errContended, now}
		}
		h, err := e.take(ctx, reg, r)
		if h != nil || !errors.Is(err, errContended) {
			return h, err
		}
		failed = err
	}
	if failed != nil {
		return nil, failed
	}
	return nil, e.noneFreeError(unread)
}

// searchOrder returns the slots in the order in which they are tried: the slot that may still belong to
// this process, the slot that Source.Last returns, and then the others. The others are in
// a random order, so that processes that start together try different slots.
// If slotLimit is not 0, only that many others are tried, as search describes.
func (e *engine) searchOrder(ctx context.Context, slotLimit int) []int {
	var first []int
	if e.claim != nil {
		first = append(first, e.claim.slot)
	}
	if e.source.Last != nil {
		if s, ok := e.source.Last(ctx); ok && slices.Contains(e.slots, s) && !slices.Contains(first, s) {
			first = append(first, s)
		}
	}
	others := slices.Clone(e.slots)
	if slotLimit > 0 {
		others = e.slotsEndingFirst((slotLimit + 1) / 2)
		for range slotLimit / 2 {
			e.searchPos = (e.searchPos + 1) % len(e.slots)
			others = append(others, e.slots[e.searchPos])
		}
		slices.Sort(others)
		others = slices.Compact(others)
	}
	return append(first, slices.DeleteFunc(others, func(s int) bool { return slices.Contains(first, s) })...)
}

// slotsEndingFirst returns the n readable slots with the earliest high water, the latest time that their owners may
// put into ids.
func (e *engine) slotsEndingFirst(n int) []int {
	all := slices.SortedFunc(maps.Keys(e.readings), func(a, b int) int {
		return e.readings[a].doc.HighWater.Compare(e.readings[b].doc.HighWater)
	})
	all = slices.DeleteFunc(all, func(s int) bool { return e.readings[s].state == slotUnreadable })
	return all[:min(n, len(all))]
}

// take takes a slot for this process by compare-and-set. The ids of this process get
// later times than all ids that may have been issued with the worker id before. Any error except errContended
// ends the search. If the put may have been executed, the next search begins with this slot.
func (e *engine) take(ctx context.Context, reg registry, r reading) (*heldSlot, error) {
	if err := e.clockError(ctx); err != nil {
		return nil, err
	}
	failed := func(err error) error {
		return fmt.Errorf("leafsql: acquire worker id %d: %w", r.slot, errprefix.Trim(err))
	}
	if r.ver == "" {
		if r = e.createInitial(ctx, r.slot); r.err != nil {
			return nil, failed(r.err)
		}
		if !r.doc.IsInitial() {
			return nil, failed(errContended)
		}
	}
	now := e.now()
	floor := e.floorOf(r, reg.id, now)
	y := Doc{Nonce: newNonce(e.host), Owner: e.owner, Registry: reg.id}
	y.HighWater = latest(floor, now.Add(e.lease)) // mutation: taken up to
	blind := hasUnknownHistory(r.doc, reg.id) && !e.declaredNew && e.skew > 0
	if blind { // the put may be executed late, after other processes used the slot, so the document's history is unknown until a renewal
		y.Registry = "" // mutation: blind
	}
	h := &heldSlot{slot: r.slot, floor: floor, highestSent: y.HighWater, unknownHistory: r.doc.isUnused() || hasUnknownHistory(r.doc, reg.id), declaredNew: e.declaredNew, registry: reg}
	h.doc, h.unconfirmedTimes = y, []time.Time{y.HighWater}
	h.doc.HighWater = floor // no later time is confirmed
	// If the keeper is closed now, it still needs the result of the put, to release the slot.
	ctx, cancel := e.host.withTimeout(context.WithoutCancel(ctx), 2*releaseTimeout)
	defer cancel()
	v, res, err := e.put(ctx, r.slot, y, r.ver)
	// Some backends acknowledge the puts of several processes that create a document. A late put could then
	// overwrite this document with an unused one, and the next process could take the slot without waiting if the
	// registry was declared new. So a slot that is taken right after it was created is taken a second time.
	unconfirmed := res == swapped && e.source.Inserts && r.doc.isUnused() && (e.declaredNew || now.Sub(r.doc.HighWater) < e.skew) // mutation: first take
	if unconfirmed || res == unclear {
		e.claim = h
	}
	switch {
	case unconfirmed:
		return nil, failed(errUnconfirmed)
	case res != swapped: // mutation: taken
		return nil, failed(err)
	}
	if after, err := e.readRegistry(ctx); err != nil || after.id != reg.id || // mutation: after the take
		blind && e.now().After(now.Add(e.skew/3)) { // mutation: taken late
		h.expectedVer, e.claim = v, h
		e.release(ctx, h, floor) // mutation: void take
		return nil, failed(fmt.Errorf("%w: %w", errRegistryChanged, cmp.Or(err, errors.New("it was wiped during the attempt, or the answer came late"))))
	}
	y.Registry = reg.id
	h.confirm(y, v, now.Add(e.lease))
	h.start = latest(floor.Add(tick), e.now()) // mutation: start
	e.claim, e.readings, e.declaredNew, e.waitedIn = nil, nil, false, ""
	return h, nil
}

// noneFreeError returns the error if no slot could be taken. If slots are held, it is the error for the slot that becomes
// free first. Otherwise it is unread, the error of a slot that could not be read. Without such an error, it
// is the error for a slot that was used with a clock too far ahead.
func (e *engine) noneFreeError(unread error) error {
	var taken, early []reading
	for _, r := range e.readings {
		switch r.state {
		case slotHeld:
			taken = append(taken, r)
		case slotAhead:
			early = append(early, r)
		}
	}
	least := func(rs []reading) reading {
		return slices.MinFunc(rs, func(a, b reading) int { return a.doc.HighWater.Compare(b.doc.HighWater) })
	}
	switch {
	case len(taken) > 0:
		r := least(taken)
		return takenError(len(taken)+len(early), r.slot, r.doc, r.doc.HighWater.Add(e.grace))
	case unread != nil:
		return unread
	case len(early) > 0:
		r := least(early)
		return aheadError(r.slot, r.doc, e.now())
	}
	return fmt.Errorf("leafsql: no free worker id found: %w", errContended)
}
