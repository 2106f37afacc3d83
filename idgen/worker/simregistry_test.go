package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// faults selects the faults of the simulation.
type faults struct {
	clockError      int64 // largest error of each machine's clock, in ms
	clocksJump      bool  // clocks jump while running, up to that error
	missing         bool  // documents are missing at the start
	severalCreators bool  // the puts of concurrent creators are all acknowledged
	putInserts      bool  // a put at any version succeeds if the document is missing
	hidesInserts    bool  // ... and the source does not set Inserts
	identity        bool  // the registry distinguishes its servers
	serverMoves     bool  // another server answers, without any loss
	countsVersions  bool  // versions count from 1 for each created document; false: versions are the content
	wipes           bool  // the registry loses everything while owners run
	staleWipe       bool  // reads after a wipe may be stale too
	deletes         bool  // single documents are lost
	restores        bool  // an older copy comes back at once
	restoresLate    bool  // ... only after the registry was away for the quarantine
	restoresRecent  bool  // ... that is some seconds old, as that of a lagging replica
	comparesNothing bool  // compare-and-set succeeds without comparing
	declaredNew     bool  // processes first start with the registry declared new
	takesOverAtOnce bool  // a held slot is taken over as soon as its bound has passed: without losses the grace is only a courtesy
	takesOverEarly  bool  // ... as early as the difference of clocks allows
	losses          bool  // the registry is wiped two or three times, at the worst intervals
	losesSingle     bool  // ... or a single document is lost
	longLease       bool  // the lease is longer than the skew
	delaysTakes     bool  // the decision to take a slot of unknown history may be older than that history
	clones          bool  // a copy of a running process is started
	twoLeases       bool  // processes have two different leases
}

const (
	messageLife = 20_000 / scale // longest life of a message
	timeout     = 5_000 / scale  // timeout of a call
)

// document is a slot's content with its version. The zero value is a missing document.
type document struct {
	doc worker.Doc
	ver worker.Version
}

// history is the history of one document of the registry.
type history struct {
	now     document
	past    []change
	phantom document // content of a refused write, which is served with its own version
	count   int      // writes since the document was last created
	created int64    // time of the last creation
	lost    int64    // time of the last loss or restore: reads show no earlier state
}

type change struct {
	at int64
	document
}

// simRegistry is the state of the registry at one moment of virtual time.
type simRegistry struct {
	w            *world
	records      []history // documents of the slots, and then the registry's own
	identity     int       // the server that answers
	awayUntil    int64     // time up to which nothing is answered
	refusesUntil int64     // time up to which puts at the right version are refused

	onTake func(slot int) // called during the next take
}

func newSimRegistry(w *world, slots int) *simRegistry {
	r := &simRegistry{w: w, records: make([]history, slots+1)}
	for i := range r.records {
		rec := &r.records[i]
		rec.created, rec.past = -messageLife, []change{{at: w.now}}
		if w.missing {
			continue
		}
		d := worker.Doc{Nonce: "before", HighWater: time.UnixMilli(w.now - 1), Free: true, Registry: "r"}
		if i == slots {
			d.Nonce, d.Owner = "r", w.config(0).Terms()+"; slots made: "+strconv.Itoa(slots)
		}
		if w.identity {
			d.Registry = "of another server"
		}
		r.set(i, d)
		rec.created = -messageLife
	}
	return r
}

// index returns the index of a slot's record. The registry's own comes last.
func (r *simRegistry) index(slot int) int {
	if slot == worker.RegistrySlot {
		return len(r.records) - 1
	}
	return slot
}

func (r *simRegistry) set(i int, d worker.Doc) {
	rec := &r.records[i]
	if rec.now.ver == "" {
		rec.created, rec.count = r.w.now, 0
	}
	rec.count++
	rec.now = document{d, r.version(rec, d)}
	rec.past = append(rec.past, change{r.w.now, rec.now})
	r.w.tracef("slot %d = %s", i, shownDoc(d))
}

func (r *simRegistry) version(rec *history, d worker.Doc) worker.Version {
	if r.w.countsVersions {
		return worker.Version(strconv.Itoa(rec.count))
	}
	return worker.Version(d.Nonce + strconv.FormatInt(d.HighWater.UnixMilli(), 36) + strconv.FormatBool(d.Free) + d.Registry + d.Owner)
}

// apply executes a put when it arrives. It returns version "" if the document was at another version.
func (r *simRegistry) apply(rng *stream, i int, d worker.Doc, expected worker.Version) (worker.Version, error) {
	rec := &r.records[i]
	ok := rec.now.ver == expected
	switch {
	case r.w.now < r.awayUntil:
		return "", errLost
	case r.w.comparesNothing:
		ok = true
	case r.w.severalCreators && r.w.now-rec.created < 300/scale && (expected == "" || r.w.putInserts):
		ok = true // another process created it a moment ago, and its put was acknowledged too
	case rec.now.ver == "" && r.w.putInserts:
		ok = true
	case ok && (r.w.now < r.refusesUntil || rng.chance(100) && !r.w.calm):
		ok = false
	}
	if !ok {
		if !r.w.countsVersions {
			rec.phantom = document{d, r.version(rec, d)}
		}
		return "", nil
	}
	r.set(i, d)
	return rec.now.ver, nil
}

// read executes a get when it arrives.
func (r *simRegistry) read(rng *stream, i int) document {
	rec := &r.records[i]
	if rec.phantom.ver != "" && rng.chance(5) {
		return rec.phantom
	}
	if r.w.staleWipe && rec.lost > 0 && r.w.now-rec.lost < 30_000/scale && rng.chance(3) {
		before := slices.IndexFunc(rec.past, func(c change) bool { return c.at == rec.lost }) - 1
		return rec.past[max(before, 0)].document
	}
	if !rng.chance(6) {
		return rec.now
	}
	// A state that is up to a minute old, or the one before the last change.
	at := max(0, len(rec.past)-1-rng.n(3))
	if rng.chance(4) {
		at = rng.n(len(rec.past))
	}
	if !r.w.staleWipe {
		for at < len(rec.past)-1 && rec.past[at].at < rec.lost {
			at++
		}
	}
	return rec.past[at].document
}

func (r *simRegistry) wipe() {
	r.w.tracef("the registry is wiped")
	for i := range r.records {
		r.remove(i)
	}
}

// remove removes one document.
func (r *simRegistry) remove(i int) {
	r.w.tracef("slot %d is missing", i)
	rec := &r.records[i]
	rec.now, rec.phantom, rec.lost = document{}, document{}, r.w.now
	rec.past = append(rec.past, change{at: r.w.now})
}

// recreate removes a document, and creates one of unknown history in its place.
func (r *simRegistry) recreate(i int) {
	r.remove(i)
	r.set(i, worker.Doc{Nonce: "initial", HighWater: time.UnixMilli(0), Free: true})
}

// restore brings back the content of an earlier time, on another server if
// the registry distinguishes its servers.
func (r *simRegistry) restore(at int64) {
	r.w.tracef("the registry is set back to %s", clockTime(at))
	r.identity++
	for i := range r.records {
		rec := &r.records[i]
		j := len(rec.past) - 1
		for j > 0 && rec.past[j].at > at {
			j--
		}
		rec.now, rec.phantom, rec.lost = rec.past[j].document, document{}, r.w.now
		rec.past = append(rec.past, change{r.w.now, rec.now})
	}
}

// simSlots implements worker.Slots for a process.
type simSlots struct{ p *proc }

var errLost = errors.New("no answer")

func (s simSlots) Get(_ context.Context, slot int) (worker.Doc, worker.Version, error) {
	p, r := s.p, s.p.w.registry
	rng := p.callRNG()
	often := 50
	if slot == worker.RegistrySlot {
		often = 30
	}
	if rng.chance(often) && !p.w.calm || p.w.now < r.awayUntil {
		p.yieldFor(timeout)
		return worker.Doc{}, "", errLost
	}
	p.yieldFor(int64(rng.n(40 / scale)))
	t := r.read(rng, r.index(slot))
	p.yieldFor(int64(rng.n(40 / scale)))
	if p.w.now < r.awayUntil {
		return worker.Doc{}, "", errLost
	}
	return t.doc, t.ver, nil
}

func (s simSlots) Put(_ context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	p, w := s.p, s.p.w
	rng := p.callRNG()
	var (
		at    = w.registry.index(slot)
		v     worker.Version
		err   = errLost // replaced when the request arrives
		sent  = int64(rng.n(60 / scale))
		reply = int64(rng.n(60 / scale))
		lost  bool
	)
	often := 60
	if w.losses && expected == "" { // only documents that are put back may arrive late
		often = 12
	}
	what := rng.n(often)
	if w.calm {
		what = often
	}
	switch what {
	case 0: // the request is lost
		lost = true
	case 1, 2: // the reply is lost
		reply = -1
	case 3, 4: // the request arrives when the process no longer waits for its reply
		sent, reply = timeout+int64(rng.n(messageLife-timeout)), -1
	case 5, 6: // the reply is late
		reply = timeout + int64(rng.n(8*timeout))
	case 7: // the request arrives twice
		again := int64(rng.n(messageLife))
		w.enqueue(w.now+again, func() { w.registry.apply(rng, at, d, expected) })
	}
	if p.id == 0 && !d.Free && (expected == "" || w.delaysTakes && w.registry.records[at].now.doc.IsInitial()) {
		p.yieldFor(w.stall)
	}
	from := p.life
	if trap := w.registry.onTake; trap != nil && !d.Free {
		w.registry.onTake = nil
		w.enqueue(w.now, func() { trap(at) })
	}
	w.tracef("%s puts %d = %s", from, at, shownDoc(d))
	if !lost {
		w.enqueue(w.now+sent, func() {
			v, err = w.registry.apply(rng, at, d, expected)
			w.tracef("%s put of slot %d, %s: %q, %v", from, at, shownDoc(d), v, err)
		})
	}
	if lost || reply < 0 {
		p.yieldFor(timeout)
		return "", false, errLost
	}
	p.yieldFor(sent + reply)
	return v, v != "", err
}

// identity returns a text that differs for each server.
func (s simSlots) identity(context.Context) (string, error) {
	p, r := s.p, s.p.w.registry
	rng := p.callRNG()
	p.yieldFor(int64(rng.n(40 / scale)))
	if rng.chance(50) || p.w.now < r.awayUntil {
		return "", errLost
	}
	text := strconv.Itoa(r.identity)
	p.yieldFor(int64(rng.n(40 / scale)))
	return text, nil
}

// shownDoc formats a document for traces.
type shownDoc worker.Doc

func (d shownDoc) String() string {
	state := "held"
	if d.Free {
		state = "free"
	}
	return fmt.Sprintf("{%.6s %s %s in %.6s}", d.Nonce, clockTime(d.HighWater.UnixMilli()), state, d.Registry)
}

// clockTime is virtual time since the start of the schedule.
type clockTime int64

func (t clockTime) String() string {
	return (time.Duration(t-simEpoch) * time.Millisecond).String()
}

// stream is a source of random numbers that is cheap to create.
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
