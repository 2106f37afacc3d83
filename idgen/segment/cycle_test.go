package segment_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// vacant is a table's say on which ids are free.
type vacant struct {
	mu   sync.Mutex
	used map[int64]bool
}

var errInUse = errors.New("in use")

func (v *vacant) ask(_ context.Context, first, last int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := first; id <= last; id++ {
		if v.used[id] {
			return errInUse
		}
	}
	return nil
}

func (v *vacant) set(used bool, ids ...int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range ids {
		v.used[id] = used
	}
}

// Around the end: nothing is kept in memory, a statement's ids never lie on both sides,
// and ids in use are refused without being passed.
func TestCycle(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			_, s := sequences(t, server.Database(t), 95, 1000, "1, 100, 1")
			ids := &vacant{used: map[int64]bool{}}
			g := s.Cycle("a", ids.ask)
			other := s.Cycle("a", ids.ask)
			next := func(g *segment.Cycle, n int, want int64) {
				t.Helper()
				if id, err := g.Next(t.Context(), n); err != nil || id != want {
					t.Fatalf("Next(%d) = %d, %v, want %d", n, id, err, want)
				}
			}
			next(g, 1, 96)
			next(other, 2, 97)
			ids.set(true, 50)
			if id, err := g.Next(t.Context(), 3); err != errInUse {
				t.Fatal("into a round of which 50 is in use: ", id, err)
			}
			next(other, 2, 99)
			if id, err := g.Next(t.Context(), 1); err != errInUse {
				t.Fatal("into a round of which 50 is in use: ", id, err)
			}
			ids.set(false, 50)
			next(g, 2, 1)
			ids.set(true, 3, 50)
			for range 2 {
				if id, err := g.Next(t.Context(), 1); err != errInUse {
					t.Fatal(id, err)
				}
			}
			ids.set(false, 3)
			next(other, 1, 3)
			if err := g.Skip(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
			for _, k := range []int64{7, 0, -5, 101, math.MaxInt64} {
				if err := g.Skip(t.Context(), k); err != nil {
					t.Fatal(k, err)
				}
			}
			next(g, 1, 51)
			if _, err := g.Next(t.Context(), 101); !is[*idgen.CountError](err) {
				t.Fatal(err)
			}
			ids.set(false, 50)
			next(g, 100, 1)
			if err := g.Skip(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
			next(g, 1, 1)
			if _, err := segment.New(s, "a", nil).Next(t.Context(), 1); !is[*segment.RowError](err) {
				t.Fatal("ids of a cycle in memory: ", err)
			}
		})
	}
}

// Without cycle there is no second round.
func TestCycleNot(t *testing.T) {
	_, s := sequences(t, mysqltest.Database(t), 99, 1000, "1, 100, 0")
	g := s.Cycle("a", (&vacant{}).ask)
	if id, err := g.Next(t.Context(), 1); err != nil || id != 100 {
		t.Fatal(id, err)
	}
	if id, err := g.Next(t.Context(), 1); !errors.Is(err, idgen.ErrExhausted) {
		t.Fatal(id, err)
	}
}

// Many draw from one sequence at the same time, round after round, and put back what they drew: of what is held at a time no id is
// there twice.
func TestCycleTogether(t *testing.T) {
	dsn := mysqltest.Database(t)
	sequences(t, dsn, 0, 1, "1, 60, 1")
	var processes []*segment.Cycle
	for range 3 {
		processes = append(processes, segment.NewSequenceStore(pool(t, dsn, ""), "t_sequence").Cycle("a", (&vacant{}).ask))
	}
	for range 25 {
		var held sync.Map
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				first, err := processes[i%3].Next(t.Context(), 2)
				if err != nil {
					t.Error(err)
					return
				}
				for id := first; id < first+2; id++ {
					if _, dup := held.LoadOrStore(id, true); dup {
						t.Errorf("%d is held twice", id)
					}
				}
			})
		}
		wg.Wait()
	}
}

// A call whose context ends, and one without a limit that never gets through.
func TestCycleContext(t *testing.T) {
	_, s := sequences(t, mysqltest.Database(t), 0, 1, "1, 100, 1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := s.Cycle("a", (&vacant{}).ask)
	if _, err := g.Next(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := g.Next(t.Context(), 0); !is[*idgen.CountError](err) {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context(), 1); err != nil || id != 1 {
		t.Fatal(id, err)
	}
}
