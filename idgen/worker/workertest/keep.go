package workertest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Open is how a Keeper opens a source.
type Open = func(context.Context) (worker.Source, error)

// Keep gives a Keeper that holds a worker id, and is closed with the test. What it gives back can be used again at once. Searches
// that fail, as on a busy machine, are followed by others.
func Keep(tb testing.TB, open Open, cfg worker.Config) *worker.Keeper {
	tb.Helper()
	cfg.Issued = time.Now
	k, err := worker.Keep(open, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { k.Close() })
	if err := holding(tb, k); err != nil {
		tb.Error(err)
	}
	return k
}

func holding(tb testing.TB, k *worker.Keeper) error {
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	for {
		s, err := k.Wait(ctx)
		if err == nil || s == nil {
			return err
		}
		select {
		case <-s.Changed():
		case <-ctx.Done():
			return err
		}
	}
}

// InUse makes a registry one that was used before: the documents of all worker ids are there, and free.
func InUse(tb testing.TB, open Open, cfg worker.Config) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := worker.Prepare(ctx, open, cfg); err != nil {
		tb.Fatal(err)
	}
}

// Eventually waits for what is there in a moment.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			tb.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}

// BenchmarkStart is the time from nothing to a worker id on an empty registry, which it brings into use first: for n keepers
// that begin at once, each with connections of its own.
func BenchmarkStart(b *testing.B, open Open, n int) {
	cfg := worker.Config{Logger: slog.New(slog.DiscardHandler)}
	InUse(b, open, cfg)
	var took []time.Duration
	for b.Loop() {
		var (
			wg    sync.WaitGroup
			each  = make([]time.Duration, n)
			all   = make([]*worker.Keeper, n)
			began = time.Now()
		)
		for i := range all {
			wg.Go(func() {
				all[i] = Keep(b, open, cfg)
				each[i] = time.Since(began)
			})
		}
		wg.Wait()
		took = append(took, each...)
		for _, k := range all {
			wg.Go(func() { k.Close() })
		}
		wg.Wait()
	}
	slices.Sort(took)
	for unit, at := range map[string]int{"ms/p50": len(took) / 2, "ms/p99": len(took) * 99 / 100, "ms/max": len(took) - 1} {
		b.ReportMetric(float64(took[at].Microseconds())/1000, unit)
	}
}
