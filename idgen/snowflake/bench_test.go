package snowflake

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkBurst draws ids ahead of the clock, of which a lease of an hour allows
// 7 billion.
func BenchmarkBurst(b *testing.B) {
	ctx := b.Context()
	b.Run("serial", func(b *testing.B) {
		g := new(registry).generator(b, Leaf, 1, time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(ctx, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		g := new(registry).generator(b, Leaf, 1, time.Hour)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := g.Next(ctx, 1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkSustained draws ids at the pace of the clock: 244.14 ns an id is
// the format's limit. p99.9 is the latency of single calls, with several goroutines a core.
func BenchmarkSustained(b *testing.B) {
	for _, perCore := range []int{1, 16} {
		b.Run(fmt.Sprintf("goroutines=%d", perCore), func(b *testing.B) {
			g := new(registry).generator(b, Leaf, 1, 6*time.Second)
			burst(b, g)
			goroutines := perCore * runtime.GOMAXPROCS(0)
			var (
				wg    sync.WaitGroup
				left  atomic.Int64
				took  = make([][]time.Duration, goroutines)
				batch = int64(1000)
			)
			for i := range took {
				took[i] = make([]time.Duration, 0, 2*b.N/goroutines+1000)
			}
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			for i := range goroutines {
				wg.Go(func() {
					for left.Add(-batch) > -batch {
						for range batch {
							began := time.Now()
							if _, err := g.Next(b.Context(), 1); err != nil {
								b.Error(err)
								return
							}
							took[i] = append(took[i], time.Since(began))
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			all := slices.Concat(took...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)*999/1000].Nanoseconds())/1e3, "p99.9-µs")
			b.ReportMetric(float64(all[len(all)-1].Nanoseconds())/1e3, "max-µs")
		})
	}
}
