package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// file is Slots of one worker id in a directory of this machine. The lock is
// held for the file's life: whoever wrote what is found there is gone.
type file struct {
	worker int
	path   string
	lock   *os.File

	mu   sync.Mutex
	mine bool // the document is of this life
}

func openFile(dir string, worker int) (*file, error) {
	path := filepath.Join(dir, fmt.Sprintf("worker-%d.json", worker))
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("leafsql: worker id %d: %w; stop the other process, or give this one another worker id", worker, unusable(err))
	}
	return &file{worker: worker, path: path, lock: lock}, nil
}

// Get reads the document. One that an earlier life left behind as held is
// free: the lock proves that its owner is gone.
func (f *file) Get(_ context.Context, _ int) (Doc, Version, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, v, err := f.read()
	if v != "" && !f.mine {
		d.Free = true
	}
	return d, v, err
}

func (f *file) read() (Doc, Version, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Doc{}, "", nil
	}
	if err != nil {
		return Doc{}, "", err
	}
	d, err := ParseDoc(string(text))
	if err != nil {
		return Doc{}, "", fmt.Errorf("%s: %w; remove the file if no id younger than %v can have been issued", f.path, err, ms(localTiming.bound))
	}
	return d, Version(text), nil
}

func (f *file) Put(_ context.Context, _ int, d Doc, expected Version) (Version, Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, v, err := f.read()
	if err != nil || v != expected {
		return "", Refused, err
	}
	text := d.Encode()
	if err := writeDurably(f.path, []byte(text)); err != nil {
		return "", Unknown, unusable(err)
	}
	f.mine = true
	return Version(text), OK, nil
}

// Close gives up the lock. The document stays.
func (f *file) Close() error { return f.lock.Close() }
