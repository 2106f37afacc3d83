package workertest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// engineParts lists the parts that no registry can fail by breaking a rule: they
// test the engine and its local state.
var engineParts = []string{"OwnSlotAgain"}

// TestKitDetectsBrokenRegistries runs the kit on registries that break one rule each. The parts that test this
// rule must fail.
func TestKitDetectsBrokenRegistries(t *testing.T) {
	seen, parts := slices.Clone(engineParts), append(rules, leases...)
	for _, b := range breakages {
		t.Run(b.is, func(t *testing.T) {
			for _, name := range b.parts {
				i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
				if !failsOn(t, parts[i], b.open) {
					t.Errorf("part %s passed on a broken registry, want a failure", name)
				}
			}
		})
		seen = append(seen, b.parts...)
	}
	for _, p := range parts {
		if !slices.Contains(seen, p.name) {
			t.Errorf("part %s failed on no broken registry, want at least one", p.name)
		}
	}
}

// failsOn runs a part on a registry and reports whether it failed.
func failsOn(t *testing.T, p part, open func() Fixture) bool {
	r := &recorder{}
	synctest.Test(t, func(t *testing.T) {
		r.T = t
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.run(r, open(), true)
		}()
		<-done
	})
	return r.failed.Load()
}

// recorder is a testing.TB that is expected to fail.
type recorder struct {
	*testing.T
	failed atomic.Bool
}

func (r *recorder) Errorf(string, ...any) { r.failed.Store(true) }
func (r *recorder) Error(...any)          { r.failed.Store(true) }
func (r *recorder) FailNow()              { r.failed.Store(true); runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }
func (r *recorder) Fatal(...any)          { r.FailNow() }
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Log(...any)            {}

// breakage is a registry that breaks a rule, with the parts that must fail on it.
type breakage struct {
	is    string
	open  func() Fixture
	parts []string
}

var breakages = []breakage{
	{"a wrong version is told ok, without effect", faultyFixture(Faults{AlwaysOK: true}),
		[]string{"WrongVersion", "Chain", "OneWinner", "Fencing", "CutOff"}},
	{"a wrong version is written upon", faultyFixture(Faults{NoCompare: true}),
		[]string{"WrongVersion", "Chain", "OneWinner", "Creators", "Fencing", "CutOff"}},
	{"a right version is told ok, without effect", faultyFixture(Faults{LoseWrites: true}),
		[]string{"RoundTrip", "WrongVersion", "Chain", "OneWinner", "NoUpdateIsLost"}},
	{"compared, and written later", func() Fixture {
		return new(Memory).fixtureOver(&wrapper{
			put: func(m *Memory, p putCall) putResult {
				if _, v, err := m.Get(p.ctx, p.slot); err != nil || v != p.expected {
					return putResult{err: err}
				}
				time.Sleep(time.Millisecond)
				return putResult{m.overwrite(p), true, nil}
			},
			last: func(*Memory) (int, bool) { return 0, true }, // all processes try the same slot
		})
	}, []string{"OneWinner", "Creators", "NoUpdateIsLost", "StartsAtOnce"}},
	{"nothing can be created", spoilPuts(func(m *Memory, p putCall) putResult {
		if p.expected == "" {
			return putResult{}
		}
		return p.send(m)
	}), []string{"Creators", "StartsAtOnceOnNothing"}},
	{"created though it is there", spoilPuts(func(m *Memory, p putCall) putResult {
		if p.expected == "" {
			return putResult{m.overwrite(p), true, nil}
		}
		return p.send(m)
	}), []string{"WrongVersion"}},
	{"the version before is right, too", spoilPuts(func(m *Memory, p putCall) putResult {
		if s := m.at(p.slot); s.before != "" && p.expected == worker.Version(s.before) {
			p.expected = worker.Version(s.now)
		}
		return p.send(m)
	}), []string{"WrongVersion", "Chain", "OneWinner"}},
	{"versions come again", versioned(func(_ worker.Doc, writes int) string { return strconv.Itoa(writes % 2) }),
		[]string{"RoundTrip"}},
	{"the version is the nonce", versioned(func(d worker.Doc, _ int) string { return d.Nonce }),
		[]string{"RoundTrip"}},
	{"sent twice", func() Fixture {
		var puts atomic.Int64
		return spoilPuts(func(m *Memory, p putCall) putResult {
			if t := p.send(m); !t.ok || puts.Add(1)%3 > 0 {
				return t
			}
			return p.send(m)
		})()
	}, []string{"WrongVersion", "Chain"}},
	{"deaf to contexts", spoilPuts(func(m *Memory, p putCall) putResult {
		time.Sleep(100 * time.Millisecond)
		p.ctx = context.WithoutCancel(p.ctx)
		return p.send(m)
	}), []string{"EndedContext"}},
	{"written, and refused because the context ended", spoilPuts(func(m *Memory, p putCall) putResult {
		ended := p.ctx.Err()
		p.ctx = context.WithoutCancel(p.ctx)
		if t := p.send(m); ended == nil {
			return t
		}
		return putResult{err: &worker.NotWrittenError{Err: ended}}
	}), []string{"EndedContext"}},
	{"nothing is given back", spoilPuts(func(m *Memory, p putCall) putResult {
		if p.d.Free && p.d.Nonce == m.doc(p.slot).Nonce {
			return putResult{worker.Version(p.d.Encode()), true, nil}
		}
		return p.send(m)
	}), []string{"Release"}},
	{"whoever has it keeps it", spoilPuts(func(m *Memory, p putCall) putResult {
		if d := m.doc(p.slot); d.Nonce != "" && !d.Free && d.Nonce != p.d.Nonce {
			return putResult{}
		}
		return p.send(m)
	}), []string{"CrashAlone", "TakeOver", "Fencing", "CutOff", "Restored"}},
	{"written once by each", spoilPuts(func(m *Memory, p putCall) putResult {
		if p.d.Nonce == m.doc(p.slot).Nonce && !p.d.Free {
			return putResult{}
		}
		return p.send(m)
	}), []string{"BoundHonoured", "LostReplies", "DownDuringRun", "Restored"}},
	{"no read shows the last write", faultyFixture(Faults{StaleReads: 1}),
		[]string{"RoundTrip", "NoUpdateIsLost"}},
	{"a missing slot is shown as free", spoilGets(func(s getResult) getResult {
		if s.v == "" && s.err == nil {
			s.d, s.v = worker.Doc{Nonce: "none", HighWater: time.UnixMilli(1), Free: true}, "none"
		}
		return s
	}), []string{"Missing"}},
	{"an unreadable slot is shown as missing", spoilGets(func(s getResult) getResult {
		if s.err != nil && !errors.Is(s.err, errAway) {
			return getResult{}
		}
		return s
	}), []string{"Corrupt", "CorruptIsLeft"}},
	{"every slot is shown as free", spoilGets(func(s getResult) getResult {
		s.d.Free = true
		return s
	}), []string{"RoundTrip", "TakeOver", "AllTaken"}},
	{"times are seconds", spoilGets(func(s getResult) getResult {
		s.d.HighWater = s.d.HighWater.Truncate(time.Second)
		return s
	}), []string{"RoundTrip"}},
	{"times are no later than now", spoilGets(func(s getResult) getResult {
		if now := millis(time.Now()); s.d.HighWater.After(now) {
			s.d.HighWater = now
		}
		return s
	}), []string{"AllTaken", "ClockSetBack", "ClockFarAhead"}},
	{"a holder's slot is shown as old, and is looked at first", func() Fixture {
		return new(Memory).fixtureOver(&wrapper{
			get: func(s getResult) getResult {
				if s.v != "" && s.d.Owner != "kit" {
					s.d.HighWater, s.d.Free = time.UnixMilli(1), true
				}
				return s
			},
			last: (*Memory).held,
		})
	}, []string{"CrashTakesAnotherSlot", "TakeOver", "ClockSetBack"}},
	{"a missing slot takes a put at any version, and the source does not say so", faultyFixture(Faults{Insert: true}), []string{"WrongVersion"}},
	{"the registry's document outlives a wipe, and a put on a missing one inserts", spoilFixture(func(m *Memory, f *Fixture) {
		m.faults.Insert = true
		f.Wipe = m.change(func() {
			registry := m.slots[worker.RegistrySlot]
			clear(m.slots)
			m.slots[worker.RegistrySlot] = registry
		})
	}), []string{"Wiped"}},
	{"a fail-over is not told", spoilFixture(func(m *Memory, f *Fixture) {
		f.FailOver = f.Copy
	}), []string{"FailedOver", "TellsServers"}},
	{"wiped, it shows free slots", spoilFixture(func(m *Memory, f *Fixture) {
		f.Wipe = m.change(func() {
			for slot := range m.slots {
				m.free(slot)
			}
		})
	}), []string{"Wiped", "WipedUnderHolders", "Forgets"}},
	{"a removed slot is shown as free", spoilFixture(func(m *Memory, f *Fixture) {
		f.Remove = func(slot int) error { return m.change(func() { m.free(slot) })() }
	}), []string{"Removed"}},
	{"it answers while it is away", spoilFixture(func(_ *Memory, f *Fixture) {
		f.Stop = func() error { return nil }
	}), []string{"DownAtStart", "DownDuringRun", "Away"}},
	{"it comes back with nothing", spoilFixture(func(_ *Memory, f *Fixture) {
		start := f.Start
		f.Start = func() error { return errors.Join(f.Wipe(), start()) }
	}), []string{"DownAtStart", "DownDuringRun", "Away"}},
	{"it is set back to nothing", spoilFixture(func(_ *Memory, f *Fixture) {
		f.Copy = func() (func() error, error) { return f.Wipe, nil }
	}), []string{"Restored", "SetBack"}},
}
