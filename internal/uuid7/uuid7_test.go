package uuid7_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/leafsql/leafsql/internal/uuid7"
)

func ExampleNew() {
	first, err := uuid7.New()
	if err != nil {
		panic(err)
	}
	fmt.Println(first.Version())
	// Output: VERSION_7
}

// last returns the last of the UUIDs that belong to a caller that got id.
func last(id uuid.UUID) uuid.UUID {
	binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])+1<<61-1)
	return id
}

// TestUUIDsAscend: each UUID is above all UUIDs that belong to earlier callers, and has room to count up.
func TestUUIDsAscend(t *testing.T) {
	var before uuid.UUID
	for range 30_000 {
		id, err := uuid7.New()
		if err != nil {
			t.Fatal(err)
		}
		end := last(id)
		if bytes.Compare(id[:], before[:]) <= 0 || !bytes.Equal(id[:8], end[:8]) || end.Version() != 7 || end.Variant() != uuid.RFC4122 {
			t.Fatalf("UUIDs = %v … %v, want UUIDs of version 7 above %v", id, end, before)
		}
		before = end
	}
}

func TestConcurrentUUIDsAreDistinct(t *testing.T) {
	var seen sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 6000 {
				id, err := uuid7.New()
				if err != nil {
					t.Errorf("New(): error %v, want none", err)
					return
				}
				if _, twice := seen.LoadOrStore([8]byte(id[:8]), true); twice {
					t.Errorf("the first half of UUID %v was issued twice, want once", id)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := uuid7.New(); err != nil {
			b.Fatal(err)
		}
	}
}
