//go:build unix

// Package freeze lets a process stand still, as a paused machine would. It needs Linux' /proc.
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

// Freeze stops all threads of a process where they are and returns when the last one stands.
func Freeze(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze: stopping process %d: %w", pid, err)
	}
	for range 500 {
		if frozen(pid) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("freeze: process %d does not stand still", pid), Thaw(pid))
}

// frozen looks at each thread: they stop one by one.
func frozen(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, stat := range stats {
		text, readErr := os.ReadFile(stat)
		if readErr == nil && !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return err == nil && len(stats) > 0
}

// Thaw lets a frozen process go on.
func Thaw(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("freeze: continuing process %d: %w", pid, err)
	}
	return nil
}
