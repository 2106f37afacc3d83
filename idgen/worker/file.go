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

// file implements Slots for one worker id in a directory of this machine. The lock is
// held from open to Close, so the process that wrote an existing file has ended.
type file struct {
	worker int
	path   string
	lock   *os.File

	mu          sync.Mutex
	writtenHere bool // this process wrote the document
}

func openFile(dir string, worker int) (*file, error) {
	path := filepath.Join(dir, fmt.Sprintf("worker-%d.json", worker))
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("leafsql: worker id %d: %w; stop the other process, or give this one another worker id", worker, addFileHint(err))
	}
	return &file{worker: worker, path: path, lock: lock}, nil
}

// Get returns the document. If another process ended without a release, Get returns its document
// as free, since the lock proves that the process has ended.
func (f *file) Get(_ context.Context, _ int) (Doc, Version, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, v, err := f.read()
	if v != "" && !f.writtenHere {
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
	var d Doc
	if err := d.Decode(string(text)); err != nil {
		return Doc{}, "", fmt.Errorf("%s: %w; remove the file if no id was issued in the last %v", f.path, err, localTiming.lease)
	}
	return d, Version(text), nil
}

func (f *file) Put(_ context.Context, _ int, d Doc, expected Version) (Version, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, v, err := f.read()
	switch {
	case err != nil:
		return "", false, &NotWrittenError{err}
	case v != expected:
		return "", false, nil
	}
	text := d.Encode()
	if err := writeDurably(f.path, []byte(text)); err != nil {
		return "", false, addFileHint(err)
	}
	f.writtenHere = true
	return Version(text), true, nil
}

// Close releases the lock. The document remains.
func (f *file) Close() error { return f.lock.Close() }

// addFileHint adds a hint to an error of the file system.
func addFileHint(err error) error {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	if path || link {
		return fmt.Errorf("%w; check that the directory is on a local disk, has free space and can be written to", err)
	}
	return err
}

// writeDurably replaces the content of a file. If the machine crashes before writeDurably has
// returned, the file has the old or the new content; later it has the new content.
func writeDurably(path string, text []byte) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path)) // syncing the directory makes the rename durable
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
