package snowflake

import (
	"log/slog"
	"testing"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/worker"
)

var _ idgen.Generator = (*Generator)(nil)

func newGenerator(t testing.TB, layout Layout) *Generator {
	t.Helper()
	l, err := worker.Open(t.Context(), "static(7)", worker.Config{Workers: layout.Workers(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(layout, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func BenchmarkBurst(b *testing.B) {
	g := newGenerator(b, Layout{Time: 41, Worker: 0 + 3, Sequence: 19, Epoch: Leaf.Epoch})
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(ctx, 1); err != nil {
			b.Fatal(err)
		}
	}
}
