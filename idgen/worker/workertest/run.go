// Package workertest has the tests that every worker.Slots must pass.
//
//	func TestSlots(t *testing.T) {
//		workertest.Registry(func(t testing.TB) workertest.Fixture {
//			name := newTable(t) // new documents for each call
//			return workertest.Fixture{
//				Open: func(ctx context.Context) (worker.Source, error) { return open(ctx, name) },
//				Wipe: func() error { return drop(name) },
//			}
//		}).Run(t)
//	}
//
// The first tests are for the rules of Slots, the others are for leases. In these tests, processes
// start together, crash, are cut off or have wrong clocks, and the registry stops for a
// while, is wiped or restored. RunRules omits the tests of leases, which are
// slow: a lease has to end before another one begins. Memory is a registry for other tests.
//
// Unlike the simulation of package worker, this package does not try many orders of events. It
// does not test a crash of the machine of a registry's server.
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

// Fixture is an empty registry with functions that disturb it. A function that a registry does not support is
// nil, and tests that need it are omitted.
type Fixture struct {
	// Open opens the registry for another process, with its own
	// connections. The kit calls the Source's Close.
	Open func(ctx context.Context) (worker.Source, error)

	// Exclusive is set if the registry has one slot, and a second Open
	// fails until the first source is closed.
	Exclusive bool

	// Unreliable is set if the registry may refuse puts at the right version, lose replies,
	// and return documents that do not exist or no longer exist. It must still be safe, but
	// taking a lease may need any time.
	Unreliable bool

	Wipe        func() error                             // removes all documents
	Copy        func() (restore func() error, err error) // restore sets the registry back to the time of Copy, under the same identity
	FailOver    func() (over func() error, err error)    // over sets it back to the time of FailOver, under another identity, as an asynchronous fail-over does
	Stop, Start func() error                             // the registry stops answering, and answers again with its data
	Remove      func(slot int) error                     // removes one document
	Corrupt     func(slot int) error                     // makes a document unreadable

	// Outage is longer than Stop and Start take together, and longer than Wipe or a restore
	// takes. Leases that have to outlast an outage last at least this long. 0 means a moment.
	Outage time.Duration
}

// A Registry returns the registry under test. Each call must return a Fixture with new documents.
type Registry func(t testing.TB) Fixture

// Run tests a registry outside the process. It calls open
// for each part. Parts that disturb the whole registry run first and
// alone, the others in parallel.
func (open Registry) Run(t *testing.T) { run(t, append(rules, leases...), open) }

// RunRules runs the parts of Run that do not wait for leases. It tests reads and writes, also
// in a registry that was away or lost data, and processes that start
// together. It takes seconds, and its result does not depend on the speed of the machine.
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

// RunApart is like Run, but runs all parts in parallel. The Fixtures must share
// nothing: for example, open starts a server in each call.
func (open Registry) RunApart(t *testing.T) {
	runAtOnce(t, append(rules, leases...), open)
}

// runAtOnce runs more parts in parallel than there are processors, since they mostly
// wait.
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

// RunInBubble is like Run, for a registry inside the process:
// each part runs in the virtual time of testing/synctest.
func (open Registry) RunInBubble(t *testing.T) {
	for _, p := range append(rules, leases...) {
		t.Run(p.name, func(t *testing.T) {
			leftOut := false
			synctest.Test(t, func(t *testing.T) {
				f := open(t)
				if leftOut = p.isOmitted(&f); !leftOut {
					p.run(t, f, true)
				}
			})
			if leftOut { // in the bubble, a skipped test would be reported as passed
				t.Skip("not for this registry")
			}
		})
	}
}

// part is one test of the kit.
type part struct {
	name      string
	test      func(*kit)
	alone     bool                // it disturbs the whole registry
	supported func(*Fixture) bool // whether the registry supports the test; nil: always
}

// rules has the parts that do not wait for leases.
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
	{"StartsAtOnce", startsAtOnce, false, allowsSeveral},

	{"Away", away, true, func(f *Fixture) bool { return f.Stop != nil && allowsSeveral(f) }},
	{"Forgets", forgets, true, func(f *Fixture) bool { return f.Wipe != nil && allowsSeveral(f) }},
	{"SetBack", setBack, true, func(f *Fixture) bool { return f.Copy != nil && allowsSeveral(f) }},
	{"TellsServers", tellsServers, true, func(f *Fixture) bool { return f.FailOver != nil && allowsSeveral(f) }},
})

var leases = []part{
	{"CorruptIsLeft", corruptIsLeft, false, func(f *Fixture) bool { return f.Corrupt != nil }},
	{"StartsAtOnceOnNothing", startsAtOnceOnNothing, false, allowsSeveral},
	{"Release", release, false, nil},
	{"CrashTakesAnotherSlot", crashTakesAnother, false, allowsSeveral},
	{"CrashAlone", crashAlone, false, nil},
	{"TakeOver", takeOver, false, allowsSeveral},
	{"Fencing", fencing, false, allowsSeveral},
	{"CutOff", cutOff, false, allowsSeveral},
	{"BoundHonoured", boundHonoured, false, nil},
	{"LostReplies", lostReplies, false, nil},
	{"OwnSlotAgain", ownSlotAgain, false, allowsSeveral},
	{"AllTaken", allTaken, false, allowsSeveral},
	{"ClockSetBack", clockSetBack, false, nil},
	{"ClockFarAhead", clockFarAhead, false, nil},
	{"Removed", removed, false, func(f *Fixture) bool { return f.Remove != nil && allowsSeveral(f) }},

	{"DownAtStart", downAtStart, true, func(f *Fixture) bool { return f.Stop != nil && allowsSeveral(f) }},
	{"DownDuringRun", downDuringRun, true, func(f *Fixture) bool { return f.Stop != nil && allowsSeveral(f) }},
	{"Wiped", wiped, true, func(f *Fixture) bool { return f.Wipe != nil && allowsSeveral(f) }},
	{"WipedUnderHolders", wipedUnderHolders, true, func(f *Fixture) bool { return f.Wipe != nil && allowsSeveral(f) && !f.Unreliable }},
	{"Restored", restored, true, func(f *Fixture) bool { return f.Copy != nil && allowsSeveral(f) }},
	{"FailedOver", failedOver, true, func(f *Fixture) bool { return f.FailOver != nil && allowsSeveral(f) }},
}

func allowsSeveral(f *Fixture) bool { return !f.Exclusive }

func (p part) isOmitted(f *Fixture) bool { return p.supported != nil && !p.supported(f) }

func (p part) run(t testing.TB, f Fixture, virtual bool) {
	t.Helper()
	if p.isOmitted(&f) {
		t.Skip("not for this registry")
	}
	p.test(&kit{TB: t, Fixture: f, virtual: virtual})
}

// kit is the run of one part.
type kit struct {
	testing.TB
	Fixture
	virtual bool // the part runs in virtual time
	ledger  ledger
}

// timeoutContext returns a context with a timeout for short operations.
func (k *kit) timeoutContext(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(k.Context(), d)
	k.Cleanup(cancel)
	return ctx
}

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// eventually waits until ok returns true. Reads of some registries lag behind the writes.
func (k *kit) eventually(what string, ok func() bool) {
	k.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			k.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// patience is the longest time for any operation of a registry.
const patience = 30 * time.Second
