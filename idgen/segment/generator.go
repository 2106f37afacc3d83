// Package segment issues ids from ranges that are fetched from a store, one tag a
// generator, as Leaf's segment mode does.
package segment

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

// Options of a Generator. The zero value of a field means its default.
type Options struct {
	Timeout time.Duration // of one fetch; 5 s
	Logger  *slog.Logger  // for outages met while ids are still in memory; slog.Default()
}

// Generator issues the ids of one tag. It is safe for concurrent use.
type Generator struct {
	store Store
	tag   string

	mu         sync.Mutex
	next, end  int64
	seen       int64
	closed     bool
	fetches, n int64
}

// Stats of a Generator since it was made.
type Stats struct {
	Fetches   int64 // ranges fetched
	Failures  int64 // fetches that failed
	IDs       int64 // ids issued
	Dropped   int64 // ids fetched and given up: ends of ranges too short for a block
	Waits     int64 // calls of Next that waited for a fetch
	Step      int64 // ids the next fetch asks for
	Remaining int64 // ids in memory
}

// New returns a generator for tag. Nothing is fetched before the first Next.
func New(store Store, tag string, opts *Options) *Generator {
	return &Generator{store: store, tag: tag}
}

// Next implements idgen.Generator.
func (g *Generator) Next(ctx context.Context, n int) (int64, error) {
	if n < 1 || n > MaxRowStep {
		return 0, &idgen.CountError{N: n, Max: MaxRowStep}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, idgen.ErrClosed
	}
	for g.end-g.next < int64(n) {
		r, err := g.store.Fetch(ctx, g.tag, int64(n), g.seen)
		if err != nil {
			return 0, err
		}
		g.fetches++
		g.seen, g.end = r.End, r.End
		g.next = max(r.Start, 1)
	}
	g.next += int64(n)
	g.n += int64(n)
	return g.next - int64(n), nil
}

// Close stops fetching. The ids still in memory are never issued.
func (g *Generator) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return nil
}

// Stats returns what the generator did so far.
func (g *Generator) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Stats{Fetches: g.fetches, IDs: g.n, Remaining: g.end - g.next}
}
