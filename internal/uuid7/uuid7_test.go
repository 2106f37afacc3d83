package uuid7_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/leafsql/leafsql/internal/uuid7"
)

func ExampleNew() {
	block, err := uuid7.New(2)
	if err != nil {
		panic(err)
	}
	fmt.Println(block.Len(), block.At(0).Version(), block.At(1).Version())
	// Output: 2 VERSION_7 VERSION_7
}

// Blocks ascend, and no UUID is in two blocks.
func TestBlocksAscend(t *testing.T) {
	var last uuid.UUID
	for i := range 10_000 {
		n := 1 + i%5
		b, err := uuid7.New(n)
		if err != nil || b.Len() != n {
			t.Fatalf("New(%d): Len() = %d, error %v; want %d", n, b.Len(), err, n)
		}
		for k := range n {
			id := b.At(k)
			if bytes.Compare(id[:], last[:]) <= 0 || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
				t.Fatalf("UUID = %v, want one of version 7 above %v", id, last)
			}
			last = id
		}
	}
}

func TestConcurrentUUIDsAreDistinct(t *testing.T) {
	var seen sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				b, err := uuid7.New(3)
				if err != nil {
					t.Errorf("New(3): error %v, want none", err)
					return
				}
				for k := range 3 {
					if _, twice := seen.LoadOrStore(b.At(k), true); twice {
						t.Errorf("UUID %v was issued twice, want once", b.At(k))
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestNewRefusesBadCounts(t *testing.T) {
	for _, n := range []int{0, -1, 1 << 31} {
		if _, err := uuid7.New(n); err == nil {
			t.Errorf("New(%d): no error, want one", n)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := uuid7.New(1); err != nil {
			b.Fatal(err)
		}
	}
}
