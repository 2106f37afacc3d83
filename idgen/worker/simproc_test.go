package worker_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/bits"
	"reflect"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// proc is one process: the snowflake generator and keeper of an application
// on a simulated machine.
type proc struct {
	w      *world
	id     int
	key    uint64
	offset int64 // offset of its clock

	lifeCount   int
	life        *life // nil: not running
	pausedUntil int64 // end of the pause
	running     *thread
}

// life is a process from its start to its end.
type life struct {
	name       string
	calls      uint64
	rng        *stream // random numbers of the machine
	drawRNG    *stream // random numbers of draws
	bornAt     int64
	gen        *snowflake.Generator
	keeper     *worker.Keeper // the generator's
	threads    []*thread
	copiedFrom *life // the life whose memory was copied; nil: none
	sharedSlot int   // the slot that both held then
	sharedUpTo int64 // the time up to which both may issue
}

func (l *life) String() string { return l.name }

// sharedIn returns the time up to which a life may issue times in a slot that others
// issue too: the bound of the process that it is a copy of. A copy may issue any of these
// before it notices that it is a copy.
func (l *life) sharedIn(slot int) int64 {
	if l.copiedFrom == nil || slot != l.sharedSlot {
		return -1
	}
	return l.sharedUpTo
}

// thread is a goroutine of a life. It runs as a coroutine that yields whenever it
// waits.
type thread struct {
	next     func() (struct{}, bool)
	end      func()
	yield    func(struct{}) bool
	ticket   int // number of its current wait
	drawsIDs bool
}

var errCrashed = errors.New("crashed")

// layout returns a layout with few ids in a millisecond, so that bursts run far ahead.
func (s schedule) layout() snowflake.Layout {
	return snowflake.Layout{Time: 41, Worker: bits.Len(uint(s.slots)) - 1, Sequence: 1, Epoch: simEpoch - 1<<24}
}

// config returns the Config of a process.
func (w *world) config(proc int) worker.Config {
	cfg := worker.Config{Layout: w.layout().String(), Lease: time.Minute, Logger: silentLogger}
	if w.longLease {
		cfg.Lease = 3 * time.Minute
	}
	if w.twoLeases && proc%2 == 1 {
		cfg.Lease = 10 * time.Second
	}
	return cfg
}

// scale divides all durations in the simulation. A lease
// then has fewer milliseconds, so that two processes that issue at the same time produce duplicates more often.
const scale = 20

var silentLogger = slog.New(slog.DiscardHandler)

// newLife starts a new life of the process, which is idle at first.
func (p *proc) newLife() *life {
	p.lifeCount++
	l := &life{
		name: fmt.Sprintf("p%d.%d", p.id, p.lifeCount), bornAt: p.w.now,
		rng:     newStream(p.w.seed, 2, uint64(p.id), uint64(p.lifeCount)),
		drawRNG: newStream(p.w.seed, 3, uint64(p.id), uint64(p.lifeCount)),
	}
	p.life, p.pausedUntil = l, 0
	cfg := p.w.config(p.id)
	cfg.NewRegistry, cfg.Owner = p.w.declaredNew && p.lifeCount == 1, l.name
	open := func(context.Context) (worker.Source, error) {
		src := worker.Source{Slots: simSlots{p}, Inserts: p.w.putInserts && !p.w.hidesInserts}
		if p.w.identity {
			src.Identity = simSlots{p}.identity
		}
		return src, nil
	}
	var err error
	if l.gen, err = snowflake.New(p.w.layout(), open, cfg.On(p, scale, p.w.takesOverAtOnce, p.w.takesOverEarly)); err != nil {
		panic(err)
	}
	l.keeper = (*worker.Keeper)(reflect.ValueOf(l.gen).Elem().FieldByName("keeper").UnsafePointer())
	return l
}

func (p *proc) start() {
	if p.life != nil {
		return
	}
	l := p.newLife()
	p.startThread(func() { p.drawIDs(l) }).drawsIDs = true
}

// copyOf starts the process with a copy of another one's memory.
func (p *proc) copyOf(o *proc) bool {
	l := p.newLife()
	slot, upTo, ok := l.keeper.CopyOf(o.life.keeper)
	if !ok {
		p.life = nil
		return false
	}
	l.copiedFrom, l.sharedSlot, l.sharedUpTo = o.life, slot, upTo.UnixMilli()
	p.startThread(func() { p.drawIDs(l) }).drawsIDs = true
	return true
}

// startThread starts a coroutine, at once.
func (p *proc) startThread(f func()) *thread {
	t := &thread{}
	t.next, t.end = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if r := recover(); r != nil && r != errCrashed {
				panic(r)
			}
		}()
		f()
	})
	l := p.life
	l.threads = append(l.threads, t)
	p.w.enqueue(p.w.now, func() { p.resume(l, t) })
	return t
}

func (p *proc) resume(l *life, t *thread) {
	if p.life == l {
		p.running = t
		t.next()
		p.running = nil // the world makes the next calls of the host
	}
}

func (p *proc) crash() {
	if l := p.life; l != nil {
		p.life = nil
		for _, t := range l.threads {
			t.ticket++
			t.end()
		}
	}
}

// stop makes the process return its worker id and issue the ids that it still can.
func (p *proc) stop() {
	if p.life != nil {
		p.life.keeper.Stop()
	}
}

// yieldFor yields for some time, or longer if the process is paused.
func (p *proc) yieldFor(d int64) {
	t := p.running
	t.ticket++
	p.wakeAt(p.life, t, p.w.now+d, t.ticket)
	if !t.yield(struct{}{}) {
		panic(errCrashed)
	}
}

func (p *proc) wakeAt(l *life, t *thread, at int64, ticket int) {
	p.w.enqueue(at, func() {
		switch {
		case ticket != t.ticket || p.life != l:
		case p.pausedUntil > p.w.now:
			p.wakeAt(l, t, p.pausedUntil, ticket)
		default:
			p.resume(l, t)
		}
	})
}

// drawIDs draws ids from time to time, a few or as many as possible without waiting.
func (p *proc) drawIDs(l *life) {
	layout := p.w.layout()
	ended, end := context.WithCancel(context.Background())
	end() // Next must not wait, since real time does not pass
	last, rng := int64(0), l.drawRNG
	for {
		pause := int64(rng.n([]int{500, 5_000, 30_000}[rng.n(3)] / scale))
		if s := l.keeper.Status(); s.Phase == "waiting" { // so do statements
			pause = min(pause, max(1, s.Start.UnixMilli()-p.offset-p.w.now+1))
		}
		p.yieldFor(pause)
		draws := 1 + rng.n(3)
		if rng.chance(8) {
			draws = rng.n(60_000 / scale)
		}
		var i issuedRange
		slot := -1
		for range draws {
			n := 1 + rng.n(2)
			first, err := l.gen.Next(ended, n)
			if err != nil {
				break
			}
			if first <= last {
				panic(fmt.Sprintf("%s: id %d after %d", l, first, last))
			}
			last = first + int64(n) - 1
			parts, err := layout.Decompose(first)
			if err != nil {
				panic(err)
			}
			at := parts.Time.UnixMilli()
			if parts.Worker != slot || at > i.to+1 {
				p.w.record(slot, i)
				slot, i = parts.Worker, issuedRange{l, at, at}
			}
			i.to = at
		}
		p.w.record(slot, i)
	}
}

// A proc implements the host of its keeper.

func (p *proc) Wall() time.Time {
	if p.running != nil && !p.running.drawsIDs && !p.w.calm && p.life.rng.chance(500) {
		p.yieldFor(int64(p.life.rng.n(100_000 / scale))) // paused between any two lines
	}
	return time.UnixMilli(p.w.now + p.offset)
}

func (p *proc) Mono() time.Duration {
	if p.running != nil && p.running.drawsIDs && p.life.drawRNG.chance(200) {
		p.yieldFor(int64(p.life.drawRNG.n(20_000 / scale)))
	}
	return time.Duration(p.w.now-p.life.bornAt) * time.Millisecond
}

func (p *proc) Random() uint64 { return p.life.rng.next() }
func (p *proc) Start(f func()) { p.startThread(f) }

func (p *proc) Sleep(ctx context.Context, d time.Duration) error {
	until := p.w.now + max(1, d.Milliseconds())
	for p.w.now < until && ctx.Err() == nil { // in short steps, so that the end of ctx is noticed
		p.yieldFor(min(until-p.w.now, 2_000/scale))
	}
	return ctx.Err()
}

// callRNG returns the random numbers of one call to the registry.
func (p *proc) callRNG() *stream {
	p.life.calls++
	return newStream(p.w.seed, 4, uint64(p.id), uint64(p.lifeCount), p.life.calls)
}
