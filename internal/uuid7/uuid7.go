// Package uuid7 makes UUIDs of version 7 (RFC 9562) as keys for BINARY(16),
// CHAR(36) and MariaDB's UUID columns, in blocks of consecutive UUIDs.
//
//	block, err := uuid7.New(3)
//	first, last := block.At(0), block.At(2)
//
// UUIDs ascend within the process, since the clock of github.com/google/uuid
// never repeats a time or goes back. UUIDs of different processes almost certainly differ: each
// UUID has 61 random bits and a time with a resolution of about 0.25 µs. The package needs no
// worker id and no server.
package uuid7

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/google/uuid"
)

// A Block is n consecutive UUIDs: each UUID is the previous one with its last 8 bytes increased by 1.
type Block struct {
	first uuid.UUID
	n     int
}

// New returns a block of n UUIDs. It returns an error if n is not in 1 … 2^31-1, or if the
// system's source of random numbers fails.
func New(n int) (Block, error) {
	if n < 1 || n > math.MaxInt32 {
		return Block{}, fmt.Errorf("leafsql: %d UUIDs requested; request 1 … %d", n, math.MaxInt32)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Block{}, fmt.Errorf("leafsql: generate a UUID: %w", err)
	}
	id[8] &^= 0x20 // clear the highest random bit, so that counting up cannot overflow
	return Block{id, n}, nil
}

// Len returns the number of UUIDs.
func (b Block) Len() int { return b.n }

// At returns the k-th UUID, and panics if k is not in 0 … Len()-1.
func (b Block) At(k int) uuid.UUID {
	if k < 0 || k >= b.n {
		panic(fmt.Sprintf("uuid7: %d of a block of %d", k, b.n))
	}
	id := b.first
	binary.BigEndian.PutUint64(id[8:], binary.BigEndian.Uint64(id[8:])+uint64(k))
	return id
}
