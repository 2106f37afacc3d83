// Package segmenttest has the tests that every segment.Store must pass.
//
//	func TestStore(t *testing.T) {
//		segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture { … })
//	}
//
// Memory is a store for tests of other code. The package does not test whether ids survive a crash of the
// store's server.
package segmenttest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
)

// Fixture is a table without rows, with functions to change its rows.
type Fixture struct {
	Open   func() segment.Store // opens a store on the table, as another process would
	Put    func(row Row) error  // adds a row, or replaces the tag's row
	Delete func(tag string) error
	Moves  bool // if a row was lowered, the store raises its next id far above the old ids, and does not refuse it
}

// Run tests the store. It calls open for each part of the test.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for name, test := range map[string]func(*kit){
		"Look":       look,
		"Ranges":     ranges,
		"Step":       step,
		"Floor":      floor,
		"Raise":      raise,
		"MaxStart":   maxStart,
		"BadStep":    badStep,
		"UnknownTag": unknownTag,
		"RolledBack": rolledBack,
		"Zero":       zero,
		"Negative":   negative,
		"Exhausted":  exhausted,
		"Context":    contexts,
		"Concurrent": concurrent,
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			test(&kit{t, f, f.Open()})
		})
	}
}

type kit struct {
	*testing.T
	Fixture
	store segment.Store
}

func (k *kit) put(tag string, maxID, step int64) {
	k.Helper()
	if err := k.Put(Row{Tag: tag, MaxID: maxID, Step: step}); err != nil {
		k.Fatal(err)
	}
}

func (k *kit) wantRange(q segment.Request, start, end, step int64) {
	k.Helper()
	want := segment.Range{Start: start, End: end, Step: step}
	r, err := k.store.Fetch(k.Context(), q)
	if err != nil || r != want {
		k.Fatalf("Fetch(%+v) = %v, %v, want %v", q, r, err, want)
	}
}

// wantRow fails the test unless id is the row's next id.
func (k *kit) wantRow(tag string, id, step int64) {
	k.Helper()
	k.wantRange(segment.Request{Tag: tag}, id, id, step)
}

func (k *kit) wantExhausted(q segment.Request) {
	k.Helper()
	if r, err := k.store.Fetch(k.Context(), q); !errors.Is(err, idgen.ErrExhausted) || r != (segment.Range{}) {
		k.Fatalf("Fetch(%+v) = %v, %v, want idgen.ErrExhausted and r = segment.Range{}", q, r, err)
	}
}

// wantError fails the test unless the request fails with an error of type E.
func wantError[E error](k *kit, q segment.Request) E {
	k.Helper()
	r, err := k.store.Fetch(k.Context(), q)
	e, ok := errors.AsType[E](err)
	if !ok || r != (segment.Range{}) {
		k.Fatalf("Fetch(%+v) = %v, %v, want a %T", q, r, err, e)
	}
	return e
}

func look(k *kit) {
	k.put("a", 7, 100)
	for range 2 {
		k.wantRow("a", 7, 100)
	}
	k.wantRange(segment.Request{Tag: "a", Step: 1, Floor: 50, Seen: 7}, 7, 7, 100)
}

func ranges(k *kit) {
	k.put("a", 1, 100)
	k.put("it's `b` \\", 1, 10)
	k.put("订单", 1, 10)
	k.wantRange(segment.Request{Tag: "a", N: 1}, 1, 2, 100)
	k.wantRange(segment.Request{Tag: "a", N: 100, Step: 100, Floor: 1, Seen: 2}, 2, 102, 100)
	k.wantRange(segment.Request{Tag: "a", N: 16, Step: 100}, 102, 118, 100)
	k.wantRange(segment.Request{Tag: "a", N: 5_000_000, Step: 100}, 118, 5_000_118, 100)
	k.wantRange(segment.Request{Tag: "a", N: math.MaxInt32, Step: 100}, 5_000_118, 5_000_118+math.MaxInt32, 100)
	k.wantRange(segment.Request{Tag: "it's `b` \\", N: 10}, 1, 11, 10)
	k.wantRange(segment.Request{Tag: "订单", N: 10}, 1, 11, 10)
}

func step(k *kit) {
	k.put("a", 1, 10)
	k.wantRange(segment.Request{Tag: "a", N: 20, Step: 10}, 1, 21, 10)
	k.put("a", 21, 50)
	for range 2 { // the step was raised: the new step is returned, and no ids are taken
		k.wantRange(segment.Request{Tag: "a", N: 40, Step: 10, Seen: 21}, 21, 21, 50)
	}
	k.wantRange(segment.Request{Tag: "a", N: 50, Step: 50, Seen: 21}, 21, 71, 50)
	k.put("a", 71, 1) // the step was lowered: the next read returns it
	k.wantRow("a", 71, 1)
	k.wantRange(segment.Request{Tag: "a", N: 1, Step: 50}, 71, 72, 1)
	k.put("a", 72, math.MaxInt32)
	k.wantRange(segment.Request{Tag: "a", N: 1, Step: 1}, 72, 72, math.MaxInt32)
	k.wantRange(segment.Request{Tag: "a", N: math.MaxInt32, Step: math.MaxInt32}, 72, 72+math.MaxInt32, math.MaxInt32)
}

func floor(k *kit) {
	k.put("a", 10, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 10}, 10, 15, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 3}, 15, 20, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 1000, Seen: 20}, 1000, 1005, 10)
	k.wantRow("a", 1005, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: math.MaxInt64 - 100}, math.MaxInt64-100, math.MaxInt64-95, 10)
}

func raise(k *kit) {
	k.put("a", 10, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 10, Raise: true}, 10, 10, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 9, Raise: true}, 10, 10, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 11, Raise: true}, 11, 16, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 11, Raise: true}, 16, 16, 10)
	k.put("a", 16, 50)
	k.wantRange(segment.Request{Tag: "a", N: 10, Step: 10, Floor: 20, Raise: true}, 16, 16, 50)
	k.wantRange(segment.Request{Tag: "a", N: 10, Step: 50, Floor: 20, Raise: true}, 20, 30, 50)
}

func maxStart(k *kit) {
	k.put("a", 10, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, MaxStart: 10}, 10, 15, 10)
	k.wantRange(segment.Request{Tag: "a", N: 1, MaxStart: 14}, 15, 15, 10)
	k.wantRange(segment.Request{Tag: "a", N: 5, Floor: 20, MaxStart: 20}, 20, 25, 10)
	k.wantRange(segment.Request{Tag: "a", N: 1, Floor: 24, MaxStart: 24, Raise: true}, 25, 25, 10)
	k.wantRow("a", 25, 10)
}

func badStep(k *kit) {
	for _, step := range []int64{0, -1, -1000} {
		k.put("a", 7, step)
		for _, n := range []int64{0, 5} {
			if e := wantError[*segment.RowError](k, segment.Request{Tag: "a", N: n}); e.Tag != "a" {
				k.Fatalf("the error for %d ids has Tag %q, want \"a\"", n, e.Tag)
			}
		}
	}
	k.put("a", 7, 10)
	k.wantRow("a", 7, 10)
	k.put("a", 7, 0) // also if this process has used the row before
	wantError[*segment.RowError](k, segment.Request{Tag: "a", N: 5, Step: 10})
}

func unknownTag(k *kit) {
	for _, n := range []int64{0, 1} {
		if e := wantError[*segment.UnknownTagError](k, segment.Request{Tag: "a", N: n}); e.Tag != "a" {
			k.Fatalf("the error for %d ids has Tag %q, want \"a\"", n, e.Tag)
		}
	}
	k.put("a", 1, 10) // found immediately
	k.wantRange(segment.Request{Tag: "a", N: 1}, 1, 2, 10)
	if err := k.Delete("a"); err != nil {
		k.Fatal(err)
	}
	wantError[*segment.UnknownTagError](k, segment.Request{Tag: "a", N: 1, Step: 10, Seen: 2})
}

// rolledBack tests fetches from a row that was lowered. A refused fetch does not change the row, and a fetch that is
// not refused raises the row's next id above the ids in use.
func rolledBack(k *kit) {
	k.put("a", 1000, 10)
	k.wantRange(segment.Request{Tag: "a", N: 10}, 1000, 1010, 10)
	if err := k.Delete("a"); err != nil {
		k.Fatal(err)
	}
	k.put("a", 1005, 10)
	if k.Moves {
		q := segment.Request{Tag: "a", Seen: 1010, N: 20, Step: 10}
		if r, err := k.store.Fetch(k.Context(), q); err != nil || r.Start < 1010 || r.Jumped < 1 {
			k.Fatalf("Fetch(%+v) = %v, %v, want r.Start at least 1010, r.Jumped at least 1 and no error", q, r, err)
		}
		return
	}
	for _, q := range []segment.Request{
		{Tag: "a", Seen: 1010},
		{Tag: "a", Seen: 1010, N: 20, Step: 5},
		{Tag: "a", Seen: 1010, N: 20, Step: 10, Floor: 5000},
		{Tag: "a", Seen: 1010, N: 20, Step: 10, Floor: 1000, Raise: true},
	} {
		if e := wantError[*segment.RolledBackError](k, q); e.Tag != "a" || e.Start != 1005 || e.Seen != 1010 {
			k.Fatalf("the error of Fetch(%+v) is %+v, want Tag a, Start 1005 and Seen 1010", q, e)
		}
	}
	k.wantRow("a", 1005, 10)
	k.put("a", 1010, 10)
	k.wantRange(segment.Request{Tag: "a", N: 20, Seen: 1010}, 1010, 1030, 10)
}

// zero tests rows with max_id 0, with which Leaf's articles begin a tag.
func zero(k *kit) {
	for _, maxID := range []int64{0, 1} {
		k.put("a", maxID, 10)
		k.wantRow("a", maxID, 10)
		k.wantRange(segment.Request{Tag: "a", N: 10, Step: 10, Floor: 1}, 1, 11, 10)
	}
	k.put("a", 0, 10)
	k.wantRange(segment.Request{Tag: "a", N: 10}, 0, 10, 10)
}

func negative(k *kit) {
	for _, maxID := range []int64{-1, -5, -50, math.MinInt64} {
		k.put("a", maxID, 10)
		for _, q := range []segment.Request{{Tag: "a"}, {Tag: "a", N: 10}, {Tag: "a", N: 10, Step: 10, Floor: 1}, {Tag: "a", N: 10, Step: 10, Floor: 1, Raise: true}} {
			wantError[*segment.RowError](k, q)
		}
	}
}

func exhausted(k *kit) {
	k.put("a", math.MaxInt64-20, 10)
	k.wantExhausted(segment.Request{Tag: "a", N: 21})
	k.wantExhausted(segment.Request{Tag: "a", N: 10, Floor: math.MaxInt64 - 9})
	k.wantExhausted(segment.Request{Tag: "a", N: 10, Floor: math.MaxInt64, Raise: true})
	k.wantRange(segment.Request{Tag: "a", N: 15}, math.MaxInt64-20, math.MaxInt64-5, 10)
	k.wantExhausted(segment.Request{Tag: "a", N: 10, Step: 10})
	k.wantRange(segment.Request{Tag: "a", N: 5}, math.MaxInt64-5, math.MaxInt64, 10)
	k.wantExhausted(segment.Request{Tag: "a", N: 1})
	k.wantRow("a", math.MaxInt64, 10)
}

func contexts(k *kit) {
	k.put("a", 1, 10)
	ctx, cancel := context.WithCancel(k.Context())
	cancel()
	if r, err := k.store.Fetch(ctx, segment.Request{Tag: "a", N: 1}); !errors.Is(err, context.Canceled) {
		k.Fatalf("Fetch(segment.Request{Tag: \"a\", N: 1}) = %v, %v, want context.Canceled", r, err)
	}
	k.wantRange(segment.Request{Tag: "a", N: 1}, 1, 2, 10)
}

// concurrent runs several processes with several goroutines each, which fetch, raise and read. Each fetch has the time
// limit that a generator sets: with SERIALIZABLE connections, MariaDB from 11.6 on lets only one of several concurrent
// statements on a row succeed, and the others have to be retried.
func concurrent(k *kit) {
	ctx, cancel := context.WithTimeout(k.Context(), time.Minute)
	defer cancel()
	const processes, goroutines, fetches = 4, 4, 20
	tags := []string{"a", "b", "c"}
	got := make(map[string][]segment.Range)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, tag := range tags {
		k.put(tag, 1, 3)
	}
	for p := range processes {
		store := k.Open()
		for g := range goroutines {
			for _, tag := range tags {
				wg.Go(func() {
					seen := int64(0)
					for f := range fetches {
						q := segment.Request{Tag: tag, N: int64(1 + (p+g+f)%7), Step: 3, Seen: seen}
						switch (p + g*f) % 5 {
						case 0:
							q.Floor = seen + 4
						case 1:
							q.Floor, q.Raise = seen+4, true
						}
						r, err := store.Fetch(ctx, q)
						empty := r.Start == r.End && q.Raise
						if err != nil || !empty && r.End-r.Start < q.N || r.Start < max(seen, q.Floor) || r.Step != 3 {
							k.Errorf("Fetch(%+v) = %v, %v", q, r, err)
							return
						}
						if empty {
							continue
						}
						seen = r.End
						mu.Lock()
						got[tag] = append(got[tag], r)
						mu.Unlock()
					}
				})
			}
		}
	}
	wg.Wait()
	for _, tag := range tags {
		rs := got[tag]
		slices.SortFunc(rs, func(a, b segment.Range) int { return int(a.Start - b.Start) })
		end := int64(1)
		for _, r := range rs {
			if r.Start < end {
				k.Fatalf("%s: a range starts at %d, want %d, the end of the one before, or higher", tag, r.Start, end)
			}
			end = r.End
		}
		k.wantRow(tag, end, 3)
	}
}
