package snowflake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

// model specifies a generator. It keeps milliseconds and sequence in two fields.
type model struct {
	ms, sequence int64 // fields of the last id
	size         int64 // ids in a millisecond
}

// place returns the place of n ids drawn at the time now. free is true in an unused
// millisecond, in which any sequence is right.
func (m *model) place(now, n int64) (ms, sequence int64, free bool) {
	switch {
	case m.ms < now:
		return now, 0, true
	case m.sequence+n < m.size:
		return m.ms, m.sequence + 1, false
	}
	return m.ms + 1, 0, false
}

// FuzzGenerator compares a generator with the model: draws of all
// sizes, passing time, a registry that goes away, a lost lease, an ended
// ctx. It runs in a synctest bubble, so that waits are exact to the millisecond.
func FuzzGenerator(f *testing.F) {
	f.Add([]byte{0, 16, 0, 1, 1, 9, 0, 3})
	f.Add([]byte{2, 0, 0, 1, 2, 0, 0, 16, 0, 17, 0, 0})               // bursts and refused counts
	f.Add([]byte{3, 0, 1, 200, 2, 0, 0, 1, 3, 1, 1, 50, 2, 0})        // the registry away
	f.Add([]byte{2, 0, 4, 0, 1, 100, 0, 4, 2, 0, 4, 0, 1, 255, 0, 4}) // leases lost
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 200 {
			return
		}
		bubble(t, today, func(t *testing.T) { run(t, ops) })
	})
}

func run(t *testing.T, ops []byte) {
	r := new(registry)
	g := r.generator(t, small, 60, 6*time.Second)
	m := &model{size: 16}
	for i := 0; i+1 < len(ops); i += 2 {
		arg := int64(ops[i+1])
		switch ops[i] % 5 {
		case 0:
			m.draw(t, g, arg%20, 5*time.Second)
		case 1:
			time.Sleep(time.Duration(arg*arg) * time.Millisecond / 4)
		case 2: // all ids that are left, then a call with a short timeout
			for range 3100 {
				if !m.draw(t, g, 16-arg%2, 0) {
					break
				}
			}
			m.draw(t, g, 16, time.Duration(arg)*time.Millisecond/16)
		case 3:
			r.away(arg%2 == 0)
		case 4:
			r.takeSlots(g.Worker().Worker)
		}
	}
}

// draw calls Next with a timeout, and reports whether it returned ids.
func (m *model) draw(t *testing.T, g *Generator, n int64, patience time.Duration) bool {
	t.Helper()
	synctest.Wait() // until no other goroutine runs
	v := g.currentView()
	now, began := g.keeper.UnixMilli()-small.Epoch, time.Now()
	place := g.last.Load()
	ms, sequence, free := m.place(max(now, v.start), n)
	at := ms <= now+v.ahead && ms <= v.limit // without waiting

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first, err := g.Next(ctx, int(n))
	waited := time.Since(began)

	if n < 1 || n > m.size {
		if _, ok := errors.AsType[*idgen.CountError](err); !ok || waited > 0 {
			t.Fatalf("%d ids: %d, %v, want ok = true and waited at most 0", n, first, err)
		}
		return false
	}
	if err != nil {
		_, unleased := errors.AsType[*LeaseError](err)
		if first != 0 || at || !unleased && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%d ids at %d, after %+v, with the limit %d: %v", n, now, m, v.limit, err)
		}
		if waited > patience || !unleased && waited < patience {
			t.Fatalf("%v after %v, with %v to wait", err, waited, patience)
		}
		if g.Worker().Since.Equal(v.since) && g.last.Load() != place {
			t.Fatal("a refused call changed something")
		}
		return false
	}

	p := parts(t, g, first)
	got, seq := p.Time.UnixMilli()-small.Epoch, int64(p.Sequence)
	end, then := g.currentView(), g.keeper.UnixMilli()-small.Epoch
	switch {
	case seq+n > m.size || got < m.ms || got == m.ms && seq <= m.sequence:
		t.Fatalf("%d ids at %d.%d after %+v", n, got, seq, m)
	case p.Worker != end.status.Worker:
		t.Fatalf("worker id %d, the lease's is %d", p.Worker, end.status.Worker)
	case got < end.start || got > end.limit || got > then+end.ahead:
		t.Fatalf("an id at %d, with %d … %d at %d", got, end.start, end.limit, then)
	case at && waited > 0 || !at && waited == 0:
		t.Fatalf("%d ids at %d for %d with the limit %d: waited %v", n, now, ms, v.limit, waited)
	case end.since.Equal(v.since) && !at && waited < time.Duration(ms-now-v.ahead-1)*time.Millisecond: // now is rounded down
		t.Fatalf("borrowed too much after %v", waited)
	case at && (got != ms || !free && seq != sequence):
		t.Fatalf("%d ids at %d.%d, want %d.%d", n, got, seq, ms, sequence)
	}
	m.ms, m.sequence = got, seq+n-1
	return true
}
