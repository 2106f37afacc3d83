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

// registry implements worker.Slots in memory. Tests can make it fail, and can write its slots
// as another process.
type registry struct {
	mu      sync.Mutex
	docs    map[int]worker.Doc
	vers    map[int]int
	count   int
	reads   int
	failure error // returned by every call unless nil
}

var errAway = errors.New("connection refused")

func (r *registry) Get(_ context.Context, slot int) (worker.Doc, worker.Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return r.docs[slot], r.version(slot), r.failure
}

func (r *registry) Put(_ context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failure != nil:
		return "", false, &worker.NotWrittenError{Err: r.failure}
	case r.version(slot) != expected:
		return "", false, nil
	}
	r.write(slot, d)
	return r.version(slot), true, nil
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

// away makes the registry fail, or answer again.
func (r *registry) away(gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = nil
	if gone {
		r.failure = errAway
	}
}

// takeSlots gives a slot to another process, as if its owner were dead.
func (r *registry) takeSlots(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.docs[slot]
	upTo := time.Now()
	if d.HighWater.After(upTo) {
		upTo = d.HighWater
	}
	r.write(slot, worker.Doc{Nonce: "thief", HighWater: time.UnixMilli(upTo.Add(time.Minute).UnixMilli()), Owner: "thief", Registry: d.Registry})
}

// doc returns the document of a slot.
func (r *registry) doc(slot int) worker.Doc {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.docs[slot]
}

// source opens the registry. n of its slots were in use before; all others
// are held forever.
func (r *registry) source(n int) func(context.Context) (worker.Source, error) {
	return func(context.Context) (worker.Source, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range n {
			if r.version(i) == "" {
				r.write(i, worker.Doc{Nonce: "before", HighWater: time.UnixMilli(1), Free: true, Registry: "r"})
			}
		}
		return worker.Source{Slots: &fewSlots{r, n}}, nil
	}
}

// fewSlots is a registry with worker ids for n processes. Its own document is always as the reader
// expects it.
type fewSlots struct {
	*registry
	n int
}

func (f *fewSlots) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	d, v, err := f.registry.Get(ctx, slot)
	switch {
	case err != nil:
	case slot == worker.RegistrySlot && v == "":
		return worker.Doc{}, "", nil
	case slot >= f.n:
		return worker.Doc{Nonce: "taken", HighWater: time.Now().Add(time.Minute), Registry: "r"}, "v", nil
	}
	return d, v, err
}

func (f *fewSlots) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if slot == worker.RegistrySlot {
		d.Nonce, d.Registry, d.Owner = "r", "r", d.Owner+"; slots made: 4194304"
	}
	return f.registry.Put(ctx, slot, d, expected)
}

// generator returns a Generator of a layout that holds one of n worker ids.
func (r *registry) generator(t testing.TB, layout Layout, n int, lease time.Duration) *Generator {
	t.Helper()
	g, err := New(layout, r.source(n), worker.Config{Lease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := g.keeper.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// static leases worker id 7, with its state in a directory.
func static(t testing.TB, layout Layout, state string) (*Generator, error) {
	open, err := worker.Lookup("static(7)", nil)
	if err != nil {
		return nil, err
	}
	g, err := New(layout, open, worker.Config{State: state, NewRegistry: true, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Cleanup(func() { g.Close() })
	}
	return g, err
}

// until waits until the keeper is in a phase, and returns its status.
func (g *Generator) until(phase string) *worker.Status {
	for {
		s := g.keeper.Status()
		if s.Phase == phase {
			return s
		}
		<-s.Changed()
	}
}
