package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// readAtOnce is how many slots a search reads at the same time, after the
// first, which more often than not is free, or was this process's before.
const readAtOnce = 16

// reading is what a search saw of one slot.
type reading struct {
	slot int
	doc  Doc
	ver  Version
	err  error
}

// acquire searches until it holds a slot. It gives up when ctx ends, when every
// search for some seconds found every slot held, so that it was no stale read,
// and when the registry has not answered for the engine's patience.
func (e *engine) acquire(ctx context.Context) (*holding, error) {
	began := e.now()
	none := int64(-1) // when searches began to find no slot to take
	for try := int64(0); ; try++ {
		h, err := e.search(ctx)
		if h != nil { // err is of the slots tried before
			return h, nil
		}
		if isVerdict(err) {
			if none < 0 {
				none = e.now()
			}
			if e.now()-none >= e.doubt {
				return nil, err
			}
		} else {
			none = -1
			if h := e.resume(err); h != nil {
				return h, nil
			}
			patience := e.patience
			if errors.Is(err, errContended) {
				patience *= 8 // it answers, and others must be done some day
			}
			if e.now()-began > patience {
				return nil, err
			}
		}
		if e.host.sleep(ctx, ms(e.jitter(250, min(int64(250)<<min(try, 3), 2000)))) != nil {
			return nil, fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
	}
}

// isVerdict reports whether a search saw every slot and none to take.
func isVerdict(err error) bool {
	_, taken := errors.AsType[*TakenError](err)
	_, ahead := errors.AsType[*ClockError](err)
	return taken || ahead
}

// search looks at the slots once and takes the first that can be used at once,
// else the one that can be used soonest.
func (e *engine) search(ctx context.Context) (*holding, error) {
	anchor, err := e.anchor(ctx)
	if err != nil {
		return nil, &awayError{fmt.Errorf("leafsql: registry of worker ids: %w", err)}
	}
	slots, err := e.order(ctx)
	if err != nil {
		return nil, err
	}
	var (
		later, missing, ahead, held []reading
		failed, unread              error
		answered                    bool
		h                           *holding
	)
	// take says whether the search is over: a slot was taken, or every take to
	// come would be as void as this one.
	take := func(r reading) bool {
		var err error
		if h, err = e.take(ctx, anchor, r); err != nil {
			failed = err
		}
		return h != nil || errors.Is(err, errVoid)
	}
	for n := 1; len(slots) > 0; n = readAtOnce {
		batch := slots[:min(n, len(slots))]
		slots = slots[len(batch):]
		for _, r := range e.read(ctx, batch) {
			answered = answered || r.err == nil
			if r.ver == "" && r.err == nil && e.fresh {
				r = e.create(ctx, r.slot)
			}
			now := e.now()
			floor := e.floor(r.doc, anchor, now)
			switch {
			case r.err != nil:
				unread = fmt.Errorf("leafsql: registry of worker ids: slot %d: %w", r.slot, r.err)
			case r.ver == "":
				missing = append(missing, r)
			case floor > now+2*e.bound+e.skew:
				ahead = append(ahead, r)
			case !r.doc.Free && now <= r.doc.HW+e.takeover:
				held = append(held, r)
			case floor > now:
				later = append(later, r)
			default:
				if take(r) {
					return h, failed
				}
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("leafsql: search for a worker id: %w", cmp.Or(failed, unread, context.Cause(ctx)))
			}
		}
		if !answered && n > 1 { // one alone may be unreadable
			break
		}
	}
	if !answered && unread != nil {
		return nil, &awayError{unread}
	}
	slices.SortStableFunc(later, func(a, b reading) int {
		now := e.now()
		return cmp.Compare(e.floor(a.doc, anchor, now), e.floor(b.doc, anchor, now))
	})
	for _, r := range later {
		if take(r) {
			return h, failed
		}
	}
	for _, r := range missing {
		r = e.create(ctx, r.slot)
		switch {
		case r.err != nil:
			return nil, fmt.Errorf("leafsql: registry of worker ids: slot %d: %w", r.slot, r.err)
		case r.doc.IsInitial():
			if take(r) {
				return h, failed
			}
		}
	}
	if failed != nil {
		return nil, failed
	}
	return nil, e.none(ahead, held, unread)
}

// order gives the slots in the order they are tried: the one held last time,
// then the others in an order of this process's own, so that processes
// starting at once do not meet.
func (e *engine) order(ctx context.Context) ([]int, error) {
	slots, err := e.workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("leafsql: worker ids to choose from: %w", err)
	}
	slots = slices.Clone(slots)
	rand.New(rand.NewPCG(e.seed, e.seed)).Shuffle(len(slots), func(i, j int) {
		slots[i], slots[j] = slots[j], slots[i]
	})
	if e.last == nil {
		return slots, nil
	}
	if s, ok := e.last(ctx); ok {
		if i := slices.Index(slots, s); i >= 0 {
			copy(slots[1:i+1], slots[:i])
			slots[0] = s
		}
	}
	return slots, nil
}

// read gets several slots at once.
func (e *engine) read(ctx context.Context, slots []int) []reading {
	rs := make([]reading, len(slots))
	e.host.each(len(slots), func(i int) { rs[i] = e.get(ctx, slots[i]) })
	return rs
}

func (e *engine) get(ctx context.Context, slot int) reading {
	d, v, err := e.slots.Get(ctx, slot)
	return reading{slot: slot, doc: d, ver: v, err: err}
}

// create writes the document of unknown history into a missing slot. Whether
// it was this call that wrote it does not matter, nor if several did.
func (e *engine) create(ctx context.Context, slot int) reading {
	_, _, err := e.put(ctx, e.now(), slot, Initial(), "")
	r := e.get(ctx, slot)
	if r.err == nil && r.ver == "" {
		r.err = cmp.Or(err, errors.New("still missing after it was created"))
	}
	return r
}

// take makes a slot this process's by compare-and-set. Its ids begin above
// everything that can have been issued before.
func (e *engine) take(ctx context.Context, anchor string, r reading) (*holding, error) {
	now := e.now()
	floor := e.floor(r.doc, anchor, now)
	bound := now + e.bound
	y := Doc{Nonce: newNonce(e.host), HW: max(r.doc.HW+1, floor, bound), Owner: e.owner, Anchor: anchor}
	v, res, err := e.put(ctx, now, r.slot, y, r.ver)
	again := func(over Version) {
		now = e.now()
		bound = now + e.bound
		y.HW = max(y.HW+1, bound)
		v, res, err = e.put(ctx, now, r.slot, y, over)
	}
	switch {
	case res == Unknown && !r.doc.IsInitial():
		// A read that shows y does not make it true; a second put upon y does.
		if seen := e.get(ctx, r.slot); seen.err == nil && seen.doc.Same(y) {
			again(seen.ver)
		}
	case res == OK && r.doc.IsInitial() && e.fresh && e.settle > 0:
		// Another creator may still put the initial document over y, and whoever
		// comes then waits nothing out: see that y stays.
		if err = e.host.sleep(ctx, ms(e.settle)); err == nil {
			again(v)
		} else {
			res = Unknown
		}
	}
	if res != OK {
		return nil, fmt.Errorf("leafsql: taking worker id %d: %s: %w", r.slot, res, cmp.Or(err, errContended))
	}
	if after, err := e.anchor(ctx); err != nil || after != anchor {
		e.undo(ctx, r.slot, y, v)
		return nil, fmt.Errorf("leafsql: taking worker id %d: %w: %w", r.slot, errVoid, cmp.Or(err, errors.New("it was wiped meanwhile")))
	}
	h := &holding{engine: e, slot: r.slot, doc: y, sure: v, ver: v, sent: y.HW, bound: bound, blind: unknown(r.doc, anchor)}
	h.start = max(floor+1, e.now())
	return h, nil
}

// undo frees a slot whose take is void. What the slot held before may be lost;
// the anchor in y says so.
func (e *engine) undo(ctx context.Context, slot int, y Doc, v Version) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ms(e.late))
	defer cancel()
	y.Free = true
	e.put(ctx, e.now(), slot, y, v)
}

// resume goes on with the slot that this process's last life held, up to the
// bound that was confirmed to it, as if it had only paused: if the registry is
// away, for one that answers knows better.
func (e *engine) resume(err error) *holding {
	if _, away := errors.AsType[*awayError](err); !away || e.state == nil {
		return nil
	}
	rec, ok, bad := e.state.load()
	if bad != nil {
		e.log.Warn("leafsql: local state of the worker id's lease", "err", bad)
	}
	now := e.now()
	if !ok || bad != nil || rec.HW <= max(now, rec.Reserved)+saveEvery {
		return nil
	}
	e.log.Warn("leafsql: the registry of worker ids is away; going on within the last bound",
		"worker", rec.Slot, "until", time.UnixMilli(rec.HW), "err", err)
	return &holding{
		engine: e, slot: rec.Slot, resumed: true,
		doc:   Doc{Nonce: rec.Nonce, HW: rec.HW, Owner: e.owner},
		bound: rec.HW, start: max(rec.Reserved+1, now),
	}
}

// none says why no slot could be taken. That one or the other could not be
// read matters only if no other was held: it is not to be had soon either.
func (e *engine) none(ahead, held []reading, unread error) error {
	now := e.now()
	if len(held) == 0 && unread != nil {
		return unread
	}
	if len(held) == 0 && len(ahead) > 0 {
		r := slices.MinFunc(ahead, func(a, b reading) int { return cmp.Compare(a.doc.HW, b.doc.HW) })
		return &ClockError{Worker: r.slot, Owner: r.doc.Owner, Behind: ms(r.doc.HW - now)}
	}
	if len(held) == 0 {
		return errors.New("leafsql: no worker id to choose from")
	}
	r := slices.MinFunc(held, func(a, b reading) int { return cmp.Compare(a.doc.HW, b.doc.HW) })
	return &TakenError{Worker: r.slot, Owner: r.doc.Owner, Of: len(held) + len(ahead), Until: time.UnixMilli(r.doc.HW + e.takeover)}
}
