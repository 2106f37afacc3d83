package workertest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
)

var docs atomic.Int64

// newDoc returns a document that was never written before.
func newDoc() worker.Doc {
	return worker.Doc{Nonce: fmt.Sprintf("%032x", docs.Add(1)), HighWater: millis(time.Now().Add(-time.Second)), Free: true, Owner: "kit"}
}

// millis returns a time truncated to milliseconds, as in documents.
func millis(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()) }

// isUnclear reports whether a put that was not acknowledged may have written.
func isUnclear(err error) bool { return err != nil && !leasetest.NotWritten(err) }

// mustSet overwrites a slot, retries until a put is acknowledged, and returns the version.
// Between two writes of the same document it writes another document, since processes never overwrite a document
// with an equal document.
func (k *kit) mustSet(s worker.Slots, slot int, d worker.Doc) worker.Version {
	k.Helper()
	var why error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(k.Context(), 5*time.Second)
		was, v, err := s.Get(ctx, slot)
		if why = err; err == nil {
			var ok bool
			y := d
			if was == d {
				y = newDoc()
			}
			v, ok, err = s.Put(ctx, slot, y, v)
			if why = err; ok && y == d {
				cancel()
				return v
			}
		}
		cancel()
	}
	k.Fatalf("slot %d can't be written: %v", slot, why)
	return ""
}

// wantRefused puts at a wrong version, and fails the test unless nothing is written.
func (k *kit) wantRefused(s worker.Slots, slot int, expected worker.Version) {
	k.Helper()
	for range 10 {
		_, ok, err := s.Put(k.timeoutContext(5*time.Second), slot, newDoc(), expected)
		switch {
		case ok:
			k.Fatalf("slot %d: Put() at the wrong version %q = true, want false", slot, expected)
		case err == nil, leasetest.NotWritten(err):
			return
		}
		k.Logf("slot %d: a put at the wrong version: %v", slot, err)
	}
	k.Fatalf("slot %d: puts at a wrong version are never refused", slot)
}

// mustPut puts at the right version and returns the new version. A registry may refuse such a put occasionally,
// but not for long. After a lost reply, mustPut uses the version that a read returns.
func (k *kit) mustPut(s worker.Slots, slot int, v worker.Version) worker.Version {
	k.Helper()
	var (
		ok   bool
		err  error
		lost bool
	)
	pause := 100 * time.Millisecond
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(pause) {
		if lost {
			pause = min(2*pause, time.Second) // reads may show a document that was refused
			if _, now, err := s.Get(k.timeoutContext(5*time.Second), slot); err == nil {
				v = now
			}
		}
		var after worker.Version
		after, ok, err = s.Put(k.timeoutContext(5*time.Second), slot, newDoc(), v)
		switch {
		case ok && (after == "" || after == v):
			k.Fatalf("slot %d: version %q after a put at %q", slot, after, v)
		case ok:
			return after
		case isUnclear(err):
			lost = true
		}
	}
	k.Fatalf("slot %d: Put() at the version last read = %t, %v, want true: another put changed the slot, or that one did not", slot, ok, err)
	return ""
}

// wantShown waits until s returns the document d at version v.
func (k *kit) wantShown(s worker.Slots, slot int, d worker.Doc, v worker.Version) {
	k.Helper()
	k.eventually(fmt.Sprintf("slot %d is %+v at %q", slot, d, v), func() bool {
		got, gv, err := s.Get(k.timeoutContext(5*time.Second), slot)
		return err == nil && gv == v && got == d
	})
}

// otherSlots returns the slots of a second process, or of p if there can be only one.
func (k *kit) otherSlots(p *process) worker.Slots {
	if k.Exclusive {
		return p.slots
	}
	return k.open(0).slots
}

func missing(k *kit) {
	s := k.open(0).slots
	slots := []int{worker.RegistrySlot, 0, 1, 1023}
	if k.Exclusive {
		slots = []int{0}
	}
	for _, slot := range slots {
		var err error
		k.eventually("an answer", func() bool {
			var d worker.Doc
			var v worker.Version
			if d, v, err = s.Get(k.timeoutContext(5*time.Second), slot); err == nil && (v != "" || d != (worker.Doc{})) {
				k.Errorf("missing slot %d: Get() = %+v, version %q, want an empty document and version", slot, d, v)
			}
			return err == nil || !k.Unreliable
		})
		k.must(err)
	}
}

// initial returns the document with which a missing slot is created.
func initial() worker.Doc {
	return worker.Doc{Nonce: "initial", HighWater: time.UnixMilli(0), Free: true}
}

func roundTrip(k *kit) {
	p := k.open(0)
	s, other := p.slots, k.otherSlots(p)
	seen := make(map[worker.Version]bool)
	now := millis(time.Now())
	for _, d := range []worker.Doc{
		initial(),
		newDoc(),
		{Nonce: strings.Repeat("f", 32), HighWater: time.UnixMilli(1)},
		{Nonce: "a", HighWater: time.UnixMilli(1 << 53), Free: true, Owner: "Zoë's \"host\" <%s> \\ \n 🍃 = & + ; --"},
		{Nonce: "b", HighWater: now, Owner: strings.Repeat("a long name ", 20)},
		{Nonce: "b", HighWater: now.Add(time.Millisecond), Owner: "renewed", Registry: strings.Repeat("e", 32)},
		{Nonce: "b", HighWater: now.Add(time.Millisecond), Owner: "renewed", Registry: strings.Repeat("e", 32), Free: true},
		{Nonce: "b", HighWater: now.Add(time.Millisecond), Owner: "renewed", Registry: strings.Repeat("d", 32), Free: true},
	} {
		v := k.mustSet(s, 0, d)
		if v == "" || seen[v] {
			k.Errorf("version of %+v = %q, want a new one", d, v)
		}
		seen[v] = true
		k.wantShown(other, 0, d, v)
	}
}

func wrongVersion(k *kit) {
	p := k.open(0)
	s, other := p.slots, k.otherSlots(p)
	first := k.mustSet(s, 0, newDoc())
	k.wantRefused(other, 0, "")
	second := k.mustPut(s, 0, first)
	k.wantRefused(s, 0, first)
	k.wantRefused(other, 0, first)
	k.wantRefused(other, 0, "")
	// A read may return a document that was refused. The next put proves that the slot's version
	// has not changed.
	third := k.mustPut(other, 0, second)
	k.wantRefused(s, 0, second)
	if !p.src.Inserts && !k.Exclusive { // with Inserts, a missing slot accepts any version
		k.wantRefused(s, 1, third)
	}
	k.mustPut(s, 0, third)
}

// chain writes without reading: two processes take turns and each put uses the
// version that the last one returned.
func chain(k *kit) {
	p := k.open(0)
	s := []worker.Slots{p.slots, k.otherSlots(p)}
	v := k.mustSet(s[0], 0, newDoc())
	for i := range 20 {
		before := v
		v = k.mustPut(s[i%2], 0, v)
		k.wantRefused(s[(i+1)%2], 0, before)
	}
}

// putTogether makes n puts at version v at once. It returns the number of acknowledged puts, the number of puts
// with an unclear outcome, and the version after an acknowledged put.
func (k *kit) putTogether(procs []worker.Slots, n int, d func() worker.Doc, v worker.Version) (won, open int, winner worker.Version) {
	var (
		mu sync.Mutex
		wg sync.WaitGroup
	)
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	defer cancel()
	for i := range n {
		wg.Go(func() {
			after, ok, err := procs[i%len(procs)].Put(ctx, 0, d(), v)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ok && err != nil:
				k.Errorf("Put() = true, %v, want no error with true", err)
			case ok:
				won++
				winner = after
			case isUnclear(err):
				open++
			}
		})
	}
	wg.Wait()
	return won, open, winner
}

func (k *kit) openSeveral(n int) []worker.Slots {
	if k.Exclusive {
		n = 1
	}
	procs := make([]worker.Slots, n)
	for i := range procs {
		procs[i] = k.open(0).slots
	}
	return procs
}

func oneWinner(k *kit) {
	procs := k.openSeveral(4)
	v := k.mustSet(procs[0], 0, newDoc())
	const rounds = 10
	decided := 0
	for range rounds {
		won, open, winner := k.putTogether(procs, 8, newDoc, v)
		switch {
		case won > 1:
			k.Fatalf("%d of 8 puts at one version returned true, want at most 1", won)
		case won == 1:
			decided++
			v = k.mustPut(procs[1%len(procs)], 0, winner)
		default:
			k.Logf("no winner, %d unclear", open)
			v = k.mustSet(procs[0], 0, newDoc())
		}
	}
	if decided < rounds/2 && !k.Unreliable {
		k.Errorf("%d of %d rounds had a winner, want at least half", decided, rounds)
	}
}

// creators creates a slot's first document from several processes at
// once. Several puts may be acknowledged, but afterwards only one process may
// take the slot.
func creators(k *kit) {
	procs := k.openSeveral(4)
	won, open, _ := k.putTogether(procs, 8, initial, "")
	k.Logf("%d of 8 creators were told true, of %d it is unclear", won, open)
	var v worker.Version
	k.eventually("the document that all created", func() bool {
		d, now, err := procs[len(procs)-1].Get(k.timeoutContext(5*time.Second), 0)
		v = now
		return err == nil && d == initial()
	})
	won, open, winner := k.putTogether(procs, 8, newDoc, v)
	if won > 1 || won+open == 0 {
		k.Errorf("of 8 puts %d returned true and %d are unclear, want at most one true, and one of either", won, open)
	}
	if winner != "" {
		k.mustPut(procs[0], 0, winner)
	}
}

// noUpdateIsLost increments a counter in a slot from several processes.
func noUpdateIsLost(k *kit) {
	procs := k.openSeveral(4)
	d := newDoc()
	d.HighWater = time.UnixMilli(1000)
	v := k.mustSet(procs[0], 0, d)
	k.wantShown(procs[len(procs)-1], 0, d, v)
	var (
		wg        sync.WaitGroup
		won, open atomic.Int64
	)
	ctx, cancel := context.WithTimeout(k.Context(), 2*patience)
	defer cancel()
	const each = 10
	for i := range 4 {
		s := procs[i%len(procs)]
		wg.Go(func() {
			pause := 10
			for done := 0; done < each && ctx.Err() == nil; {
				d, v, err := s.Get(ctx, 0)
				y := newDoc()
				y.HighWater = d.HighWater.Add(time.Millisecond)
				if err != nil {
					continue
				}
				_, ok, err := s.Put(ctx, 0, y, v)
				switch {
				case ok:
					won.Add(1)
					done++
					pause = 10
				case isUnclear(err):
					open.Add(1)
				default: // for a while, reads may return a document that was refused
					time.Sleep(time.Duration(rand.IntN(pause)) * time.Millisecond)
					pause = min(2*pause, 2000)
				}
			}
		})
	}
	wg.Wait()
	if won.Load() != 4*each {
		k.Errorf("%d writes succeeded in %v, want %d", won.Load(), 2*patience, 4*each)
	}
	low, high := 1000+won.Load(), 1000+won.Load()+open.Load()
	var got worker.Doc
	k.eventually(fmt.Sprintf("a count of %d … %d", low, high), func() bool {
		var err error
		got, _, err = procs[0].Get(k.timeoutContext(5*time.Second), 0)
		return err == nil && got.HighWater.UnixMilli() >= low && got.HighWater.UnixMilli() <= high
	})
}

func endedContext(k *kit) {
	s := k.open(0).slots
	v := k.mustSet(s, 0, newDoc())
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	began := time.Now()
	_, _, getErr := s.Get(ctx, 0)
	after, ok, putErr := s.Put(ctx, 0, newDoc(), v)
	soon := patience / 3
	if k.virtual {
		soon = 10 * time.Millisecond
	}
	if took := time.Since(began); took > soon {
		k.Errorf("calls with an ended context took %v (%v, %v), want took at most %v", took, getErr, putErr, soon)
	}
	switch { // the put was acknowledged or refused, and the slot must agree
	case ok:
		k.mustPut(s, 0, after)
	case !isUnclear(putErr):
		k.mustPut(s, 0, v)
	}
}

// corrupt reads a document that cannot be decoded.
func corrupt(k *kit) { k.openUnreadable() }

// openUnreadable makes slot 0's document unreadable, and returns a process for which reading it failed.
func (k *kit) openUnreadable() *process {
	k.Helper()
	p := k.open(0)
	k.mustSet(p.slots, 0, newDoc())
	if k.Exclusive {
		p.Close()
	}
	k.must(k.Corrupt(0))
	p = k.open(0)
	k.eventually("an error of the unreadable document", func() bool {
		d, v, err := p.slots.Get(k.timeoutContext(5*time.Second), 0)
		if err == nil && d.Free && d.Owner != "kit" {
			k.Errorf("Get() of an unreadable document = %+v at %q, want an error", d, v)
		}
		return err != nil
	})
	return p
}

// corruptIsLeft searches for a free slot in a registry with an unreadable document.
func corruptIsLeft(k *kit) {
	p := k.openUnreadable()
	if err := p.acquire(k.timeoutContext(2*time.Second), worker.Config{NewRegistry: true}); err == nil {
		k.Error("took a worker id with an unreadable document, want another one or an error")
	}
	if k.Exclusive {
		return
	}
	for range 3 { // several processes find a slot
		if q := k.hold(0, worker.Config{Workers: 4, NewRegistry: true}); q.worker == 0 {
			k.Error("took a worker id with an unreadable document, want another one or an error")
		}
	}
}

// makeInUse changes the registry to one that was used before: all slots exist and
// are free.
func (k *kit) makeInUse(cfg worker.Config) {
	k.Helper()
	if k.Exclusive {
		p := k.open(0)
		defer p.Close()
		k.mustSet(p.slots, 0, newDoc())
		return
	}
	if !k.Unreliable {
		cfg.Lease, cfg.Logger = cmp.Or(cfg.Lease, lease), slog.New(slog.DiscardHandler)
		leasetest.InUse(k, k.Open, cfg)
		return
	}
	// If a registry may refuse correct writes, the earlier owners of a slot may still be unknown after its creation, but not after a release.
	p := k.open(0)
	cfg.NewRegistry = true
	if err := p.acquire(k.timeoutContext(2*patience), cfg); err != nil {
		k.Fatalf("no worker id of a new registry: %v", err)
	}
	made := func() bool {
		d, _, err := p.slots.Get(k.timeoutContext(5*time.Second), worker.RegistrySlot)
		return err == nil && strings.HasSuffix(d.Owner, fmt.Sprintf(": %d", cfg.Workers))
	}
	// After a failure, a holder waits most of a lease before the next attempt.
	for until := time.Now().Add(8 * patience); !made(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			k.Fatal("some slots were not created in time, want all")
		}
	}
	p.keeper.Close()
	p.Close()
}

// registryID returns the registry's identity from the documents of its slots. The registry's own document may lack it, if reads
// return documents that were refused.
func (k *kit) registryID(s worker.Slots) (id string) {
	k.Helper()
	k.eventually("the registry's identity", func() bool {
		for _, slot := range []int{0, worker.RegistrySlot} {
			if d, _, err := s.Get(k.timeoutContext(5*time.Second), slot); err == nil && d.Registry != "" {
				id = d.Registry
				return true
			}
		}
		return false
	})
	return id
}
