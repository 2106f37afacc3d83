//go:build unix

// Package freeze stops a process, like a pause of its machine. It needs Linux' /proc.
package freeze

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Freeze stops all threads of a process and returns when the last one has stopped. Thaw
// continues them.
func Freeze(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze: stopping process %d: %w", pid, err)
	}
	for range 500 {
		if isFrozen(pid) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("freeze: process %d does not stand still", pid), Thaw(pid))
}

// isFrozen reports whether all threads have stopped: they stop one by one.
func isFrozen(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range stats {
		text, readErr := os.ReadFile(stat)
		if readErr == nil && !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return err == nil && len(stats) > 0
}

// Thaw continues a frozen process.
func Thaw(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("freeze: continuing process %d: %w", pid, err)
	}
	return nil
}
