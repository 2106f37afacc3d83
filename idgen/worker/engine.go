package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// timing is the protocol's lengths, in ms.
type timing struct {
	renew    int64 // R: from one renewal to the next
	bound    int64 // W: how far a renewal carries the bound beyond now
	takeover int64 // T: how long after its bound a held slot is left alone; a courtesy, not a safety
	skew     int64 // M: at least the difference of two machines' clocks plus the life of a message
	late     int64 // D: an OK that took longer is not trusted
	ahead    int64 // how far beyond now a lease is to be used up in a burst
	patience int64 // how long a search goes on without a registry that answers
	doubt    int64 // how long it must have seen no slot to take: reads may be stale
	settle   int64 // how long after a creation creators may still be at work
}

// timingFor gives the lengths for a bound W of a registry on the network.
func timingFor(bound time.Duration) timing {
	w := bound.Milliseconds()
	return timing{renew: w / 6, bound: w, takeover: 2 * w, skew: 60_000, late: w / 12, ahead: w / 2, patience: 15_000, doubt: 3000, settle: 500}
}

// localTiming is for a registry on the same machine, held under a lock of the
// operating system: one clock, no messages, and a write takes milliseconds.
var localTiming = timing{renew: 1000, bound: 3000, late: 1000, ahead: 1500, patience: 5000}

// reserve is how far beyond now the local state of a lease lets ids go. The
// state is written every saveEvery, but a renewal may come between, and take
// twice D to fail.
const (
	reserve   = 12_000
	saveEvery = 1_000
)

// engine takes and keeps worker ids. It is the protocol and nothing else: a
// put told OK, in time, is the only proof of anything, and reads are hints.
type engine struct {
	timing
	slots   Slots
	workers func(context.Context) ([]int, error)        // the ids to choose from
	last    func(context.Context) (worker int, ok bool) // hint; may be nil
	seed    uint64                                      // of the order in which slots are tried
	fresh   bool                                        // the registry is declared new
	owner   string
	state   store // local state; may be nil
	spares  int   // how many free documents a holder keeps ready
	host    host
	clock   *clock
	log     *slog.Logger
}

// store keeps the state of a lease through a crash of the process.
type store interface {
	load() (record, bool, error)
	save(record) error
	remove() error
}

// record is that state: ids up to Reserved may have been issued, and a
// confirmed put allows those up to HW.
type record struct {
	Slot     int    `json:"slot"`
	Nonce    string `json:"nonce"`
	HW       int64  `json:"hw"`
	Reserved int64  `json:"reserved"`
}

func (e *engine) now() int64 {
	now, _ := e.clock.follow(e.host.wall(), e.host.mono())
	return now
}

// floor is the highest timestamp that may have been issued under d or under
// what was lost before it.
func (e *engine) floor(d Doc, anchor string, now int64) int64 {
	switch {
	case !unknown(d, anchor):
		return d.HW
	case e.fresh:
		return max(d.HW, now-1)
	}
	return max(d.HW, e.quarantine(now))
}

// unknown reports whether d says nothing about what was before it, in a
// registry with that anchor. A spare's hw is enough for a late message, too:
// M counts the life of one.
func unknown(d Doc, anchor string) bool {
	return d.IsInitial() || d.Anchor != "" && d.Anchor != anchor
}

// quarantine is above every bound that an owner unknown to the registry can
// hold now.
func (e *engine) quarantine(now int64) int64 { return now + e.bound + e.skew }

// put writes with compare-and-set what was decided on at a time. A process may
// pause at any line: what waited for long is not sent, and an OK that came late
// proves nothing, as the slot may have changed hands since.
func (e *engine) put(ctx context.Context, decided int64, slot int, d Doc, expected Version) (Version, Result, error) {
	if e.now()-decided > e.late {
		return "", Refused, errors.New("the process paused before it could be sent")
	}
	v, r, err := e.slots.Put(ctx, slot, d, expected)
	if r == OK && e.now()-decided > e.late {
		return "", Unknown, fmt.Errorf("the registry took longer than %v", ms(e.late))
	}
	return v, r, err
}

// anchor is the text that changes when the registry is wiped, "" where a wipe
// needs no watching.
func (e *engine) anchor(ctx context.Context) (string, error) {
	if a, ok := e.slots.(Anchorer); ok {
		return a.Anchor(ctx)
	}
	return "", nil
}

// jitter is a random number of ms, lo … hi.
func (e *engine) jitter(lo, hi int64) int64 {
	return lo + int64(e.host.random()%uint64(hi-lo+1))
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
