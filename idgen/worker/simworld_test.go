package worker_test

import (
	"container/heap"
	"fmt"
	"strings"
	"time"
)

// world runs one schedule in virtual time, without goroutines: a process is a
// coroutine that yields whenever it waits.
type world struct {
	schedule
	now       int64
	events    eventQueue
	steps     int
	registry  *simRegistry
	procs     []*proc
	issued    [][]issuedRange // indexed by slot
	duplicate string
	trace     *strings.Builder
}

type event struct {
	at   int64
	step int
	do   func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].step < q[j].step
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// issuedRange is a range of timestamps that one life of a process put into ids.
type issuedRange struct {
	by       *life
	from, to int64
}

// run plays a schedule and returns a description of the first duplicate, or "".
func run(s schedule, trace *strings.Builder) string {
	w := &world{schedule: s, now: simEpoch, trace: trace, issued: make([][]issuedRange, s.slots)}
	w.registry = newSimRegistry(w, s.slots)
	for i := range s.procs {
		rng := newStream(s.seed, 1, uint64(i))
		p := &proc{w: w, id: i, key: rng.next()}
		if s.clockError > 0 {
			p.offset = s.clock(rng)
		}
		w.procs = append(w.procs, p)
	}
	for _, a := range s.actions {
		w.enqueue(a.at, func() { w.apply(a) })
	}
	for len(w.events) > 0 && w.duplicate == "" {
		e := heap.Pop(&w.events).(event)
		if e.at > simEpoch+s.horizon {
			break
		}
		w.now = e.at
		e.do()
		if w.steps > 1_000_000 {
			panic(fmt.Sprintf("the schedule of seed %d does not end", s.seed))
		}
	}
	for _, p := range w.procs {
		p.crash()
	}
	return w.duplicate
}

// clock returns the error of a machine's clock, which is sometimes the largest possible one.
func (s schedule) clock(rng *stream) int64 {
	switch rng.n(6) {
	case 0:
		return s.clockError
	case 1:
		return -s.clockError
	}
	return int64(rng.n(int(2*s.clockError))) - s.clockError
}

func (w *world) enqueue(at int64, do func()) {
	w.steps++
	heap.Push(&w.events, event{at, w.steps, do})
}

// tracef adds a line to the trace if there is one. Its arguments are formatted
// only then.
func (w *world) tracef(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%10s  %s\n", clockTime(w.now), fmt.Sprintf(format, args...))
	}
}

func (w *world) apply(a action) {
	p := w.procs[a.proc]
	if a.kind != "wipe" && a.kind != "restore" {
		w.tracef("p%d: %s %v", a.proc, a.kind, time.Duration(a.amount)*time.Millisecond)
	}
	switch a.kind {
	case "start":
		p.start()
	case "crash":
		p.crash()
	case "stop":
		p.stop()
	case "pause":
		p.pausedUntil = max(p.pausedUntil, w.now+a.amount)
	case "jump":
		p.offset = a.amount
	case "away":
		w.registry.awayUntil = max(w.registry.awayUntil, w.now+a.amount)
	case "refuse":
		w.registry.refusesUntil = w.now + a.amount
	case "wipe":
		w.registry.wipe()
	case "restore":
		from := w.now - a.amount
		if !w.restoresLate {
			w.registry.restore(from)
			return
		}
		w.registry.awayUntil = max(w.registry.awayUntil, w.now+120_000/scale)
		w.enqueue(w.registry.awayUntil, func() { w.registry.restore(from) })
	case "lose":
		if w.losesSingle {
			w.registry.remove(int(a.amount))
		} else {
			w.registry.wipe()
		}
	case "recreate":
		w.registry.recreate(int(a.amount))
	case "restart":
		p.crash()
		p.start()
	case "delete":
		w.registry.remove(int(a.amount))
	case "wipe at a take":
		w.registry.onTake = func(int) { w.registry.wipe() }
	case "delete at a take":
		w.registry.onTake = w.registry.remove
	case "doze":
		p.pauseUntilStart(a.amount)
	case "sleep":
		if !p.pauseUntilStart(a.amount % 10) {
			p.pausedUntil = max(p.pausedUntil, w.now+a.amount)
		}
	case "another identity":
		w.registry.identity++
	case "copy":
		w.startCopy(p)
	}
}

// pauseUntilStart pauses a process that waits for the time of its first id until about that time.
func (p *proc) pauseUntilStart(after int64) bool {
	if p.life == nil {
		return false
	}
	st := p.life.keeper.Status()
	if st.Phase != "waiting" {
		return false
	}
	p.pausedUntil = max(p.pausedUntil, st.Start.UnixMilli()-p.offset+after-2)
	return true
}

// startCopy starts a copy of a process on another machine, like a snapshot of its
// virtual machine.
func (w *world) startCopy(of *proc) {
	if of.life == nil {
		return
	}
	rng := newStream(w.seed, 5, uint64(of.id), uint64(w.now))
	p := &proc{w: w, id: len(w.procs), key: of.key, offset: of.offset}
	if rng.chance(2) {
		p.offset = w.clock(rng)
	}
	if p.copyOf(of) {
		w.procs = append(w.procs, p)
	}
}

// record records that a life issued ids, and finds duplicates with other lives.
func (w *world) record(slot int, i issuedRange) {
	if slot < 0 {
		return
	}
	w.tracef("%s issues in slot %d: %s … %s", i.by, slot, clockTime(i.from), clockTime(i.to))
	for _, o := range w.issued[slot] {
		from, to := max(o.from, i.from), min(o.to, i.to)
		if o.by == i.by || from > to || w.duplicate != "" || to <= max(o.by.sharedIn(slot), i.by.sharedIn(slot)) {
			continue
		}
		w.duplicate = fmt.Sprintf("slot %d: %s issued %s … %s, %s issued %s … %s",
			slot, o.by, clockTime(o.from), clockTime(o.to), i.by, clockTime(i.from), clockTime(i.to))
		w.tracef("DUPLICATE in %s", w.duplicate)
	}
	w.issued[slot] = append(w.issued[slot], i)
}
