//go:build unix && !solaris && !aix

package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFile locks the lock file of path until the returned file is closed or
// the process ends in any way. It creates the directory if it is missing.
func lockFile(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s: %w", errInUse, f.Name(), err)
	}
	return f, nil
}
