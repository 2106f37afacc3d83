package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// state is the record of a lease in a file, under a lock held for the life of
// the process.
type state struct {
	path    string
	lock    *os.File
	workers int // a record of another layout's may be of a worker id that is none here
}

func openState(dir, registry string, workers int) (*state, error) {
	h := fnv.New64a()
	h.Write([]byte(registry))
	path := filepath.Join(dir, fmt.Sprintf("lease-%016x.json", h.Sum64()))
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("leafsql: local state of the worker id's lease: %w; stop the other process, or give this one a directory of its own", unusable(err))
	}
	return &state{path, lock, workers}, nil
}

// unusable adds the way out to an error of the file system.
func unusable(err error) error {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	if path || link {
		return fmt.Errorf("%w; see that the directory is on a local disk, has room, and can be written to", err)
	}
	return err
}

func (s *state) load() (record, bool, error) {
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, err
	}
	var r record
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return record{}, false, fmt.Errorf("%s: %w", s.path, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return record{}, false, fmt.Errorf("%s: text after its end", s.path)
	}
	if r.Slot < 0 || r.Slot >= s.workers {
		return record{}, false, fmt.Errorf("%s: worker id %d does not fit the layout, which has 0 … %d", s.path, r.Slot, s.workers-1)
	}
	return r, r.Nonce != "", nil
}

func (s *state) save(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeDurably(s.path, text)
}

func (s *state) remove() error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(s.path))
}

func (s *state) Close() error { return s.lock.Close() }

// registryName tells registries apart by spec and options. Credentials may
// change without its being another registry.
func registryName(spec string, opts Options) string {
	var b strings.Builder
	b.WriteString(spec)
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		if l := strings.ToLower(k); !strings.Contains(l, "user") && !strings.Contains(l, "password") && !strings.Contains(l, "secret") && !strings.Contains(l, "token") {
			fmt.Fprintf(&b, "\n%s=%s", k, opts[k])
		}
	}
	return b.String()
}

// writeDurably replaces a file's content so that after a crash there is
// either the old one or, once it returned, the new.
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
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename or a removal in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
