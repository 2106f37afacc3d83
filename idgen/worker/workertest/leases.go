package workertest

import (
	"strings"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// In this file a slot is the place of a worker id's document, and a lease is the right to use the worker id. The bound is the
// end of a lease: no id has a later time. For the grace period after it, other processes leave the slot to its owner.

// configOf returns a Config with n slots.
func configOf(n int) worker.Config { return worker.Config{Workers: n} }

// startTogether starts n processes at the same time and lets them issue ids.
func (k *kit) startTogether(n int, cfg worker.Config) {
	k.Helper()
	procs := make([]*process, n)
	for i := range procs {
		procs[i] = k.open(0)
	}
	ctx := k.timeoutContext(4 * patience)
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
				// A process that did not receive the reply to its write may have taken a slot without knowing it.
				if taken := unavailable(err, "taken"); (taken != nil || k.Unreliable) && ctx.Err() == nil {
					time.Sleep(100 * time.Millisecond)
					if procs[i], err = k.tryOpen(0); err == nil {
						continue
					}
				}
				if procs[i] = nil; k.Unreliable { // too many consecutive faults
					k.Logf("no worker id: %v", err)
				} else {
					k.Error(err)
				}
				return
			}
		})
	}
	wg.Wait()
	k.Logf("%d leases after %v", n, time.Since(began).Round(time.Millisecond))
	seen := make(map[int]bool)
	for _, p := range procs {
		if p == nil {
			continue
		}
		p.issueAll()
		now := p.keeper.Status() // the process may already have lost its first worker id
		if k.Unreliable && now.Phase != "holding" {
			continue // it waited for the others for longer than a lease lasts
		}
		if seen[now.Worker] {
			k.Errorf("worker id %d given twice", now.Worker)
		}
		seen[now.Worker] = true
	}
}

func startsAtOnce(k *kit) {
	k.makeInUse(configOf(16))
	k.startTogether(12, configOf(16))
}

// startsAtOnceOnNothing starts processes together on an empty registry, as in a first roll-out.
func startsAtOnceOnNothing(k *kit) {
	k.startTogether(6, worker.Config{Workers: 8, NewRegistry: true})
}

// release takes a slot, releases it and takes it again. The ids of each process have
// later times than all ids that were issued before.
func release(k *kit) {
	k.makeInUse(configOf(1))
	for life := range 4 {
		p := k.hold(0, configOf(1))
		switch life % 3 { // one in three issues nothing
		case 0:
			p.issue()
		case 1:
			p.issueUpTo(p.now().Add(1500 * time.Millisecond))
		}
		p.keeper.Close()
		if s := p.keeper.Status(); s.Err == nil || s.Phase != "closed" || !s.Limit.IsZero() {
			k.Errorf("after Close: Status() = %+v, want it closed without a limit", s)
		}
		p.Close()
	}
}

// crashTakesAnother starts a process after another process crashed. The new process takes another slot. It does not wait for the
// slot of the crashed process, which is free only after the bound and the grace period.
func crashTakesAnother(k *kit) {
	k.makeInUse(configOf(4))
	p := k.hold(0, configOf(4))
	p.issueAll()
	p.crash()
	began := time.Now()
	q := k.hold(0, configOf(4))
	took := time.Since(began)
	if q.worker == p.worker && took < lease {
		k.Errorf("took worker id %d, want one that is not held", q.worker)
	}
	soon := 2 * lease
	if k.virtual {
		soon = time.Second
	}
	if took > soon && !k.Unreliable {
		k.Errorf("taking another worker id lasted %v, want at most %v", took, soon)
	}
	q.issueAll()
}

// crashAlone starts a process after a crash, in a registry with a single slot.
func crashAlone(k *kit) {
	k.makeInUse(configOf(1))
	p := k.hold(0, configOf(1))
	p.issueAll()
	p.crash()
	later := 4 * lease
	if k.Exclusive { // opening the registry proves that the owner has ended
		later = 0
	}
	k.hold(later, configOf(1)).issueAll()
}

// takeOver tries to take a crashed owner's slot too early, which must fail, and again when it may be taken.
func takeOver(k *kit) {
	k.makeInUse(configOf(1))
	p := k.hold(0, configOf(1))
	p.issueAll()
	p.crash()
	crashed := time.Now()
	early := k.open(lease)
	err := early.acquire(k.timeoutContext(patience), configOf(1))
	if err == nil && k.Unreliable && time.Since(crashed) > lease {
		early.issueAll() // the search lasted until the end of the grace period
		return
	}
	if taken := unavailable(err, "taken"); taken == nil || taken.Worker != 0 || !strings.Contains(err.Error(), "worker id 0 is held by") {
		k.Errorf("before the end of the grace period: %v, want an error with \"worker id 0 is held by\"", err)
	}
	late := k.hold(4*lease, configOf(1))
	late.issueAll()
	if k.virtual { // again, without a process that tries too early
		time.Sleep(4*lease + 4*lease)
		late.crash()
		time.Sleep(4 * lease)
		k.hold(4*lease, configOf(1)).issueAll()
	}
}

// fencing takes a running owner's slot with a process that has a clock far
// ahead, while both processes issue as many ids as they may.
func fencing(k *kit) {
	k.makeInUse(configOf(2))
	p := k.hold(0, configOf(1))
	p.issueAll()
	q := k.hold(5*lease, configOf(1))
	q.issueAll()
	k.waitLost(p, 2*lease, func() { p.issueAll(); q.issueAll() })
	p.issueAll()
	if s := q.keeper.Status(); s.Worker != 0 || s.Phase != "holding" {
		k.Errorf("the new owner: %+v, want s.Worker = 0 and s.Phase = \"holding\"", s)
	}
}

// waitLost calls meanwhile() repeatedly until a process no longer holds a worker id. It fails the test after
// d.
func (k *kit) waitLost(p *process, d time.Duration, meanwhile func()) {
	k.Helper()
	for until := time.Now().Add(d); p.holds(); time.Sleep(20 * time.Millisecond) {
		meanwhile()
		if time.Now().After(until) {
			k.Fatalf("the process still holds its worker id after %v, although it cannot renew it", d)
		}
	}
	if !p.limit().IsZero() {
		k.Errorf("limit of a lost worker id = %v, want none", p.limit())
	}
}

// cutOff cuts an owner off from the registry. The owner must stop by itself.
func cutOff(k *kit) {
	k.makeInUse(configOf(1))
	p := k.hold(0, configOf(1))
	p.cut.Store(true)
	waitForCalls()
	limit := p.limit()
	q := k.hold(5*lease, configOf(1))
	for range 5 {
		p.issueAll()
		q.issueAll()
		time.Sleep(20 * time.Millisecond)
	}
	if p.limit().After(limit) {
		k.Errorf("limit with the registry cut off = %v, want at most %v", p.limit(), limit)
	}
	p.cut.Store(false)
	k.waitLost(p, 2*lease, func() {})
	p.issueAll()
	q.issueAll()
}

// boundHonoured checks that the latest allowed time rises with renewals, and does not rise without them.
func boundHonoured(k *kit) {
	k.makeInUse(configOf(1))
	p := k.hold(0, configOf(1))
	if !k.waitRenewed(p) {
		return
	}
	p.cut.Store(true)
	waitForCalls()
	limit := p.limit()
	k.waitLost(p, 2*lease, func() {
		if p.issueAll(); p.limit().After(limit) {
			k.Fatalf("limit without renewals = %v, want at most %v", p.limit(), limit)
		}
	})
	p.issueAll()
}

// waitRenewed waits until p's limit, the latest time allowed in ids, rises, and reports whether it did. A registry may
// return a document that it refused to write. The owner's next put then expects that document's version and is refused,
// so the limit might not rise.
func (k *kit) waitRenewed(p *process) bool {
	k.Helper()
	if k.waitHigherLimit(p) {
		return true
	}
	if !k.Unreliable {
		k.Fatalf("Status() = %+v, want a renewed lease", p.keeper.Status())
	}
	return false
}

// waitHigherLimit waits until the limit of p's worker id rises, and reports whether it
// did before the worker id was lost.
func (k *kit) waitHigherLimit(p *process) bool {
	k.Helper()
	before := p.keeper.Status()
	giveUp := time.Now().Add(patience / 2)
	higher := func() bool {
		s := p.keeper.Status()
		return s.Since.Equal(before.Since) && s.Limit.After(before.Limit)
	}
	k.eventually("a higher limit", func() bool {
		p.issue()
		return higher() || !p.holds() || k.Unreliable && time.Now().After(giveUp)
	})
	if !higher() {
		k.Logf("not renewed: %+v", p.keeper.Status())
		return false
	}
	return true
}

// lostReplies loses the replies of writes that were executed: in the take, in
// renewals and in the release.
func lostReplies(k *kit) {
	k.makeInUse(configOf(2))
	p := k.holdWith(0, configOf(1), func(p *process) { p.lose.Store(1) })
	p.issueAll()
	p.lose.Store(1)
	if !k.waitHigherLimit(p) { // the next put raises the limit, unless the machine was paused for as long as a lease
		k.eventually("a worker id again", p.holds)
		p.lose.Store(1)
		k.waitRenewed(p)
	}
	p.issueAll()
	p.lose.Store(1)
	p.keeper.Close()
	p.Close()
	k.hold(0, configOf(1)).issueAll()
}

// ownSlotAgain cuts a process off until its bound has passed, while its slot is still
// reserved for it and all other slots are held. The process must get its own slot again at once.
func ownSlotAgain(k *kit) {
	k.makeInUse(configOf(2))
	p, q := k.hold(0, configOf(2)), k.hold(0, configOf(2))
	p.issueAll()
	p.cut.Store(true)
	k.waitLost(p, 2*lease, func() { p.issueAll(); q.issueAll() })
	p.cut.Store(false)
	began := time.Now()
	k.eventually("its own worker id again", func() bool { return p.holds() })
	soon := lease // another process's slot would take longer
	if k.virtual {
		soon = 3 * time.Second
	}
	if took := time.Since(began); took > soon && !k.Unreliable {
		k.Errorf("taking its own worker id again lasted %v, want at most %v", took, soon)
	}
	if s := p.keeper.Status(); s.Worker != p.worker && !k.Unreliable {
		k.Errorf("worker id = %d, want its own, %d", s.Worker, p.worker)
	}
	p.issueAll()
	q.issueAll()
}

// writeHeld writes a document into a slot as if another process held the slot.
func (k *kit) writeHeld(s worker.Slots, slot int, owner string, upTo time.Time) {
	k.Helper()
	d := newDoc()
	d.Owner, d.HighWater, d.Free, d.Registry = owner, millis(upTo), false, k.registryID(s)
	k.wantShown(s, slot, d, k.mustSet(s, slot, d))
}

// allTaken starts a process when all worker ids are taken.
func allTaken(k *kit) {
	k.makeInUse(configOf(4))
	p := k.open(0)
	now := millis(time.Now())
	const oldest = 2
	for slot, rest := range []time.Duration{60, 50, 40, 70} {
		name := "kit"
		if slot == oldest {
			name = "the oldest"
		}
		k.writeHeld(p.slots, slot, name, now.Add(rest*time.Second))
	}
	q := k.open(0)
	err := q.acquire(k.timeoutContext(patience), configOf(4))
	if err != nil && k.Unreliable {
		return // the error depends on the documents that were read
	}
	taken := unavailable(err, "taken")
	if taken == nil || !strings.Contains(err.Error(), "all 4 worker ids are held") || taken.Worker != oldest || taken.Owner != "the oldest" || !taken.Until.Equal(now.Add(40*time.Second+2*lease)) {
		k.Errorf("without a free worker id: %v, want an error with the holder whose lease ends first", err)
	}
}

// clockSetBack starts a process with a clock that was set back since its last run.
func clockSetBack(k *kit) {
	k.makeInUse(configOf(1))
	const back = 3 * time.Second
	p := k.hold(back, configOf(1))
	p.issue()
	last := p.last
	p.keeper.Close()
	p.Close()
	q := k.hold(0, configOf(1))
	if start := q.keeper.Status().Start; !start.After(last.Add(back)) {
		k.Errorf("ids start at %v, want after %v", start, last.Add(back))
	}
	q.issue()
	q.issueAll()
}

// clockFarAhead starts a process on a slot whose last owner had a clock an hour ahead: too far to wait for that time.
func clockFarAhead(k *kit) {
	k.makeInUse(configOf(1))
	p := k.open(0)
	d := newDoc()
	if d.HighWater = d.HighWater.Add(time.Hour); !k.Exclusive {
		d.Registry = k.registryID(p.slots)
	}
	k.wantShown(p.slots, 0, d, k.mustSet(p.slots, 0, d))
	if k.Exclusive {
		p.Close()
	}
	q := k.open(0)
	err := q.acquire(k.timeoutContext(patience), configOf(1))
	if err != nil && k.Unreliable {
		return
	}
	if e := unavailable(err, "ahead"); e == nil || e.Worker != 0 || time.Until(e.Until) < 55*time.Minute {
		k.Errorf("worker id 0, last used with a clock an hour ahead: %v, want an UnavailableError of worker id 0 for at least 55m", err)
	}
}
