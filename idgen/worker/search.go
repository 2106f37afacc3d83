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

	is    standing
	floor time.Time // the latest time that may have been issued under the slot
}

// standing classifies slots by what a search can do with them.
type standing int

const (
	usable     standing = iota // can be taken
	later                      // can be taken after a wait, if no slot is usable
	missing                    // can be created and taken after a wait, if no slot is usable or later
	held                       // held by another process, or was until a moment ago
	ahead                      // was used with a clock too far ahead to wait for
	unreadable                 // holds something else, or was not answered
)

// judge sets a reading's standing.
func (e *engine) judge(r *reading, registry string) {
	now := e.now()
	r.floor = e.floor(*r, registry, now)
	switch {
	case r.err != nil:
		r.is = unreadable
	case r.ver == "" && e.fresh:
		r.is = usable
	case r.ver == "":
		r.is = missing
	case r.floor.After(now.Add(2*e.lease + e.skew)):
		r.is = ahead
	case !r.doc.Free && !now.After(r.doc.HighWater.Add(e.grace)) && !e.claim.is(*r):
		r.is = held
	case r.floor.After(now):
		r.is = later
	default:
		r.is = usable
	}
}

// search reads slots and takes the first one that can be used at once, otherwise the
// one that can be used soonest. After a search of all slots has found none, few limits
// the next searches to the slots that are expected to end next,
// and to others in turns.
func (e *engine) search(ctx context.Context, few int) (*hold, error) {
	if err := e.check(e.now()); err != nil {
		return nil, err
	}
	reg, err := e.registry(ctx)
	if err != nil {
		return nil, err
	}
	if few == 0 || e.seen == nil {
		few, e.seen = 0, make(map[int]reading, len(e.slots))
	}
	var (
		failed, unread error
		answered       bool
		waits          []reading // later, then missing
		slots          = e.order(ctx, few)
	)
	for n := 1; len(slots) > 0; n = readAtOnce {
		batch := slots[:min(n, len(slots))]
		slots = slots[len(batch):]
		for _, r := range e.read(ctx, batch) {
			e.judge(&r, reg.id)
			e.seen[r.slot] = r
			answered = answered || r.err == nil
			switch r.is {
			case usable:
				h, err := e.take(ctx, reg, r)
				if h != nil || !errors.Is(err, errContended) {
					return h, err
				}
				failed = err
			case later, missing:
				waits = append(waits, r)
			case unreadable:
				unread = cmp.Or(unread, e.unread(fmt.Sprintf("slot %d", r.slot), r.err))
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("leafsql: search for a worker id: %w", errprefix.Trim(cmp.Or(failed, unread, context.Cause(ctx))))
			}
		}
		if !answered && n > 1 { // a single slot may be unreadable
			break
		}
	}
	if !answered && unread != nil {
		return nil, &awayError{unread}
	}
	slices.SortStableFunc(waits, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.is, b.is), a.floor.Compare(b.floor))
	})
	for _, r := range waits {
		if unknown(r.doc, reg.id) && e.waited != reg.id { // holders of lost documents get the time of a renewal to put them back
			e.log.Info("leafsql: no free worker id has a known past, as the registry is new or has lost documents: processes that it does not know of have time to write theirs again; then one is taken, and its ids are safe a lease and a minute later",
				"registry", e.source.Name, "wait", e.courtesy+e.lease+e.skew)
			e.waited = reg.id
			e.host.sleep(ctx, e.courtesy)
			return nil, errContended
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
	return nil, e.none(unread)
}

// order returns the slots in the order in which they are tried: the slot that may still belong to
// this process, the one that Source.Last returns, and then the others in
// a random order of this process, so that processes that start together try different slots.
// If few is set, half of its slots are those whose leases end first,
// and the other half are the next ones in turn.
func (e *engine) order(ctx context.Context, few int) []int {
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
	if few > 0 {
		others = e.nextToEnd((few + 1) / 2)
		for range few / 2 {
			e.turn = (e.turn + 1) % len(e.slots)
			others = append(others, e.slots[e.turn])
		}
		slices.Sort(others)
		others = slices.Compact(others)
	}
	return append(first, slices.DeleteFunc(others, func(s int) bool { return slices.Contains(first, s) })...)
}

// nextToEnd returns the n slots with the lowest high water.
func (e *engine) nextToEnd(n int) []int {
	all := slices.SortedFunc(maps.Keys(e.seen), func(a, b int) int {
		return e.seen[a].doc.HighWater.Compare(e.seen[b].doc.HighWater)
	})
	all = slices.DeleteFunc(all, func(s int) bool { return e.seen[s].is == unreadable })
	return all[:min(n, len(all))]
}

// take takes a slot for this process by compare-and-set. Its ids begin above
// all times that can have been issued before. Any error except
// errContended ends the search; the next search begins with this slot.
func (e *engine) take(ctx context.Context, reg registry, r reading) (*hold, error) {
	if err := e.clockError(ctx); err != nil {
		return nil, err
	}
	failed := func(err error) error {
		return fmt.Errorf("leafsql: taking worker id %d: %w", r.slot, errprefix.Trim(err))
	}
	if r.ver == "" {
		if r = e.create(ctx, r.slot); r.err != nil {
			return nil, failed(r.err)
		}
		if !r.doc.IsInitial() {
			return nil, failed(errContended)
		}
	}
	now := e.now()
	floor := e.floor(r, reg.id, now)
	y := Doc{Nonce: newNonce(e.host), Owner: e.owner, Registry: reg.id}
	y.HighWater = latest(floor, now.Add(e.lease)) // mutation: taken up to
	blind := unknown(r.doc, reg.id) && !e.fresh && e.skew > 0
	if blind { // the put may come when others had the slot since: its document is unknown history until a renewal
		y.Registry = "" // mutation: blind
	}
	h := &hold{slot: r.slot, floor: floor, sent: y.HighWater, unknown: r.doc.unused() || unknown(r.doc, reg.id), fresh: e.fresh, registry: reg}
	h.doc, h.unconfirmed = y, []time.Time{y.HighWater}
	h.doc.HighWater = floor // no later time is confirmed
	// If the keeper is closed now, it still needs the result of the put, to return the slot.
	ctx, cancel := e.host.within(context.WithoutCancel(ctx), 2*releaseFor)
	defer cancel()
	v, res, err := e.put(ctx, r.slot, y, r.ver)
	// If the puts of several creators can be acknowledged, a late one may still overwrite this document with an unused
	// one, and the next process would not wait if the registry
	// was declared new. So a slot that is taken right after it was created is taken a second time.
	unconfirmed := res == swapped && e.source.Inserts && r.doc.unused() && (e.fresh || now.Sub(r.doc.HighWater) < e.skew) // mutation: first take
	if unconfirmed || res == unclear {
		e.claim = h
	}
	switch {
	case unconfirmed:
		return nil, failed(errUnconfirmed)
	case res != swapped: // mutation: taken
		return nil, failed(err)
	}
	if after, err := e.registry(ctx); err != nil || after.id != reg.id || // mutation: after the take
		blind && e.now().After(now.Add(e.skew/3)) { // mutation: taken late
		h.ver, e.claim = v, h
		e.release(ctx, h, floor) // mutation: void take
		return nil, failed(fmt.Errorf("%w: %w", errVoid, cmp.Or(err, errors.New("it was wiped meanwhile, or the answer came late"))))
	}
	y.Registry = reg.id
	h.confirm(y, v, now.Add(e.lease))
	h.start = latest(floor.Add(tick), e.now()) // mutation: start
	e.claim, e.seen, e.fresh, e.waited = nil, nil, false, ""
	return h, nil
}

// none returns the error if no slot could be taken. Slots that could not be
// read matter only if no other slot is held, as they will not be usable soon either.
func (e *engine) none(unread error) error {
	var taken, early []reading
	for _, r := range e.seen {
		switch r.is {
		case held:
			taken = append(taken, r)
		case ahead:
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
	return fmt.Errorf("leafsql: no worker id to choose from: %w", errContended)
}
