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

// documents are those of Nacos' config service. Reads may be stale.
type documents interface {
	// query gives a document's text.
	query(ctx context.Context, id string) (text string, found bool, err error)

	// publish writes a document whose text has that md5, or that is missing;
	// nil says that it was so, and done.
	publish(ctx context.Context, id, text, md5 string) error
}

// configs is the config service of servers that were seen to compare.
type configs interface {
	documents

	// ready returns when there is such a server.
	ready(ctx context.Context) error

	// hold says that a slot is held in a registry up to a time: servers gone to
	// until then have to show that one. A zero time says that it is free.
	hold(slot int, registry string, upTo time.Time)
}

// registry is worker.Slots on the config service's compare-and-set.
type registry struct {
	configs configs
	service string
	servers string // for errors

	mu      sync.Mutex
	proven  bool            // a write was seen to replace what was there
	written map[int]written // the last write to each slot that was told ok
}

// written is what reads may still show of the time before our last write.
type written struct {
	before []worker.Version // what our writes replaced
	last   time.Time
}

// noSum is the md5 of no text that anybody writes. It is never blank: a blank
// one would overwrite whatever is there.
func noSum() string { return string(api.Version(rand.Text())) }

// visible is how long a write may take until reads show it; 1.2 s has been
// seen.
const visible = 3 * time.Second

// Get implements worker.Slots. A read that does not show a write of ours yet
// is repeated for a while: it would only make the next write fail.
func (r *registry) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	for {
		d, v, err := r.get(ctx, slot)
		r.mu.Lock()
		w, wrote := r.written[slot]
		r.mu.Unlock()
		stale := wrote && time.Since(w.last) < visible && slices.Contains(w.before, v)
		if err != nil || !stale || !api.Sleep(ctx, 20*time.Millisecond) {
			return d, v, err
		}
	}
}

func (r *registry) get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	if err := r.configs.ready(ctx); err != nil {
		return worker.Doc{}, "", err
	}
	return api.Slot(api.DocumentID(r.service, slot), func(id string) (string, bool, error) { return r.configs.query(ctx, id) })
}

// Put implements worker.Slots. On a missing document servers take any md5.
func (r *registry) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if err := r.configs.ready(ctx); err != nil {
		return "", false, &worker.NotWrittenError{Err: err}
	}
	id, text := api.DocumentID(r.service, slot), d.Encode()
	if err := r.configs.publish(ctx, id, text, cmp.Or(string(expected), noSum())); err != nil {
		return "", false, putError(err)
	}
	r.wrote(slot, expected)
	if err := r.prove(ctx, id, text, expected); err != nil {
		return "", false, err
	}
	switch {
	case slot == worker.RegistrySlot:
	case d.Free:
		r.configs.hold(slot, "", time.Time{})
	default:
		r.configs.hold(slot, d.Registry, d.HighWater)
	}
	return api.Version(text), true, nil
}

// wrote remembers what a write has replaced, and a few from before that.
func (r *registry) wrote(slot int, over worker.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := append(r.written[slot].before, over)
	r.written[slot] = written{before: slices.Clone(before[max(0, len(before)-4):]), last: time.Now()}
}

// putError is what Put says of a publish that failed: nothing where the servers
// hold another document.
func putError(err error) error {
	_, login := errors.AsType[*api.LoginError](err)
	switch e, answered := errors.AsType[*api.ServerError](err); {
	case answered && api.CasMissed(e):
		return nil
	case login, api.IsUnsent(err), answered && e.Code == api.NoHandler:
		return &worker.NotWrittenError{Err: err}
	}
	return err
}
