//go:build unix

package process

import (
	"math"
	"syscall"
)

// openFiles is how many files this process may have open, connections among them.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt))
}
