package nacos

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
)

// documents are the documents of Nacos' config service. Reads may be stale.
type documents interface {
	// query returns a document's text.
	query(ctx context.Context, id string) (text string, found bool, err error)

	// publish writes a document if its text has that md5 or if it is missing;
	// nil means that the server acknowledged the write.
	publish(ctx context.Context, id, text, md5 string) error
}

// configs is the config service of servers with a checked compare-and-set.
type configs interface {
	documents

	// ready waits for a server with a checked compare-and-set.
	ready(ctx context.Context) error

	// setHeld records that this process holds a slot (worker id) of a registry up to a time. Until then,
	// servers of new connections must have this registry. A zero time means
	// that the slot is free.
	setHeld(slot int, registry string, upTo time.Time)
}

// registry implements worker.Slots with the config service's compare-and-set. A slot is the document of one worker
// id, and its version is the md5 of its text.
type registry struct {
	configs configs
	service string
	servers string // for errors

	readOnly bool // servers were not checked, so nothing may be written

	mu      sync.Mutex
	proven  bool                    // a server refused the md5 that a write had replaced
	written map[int]writtenVersions // the last acknowledged writes to each slot
}

// writtenVersions has the versions that this process replaced and that reads may still return.
type writtenVersions struct {
	before []worker.Version // versions that the last few writes replaced
	last   time.Time        // time of the last write
}

var errReadOnly = errors.New("the source was opened for reading only")

// unusedSum returns an md5 that no text has. It is never blank: with a blank md5
// the server would overwrite any text.
func unusedSum() string { return string(api.VersionOf(rand.Text())) }

// visibilityDelay is the longest time until reads return a written text; 1.2 s has been
// measured.
const visibilityDelay = 3 * time.Second

// Get implements worker.Slots. If a read does not return the last written text yet, Get
// repeats the read for a while, because the next write would fail otherwise.
func (r *registry) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 320*time.Millisecond) {
		d, v, err := r.get(ctx, slot)
		r.mu.Lock()
		w, wrote := r.written[slot]
		r.mu.Unlock()
		stale := wrote && time.Since(w.last) < visibilityDelay && slices.Contains(w.before, v)
		if err != nil || !stale || !api.Sleep(ctx, pause) {
			return d, v, err
		}
	}
}

func (r *registry) get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	if err := r.configs.ready(ctx); err != nil {
		return worker.Doc{}, "", err
	}
	return api.ReadSlot(api.DocumentID(r.service, slot), func(id string) (string, bool, error) { return r.configs.query(ctx, id) })
}

// Put implements worker.Slots. Servers accept any md5 for a missing document.
func (r *registry) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if r.readOnly {
		return "", false, &worker.NotWrittenError{Err: errReadOnly}
	}
	if err := r.configs.ready(ctx); err != nil {
		return "", false, &worker.NotWrittenError{Err: err}
	}
	id, text := api.DocumentID(r.service, slot), d.Encode()
	if err := r.configs.publish(ctx, id, text, cmp.Or(string(expected), unusedSum())); err != nil {
		return "", false, putError(err)
	}
	r.recordWrite(slot, expected)
	if err := r.proveWrites(ctx, id, text, expected); err != nil {
		return "", false, err
	}
	switch {
	case slot == worker.RegistrySlot:
	case d.Free:
		r.configs.setHeld(slot, "", time.Time{})
	default:
		r.configs.setHeld(slot, d.Registry, d.HighWater)
	}
	return api.VersionOf(text), true, nil
}

// recordWrite records the version that a write has replaced, and keeps a few earlier
// ones.
func (r *registry) recordWrite(slot int, over worker.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := append(r.written[slot].before, over)
	r.written[slot] = writtenVersions{before: slices.Clone(before[max(0, len(before)-4):]), last: time.Now()}
}

// putError returns the error of Put for a publish that failed. It returns nil if the
// publish failed because the servers have another document.
func putError(err error) error {
	_, login := errors.AsType[*api.LoginError](err)
	switch e, answered := errors.AsType[*api.ServerError](err); {
	case answered && api.IsCASMismatch(e):
		return nil
	case login, api.IsUnsent(err), answered && e.Code == api.NoHandler:
		return &worker.NotWrittenError{Err: err}
	}
	return err
}
