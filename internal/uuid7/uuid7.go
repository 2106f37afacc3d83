// Package uuid7 makes UUIDs of version 7 (RFC 9562) as keys for BINARY(16),
// CHAR(36) and MariaDB's UUID columns.
//
//	first, err := uuid7.New() // the caller also owns the next UUIDs
//
// UUIDs ascend within the process, since the clock of github.com/google/uuid
// never repeats a time or goes back. UUIDs of different processes almost certainly differ: each
// UUID has 61 random bits and a time with a resolution of about 0.25 µs. The package needs no
// worker id and no server.
package uuid7

import (
	"fmt"

	"github.com/google/uuid"
)

// New returns the first of 2^61 consecutive UUIDs: each of them is the previous one with its last 8 bytes increased by 1.
// No other call returns any of them. New returns an error if the system's source of random numbers fails.
func New() (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return id, fmt.Errorf("leafsql: generate a UUID: %w", err)
	}
	id[8] &^= 0x20 // clear the highest random bit, so that counting up cannot overflow
	return id, nil
}
