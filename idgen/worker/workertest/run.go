// Package workertest is what every worker.Slots must pass.
//
//	func TestSlots(t *testing.T) {
//		workertest.Registry(func(t testing.TB) workertest.Fixture {
//			name := newTable(t) // documents of its own for each call
//			return workertest.Fixture{
//				Open: func(ctx context.Context) (worker.Source, error) { return open(ctx, name) },
//				Wipe: func() error { return drop(name) },
//			}
//		}).Run(t)
//	}
//
// First come the rules of Slots themselves, then leases on them: processes that
// start at once, crash, lose touch, have wrong clocks, and a registry that goes
// away, is wiped or set back. RunRules leaves out the tests of leases, which are
// slow: a lease has to end before another one begins. Memory is a registry for tests of other things.
//
// The package does not search schedules, as worker's own simulation does, and
// does not test what a registry's server does when its machine crashes.
package workertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Fixture is an empty registry and a hand on it. What a registry can't do is
// left nil, and what needs it is left out.
type Fixture struct {
	// Open opens the registry as one more process does, with connections of
	// its own. The kit calls the Source's Close.
	Open func(ctx context.Context) (worker.Source, error)

	// Exclusive says that the registry has one slot, and that a second Open
	// fails until the first is closed.
	Exclusive bool

	// Unreliable says that the registry may refuse what is right, lose replies,
	// and show what is not there or no longer. It must be safe all the same; how
	// soon there is a lease is not asked.
	Unreliable bool

	Wipe        func() error                             // loses everything
	Copy        func() (restore func() error, err error) // restore sets the registry back to the time of Copy, under the same identity
	FailOver    func() (over func() error, err error)    // over does that under another identity, as an asynchronous fail-over does
	Stop, Start func() error                             // the registry is away, and back with what it had
	Remove      func(slot int) error                     // loses one document
	Corrupt     func(slot int) error                     // makes a document unreadable

	// Outage is more than Stop and Start take together, or Wipe, or a restore:
	// leases that are to outlast one are taken for so long. 0: a moment.
	Outage time.Duration
}

// A Registry is one under test: each call gives documents of their own in it.
type Registry func(t testing.TB) Fixture

// Run tests a registry that waits for something outside the process. It is
// called for each part; parts that disturb the whole registry run first and
// alone, the others at once.
func (open Registry) Run(t *testing.T) { run(t, append(rules, leases...), open) }

// RunRules is Run without what waits for leases: what is read and written, also
// of a registry that was away or lost something, and processes that start at
// once. It takes seconds, and its result does not depend on how fast the machine is.
func (open Registry) RunRules(t *testing.T) { run(t, rules, open) }

func run(t *testing.T, parts []part, open func(t testing.TB) Fixture) {
	var others []part
	for _, p := range parts {
		if !p.alone {
			others = append(others, p)
			continue
		}
		t.Run(p.name, func(t *testing.T) { p.run(t, open(t), false) })
	}
	runAtOnce(t, others, open)
}

// RunApart is Run for registries that have nothing in common, such as one
// server for each call of open. No part has to wait for another.
func (open Registry) RunApart(t *testing.T) {
	runAtOnce(t, append(rules, leases...), open)
}

// runAtOnce runs more parts at the same time than there are processors: most
// of what they do is wait.
func runAtOnce(t *testing.T, parts []part, open func(t testing.TB) Fixture) {
	const atOnce = 8
	turn := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			t.Run(p.name, func(t *testing.T) { p.run(t, open(t), false) })
		})
	}
	wg.Wait()
}

// RunInBubble is Run for a registry that waits for nothing outside the
// process: each part runs in virtual time, as testing/synctest gives it.
func (open Registry) RunInBubble(t *testing.T) {
	for _, p := range append(rules, leases...) {
		t.Run(p.name, func(t *testing.T) {
			leftOut := false
			synctest.Test(t, func(t *testing.T) {
				f := open(t)
				if leftOut = p.leftOut(&f); !leftOut {
					p.run(t, f, true)
				}
			})
			if leftOut { // the bubble's own Skip would show as a pass
				t.Skip("not for this registry")
			}
		})
	}
}

// part is one thing that is tested.
type part struct {
	name  string
	test  func(*kit)
	alone bool                // it disturbs all of the registry
	can   func(*Fixture) bool // whether the registry can do what it takes; nil: always
}

// rules wait for no lease.
var rules = slices.Clip([]part{
	{"Missing", missing, false, nil},
	{"RoundTrip", roundTrip, false, nil},
	{"WrongVersion", wrongVersion, false, nil},
	{"Chain", chain, false, nil},
	{"OneWinner", oneWinner, false, nil},
	{"Creators", creators, false, nil},
	{"NoUpdateIsLost", noUpdateIsLost, false, nil},
	{"EndedContext", endedContext, false, nil},
	{"Corrupt", corrupt, false, func(f *Fixture) bool { return f.Corrupt != nil }},
	{"StartsAtOnce", startsAtOnce, false, several},

	{"Away", away, true, func(f *Fixture) bool { return f.Stop != nil && several(f) }},
	{"Forgets", forgets, true, func(f *Fixture) bool { return f.Wipe != nil && several(f) }},
	{"SetBack", setBack, true, func(f *Fixture) bool { return f.Copy != nil && several(f) }},
	{"TellsServers", tellsServers, true, func(f *Fixture) bool { return f.FailOver != nil && several(f) }},
})

var leases = []part{
	{"CorruptIsLeft", corruptIsLeft, false, func(f *Fixture) bool { return f.Corrupt != nil }},
	{"StartsAtOnceOnNothing", startsAtOnceOnNothing, false, several},
	{"Release", release, false, nil},
	{"CrashTakesAnotherSlot", crashTakesAnother, false, several},
	{"CrashAlone", crashAlone, false, nil},
	{"TakeOver", takeOver, false, several},
	{"Fencing", fencing, false, several},
	{"CutOff", cutOff, false, several},
	{"BoundHonoured", boundHonoured, false, nil},
	{"LostReplies", lostReplies, false, nil},
	{"OwnSlotAgain", ownSlotAgain, false, several},
	{"AllTaken", allTaken, false, several},
	{"ClockSetBack", clockSetBack, false, nil},
	{"ClockFarAhead", clockFarAhead, false, nil},
	{"Removed", removed, false, func(f *Fixture) bool { return f.Remove != nil && several(f) }},

	{"DownAtStart", downAtStart, true, func(f *Fixture) bool { return f.Stop != nil && several(f) }},
	{"DownDuringRun", downDuringRun, true, func(f *Fixture) bool { return f.Stop != nil && several(f) }},
	{"Wiped", wiped, true, func(f *Fixture) bool { return f.Wipe != nil && several(f) }},
	{"WipedUnderHolders", wipedUnderHolders, true, func(f *Fixture) bool { return f.Wipe != nil && several(f) && !f.Unreliable }},
	{"Restored", restored, true, func(f *Fixture) bool { return f.Copy != nil && several(f) }},
	{"FailedOver", failedOver, true, func(f *Fixture) bool { return f.FailOver != nil && several(f) }},
}

func several(f *Fixture) bool { return !f.Exclusive }

func (p part) leftOut(f *Fixture) bool { return p.can != nil && !p.can(f) }

func (p part) run(t testing.TB, f Fixture, virtual bool) {
	t.Helper()
	if p.leftOut(&f) {
		t.Skip("not for this registry")
	}
	p.test(&kit{TB: t, Fixture: f, virtual: virtual})
}

// kit is one part's test.
type kit struct {
	testing.TB
	Fixture
	virtual bool // time costs nothing
	ledger  ledger
}

// within is a context for what should be there in a moment.
func (k *kit) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(k.Context(), d)
	k.Cleanup(cancel)
	return ctx
}

func (k *kit) ok(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// eventually waits for what registries show with a delay.
func (k *kit) eventually(what string, ok func() bool) {
	k.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			k.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// patience is how long a registry may take for anything.
const patience = 30 * time.Second
