package segment_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// Look returns the row, and the first fetch does not read it again.
func TestLookReadsTheRowOnce(t *testing.T) {
	m := newMemory(100, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		for range 2 {
			if r, err := g.Look(t.Context()); err != nil || r != (segment.Range{Start: 100, End: 100, Step: 1000}) {
				t.Fatalf("Look() = %+v, %v, want segment.Range{Start: 100, End: 100, Step: 1000} and no error", r, err)
			}
		}
		mustSkip(t, g, 99) // the row is known to stand above it
		if asked := m.Requests(); len(asked) != 2 {
			t.Fatalf("Requests() = %+v, want len(asked) = 2", asked)
		}
		wantNext(t, g, 1, 100)
		if asked := m.Requests(); len(asked) != 3 || asked[2].N != 16 {
			t.Fatalf("Requests() = %+v, want len(asked) = 3 and asked[2].N = 16", asked)
		}
	})
}

// The row changes between Look and the first fetch: a larger step, which the fetch notices, and a row that
// other clients have moved.
func TestFetchNoticesAnOldLook(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		if _, err := g.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.Put(segmenttest.Row{Tag: "a", MaxID: 500, Step: 2000})
		wantNext(t, g, 9, 500)
		synctest.Wait()
		if s := g.Stats(); s.Step != 2000 {
			t.Fatalf("Stats() = %+v, want Step = 2000", s)
		}
	})
}

func TestLookFails(t *testing.T) {
	m := newMemory(1, 1000)
	runInBubble(t, m, func(t *testing.T, g *segment.Generator) {
		m.Fail(errDown)
		var away *segment.UnavailableError
		if _, err := g.Look(t.Context()); !errors.As(err, &away) || !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		m.Fail(nil)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Look(over); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		wantNext(t, g, 1, 1)
		g.Close()
		if _, err := g.Look(t.Context()); !errors.Is(err, idgen.ErrClosed) {
			t.Fatal(err)
		}
	})
}
