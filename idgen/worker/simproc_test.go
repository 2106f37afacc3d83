package worker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"
)

// proc is one process: the production engine on a simulated machine.
type proc struct {
	w      *world
	id     int
	key    uint64
	offset int64 // of its clock
	disk   *disk

	life   int
	calls  uint64
	rng    *stream // of the machine
	birth  int64
	paused int64
	ctx    *simContext
	next   func() (struct{}, bool) // nil: not running
	end    func()
	yield  func(struct{}) bool
	ticket int // of the wait it is in

	engine *engine
	h      *holding
	last   int64
	drawn  *stream // of what is issued
}

var errCrashed = errors.New("crashed")

func (p *proc) start() {
	if p.next != nil {
		return
	}
	p.life++
	p.calls, p.paused, p.birth, p.h = 0, 0, p.w.now, nil
	p.rng = newStream(p.w.seed, 2, uint64(p.id), uint64(p.life))
	p.drawn = newStream(p.w.seed, 3, uint64(p.id), uint64(p.life))
	p.ctx = &simContext{}
	slots := make([]int, p.w.slots)
	for i := range slots {
		slots[i] = i
	}
	p.engine = &engine{
		timing: timingFor(time.Minute), slots: simSlots{p}, seed: p.key, owner: fmt.Sprintf("p%d.%d", p.id, p.life),
		workers: func(context.Context) ([]int, error) { return slots, nil },
		spares:  2, host: p, clock: &clock{}, log: silent,
	}
	if p.w.disk {
		p.engine.state = simDisk{p}
	}
	p.engine.fresh = p.w.fresh && p.life == 1
	if p.w.hasty {
		p.engine.takeover = 0
	}
	p.next, p.end = iter.Pull(p.main)
	p.resume()
	life := p.life
	p.w.at(p.w.now, func() { p.tick(life) })
}

var silent = slog.New(slog.DiscardHandler)

// main is the life of a process, as Lease and its user have it.
func (p *proc) main(yield func(struct{}) bool) {
	p.yield = yield
	defer func() {
		if r := recover(); r != nil && r != errCrashed {
			panic(r)
		}
	}()
	for p.ctx.err == nil {
		h, err := p.engine.acquire(p.ctx)
		if err != nil {
			p.sleep(p.ctx, time.Second)
			continue
		}
		last := func() int64 { return p.last }
		p.last = 0 // as a generator that was never asked says it
		h.last.Store(&last)
		if h.publish() != nil {
			continue
		}
		p.w.tracef("p%d.%d holds slot %d from %s, bound %s", p.id, p.life, h.slot, clockTime(h.start), clockTime(h.bound))
		p.h = h
		h.hold(p.ctx, func(err error) {
			p.w.tracef("p%d.%d ends with slot %d: %v", p.id, p.life, h.slot, err)
		})
	}
}

func (p *proc) resume() {
	if _, alive := p.next(); !alive {
		p.next = nil
	}
}

func (p *proc) crash() {
	if p.next != nil {
		p.next = nil
		p.ticket++
		p.end()
	}
}

func (p *proc) stop() {
	if p.next != nil {
		p.ctx.err = context.Canceled
	}
}

// park gives way for some time, longer if the process is paused.
func (p *proc) park(d int64) {
	p.ticket++
	p.wake(p.w.now+d, p.ticket)
	if !p.yield(struct{}{}) {
		panic(errCrashed)
	}
}

func (p *proc) wake(at int64, ticket int) {
	p.w.at(at, func() {
		switch {
		case ticket != p.ticket:
		case p.paused > p.w.now:
			p.wake(p.paused, ticket)
		default:
			p.resume()
		}
	})
}

// tick issues ids now and then: reads the limit, marks, and looks again, with
// time between.
func (p *proc) tick(life int) {
	w := p.w
	if p.life != life || p.next == nil {
		return
	}
	rng := p.drawn
	again := func(d int64, f func()) {
		w.at(max(w.now+d, p.paused), func() {
			switch {
			case p.life != life || p.next == nil:
			case p.paused > w.now:
				w.at(p.paused, f)
			default:
				f()
			}
		})
	}
	defer again(int64(rng.n([]int{500, 5_000, 30_000}[rng.n(3)])), func() { p.tick(life) })
	h := p.h
	if h == nil {
		return
	}
	limit := h.limit.Load()
	from := max(p.last+1, h.start)
	if rng.n(3) > 0 {
		from = max(from, p.engine.clock.at(p.mono()))
	}
	to := from
	if rng.chance(3) && from < limit {
		to += int64(rng.n(int(limit - from + 1)))
	}
	if to > limit {
		return
	}
	var gap [2]int64
	for i := range gap {
		if rng.chance(20) {
			gap[i] = int64(rng.n(10_000))
		}
	}
	who := fmt.Sprintf("p%d.%d", p.id, life)
	check := func() {
		if p.h == h && to <= h.limit.Load() {
			w.record(h.slot, issue{h, who, from, to})
		}
	}
	mark := func() {
		if p.h != h || p.last >= from {
			return
		}
		p.last = to
		if gap[1] == 0 {
			check()
		} else {
			again(gap[1], check)
		}
	}
	if gap[0] == 0 {
		mark()
	} else {
		again(gap[0], mark)
	}
}

// The process is the engine's host.

func (p *proc) wall() int64 {
	if p.rng.chance(500) {
		p.park(int64(p.rng.n(100_000))) // stopped between any two lines
	}
	return p.w.now + p.offset
}

func (p *proc) mono() time.Duration { return ms(p.w.now - p.birth) }
func (p *proc) random() uint64      { return p.rng.next() }

func (p *proc) sleep(ctx context.Context, d time.Duration) error {
	for d > 0 && ctx.Err() == nil { // in short stretches, so that a stop is noticed
		part := min(d, 2*time.Second)
		p.park(part.Milliseconds())
		d -= part
	}
	return ctx.Err()
}

func (p *proc) each(n int, f func(int)) {
	for i := range n {
		f(i)
	}
}

// call is the stream of one call to the registry.
func (p *proc) call() *stream {
	p.calls++
	return newStream(p.w.seed, 4, uint64(p.id), uint64(p.life), p.calls)
}

// simContext ends when the process is asked to stop.
type simContext struct{ err error }

func (c *simContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *simContext) Done() <-chan struct{}       { return nil }
func (c *simContext) Err() error                  { return c.err }
func (c *simContext) Value(any) any               { return nil }

// disk is what survives a process.
type disk struct {
	rec     record
	has     bool
	history []diskChange
}

type diskChange struct {
	at  int64
	rec record
	has bool
}

func (d *disk) put(at int64, rec record, has bool) {
	d.rec, d.has = rec, has
	d.history = append(d.history, diskChange{at, rec, has})
}

func (d *disk) setBack(at int64) {
	for _, c := range slices.Backward(d.history) {
		if c.at <= at {
			d.rec, d.has = c.rec, c.has
			return
		}
	}
}

// simDisk is the way of a process to its disk. A crash may come before or
// after anything is durable.
type simDisk struct{ p *proc }

func (d simDisk) load() (record, bool, error) { return d.p.disk.rec, d.p.disk.has, nil }
func (d simDisk) save(rec record) error       { d.write(rec, true); return nil }
func (d simDisk) remove() error               { d.write(record{}, false); return nil }

func (d simDisk) write(rec record, has bool) {
	p := d.p
	d.delay()
	p.disk.put(p.w.now, rec, has)
	p.w.tracef("p%d.%d disk: slot %d, hw %s, reserved %s, %v", p.id, p.life, rec.Slot, clockTime(rec.HW), clockTime(rec.Reserved), has)
	d.delay()
}

func (d simDisk) delay() {
	if d.p.rng.chance(20) {
		d.p.park(int64(d.p.rng.n(3_000)))
	}
}
