package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// faults are the switches of the simulation.
type faults struct {
	clocks    int64 // how far each machine's clock may be off, ms
	jumps     bool  // clocks jump while running, as far as that
	missing   bool  // documents are missing at the start
	several   bool  // creators at the same time are all told ok
	insert    bool  // a put on a missing slot writes, whatever it expected
	anchor    bool  // the registry has an anchor
	counter   bool  // versions count from 1 again when a slot is created again, else they are the content
	wipes     bool  // the registry loses everything while owners live
	staleWipe bool  // reads are stale across a wipe, too
	restores  bool  // an older copy comes back at once
	waited    bool  // ... only after the registry was away for W+M
	lags      bool  // ... of some seconds ago, as a replica's that writes reach later
	lies      bool  // compare-and-set says ok without comparing
	disk      bool  // processes keep local state
	oldDisk   bool  // ... of which an older copy comes back
	shared    bool  // ... which two processes use at once
	fresh     bool  // processes start the first time with the registry declared new
	hasty     bool  // a held slot is taken over as soon as its bound is over: T is a courtesy
}

const (
	life    = 20_000 // the longest a message lives
	timeout = 5_000  // after which a call is given up
)

// slotText is a slot's content with its version; a zero one is missing.
type slotText struct {
	doc Doc
	ver Version
}

// change is one state of a slot in the past.
type change struct {
	at int64
	slotText
}

// simRegistry is the registry, as it is at one moment of virtual time.
type simRegistry struct {
	w       *world
	slots   []slotText
	history [][]change
	phantom []slotText // content of a refused write, which is served with its own version
	counts  []int
	anchor  int
	anchors []int64 // when each began
	created []int64 // when each slot was created last
	wiped   int64
	away    int64 // up to when nothing is answered
	refuses int64 // up to when right versions are refused
}

func newSimRegistry(w *world, slots int) *simRegistry {
	r := &simRegistry{w: w, slots: make([]slotText, slots), history: make([][]change, slots), phantom: make([]slotText, slots),
		counts: make([]int, slots), anchors: []int64{w.now}, created: make([]int64, slots), wiped: -1}
	for i := range slots {
		r.history[i] = []change{{w.now, slotText{}}}
		if !w.missing {
			r.set(i, Doc{Nonce: "before", HW: w.now - 1, Free: true})
		}
		r.created[i] = -life
	}
	return r
}

func (r *simRegistry) set(slot int, d Doc) {
	if r.slots[slot].ver == "" {
		r.created[slot] = r.w.now
		r.counts[slot] = 0
	}
	r.counts[slot]++
	r.slots[slot] = slotText{d, r.version(slot, d)}
	r.history[slot] = append(r.history[slot], change{r.w.now, r.slots[slot]})
	r.w.tracef("slot %d = %s", slot, show(d))
}

func (r *simRegistry) version(slot int, d Doc) Version {
	if r.w.counter {
		return Version(strconv.Itoa(r.counts[slot]))
	}
	return Version(d.Nonce + strconv.FormatInt(d.HW, 36) + strconv.FormatBool(d.Free) + d.Anchor)
}

// apply is a put's arrival.
func (r *simRegistry) apply(rng *stream, slot int, d Doc, expected Version) (Version, Result) {
	cur := r.slots[slot]
	ok := cur.ver == expected
	switch {
	case r.w.now < r.away:
		return "", Unknown
	case r.w.lies:
		ok = true
	case r.w.several && r.w.now-r.created[slot] < 300 && (expected == "" || r.w.insert):
		ok = true // created a moment ago by somebody else who was told ok, too
	case cur.ver == "" && r.w.insert:
		ok = true
	case ok && (r.w.now < r.refuses || rng.chance(100)):
		ok = false
	}
	if !ok {
		if r.w.counter {
			return "", Refused
		}
		r.phantom[slot] = slotText{d, r.version(slot, d)}
		return "", Refused
	}
	r.set(slot, d)
	return r.slots[slot].ver, OK
}

// read is a get's arrival.
func (r *simRegistry) read(rng *stream, slot int) slotText {
	if p := r.phantom[slot]; p.ver != "" && rng.chance(30) {
		return p
	}
	if !rng.chance(6) {
		return r.slots[slot]
	}
	// A state up to a minute old, or one change back.
	h := r.history[slot]
	i := max(0, len(h)-1-rng.n(3))
	if rng.chance(4) {
		i = rng.n(len(h))
	}
	if !r.w.staleWipe {
		for i < len(h)-1 && h[i].at < r.wiped {
			i++
		}
	}
	return h[i].slotText
}

func (r *simRegistry) wipe() {
	r.w.tracef("the registry is wiped")
	r.wiped = r.w.now
	for i := range r.slots {
		r.slots[i], r.phantom[i] = slotText{}, slotText{}
		r.history[i] = append(r.history[i], change{r.w.now, slotText{}})
	}
	r.anchors = append(r.anchors, r.w.now)
	r.anchor++
}

// restore brings back the content of an earlier time.
func (r *simRegistry) restore(at int64) {
	r.w.tracef("the registry is set back to %s", clockTime(at))
	for i, h := range r.history {
		j := len(h) - 1
		for j > 0 && h[j].at > at {
			j--
		}
		r.slots[i] = h[j].slotText
		r.history[i] = append(r.history[i], change{r.w.now, r.slots[i]})
		r.wiped = r.w.now
	}
}

// simSlots is a process's way to the registry.
type simSlots struct{ p *proc }

var errLost = errors.New("no answer")

func (s simSlots) Get(_ context.Context, slot int) (Doc, Version, error) {
	p, r := s.p, s.p.w.registry
	rng := p.call()
	if rng.chance(50) || p.w.now < r.away {
		p.park(timeout)
		return Doc{}, "", errLost
	}
	p.park(int64(rng.n(40)))
	t := r.read(rng, slot)
	p.park(int64(rng.n(40)))
	if p.w.now < r.away {
		return Doc{}, "", errLost
	}
	return t.doc, t.ver, nil
}

func (s simSlots) Put(_ context.Context, slot int, d Doc, expected Version) (Version, Result, error) {
	p, w := s.p, s.p.w
	rng := p.call()
	var (
		v     Version
		res   = Unknown
		sent  = int64(rng.n(60))
		reply = int64(rng.n(60))
		lost  bool
	)
	switch rng.n(60) {
	case 0: // the request is lost
		lost = true
	case 1, 2: // the reply is lost
		reply = -1
	case 3, 4: // the request arrives when nobody waits for its reply any more
		sent, reply = timeout+int64(rng.n(life-timeout)), -1
	case 5: // the reply comes late
		reply = timeout + int64(rng.n(8*timeout))
	case 6: // the request arrives twice
		again := int64(rng.n(life))
		w.at(w.now+again, func() { w.registry.apply(rng, slot, d, expected) })
	}
	owner := p.life
	w.tracef("p%d.%d puts %d = %s", p.id, owner, slot, show(d))
	if !lost {
		w.at(w.now+sent, func() {
			v, res = w.registry.apply(rng, slot, d, expected)
			w.tracef("p%d.%d put of slot %d, hw %s: %s", p.id, owner, slot, clockTime(d.HW), res)
		})
	}
	if lost || reply < 0 {
		p.park(timeout)
		return "", Unknown, errLost
	}
	p.park(sent + reply)
	if res == Unknown {
		return "", Unknown, errLost
	}
	return v, res, nil
}

func (s simSlots) Anchor(context.Context) (string, error) {
	p, r := s.p, s.p.w.registry
	if !p.w.anchor {
		return "", nil
	}
	rng := p.call()
	p.park(int64(rng.n(40)))
	if p.w.now < r.away {
		return "", errLost
	}
	n := r.anchor
	if p.w.staleWipe && n > 0 && p.w.now-r.anchors[n] < 30_000 && rng.chance(3) {
		n--
	}
	p.park(int64(rng.n(40)))
	return strconv.Itoa(n), nil
}

// show is a document as traces have it.
type show Doc

func (d show) String() string {
	state := "held"
	if d.Free {
		state = "free"
	}
	return fmt.Sprintf("{%.6s %s %s}", d.Nonce, clockTime(d.HW), state)
}

// clockTime is virtual time, shown from the start of the schedule.
type clockTime int64

func (t clockTime) String() string {
	return (time.Duration(t-simEpoch) * time.Millisecond).String()
}

// stream is a source of random numbers that cost little to begin.
type stream struct{ state uint64 }

func newStream(parts ...uint64) *stream {
	s := &stream{}
	for _, p := range parts {
		s.state ^= p
		s.state = s.next()
	}
	return s
}

func (s *stream) next() uint64 { // splitmix64
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) n(n int) int           { return int(s.next() % uint64(n)) }
func (s *stream) chance(oneOf int) bool { return s.n(oneOf) == 0 }
