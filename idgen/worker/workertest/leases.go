package workertest

import (
	"errors"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// among is a search among so many slots.
func among(n int) worker.Config { return worker.Config{Workers: n} }

// atOnce starts n processes at the same time and has them issue.
func (k *kit) atOnce(n int, cfg worker.Config) {
	k.Helper()
	procs := make([]*process, n)
	for i := range procs {
		procs[i] = k.open(0)
	}
	ctx := k.within(2 * patience)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range procs {
		wg.Go(func() {
			for {
				err := procs[i].acquire(ctx, cfg)
				if err == nil {
					procs[i].issue()
					return
				}
				// A slot is taken, and given back, by one that lost its reply.
				if _, taken := errors.AsType[*worker.TakenError](err); taken || k.Unreliable {
					time.Sleep(100 * time.Millisecond)
					if procs[i], err = k.tryOpen(0); err == nil {
						continue
					}
				}
				k.Error(err)
				return
			}
		})
	}
	wg.Wait()
	k.Logf("%d leases after %v", n, time.Since(began).Round(time.Millisecond))
	seen := make(map[int]bool)
	for _, p := range procs {
		if p == nil || p.lease == nil {
			k.FailNow()
		}
		p.burst()
		if k.Unreliable && p.lease.Err() != nil {
			continue // it waited for the others longer than it could be kept
		}
		if id := p.lease.Worker(); seen[id] {
			k.Errorf("worker id %d given twice", id)
		}
		seen[p.lease.Worker()] = true
	}
}

func startsAtOnce(k *kit) {
	k.seed(0, 16)
	k.atOnce(12, among(16))
}

// startsAtOnceOnNothing is a first roll-out.
func startsAtOnceOnNothing(k *kit) {
	k.atOnce(6, worker.Config{Workers: 8, NewRegistry: true})
}

// release has a slot taken, given back and taken again; each life starts above
// all that was issued before.
func release(k *kit) {
	k.seed(0, 1)
	for life := range 4 {
		p := k.hold(0, among(1))
		switch life % 3 { // one of them issues nothing
		case 0:
			p.issue()
		case 1:
			p.upTo(p.lease.Now() + 1500)
		}
		p.lease.Close()
		if err := p.lease.Err(); !errors.Is(err, worker.ErrClosed) || p.lease.Limit() > 0 {
			k.Errorf("after Close: limit %d, %v", p.lease.Limit(), err)
		}
		p.Close()
	}
}

// crashTakesAnother starts a process after a crash: it does not wait for its
// old slot, which takes the bound and twice that.
func crashTakesAnother(k *kit) {
	k.seed(0, 4)
	p := k.hold(0, among(4))
	p.burst()
	p.crash()
	began := time.Now()
	q := k.hold(0, among(4))
	if q.lease.Worker() == p.lease.Worker() {
		k.Errorf("worker id %d, which is held", q.lease.Worker())
	}
	soon := 2 * bound
	if k.virtual {
		soon = time.Second
	}
	if took := time.Since(began); took > soon && !k.Unreliable || q.lease.Start() > q.lease.Now() {
		k.Errorf("another worker id took %v", took)
	}
	q.burst()
}

// crashAlone comes back to the only slot there is.
func crashAlone(k *kit) {
	k.seed(0, 1)
	p := k.hold(0, among(1))
	p.burst()
	p.crash()
	later := 4 * bound
	if k.Exclusive { // that the registry opened again proves that the owner is gone
		later = 0
	}
	k.hold(later, among(1)).burst()
}

// takeOver has a crashed owner's slot refused before its time, and taken after.
func takeOver(k *kit) {
	k.seed(0, 1)
	p := k.hold(0, among(1))
	p.burst()
	p.crash()
	crashed := time.Now()
	early := k.open(bound)
	err := early.acquire(k.within(patience), among(1))
	if err == nil && k.Unreliable && time.Since(crashed) > bound {
		early.burst() // so long a search saw the end of the courtesy
		return
	}
	if taken, ok := errors.AsType[*worker.TakenError](err); !ok || taken.Worker != 0 || taken.Of != 1 {
		k.Errorf("before the bound and the courtesy after it: %v", err)
	}
	late := k.hold(4*bound, among(1))
	late.burst()
	if k.virtual { // the same with nothing but patience
		time.Sleep(4*bound + 4*bound)
		late.crash()
		time.Sleep(4 * bound)
		k.hold(4*bound, among(1)).burst()
	}
}

// fencing takes a live owner's slot away, as a process does whose clock is far
// ahead, while both issue all they may.
func fencing(k *kit) {
	k.seed(0, 2)
	p := k.hold(0, among(1))
	p.burst()
	q := k.hold(5*bound, among(1))
	q.burst()
	until := time.Now().Add(2 * bound)
	for over := false; !over && time.Now().Before(until); {
		p.burst()
		q.burst()
		select {
		case <-p.lease.Done():
			over = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	p.burst()
	lost, ok := errors.AsType[*worker.LostError](p.lease.Err())
	if !ok || lost.Worker != 0 || p.lease.Limit() > 0 {
		k.Fatalf("an owner that was taken over: limit %d, %v", p.lease.Limit(), p.lease.Err())
	}
	if q.lease.Err() != nil {
		k.Errorf("the new owner: %v", q.lease.Err())
	}
}

// cutOff is an owner that can't be told: it stops by itself.
func cutOff(k *kit) {
	k.seed(0, 1)
	p := k.hold(0, among(1))
	p.cut.Store(true)
	limit := p.lease.Limit()
	q := k.hold(5*bound, among(1))
	for range 5 {
		p.burst()
		q.burst()
		time.Sleep(20 * time.Millisecond)
	}
	if p.lease.Limit() > limit {
		k.Errorf("a limit of %d after %d with the registry cut off", p.lease.Limit(), limit)
	}
	p.cut.Store(false)
	k.endsWithin(p, 2*bound)
	p.burst()
	q.burst()
}

// endsWithin waits for a lease's loss.
func (k *kit) endsWithin(p *process, d time.Duration) {
	k.Helper()
	select {
	case <-p.lease.Done():
	case <-time.After(d):
		k.Fatalf("a lease that can't be kept goes on after %v", d)
	}
	if _, lost := errors.AsType[*worker.LostError](p.lease.Err()); !lost || p.lease.Limit() > 0 {
		k.Errorf("limit %d, %v", p.lease.Limit(), p.lease.Err())
	}
}

// boundHonoured watches a limit rise with renewals, and no further without.
func boundHonoured(k *kit) {
	k.seed(0, 1)
	p := k.hold(0, among(1))
	if !k.renewed(p) {
		return
	}
	p.cut.Store(true)
	k.unrenewed(p, time.Second)
}

// renewed waits until a limit rises. It may never do so where the registry
// shows what it refused: an owner then takes its own refused text for the one
// that is there.
func (k *kit) renewed(p *process) bool {
	k.Helper()
	limit := p.lease.Limit()
	giveUp := time.Now().Add(patience / 2)
	k.eventually("a higher limit", func() bool {
		p.issue()
		return p.lease.Limit() > limit || p.lease.Err() != nil || k.Unreliable && time.Now().After(giveUp)
	})
	if p.lease.Limit() > limit {
		return true
	}
	if !k.Unreliable {
		k.Fatal(p.lease.Err())
	}
	k.Logf("not renewed: %v", p.lease.Err())
	return false
}

// lateIsUnknown has writes told OK too late to be believed.
func lateIsUnknown(k *kit) {
	k.seed(0, 1)
	p := k.hold(0, among(1))
	p.slow.Store(int64(bound/12 + 200*time.Millisecond))
	k.unrenewed(p, bound/3)
}

// unrenewed holds a lease until its end: writes begun earlier may raise the
// limit for a while.
func (k *kit) unrenewed(p *process, settle time.Duration) {
	k.Helper()
	time.Sleep(settle)
	limit := p.lease.Limit()
	for over := false; !over; {
		select {
		case <-p.lease.Done():
			over = true
		case <-time.After(50 * time.Millisecond):
			p.burst()
			if now := p.lease.Now(); p.lease.Limit() > limit || now > limit+int64(bound/time.Millisecond) {
				k.Fatalf("at %d, with a limit of %d before: %d", now, limit, p.lease.Limit())
			}
		}
	}
	k.endsWithin(p, time.Second)
	p.burst()
}

// lostReplies has writes done whose replies are lost: while taking, while
// renewing and at the release.
func lostReplies(k *kit) {
	k.seed(0, 2)
	p := k.holdWith(0, among(1), func(p *process) { p.lose.Store(1) })
	p.burst()
	p.lose.Store(1)
	k.renewed(p) // by the put after the lost one
	p.burst()
	p.lose.Store(1)
	p.lease.Close()
	p.Close()
	k.hold(0, among(1)).burst()
}

// allTaken has nothing left.
func allTaken(k *kit) {
	p := k.open(0)
	now := time.Now().UnixMilli()
	const oldest = 2
	for slot, rest := range []int64{60_000, 50_000, 40_000, 70_000} {
		d := doc()
		d.HW, d.Free = now+rest, false
		if slot == oldest {
			d.Owner = "the oldest"
		}
		k.shows(p.slots, slot, d, k.set(p.slots, slot, d))
	}
	q := k.open(0)
	err := q.acquire(k.within(patience), among(4))
	if err != nil && k.Unreliable {
		return // what it says depends on what was seen
	}
	taken, ok := errors.AsType[*worker.TakenError](err)
	if !ok || taken.Of != 4 || taken.Worker != oldest || taken.Owner != "the oldest" || taken.Until.UnixMilli() != now+40_000+2*bound.Milliseconds() {
		k.Errorf("with all taken: %v", err)
	}
}

// clockSetBack is a clock that shows less than it did in the last run.
func clockSetBack(k *kit) {
	k.seed(0, 1)
	const back = 3 * time.Second
	p := k.hold(back, among(1))
	p.issue()
	last := p.last.Load()
	p.lease.Close()
	p.Close()
	q := k.hold(0, among(1))
	if q.lease.Start() <= last+back.Milliseconds() {
		k.Errorf("starts at %d after %d", q.lease.Start(), last+back.Milliseconds())
	}
	q.issue()
	q.burst()
}

// clockFarAhead is a slot used with a clock so far ahead that nobody can wait.
func clockFarAhead(k *kit) {
	p := k.open(0)
	d := doc()
	d.HW += time.Hour.Milliseconds()
	k.shows(p.slots, 0, d, k.set(p.slots, 0, d))
	if k.Exclusive {
		p.Close()
	}
	q := k.open(0)
	err := q.acquire(k.within(patience), among(1))
	if err != nil && k.Unreliable {
		return
	}
	if e, ok := errors.AsType[*worker.ClockError](err); !ok || e.Worker != 0 || e.Behind < 55*time.Minute {
		k.Errorf("used with a clock an hour ahead: %v", err)
	}
}
