package snowflake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// registry is worker.Slots in memory that can be away and can be written by
// somebody else.
type registry struct {
	mu    sync.Mutex
	docs  map[int]worker.Doc
	vers  map[int]int
	count int
	reads int
	gone  error // what every call fails with; nil: it answers
}

var errAway = errors.New("connection refused")

func (r *registry) Get(_ context.Context, slot int) (worker.Doc, worker.Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return r.docs[slot], r.version(slot), r.gone
}

func (r *registry) Put(_ context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, worker.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone != nil || r.version(slot) != expected {
		return "", worker.Refused, r.gone
	}
	r.write(slot, d)
	return r.version(slot), worker.OK, nil
}

func (r *registry) version(slot int) worker.Version {
	if v := r.vers[slot]; v != 0 {
		return worker.Version(fmt.Sprint(v))
	}
	return ""
}

func (r *registry) write(slot int, d worker.Doc) {
	if r.docs == nil {
		r.docs, r.vers = make(map[int]worker.Doc), make(map[int]int)
	}
	r.count++
	r.docs[slot], r.vers[slot] = d, r.count
}

// away lets the registry fail, or answer again.
func (r *registry) away(gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = nil
	if gone {
		r.gone = errAway
	}
}

// rob gives a slot to somebody else, as if its owner had been taken for dead.
func (r *registry) rob(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.docs[slot]
	r.write(slot, worker.Doc{Nonce: "thief", HW: max(d.HW, time.Now().UnixMilli()) + 60_000, Owner: "thief"})
}

// doc is what a slot holds.
func (r *registry) doc(slot int) worker.Doc {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.docs[slot]
}

// acquire leases one of the worker ids 0 … n-1, which were in use before.
func (r *registry) acquire(t testing.TB, n int, bound time.Duration) *worker.Lease {
	t.Helper()
	all := make([]int, n)
	r.mu.Lock()
	for i := range all {
		all[i] = i
		if r.version(i) == "" {
			r.write(i, worker.Doc{Nonce: "before", HW: 1, Free: true})
		}
	}
	r.mu.Unlock()
	l, err := worker.Acquire(t.Context(), worker.Source{
		Slots:   r,
		Workers: func(context.Context) ([]int, error) { return all, nil },
	}, worker.Config{Workers: n, Bound: bound, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// generator makes ids of a layout with one of n worker ids.
func (r *registry) generator(t testing.TB, layout Layout, n int, bound time.Duration) *Generator {
	t.Helper()
	l := r.acquire(t, n, bound)
	g, err := New(layout, l)
	if err != nil {
		l.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// open leases what spec names, without a word in the log.
func open(t testing.TB, layout Layout, spec, state string) (*worker.Lease, error) {
	return worker.Open(t.Context(), spec, worker.Config{
		Workers: layout.Workers(), State: state, NewRegistry: true, Logger: slog.New(slog.DiscardHandler),
	})
}
