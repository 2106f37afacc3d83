package segment_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// After Restart a generator is like a new one, and the result of a fetch in progress is discarded.
func TestRestartForgetsRanges(t *testing.T) {
	m := newMemory(1, 20)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 10, 1)
		synctest.Wait() // ids up to 37 in memory
		if err := g.Skip(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		m.Delay(time.Second)
		for range 25 { // a fetch begins
			if _, err := g.Next(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		looked := make(chan error)
		go func() {
			_, err := g.Look(t.Context())
			looked <- err
		}()
		synctest.Wait()
		m.Delete("a")
		g.Restart()
		m.Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 20})
		if err := <-looked; !isError[*segment.UnavailableError](err) {
			t.Error(err)
		}
		wantNext(t, g, 3, 1)
		if err := g.Skip(t.Context(), 50); err != nil { // not considered skipped already
			t.Fatal(err)
		}
		wantNext(t, g, 1, 51)
		if s := g.Stats(); s.IDs+s.Dropped+s.Remaining == 0 || s.Err != nil {
			t.Errorf("Stats() = %+v, want s.IDs+s.Dropped+s.Remaining other than 0 and no Err", s)
		}
	})
}

// delayedStore is a store that can delay its answers.
type delayedStore struct {
	*segmenttest.Memory
	release chan struct{}
}

func (h *delayedStore) Fetch(ctx context.Context, q segment.Request) (segment.Range, error) {
	r, err := h.Memory.Fetch(ctx, q)
	if h.release != nil {
		<-h.release
	}
	return r, err
}

// A range of the deleted row is not used, and a waiting call gets a range of the new row.
func TestRestartDiscardsAFetchInProgress(t *testing.T) {
	m := &delayedStore{Memory: newMemory(1, 20)}
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		wantNext(t, g, 10, 1)
		synctest.Wait()
		m.release = make(chan struct{})
		got := make(chan int64)
		go func() {
			id, err := g.Next(t.Context(), 100)
			if err != nil {
				t.Error(err)
			}
			got <- id
		}()
		synctest.Wait()
		m.Delete("a")
		g.Restart()
		m.Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 20})
		close(m.release)
		if id := <-got; id != 1 {
			t.Errorf("id = %v, want 1", id)
		}
	})
}

// Above includes the range of a fetch in progress.
func TestAboveIncludesAFetchInProgress(t *testing.T) {
	m := newMemory(1, 20)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		above := func(want int64) {
			t.Helper()
			if k, err := g.Above(t.Context()); k != want || err != nil {
				t.Fatalf("Above() = %+v, %v, want %v and no error", k, err, want)
			}
		}
		above(1)
		wantNext(t, g, 1, 1)
		above(17)
		m.Delay(time.Second)
		wantNext(t, g, 8, 2)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := g.Above(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		above(37)
		if err := g.Skip(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		above(517)
	})
}

// TestFetchWaitsForARowBehind: a fetch waits for a row that is behind only as long as another node may lack the last
// fetch. Then the row moves up by a margin, or is refused if it has no mark.
func TestFetchWaitsForARowBehind(t *testing.T) {
	for _, dsn := range mysqltest.Targets(t) {
		db := pool(t, dsn.Database(t), "")
		s := allocStore(t, db, "leaf_alloc")
		if err := errors.Join(s.Create(t.Context()), s.Ensure(t.Context(), "a", 1, 10)); err != nil {
			t.Fatal(err)
		}
		g := segment.New(s, "a", nil)
		defer g.Close()
		if _, err := g.Next(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		db.MustExec("UPDATE leaf_alloc SET max_id = 1")
		began := time.Now()
		if id, err := g.Next(t.Context(), 100); id < 1<<36 || err != nil || time.Since(began) < time.Second {
			t.Errorf("%s: Next() = %d, %v after %v, want id at least 1<<36, time.Since(began) at least 1s and no error", dsn.Name, id, err, time.Since(began))
		}
		for i, most := range []time.Duration{10 * time.Second, time.Second} {
			db.MustExec("UPDATE leaf_alloc SET max_id = 1, description = 'leafsql@off'")
			began := time.Now()
			if _, err := g.Next(t.Context(), 100); !isError[*segment.RolledBackError](err) || time.Since(began) > most {
				t.Errorf("%s: attempt %d: %v after %v, want a *segment.RolledBackError and time.Since(began) at most %v", dsn.Name, i, err, time.Since(began), most)
			}
		}
	}
}
