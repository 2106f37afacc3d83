//go:build unix

package process

import (
	"math"
	"syscall"
)

// maxOpenFiles returns the maximum number of open files of this process, including connections.
func maxOpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt))
}
