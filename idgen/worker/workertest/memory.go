package workertest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Memory is a registry in memory, for tests that need no server. It follows the rules
// of worker.Slots, or breaks them on demand. The zero value is an empty registry.
type Memory struct {
	mu     sync.Mutex
	slots  map[int]slotText
	server int // number of the server that answers
	faults Faults
}

// slotText is the content of a slot.
type slotText struct{ now, before string }

// Faults selects the faults of a Memory. The first six occur in practice, and
// leases must tolerate them. With the other faults, the Memory violates the rules of worker.Slots.
type Faults struct {
	Away        bool          // calls are not answered
	Delay       time.Duration // before each answer
	LoseReplies int           // one of n writes is executed and its reply lost; 0: none
	RefuseRight int           // one of n writes at the right version is refused; 0: none
	StaleReads  int           // one of n reads returns the previous state; 0: none
	Insert      bool          // a put at any version succeeds if the slot is missing, as on Nacos

	AlwaysOK   bool // puts at wrong versions are acknowledged, without effect
	NoCompare  bool // puts at wrong versions write
	LoseWrites bool // puts at the right version are acknowledged, without effect
}

// errAway is the error of a registry that does not answer.
var errAway = errors.New("the registry does not answer")

// Fault changes the faults.
func (m *Memory) Fault(change func(*Faults)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.faults)
}

// Fixture returns a Fixture of m for Run or RunInBubble.
func (m *Memory) Fixture() Fixture {
	away := func(is bool) func() error {
		return func() error {
			m.Fault(func(f *Faults) { f.Away = is })
			return nil
		}
	}
	m.mu.Lock()
	f := m.faults
	m.mu.Unlock()
	return Fixture{
		Unreliable: f.LoseReplies > 0 || f.RefuseRight > 0 || f.StaleReads > 0,
		Open: func(context.Context) (worker.Source, error) {
			return worker.Source{Slots: m, Name: "memory", Inserts: f.Insert, Identity: m.identity}, nil
		},
		Wipe: m.change(func() { clear(m.slots) }),
		Copy: func() (func() error, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			slots := maps.Clone(m.slots)
			return m.change(func() { m.slots = maps.Clone(slots) }), nil
		},
		FailOver: func() (func() error, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			slots := maps.Clone(m.slots)
			return m.change(func() { m.slots = maps.Clone(slots); m.server++ }), nil
		},
		Stop:    away(true),
		Start:   away(false),
		Remove:  func(slot int) error { return m.change(func() { delete(m.slots, slot) })() },
		Corrupt: func(slot int) error { return m.change(func() { m.slots[slot] = slotText{now: "edited by hand"} })() },
	}
}

// change returns a function that changes the stored data.
func (m *Memory) change(do func()) func() error {
	return func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		do()
		return nil
	}
}

// Get implements worker.Slots.
func (m *Memory) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	if err := m.delay(ctx); err != nil {
		return worker.Doc{}, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.Away {
		return worker.Doc{}, "", errAway
	}
	s := m.slots[slot]
	shown := s.now
	if chanceOf(m.faults.StaleReads) {
		shown = s.before
	}
	if shown == "" {
		return worker.Doc{}, "", nil
	}
	var d worker.Doc
	if err := d.Decode(shown); err != nil {
		return worker.Doc{}, "", err
	}
	return d, worker.Version(shown), nil
}

// Put implements worker.Slots.
func (m *Memory) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if err := m.delay(ctx); err != nil {
		return "", false, &worker.NotWrittenError{Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, s, y := m.faults, m.slots[slot], d.Encode()
	right := worker.Version(s.now) == expected || f.Insert && s.now == ""
	switch {
	case f.Away:
		return "", false, errAway
	case f.AlwaysOK && !right, f.LoseWrites && right && s.now != "":
		return worker.Version(y), true, nil
	case !right && !f.NoCompare, chanceOf(f.RefuseRight):
		return "", false, nil
	}
	if m.slots == nil {
		m.slots = make(map[int]slotText)
	}
	m.slots[slot] = slotText{now: y, before: s.now}
	if chanceOf(f.LoseReplies) {
		return "", false, errAway
	}
	return worker.Version(y), true, nil
}

// identity returns a text that differs for each server.
func (m *Memory) identity(ctx context.Context) (string, error) {
	if err := m.delay(ctx); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.Away {
		return "", errAway
	}
	return strconv.Itoa(m.server), nil
}

// chanceOf returns true for one call in n on average, and never for 0.
func chanceOf(n int) bool { return n > 0 && rand.IntN(n) == 0 }

func (m *Memory) delay(ctx context.Context) error {
	m.mu.Lock()
	d := m.faults.Delay
	m.mu.Unlock()
	if d == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
