package workertest

import (
	"context"
	"sync"

	"github.com/leafsql/leafsql/idgen/worker"
)

// wrapper is a Memory with functions that change its calls and results.
type wrapper struct {
	*Memory
	put  func(*Memory, putCall) putResult
	get  func(getResult) getResult
	last func(*Memory) (slot int, ok bool) // slot that processes try first
}

// putCall has the arguments of a call of Put, putResult the results of Put, and getResult those of
// Get.
type (
	putCall struct {
		ctx      context.Context
		slot     int
		d        worker.Doc
		expected worker.Version
	}
	putResult struct {
		v   worker.Version
		ok  bool
		err error
	}
	getResult struct {
		slot int
		d    worker.Doc
		v    worker.Version
		err  error
	}
)

// send calls Put with the arguments unchanged.
func (p putCall) send(m *Memory) (t putResult) {
	t.v, t.ok, t.err = m.Put(p.ctx, p.slot, p.d, p.expected)
	return t
}

func (w *wrapper) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	p := putCall{ctx, slot, d, expected}
	if w.put == nil || slot == worker.RegistrySlot {
		t := p.send(w.Memory)
		return t.v, t.ok, t.err
	}
	t := w.put(w.Memory, p)
	return t.v, t.ok, t.err
}

func (w *wrapper) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	s := getResult{slot: slot}
	s.d, s.v, s.err = w.Memory.Get(ctx, slot)
	if w.get != nil && slot != worker.RegistrySlot {
		s = w.get(s)
	}
	return s.d, s.v, s.err
}

// fixtureOver returns a fixture with processes that use m through w.
func (m *Memory) fixtureOver(w *wrapper) Fixture {
	w.Memory = m
	f := m.Fixture()
	f.Open = func(context.Context) (worker.Source, error) {
		src := worker.Source{Slots: w, Identity: m.identity}
		if w.last != nil {
			src.Last = func(context.Context) (int, bool) { return w.last(m) }
		}
		return src, nil
	}
	return f
}

func spoilPuts(spoil func(*Memory, putCall) putResult) func() Fixture {
	return func() Fixture { return new(Memory).fixtureOver(&wrapper{put: spoil}) }
}

func spoilGets(spoil func(getResult) getResult) func() Fixture {
	return func() Fixture { return new(Memory).fixtureOver(&wrapper{get: spoil}) }
}

// spoilFixture returns Memory's own fixture after change.
func spoilFixture(change func(*Memory, *Fixture)) func() Fixture {
	return func() Fixture {
		m := new(Memory)
		f := m.Fixture()
		change(m, &f)
		return f
	}
}

// faultyFixture returns the fixture of a Memory with faults.
func faultyFixture(f Faults) func() Fixture {
	return spoilFixture(func(m *Memory, _ *Fixture) { m.faults = f })
}

// versioned returns a Memory with versions that are made from the document and the
// number of writes to its slot.
func versioned(version func(d worker.Doc, writes int) string) func() Fixture {
	return func() Fixture {
		var (
			mu     sync.Mutex
			writes = make(map[int]int)
			now    = make(map[int]worker.Version)
		)
		return new(Memory).fixtureOver(&wrapper{
			put: func(m *Memory, p putCall) putResult {
				mu.Lock()
				defer mu.Unlock()
				if now[p.slot] != p.expected {
					return putResult{}
				}
				m.overwrite(p)
				writes[p.slot]++
				now[p.slot] = worker.Version(version(p.d, writes[p.slot]))
				return putResult{now[p.slot], true, nil}
			},
			get: func(s getResult) getResult {
				mu.Lock()
				defer mu.Unlock()
				s.v = now[s.slot]
				return s
			},
		})
	}
}

// overwrite writes without comparing.
func (m *Memory) overwrite(p putCall) worker.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slots == nil {
		m.slots = make(map[int]slotText)
	}
	m.slots[p.slot] = slotText{now: p.d.Encode(), before: m.slots[p.slot].now}
	return worker.Version(p.d.Encode())
}

// at returns the text of a slot.
func (m *Memory) at(slot int) slotText {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[slot]
}

// doc returns the document of a slot, or the zero Doc if there is none.
func (m *Memory) doc(slot int) worker.Doc {
	var d worker.Doc
	d.Decode(m.at(slot).now)
	return d
}

// free sets a slot to a document that was released long ago.
func (m *Memory) free(slot int) {
	if slot == worker.RegistrySlot {
		return
	}
	var was worker.Doc
	was.Decode(m.slots[slot].now)
	d := newDoc()
	d.Registry = was.Registry
	m.slots[slot] = slotText{now: d.Encode()}
}

// held returns the first slot that is held.
func (m *Memory) held() (slot int, ok bool) {
	for slot := range 16 {
		if d := m.doc(slot); d.Nonce != "" && !d.Free {
			return slot, true
		}
	}
	return 0, false
}
