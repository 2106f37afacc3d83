package segment_test

import (
	"testing"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

func TestNext(t *testing.T) {
	g := segment.New(segmenttest.NewMemory(segment.Row{Tag: "a", MaxID: 0, Step: 3}), "a", nil)
	defer g.Close()
	for want := int64(1); want < 100; want++ {
		id, err := g.Next(t.Context(), 1)
		if err != nil || id != want {
			t.Fatalf("got %d, %v, want %d", id, err, want)
		}
	}
	first, err := g.Next(t.Context(), 5000)
	if err != nil || first != 100 {
		t.Fatalf("got %d, %v", first, err)
	}
	t.Logf("%+v", g.Stats())
}
