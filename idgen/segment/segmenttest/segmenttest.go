// Package segmenttest is what every segment.Store must pass.
//
//	func TestStore(t *testing.T) {
//		segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture { … })
//	}
//
// Memory is a store for tests of other things. The package does not test that ids
// survive a crash of the store's server.
package segmenttest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
)

// Fixture is a store without rows, and a hand on its rows.
type Fixture struct {
	Store  segment.Store
	Put    func(row segment.Row) error // adds a row or replaces the tag's
	Delete func(tag string) error
}

// Run tests the store; open is called for each part of the test.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for name, test := range map[string]func(*testing.T, *kit){
		"Ranges":     ranges,
		"Step":       step,
		"BadStep":    badStep,
		"UnknownTag": unknownTag,
		"RolledBack": rolledBack,
		"Negative":   negative,
		"Exhausted":  exhausted,
		"Context":    contexts,
		"Concurrent": concurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, &kit{t, open(t)}) })
	}
}

type kit struct {
	*testing.T
	Fixture
}

func (k *kit) put(tag string, maxID, step int64) {
	k.Helper()
	if err := k.Put(segment.Row{Tag: tag, MaxID: maxID, Step: step}); err != nil {
		k.Fatal(err)
	}
}

func (k *kit) want(tag string, n, seen int64, want segment.Range) {
	k.Helper()
	if r, err := k.Store.Fetch(k.Context(), tag, n, seen); err != nil || r != want {
		k.Fatalf("Fetch(%s, %d, %d) = %v, %v, want %v", tag, n, seen, r, err, want)
	}
}

func ranges(t *testing.T, k *kit) {
	k.put("a", 1, 100)
	k.put("it's `b`", 0, 10)
	k.want("a", 1, 0, segment.Range{Start: 1, End: 101, Step: 100})
	k.want("a", 100, 101, segment.Range{Start: 101, End: 201, Step: 100})
	k.want("a", 101, 201, segment.Range{Start: 201, End: 302, Step: 100})
	k.want("a", 5_000_000, 0, segment.Range{Start: 302, End: 5_000_302, Step: 100})
	k.want("a", segment.MaxRowStep, 0, segment.Range{Start: 5_000_302, End: 5_000_302 + segment.MaxRowStep, Step: 100})
	k.want("it's `b`", 1, 0, segment.Range{Start: 0, End: 10, Step: 10})
}

func step(t *testing.T, k *kit) {
	k.put("a", 1, 10)
	k.want("a", 1, 0, segment.Range{Start: 1, End: 11, Step: 10})
	k.put("a", 11, 50)
	k.want("a", 20, 11, segment.Range{Start: 11, End: 61, Step: 50})
	k.put("a", 61, 1)
	k.want("a", 1, 61, segment.Range{Start: 61, End: 62, Step: 1})
	k.put("a", 62, segment.MaxRowStep)
	k.want("a", 1, 62, segment.Range{Start: 62, End: 62 + segment.MaxRowStep, Step: segment.MaxRowStep})
}

func badStep(t *testing.T, k *kit) {
	for _, step := range []int64{0, -1, -1000} {
		k.put("a", 7, step)
		r, err := k.Store.Fetch(t.Context(), "a", 5, 0)
		if e, ok := errors.AsType[*segment.StepError](err); !ok || e.Tag != "a" || e.Step != step {
			t.Fatalf("step %d: %v, %v", step, r, err)
		}
	}
}

func unknownTag(t *testing.T, k *kit) {
	r, err := k.Store.Fetch(t.Context(), "a", 1, 0)
	if e, ok := errors.AsType[*segment.UnknownTagError](err); !ok || e.Tag != "a" || e.Rows != 0 {
		t.Fatalf("%v, %v", r, err)
	}
	k.put("a", 1, 10) // found at once
	k.want("a", 1, 0, segment.Range{Start: 1, End: 11, Step: 10})
	if err := k.Delete("a"); err != nil {
		t.Fatal(err)
	}
	if _, err = k.Store.Fetch(t.Context(), "a", 1, 11); err == nil {
		t.Fatal("a range of a row that is gone")
	}
}

func rolledBack(t *testing.T, k *kit) {
	k.put("a", 1000, 10)
	k.want("a", 1, 0, segment.Range{Start: 1000, End: 1010, Step: 10})
	if err := k.Delete("a"); err != nil {
		t.Fatal(err)
	}
	k.put("a", 1005, 10)
	for range 3 { // a refused fetch does not move the row towards the ids in use
		r, err := k.Store.Fetch(t.Context(), "a", 20, 1010)
		if e, ok := errors.AsType[*segment.RolledBackError](err); !ok || e.Tag != "a" || e.Start != 1005 || e.Seen != 1010 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	k.put("a", 1010, 10)
	k.want("a", 20, 1010, segment.Range{Start: 1010, End: 1030, Step: 10})
}

// A row below 0 may give a range with ids from 1 up, or nothing.
func negative(t *testing.T, k *kit) {
	k.put("a", -5, 10)
	if r, err := k.Store.Fetch(t.Context(), "a", 1, 0); err == nil && r != (segment.Range{Start: -5, End: 5, Step: 10}) {
		t.Fatal(r)
	}
	k.put("b", -50, 10)
	for range 2 { // nor is the row moved to some other place
		if r, err := k.Store.Fetch(t.Context(), "b", 1, 0); !is[*segment.RangeError](err) {
			t.Fatal(r, err)
		}
	}
}

func exhausted(t *testing.T, k *kit) {
	k.put("a", math.MaxInt64-20, 10)
	if r, err := k.Store.Fetch(t.Context(), "a", 21, 0); !errors.Is(err, idgen.ErrExhausted) {
		t.Fatalf("%v, %v", r, err)
	}
	k.want("a", 15, 0, segment.Range{Start: math.MaxInt64 - 20, End: math.MaxInt64 - 5, Step: 10})
	if r, err := k.Store.Fetch(t.Context(), "a", 1, 0); !errors.Is(err, idgen.ErrExhausted) {
		t.Fatalf("%v, %v", r, err)
	}
	k.put("a", math.MaxInt64-5, 5)
	k.want("a", 1, 0, segment.Range{Start: math.MaxInt64 - 5, End: math.MaxInt64, Step: 5})
	if r, err := k.Store.Fetch(t.Context(), "a", 1, 0); !errors.Is(err, idgen.ErrExhausted) {
		t.Fatalf("%v, %v", r, err)
	}
}

func contexts(t *testing.T, k *kit) {
	k.put("a", 1, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := k.Store.Fetch(ctx, "a", 1, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", r, err)
	}
	k.want("a", 1, 0, segment.Range{Start: 1, End: 11, Step: 10})
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func concurrent(t *testing.T, k *kit) {
	const workers, fetches = 16, 20
	tags := []string{"a", "b", "c"}
	got := make(map[string][]segment.Range)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, tag := range tags {
		k.put(tag, 1, 3)
	}
	for w := range workers {
		for _, tag := range tags {
			wg.Go(func() {
				for f := range fetches {
					n := int64(1 + (w+f)%7)
					r, err := k.Store.Fetch(t.Context(), tag, n, 0)
					if err != nil || r.End-r.Start != max(n, 3) {
						t.Errorf("n %d: %v, %v", n, r, err)
						return
					}
					mu.Lock()
					got[tag] = append(got[tag], r)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for _, tag := range tags {
		rs := got[tag]
		slices.SortFunc(rs, func(a, b segment.Range) int { return int(a.Start - b.Start) })
		next := int64(1)
		for _, r := range rs {
			if r.Start != next {
				t.Fatalf("%s: a range starts at %d, the one before ended at %d", tag, r.Start, next)
			}
			next = r.End
		}
		if len(rs) != workers*fetches {
			t.Fatalf("%s: %d ranges", tag, len(rs))
		}
	}
}
