package nacos

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
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

	// settle has f find the registry's anchor, which servers gone to from then
	// on have to show.
	settle(ctx context.Context, f func(context.Context, documents) (string, error)) (string, error)
}

// registry is worker.Slots on the config service's compare-and-set.
type registry struct {
	configs configs
	service string
	servers string // for errors

	stop func()

	mu      sync.Mutex
	proven  bool            // a write was seen to replace what was there
	written map[int]written // the last write to each slot that was told ok
}

// written is what reads may still show of the time before our last write.
type written struct {
	before []worker.Version // what our writes replaced
	last   time.Time
}

func (r *registry) id(slot int) string { return r.service + ".worker." + strconv.Itoa(slot) }

// sum is a document's version.
func sum(text string) string {
	h := md5.Sum([]byte(text))
	return hex.EncodeToString(h[:])
}

// noSum is the md5 of no text that anybody writes. It is never blank: a blank
// one would overwrite whatever is there.
func noSum() string { return sum(rand.Text()) }

// Get implements worker.Slots. A read that does not show a write of ours yet
// is repeated for a while: it would only make the next write fail.
func (r *registry) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	for {
		d, v, err := r.get(ctx, slot)
		r.mu.Lock()
		w, wrote := r.written[slot]
		r.mu.Unlock()
		stale := wrote && time.Since(w.last) < visible && slices.Contains(w.before, v)
		if err != nil || !stale || !sleep(ctx, 20*time.Millisecond) {
			return d, v, err
		}
	}
}

func (r *registry) get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	if err := r.configs.ready(ctx); err != nil {
		return worker.Doc{}, "", err
	}
	text, found, err := r.configs.query(ctx, r.id(slot))
	if err != nil || !found {
		return worker.Doc{}, "", err
	}
	d, err := worker.ParseDoc(text)
	if err != nil {
		return worker.Doc{}, "", fmt.Errorf("config %s: %w", r.id(slot), err)
	}
	return d, worker.Version(sum(text)), nil
}

// Put implements worker.Slots. On a missing document servers take any md5,
// hence the anchor.
func (r *registry) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, worker.Result, error) {
	if err := r.configs.ready(ctx); err != nil {
		return "", worker.Refused, err
	}
	text := d.Encode()
	res, err := outcome(r.configs.publish(ctx, r.id(slot), text, cmp.Or(string(expected), noSum())))
	if res != worker.OK {
		return "", res, err
	}
	r.wrote(slot, expected)
	if err := r.prove(ctx, r.id(slot), text, expected); err != nil {
		return "", worker.Unknown, err
	}
	return worker.Version(sum(text)), worker.OK, nil
}

// wrote remembers what a write has replaced, and a few from before that.
func (r *registry) wrote(slot int, over worker.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := append(r.written[slot].before, over)
	r.written[slot] = written{before: slices.Clone(before[max(0, len(before)-4):]), last: time.Now()}
}

// outcome tells what became of a publish.
func outcome(err error) (worker.Result, error) {
	if err == nil {
		return worker.OK, nil
	}
	if _, unsent := errors.AsType[unsentError](err); unsent {
		return worker.Refused, err
	}
	if e, ok := errors.AsType[*ServerError](err); ok {
		switch {
		case isCasMiss(e.Message):
			return worker.Refused, nil
		case e.Code == codeForbidden || e.Code == codeNoHandler:
			return worker.Refused, err
		}
	}
	return worker.Unknown, err
}

// Anchor implements worker.Anchorer.
func (r *registry) Anchor(ctx context.Context) (string, error) {
	return r.configs.settle(ctx, func(ctx context.Context, one documents) (string, error) {
		return ensure(ctx, one, anchorID(r.service))
	})
}

func anchorID(service string) string { return service + ".anchor" }

// ensure gives the text of a document, creating it with a random one if it is
// missing. Several creators may be told that theirs was written, and reads may
// show what was refused; so after a creation the text counts that a
// compare-and-set, which changes nothing, confirms.
func ensure(ctx context.Context, docs documents, id string) (string, error) {
	text, found, err := docs.query(ctx, id)
	if err != nil || found {
		return text, err
	}
	if res, err := outcome(docs.publish(ctx, id, rand.Text(), noSum())); err != nil && res == worker.Refused {
		return "", err
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := await(ctx, docs, visible, id, func(now string, there bool) bool {
			text, found = now, there
			return there
		})
		if err != nil {
			return "", err
		}
		if !found {
			return "", fmt.Errorf("config %s is still missing after it was created", id)
		}
		res, err := outcome(docs.publish(ctx, id, text, sum(text)))
		if res == worker.OK {
			return text, nil
		}
		if err != nil || !sleep(ctx, pause) {
			return "", cmp.Or(err, context.Cause(ctx))
		}
	}
}

// visible is how long a write may take until reads show it; 1.2 s has been
// seen.
const visible = 3 * time.Second

// await reads a document until it is as wanted, or for so long.
func await(ctx context.Context, docs documents, long time.Duration, id string, ok func(text string, found bool) bool) error {
	pause := 10 * time.Millisecond
	for until := time.Now().Add(long); ; pause = min(2*pause, 160*time.Millisecond) {
		text, found, err := docs.query(ctx, id)
		if err != nil || ok(text, found) || time.Now().After(until) {
			return err
		}
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// sleep reports whether it slept for so long; it ends early with ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Close implements io.Closer.
func (r *registry) Close() error {
	r.stop()
	return nil
}
