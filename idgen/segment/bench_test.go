package segment_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// bareCounter is the baseline for calls of Next.
type bareCounter struct {
	_ [128]byte
	n atomic.Int64
	_ [128]byte
}

//go:noinline
func (c *bareCounter) Next(context.Context, int) (int64, error) { return c.n.Add(1), nil }

func BenchmarkNext(b *testing.B) {
	ctx := b.Context()
	b.Run("bare atomic add/serial", func(b *testing.B) {
		var c bareCounter
		b.ReportAllocs()
		for b.Loop() {
			c.n.Add(1)
		}
	})
	b.Run("atomic add as idgen.Generator/serial", func(b *testing.B) {
		var g idgen.Generator = new(bareCounter)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(ctx, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("segment/serial", func(b *testing.B) {
		g := segment.New(new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 1 << 30}), "a", nil)
		defer g.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(ctx, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("segment as idgen.Generator/serial", func(b *testing.B) {
		var g idgen.Generator = segment.New(new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 1 << 30}), "a", nil)
		defer g.(*segment.Generator).Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(ctx, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare atomic add/parallel", func(b *testing.B) {
		var c bareCounter
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.n.Add(1)
			}
		})
	})
	b.Run("atomic add as idgen.Generator/parallel", func(b *testing.B) {
		var g idgen.Generator = new(bareCounter)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := g.Next(ctx, 1); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("segment/parallel", func(b *testing.B) {
		g := segment.New(new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 1 << 30}), "a", nil)
		defer g.Close()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := g.Next(ctx, 1); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// Rows with their own keys below the row's known next id.
func BenchmarkSkip(b *testing.B) {
	g := segment.New(new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 1 << 60, Step: 1000}), "a", nil)
	defer g.Close()
	ctx := b.Context()
	b.ReportAllocs()
	for k := int64(1); b.Loop(); k++ {
		if err := g.Skip(ctx, k); err != nil {
			b.Fatal(err)
		}
	}
}

// One range of leaf_alloc on a real server.
func BenchmarkAllocStore(b *testing.B) {
	db := pool(b, mysqltest.Database(b), "")
	s := allocStore(b, db, "leaf_alloc")
	if err := s.Ensure(b.Context(), "a", 1, 10); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Fetch(b.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err != nil {
			b.Fatal(err)
		}
	}
}

// A new segment is needed every 1,000,000 ids or less, and a fetch takes 5 ms. waits is the proportion of calls
// that had to wait for one.
func BenchmarkSwitch(b *testing.B) {
	for _, every := range []time.Duration{0, 100 * time.Nanosecond, time.Microsecond, 10 * time.Microsecond} {
		name := "flat out"
		if every > 0 {
			name = fmt.Sprintf("an id every %v", every)
		}
		b.Run(name, func(b *testing.B) {
			m := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "a", MaxID: 1, Step: 1000})
			m.Delay(5 * time.Millisecond)
			g := segment.New(m, "a", nil)
			defer g.Close()
			ctx := b.Context()
			// The step doubles until it sustains the rate: this part is not measured.
			pace := func(from time.Time, i int) {
				for every > 0 && time.Since(from) < time.Duration(i)*every {
				}
			}
			begin := time.Now()
			for i := 0; time.Since(begin) < 200*time.Millisecond; i++ {
				g.Next(ctx, 1)
				pace(begin, i)
			}
			warm := g.Stats()
			b.ReportAllocs()
			begin = time.Now()
			i := 0
			for b.Loop() {
				if _, err := g.Next(ctx, 1); err != nil {
					b.Fatal(err)
				}
				i++
				pace(begin, i)
			}
			s := g.Stats()
			b.ReportMetric(float64(s.Waits-warm.Waits), "waits")
			b.ReportMetric(float64(s.Fetches-warm.Fetches), "fetches")
		})
	}
}
