package segment_test

import (
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// bare is what a call of Next is held against.
type bare struct {
	_ [128]byte
	n atomic.Int64
	_ [128]byte
}

func BenchmarkNext(b *testing.B) {
	ctx := b.Context()
	b.Run("bare atomic add/serial", func(b *testing.B) {
		var c bare
		b.ReportAllocs()
		for b.Loop() {
			c.n.Add(1)
		}
	})
	b.Run("segment/serial", func(b *testing.B) {
		g := segment.New(segmenttest.NewMemory(segment.Row{Tag: "a", MaxID: 1, Step: 1 << 30}), "a", nil)
		defer g.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(ctx, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("segment as idgen.Generator/serial", func(b *testing.B) {
		var g idgen.Generator = segment.New(segmenttest.NewMemory(segment.Row{Tag: "a", MaxID: 1, Step: 1 << 30}), "a", nil)
		defer g.(*segment.Generator).Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(ctx, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare atomic add/parallel", func(b *testing.B) {
		var c bare
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.n.Add(1)
			}
		})
	})
	b.Run("segment/parallel", func(b *testing.B) {
		g := segment.New(segmenttest.NewMemory(segment.Row{Tag: "a", MaxID: 1, Step: 1 << 30}), "a", nil)
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
